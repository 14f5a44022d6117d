// What mending costs: for one seam between two images stacked by the rule batch_to_space, the original layer, the mutant and each
// way of mending it, timed in one process, interleaved, step by step. Prints milliseconds, the correction's share of the layer's
// arithmetic, and the correction's time as a multiple of that share of the original convolution's time (at most 1.25 is wanted).
// Then strips of one row and one column inside a layer in its own layout, in GFLOP/s beside the layer's. Nothing is asserted.
// On one thread, time that the process had no core is not counted.
//
// usage: corrections [--threads N] [--rounds N] [--relu] [--min]   (--min: short steps by their fastest run)

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "bench/expect.h"
#include "corrector/corrector.h"
#include "graph/emitter.h"
#include "graph/restrict.h"
#include "graph/rewrite.h"
#include "mutator/rule.h"
#include "runtime/backend.h"
#include "runtime/measure.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

struct Options {
  int threads = 1;
  int rounds = 15;
  bool relu = false;
  bool fastest = false;
};

ValueId Weights(Emitter& e, const Shape& shape, const std::string& name) {
  Rng rng(5);
  std::vector<double> values(static_cast<size_t>(NumElements(shape)));
  for (double& value : values) value = rng.Normal() * 0.02;
  return e.Constant(Tensor::FromDoubles({DType::kF32, shape}, values), name);
}

ValueId Convolve(Emitter& e, ValueId x, int64_t channels, int64_t kernel, const std::string& name) {
  const int64_t pad = kernel / 2;
  return e.Op("Conv", {x, Weights(e, {channels, e.shape(x)[1], kernel, kernel}, name), Weights(e, {channels}, name + "b")},
              {{"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{pad, pad, pad, pad}}});
}

double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

constexpr double kLong = 2e-3;  // seconds; beside a time slice

/// Takes time without a core off the long steps; short ones have rounds without an interruption.
void TakeOff(double cpu, std::vector<double>& seconds) {
  const double all = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  double lengthy = 0;
  for (double step : seconds) lengthy += step > kLong ? step : 0;
  if (lengthy == 0 || cpu >= all) return;
  const double factor = std::max(0.0, 1 - (all - cpu) / lengthy);
  for (double& step : seconds) step *= step > kLong ? factor : 1;
}

/// One program, its steps' times.
class Timed {
 public:
  Timed(std::string label, Graph graph, int threads)
      : name(std::move(label)),
        threads_(threads),
        graph_(std::move(graph)),
        executable_(Expect(FindBackend("cpu")->Compile(graph_, {.threads = threads}))) {
    inputs_ = RandomInputs(graph_, 3);
    for (const GraphOutput& output : graph_.outputs())
      outputs_.emplace_back(static_cast<size_t>(ByteSize(graph_.type(output.value))));
    times_.resize(executable_->steps().size());
  }

  void Run(bool keep) {
    std::vector<std::span<const std::byte>> in;
    for (const Tensor& tensor : inputs_) in.push_back(tensor.bytes());
    std::vector<std::span<std::byte>> out(outputs_.begin(), outputs_.end());
    std::vector<double> seconds;
    const double cpu = CpuSeconds();
    MENDEL_CHECK(executable_->RunTimed(in, out, seconds).ok());
    if (threads_ == 1) TakeOff(CpuSeconds() - cpu, seconds);
    for (size_t s = 0; keep && s < seconds.size(); ++s) times_[s].push_back(seconds[s] * 1e3);
  }

  /// Milliseconds of the steps that `wanted` selects.
  template <class Wanted>
  double Milliseconds(const Options& options, const Wanted& wanted) const {
    double total = 0;
    for (size_t s = 0; s < times_.size(); ++s) {
      if (!wanted(executable_->steps()[s])) continue;
      std::vector<double> sorted = times_[s];
      std::sort(sorted.begin(), sorted.end());
      const double median = sorted[sorted.size() / 2];
      // What was taken off a long step may be too much in one round.
      total += options.fastest && median < kLong * 1e3 ? sorted.front() : median;
    }
    return total;
  }
  double Milliseconds(const Options& options) const {
    return Milliseconds(options, [](const Step&) { return true; });
  }

  std::string name;
  double share = 0;

 private:
  const int threads_;
  Graph graph_;
  std::unique_ptr<Executable> executable_;
  std::vector<Tensor> inputs_;
  std::vector<std::vector<std::byte>> outputs_;
  std::vector<std::vector<double>> times_;
};

bool IsCorrection(const Step& step) { return step.kernel.compare(0, 6, "strips") == 0 || step.kernel.compare(0, 5, "patch") == 0; }

void Interleave(std::vector<std::unique_ptr<Timed>>& programs, int rounds) {
  for (int round = -2; round < rounds; ++round) {
    for (auto& program : programs) program->Run(round >= 0);
  }
}

/// Time of the convolution that does the layer's work.
double LayerMilliseconds(const Timed& timed, const Options& options) {
  double largest = 0;
  timed.Milliseconds(options, [&](const Step& step) {
    largest = std::max(largest, step.flops);
    return false;
  });
  return timed.Milliseconds(options, [&](const Step& step) { return !IsCorrection(step) && step.flops == largest; });
}

Graph Layer(int64_t channels, int64_t extent, int64_t kernel, bool relu) {
  Emitter e("layer");
  ValueId y = Convolve(e, e.Input("in0", {DType::kF32, {2, channels, extent, extent}}), channels, kernel, "w");
  if (relu) y = e.Op("Relu", {y});
  e.Output("out0", y);
  return Expect(e.Finish());
}

/// The mutant of `rule` that stacks two images along `dim` (2 or 3); nullopt when it has none.
std::optional<Mutant> Stacked(const Graph& layer, std::string_view rule, int64_t dim) {
  const Rule* found = FindRule(rule);
  if (found == nullptr) return std::nullopt;
  for (const Match& match : found->match(layer, layer.outputs()[0].value.node)) {
    const auto factor = [&](int64_t d) {
      const auto choice = match.choices.find(Cat("dim", d));
      return choice == match.choices.end() ? 1 : choice->second;
    };
    if (factor(dim) == 2 && factor(5 - dim) == 1) return Expect(MakeMutant(layer, *found, match));
  }
  return std::nullopt;
}

void MeasureSeam(int64_t channels, int64_t extent, int64_t kernel, int64_t dim, const Options& options) {
  const Graph layer = Layer(channels, extent, kernel, options.relu);
  const std::optional<Mutant> mutant = Stacked(layer, "batch_to_space", dim);
  if (!mutant.has_value()) {
    std::printf("no mutant of %d channels, %d x %d\n", static_cast<int>(channels), static_cast<int>(extent),
                static_cast<int>(extent));
    return;
  }
  const JudgeReport report = Expect(Localise(mutant->original, mutant->mutant, {.target_log2 = 0}));
  std::vector<std::unique_ptr<Timed>> programs;
  programs.push_back(std::make_unique<Timed>("original", mutant->original, options.threads));
  programs.push_back(std::make_unique<Timed>("mutant", mutant->mutant, options.threads));
  for (const auto mend : {&Recompute, &Difference, &Inside}) {
    const auto mended = mend(mutant->original, mutant->mutant, report, 1);
    if (!mended.ok()) continue;
    programs.push_back(std::make_unique<Timed>(std::string(MendingName(mended->mending)), mended->graph, options.threads));
    programs.back()->share = mended->flop_share;
  }
  if (const auto gap = Stacked(layer, "batch_to_space_gap", dim); gap.has_value()) {
    programs.push_back(std::make_unique<Timed>("prevent", gap->mutant, options.threads));
  }
  Interleave(programs, options.rounds);
  const double original = LayerMilliseconds(*programs[0], options);
  for (const auto& program : programs) {
    std::printf("%dx%d %4d ch %4dx%-4d %s  %-11s %9.3f ms", static_cast<int>(kernel), static_cast<int>(kernel),
                static_cast<int>(channels), static_cast<int>(extent), static_cast<int>(extent), dim == 2 ? "rows   " : "columns",
                program->name.c_str(), program->Milliseconds(options));
    if (program->share > 0) {
      const double own = program->Milliseconds(options, IsCorrection);
      std::printf("   correction %8.4f ms  share %6.2f %%  of the layer's time %6.2f %%  ratio %5.2f", own, 100 * program->share,
                  100 * own / original, own / original / program->share);
    }
    std::printf("\n");
  }
  std::fflush(stdout);
}

/// A layer between pointwise convolutions, so that everything lies in the library's own layout, with one box computed again.
void MeasureStrip(int64_t channels, int64_t extent, int64_t kernel, const char* what, const Box& box, const Options& options) {
  Emitter e("strip");
  const ValueId x = Convolve(e, e.Input("x", {DType::kF32, {1, channels, extent, extent}}), channels, 1, "before");
  e.Output("x", x);
  const ValueId y = Convolve(e, x, channels, kernel, "w");
  e.Output("y", y);
  const Graph layer = Expect(e.Finish());
  const OutputBox wanted{1, box};
  const Graph piece = Expect(RestrictToBoxes(layer, std::span(&wanted, 1)));
  GraphBuilder builder("strip");
  const ValueId input = builder.Input("x", {DType::kF32, {1, channels, extent, extent}});
  const ValueId base = Expect(Inline(layer, {input}, builder))[1];
  const ValueId part = Expect(Inline(piece, {input}, builder))[0];
  const ValueId patched = Expect(builder.Add("Patch", {base, part}, {{"boxes", Boxes{box}}}));
  const ValueId w = builder.Constant(Tensor::Filled({DType::kF32, {channels, channels, 1, 1}}, 0.01), "after");
  const Attributes pointwise{{"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{0, 0, 0, 0}}};
  builder.Output("z", Expect(builder.Add("Conv", {patched, w}, pointwise)));
  std::vector<std::unique_ptr<Timed>> programs;
  programs.push_back(std::make_unique<Timed>(what, Expect(Deduplicate(Expect(builder.Build()))), options.threads));
  Interleave(programs, options.rounds);
  const double flops = 2.0 * static_cast<double>(channels * channels * kernel * kernel);
  const double layer_rate = flops * static_cast<double>(extent * extent) / LayerMilliseconds(*programs[0], options) / 1e6;
  const double strip_rate =
      flops * static_cast<double>(box.Volume() / channels) / programs[0]->Milliseconds(options, IsCorrection) / 1e6;
  std::printf("%dx%d %4d ch %4dx%-4d one %-6s  strip %7.1f GFLOP/s  layer %7.1f GFLOP/s  %5.1f %%\n", static_cast<int>(kernel),
              static_cast<int>(kernel), static_cast<int>(channels), static_cast<int>(extent), static_cast<int>(extent), what,
              strip_rate, layer_rate, 100 * strip_rate / layer_rate);
  std::fflush(stdout);
}

void MeasureAll(const Options& options) {
  std::printf("threads %d, rounds %d, %s, %s\n%s\n", options.threads, options.rounds,
              options.relu ? "with relu" : "without activation", options.fastest ? "fastest runs" : "medians",
              FindBackend("cpu")->Identity().c_str());
  for (const int64_t channels : {512, 256, 64}) {
    const int64_t extent = 28, middle = 13;
    MeasureStrip(channels, extent, 3, "row", {{0, 0, middle, 0}, {1, channels, middle + 1, extent}}, options);
    MeasureStrip(channels, extent, 3, "column", {{0, 0, 0, middle}, {1, channels, extent, middle + 1}}, options);
  }
  for (const int64_t kernel : {3, 5}) {
    for (const int64_t extent : {14, 28, 56, 112}) {
      for (const int64_t channels : {64, 128, 256, 512}) {
        // What networks hold: wide layers are small.
        if (channels * extent > 64 * 224) continue;
        for (const int64_t dim : {2, 3}) MeasureSeam(channels, extent, kernel, dim, options);
      }
    }
  }
}

}  // namespace
}  // namespace mendel

int main(int argc, char** argv) {
  mendel::Options options;
  for (int k = 1; k < argc; ++k) {
    const std::string word = argv[k];
    if (word == "--relu") {
      options.relu = true;
    } else if (word == "--min") {
      options.fastest = true;
    } else if ((word == "--threads" || word == "--rounds") && k + 1 < argc && std::atoi(argv[k + 1]) > 0) {
      (word == "--threads" ? options.threads : options.rounds) = std::atoi(argv[++k]);
    } else {
      std::fprintf(stderr, "usage: corrections [--threads N] [--rounds N] [--relu] [--min]\n");
      return 2;
    }
  }
  if (mendel::FindBackend("cpu") == nullptr) {
    std::printf("SKIP: no backend cpu\n");
    return 77;
  }
  mendel::MeasureAll(options);
  return 0;
}
