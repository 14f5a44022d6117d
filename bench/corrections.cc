// Cost of correction, for one seam between two images stacked by the rule batch_to_space. The
// original layer, the mutant and each way of correcting it are timed in one process, interleaved,
// step by step. Prints milliseconds, the correction's share of the layer's arithmetic, and the
// correction's time as a multiple of that share of the original convolution's time (target: at most
// 1.25). The table also prints the bounds: the rate of the layer and of the correction (their
// quotient is the multiple), and the rate of a matrix product in the cache. A direct correction of
// a Winograd layer costs at least the quotient of the two. The weights that the correction reads
// and the time to read as many cold bytes follow. The last rows are strips of one row and one
// column inside a layer in its own layout, in GFLOP/s. Nothing is asserted. On one thread, time
// without a core is not counted.
//
// usage: corrections [--threads N] [--rounds N] [--relu] [--min] [--channels N] [--extent N]
// [--kernel N]
//        (--min: short steps by their fastest run; the last three choose seams)

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
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
  int64_t channels = 0, extent = 0, kernel = 0;  ///< only these seams; 0: all
};

ValueId Weights(Emitter& e, const Shape& shape, const std::string& name) {
  Rng rng(5);
  std::vector<double> values(static_cast<size_t>(NumElements(shape)));
  for (double& value : values) value = rng.Normal() * 0.02;
  return e.Constant(Tensor::FromDoubles({DType::kF32, shape}, values), name);
}

ValueId Convolve(Emitter& e, ValueId x, int64_t channels, int64_t kernel, const std::string& name) {
  const int64_t pad = kernel / 2;
  return e.Op(
      "Conv",
      {x, Weights(e, {channels, e.shape(x)[1], kernel, kernel}, name),
       Weights(e, {channels}, name + "b")},
      {{"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{pad, pad, pad, pad}}});
}

double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

constexpr double kLong = 2e-3;  // seconds; beside a time slice

/// Subtracts time without a core from long steps; rounds of short ones have no interruption.
void TakeOff(double cpu, std::vector<double>& seconds) {
  const double all = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  double lengthy = 0;
  for (double step : seconds) lengthy += step > kLong ? step : 0;
  if (lengthy == 0 || cpu >= all) return;
  const double factor = std::max(0.0, 1 - (all - cpu) / lengthy);
  for (double& step : seconds) step *= step > kLong ? factor : 1;
}

/// One program and its steps' times.
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
    whole_.resize(times_.size());
  }

  void Run(bool keep) {
    std::vector<std::span<const std::byte>> in;
    for (const Tensor& tensor : inputs_) in.push_back(tensor.bytes());
    std::vector<std::span<std::byte>> out(outputs_.begin(), outputs_.end());
    std::vector<double> seconds;
    const double cpu = CpuSeconds();
    MENDEL_CHECK(executable_->RunTimed(in, out, seconds).ok());
    for (size_t s = 0; keep && s < seconds.size(); ++s) whole_[s].push_back(seconds[s] * 1e3);
    if (threads_ == 1) TakeOff(CpuSeconds() - cpu, seconds);
    for (size_t s = 0; keep && s < seconds.size(); ++s) times_[s].push_back(seconds[s] * 1e3);
  }

  const Graph& graph() const { return graph_; }
  const std::vector<Step>& steps() const { return executable_->steps(); }

  /// Milliseconds of the steps that `wanted` selects.
  template <class Wanted>
  double Milliseconds(const Options& options, const Wanted& wanted) const {
    double total = 0;
    for (size_t s = 0; s < times_.size(); ++s) {
      if (!wanted(executable_->steps()[s])) continue;
      std::vector<double> sorted = times_[s];
      std::sort(sorted.begin(), sorted.end());
      const double median = sorted[sorted.size() / 2];
      // The time subtracted from a long step may be too much in one round.
      const bool fastest = options.fastest && median < kLong * 1e3;
      total += fastest ? *std::min_element(whole_[s].begin(), whole_[s].end()) : median;
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
  std::vector<std::vector<double>> whole_;  ///< nothing taken off
};

/// A cold read of as many bytes as a correction's weights, once a round after other work.
class ColdRead {
 public:
  explicit ColdRead(int64_t bytes) : floats_(static_cast<size_t>(bytes / 4), 1.0f) {}

  void Run() {
    const auto begin = std::chrono::steady_clock::now();
    std::array<float, 4> sums{};
    for (size_t i = 0; i + 4 * kLine <= floats_.size(); i += 4 * kLine) {
      for (size_t k = 0; k < sums.size(); ++k) sums[k] += floats_[i + k * kLine];
    }
    sum_ = sums[0] + sums[1] + sums[2] + sums[3];
    const std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - begin;
    fastest_ = std::min(fastest_, taken.count());
  }
  double kilobytes() const { return static_cast<double>(floats_.size()) * 4 / 1024; }
  double milliseconds() const { return fastest_; }

 private:
  static constexpr size_t kLine = 16;  // floats
  std::vector<float> floats_;
  volatile float sum_ = 0;
  double fastest_ = 1e9;
};

/// Bytes of the different weights that the corrections of a program read: those of all convolutions
/// except the layer's own.
int64_t CorrectionWeights(const Graph& graph) {
  std::set<ValueId> weights;
  int64_t bytes = 0, largest = 0;
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.node(static_cast<int32_t>(id));
    if (node.op->name == "Conv") largest = std::max(largest, NumElements(node.outputs[0]));
  }
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.node(static_cast<int32_t>(id));
    if (node.op->name != "Conv" || NumElements(node.outputs[0]) == largest ||
        !weights.insert(node.inputs[1]).second)
      continue;
    bytes += ByteSize(graph.type(node.inputs[1]));
  }
  return bytes;
}

bool IsCorrection(const Step& step) {
  return step.kernel.compare(0, 6, "strips") == 0 || step.kernel.compare(0, 5, "patch") == 0;
}

void Interleave(std::vector<std::unique_ptr<Timed>>& programs, int rounds,
                const std::function<void()>& after = nullptr) {
  for (int round = -2; round < rounds; ++round) {
    for (auto& program : programs) program->Run(round >= 0);
    if (after) after();
  }
}

/// Time of the convolution that does the layer's work.
double LayerMilliseconds(const Timed& timed, const Options& options) {
  double largest = 0;
  for (const Step& step : timed.steps()) largest = std::max(largest, step.flops);
  return timed.Milliseconds(
      options, [&](const Step& step) { return !IsCorrection(step) && step.flops == largest; });
}

Graph Layer(int64_t channels, int64_t extent, int64_t kernel, bool relu) {
  Emitter e("layer");
  ValueId y = Convolve(e, e.Input("in0", {DType::kF32, {2, channels, extent, extent}}), channels,
                       kernel, "w");
  if (relu) y = e.Op("Relu", {y});
  e.Output("out0", y);
  return Expect(e.Finish());
}

/// The mutant of `rule` that stacks two images along `dim` (2 or 3); nullopt when it has none.
std::optional<Mutant> Stacked(const Graph& layer, std::string_view rule, int64_t dim) {
  const Rule* found = FindRule(rule);
  if (found == nullptr) return std::nullopt;
  for (const Match& match :
       found->match(layer, layer.outputs()[0].value.node, DefaultPredictor())) {
    const auto factor = [&](int64_t d) {
      const auto choice = match.choices.find(Cat("dim", d));
      return choice == match.choices.end() ? 1 : choice->second;
    };
    if (factor(dim) == 2 && factor(5 - dim) == 1)
      return Expect(MakeMutant(layer, *found, match, DefaultPredictor()));
  }
  return std::nullopt;
}

/// The kernel of the step with the most arithmetic.
std::string LayerKernel(const Timed& timed) {
  const auto less = [](const Step& a, const Step& b) { return a.flops < b.flops; };
  const std::vector<Step>& steps = timed.steps();
  return steps.empty() ? "" : std::max_element(steps.begin(), steps.end(), less)->kernel;
}

/// GFLOP/s of a product of matrices that fit the caches.
double ProductRate(const Options& options) {
  constexpr int64_t kSize = 192;
  Emitter e("product");
  const ValueId x = e.Input("x", {DType::kF32, {kSize, kSize}});
  e.Output("y", e.Op("MatMul", {x, Weights(e, {kSize, kSize}, "w")}));
  std::vector<std::unique_ptr<Timed>> programs;
  programs.push_back(std::make_unique<Timed>("product", Expect(e.Finish()), options.threads));
  Interleave(programs, 200);
  Options by_fastest = options;
  by_fastest.fastest = true;
  return 2e-6 * static_cast<double>(kSize * kSize * kSize) /
         LayerMilliseconds(*programs[0], by_fastest);
}

void MeasureSeam(int64_t channels, int64_t extent, int64_t kernel, int64_t dim, double product_rate,
                 const Options& options) {
  const Graph layer = Layer(channels, extent, kernel, options.relu);
  const std::optional<Mutant> mutant = Stacked(layer, "batch_to_space", dim);
  if (!mutant.has_value()) {
    std::printf("no mutant of %d channels, %d x %d\n", static_cast<int>(channels),
                static_cast<int>(extent), static_cast<int>(extent));
    return;
  }
  const VerifierReport report =
      Expect(Localize(mutant->original, mutant->mutant, {.target_log2 = 0}));
  std::vector<std::unique_ptr<Timed>> programs;
  programs.push_back(std::make_unique<Timed>("original", mutant->original, options.threads));
  programs.push_back(std::make_unique<Timed>("mutant", mutant->mutant, options.threads));
  for (const Correct correct : kCorrectionKinds) {
    const auto corrected = correct(mutant->original, mutant->mutant, report, 1);
    if (!corrected.ok()) continue;
    programs.push_back(std::make_unique<Timed>(std::string(CorrectionName(corrected->correction)),
                                               corrected->graph, options.threads));
    programs.back()->share = corrected->flop_share;
  }
  if (const auto gap = Stacked(layer, "batch_to_space_gap", dim); gap.has_value()) {
    programs.push_back(std::make_unique<Timed>("prevent", gap->mutant, options.threads));
  }
  std::vector<std::optional<ColdRead>> weights(programs.size());
  for (size_t p = 0; p < programs.size(); ++p) {
    if (programs[p]->share > 0) weights[p].emplace(CorrectionWeights(programs[p]->graph()));
  }
  Interleave(programs, options.rounds, [&] {
    for (std::optional<ColdRead>& read : weights) {
      if (read.has_value()) read->Run();
    }
  });
  const double original = LayerMilliseconds(*programs[0], options);
  const double gigaflops =
      2e-9 * static_cast<double>(2 * channels * channels * kernel * kernel * extent * extent);
  const double layer_rate = gigaflops / original * 1e3;
  for (size_t p = 0; p < programs.size(); ++p) {
    const auto& program = programs[p];
    std::printf("%dx%d %4d ch %4dx%-4d %s  %-11s %9.3f ms", static_cast<int>(kernel),
                static_cast<int>(kernel), static_cast<int>(channels), static_cast<int>(extent),
                static_cast<int>(extent), dim == 2 ? "rows   " : "columns", program->name.c_str(),
                program->Milliseconds(options));
    if (program->share > 0) {
      const double own = program->Milliseconds(options, IsCorrection);
      std::printf(
          "   correction %8.4f ms  share %6.2f %%  of the layer's time %6.2f %%  ratio %5.2f", own,
          100 * program->share, 100 * own / original, own / original / program->share);
      std::printf("  %6.1f GFLOP/s  weights %6.0f KB, alone %7.4f ms",
                  program->share * gigaflops / own * 1e3, weights[p]->kilobytes(),
                  weights[p]->milliseconds());
    } else if (p == 0) {
      std::printf("   layer %6.1f GFLOP/s by %s  a direct correction's ratio at least %5.2f",
                  layer_rate, LayerKernel(*program).c_str(), layer_rate / product_rate);
    }
    std::printf("\n");
  }
  std::fflush(stdout);
}

/// A layer between pointwise convolutions, so that everything lies in the library's own layout,
/// with one box computed again.
void MeasureStrip(int64_t channels, int64_t extent, int64_t kernel, const char* what,
                  const Box& box, const Options& options) {
  Emitter e("strip");
  const ValueId x = Convolve(e, e.Input("x", {DType::kF32, {1, channels, extent, extent}}),
                             channels, 1, "before");
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
  const ValueId w =
      builder.Constant(Tensor::Filled({DType::kF32, {channels, channels, 1, 1}}, 0.01), "after");
  const Attributes pointwise{
      {"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{0, 0, 0, 0}}};
  builder.Output("z", Expect(builder.Add("Conv", {patched, w}, pointwise)));
  std::vector<std::unique_ptr<Timed>> programs;
  programs.push_back(
      std::make_unique<Timed>(what, Expect(Deduplicate(Expect(builder.Build()))), options.threads));
  Interleave(programs, options.rounds);
  const double flops = 2.0 * static_cast<double>(channels * channels * kernel * kernel);
  const double layer_rate =
      flops * static_cast<double>(extent * extent) / LayerMilliseconds(*programs[0], options) / 1e6;
  const double strip_rate = flops * static_cast<double>(box.Volume() / channels) /
                            programs[0]->Milliseconds(options, IsCorrection) / 1e6;
  std::printf(
      "%dx%d %4d ch %4dx%-4d one %-6s  strip %7.1f GFLOP/s  layer %7.1f GFLOP/s  %5.1f %%\n",
      static_cast<int>(kernel), static_cast<int>(kernel), static_cast<int>(channels),
      static_cast<int>(extent), static_cast<int>(extent), what, strip_rate, layer_rate,
      100 * strip_rate / layer_rate);
  std::fflush(stdout);
}

void MeasureStrips(const Options& options) {
  for (const int64_t channels : {512, 256, 64}) {
    const int64_t extent = 28, middle = 13;
    MeasureStrip(channels, extent, 3, "row", {{0, 0, middle, 0}, {1, channels, middle + 1, extent}},
                 options);
    MeasureStrip(channels, extent, 3, "column",
                 {{0, 0, 0, middle}, {1, channels, extent, middle + 1}}, options);
  }
}

void MeasureAll(const Options& options) {
  std::printf("threads %d, rounds %d, %s, %s\n%s\n", options.threads, options.rounds,
              options.relu ? "with relu" : "without activation",
              options.fastest ? "fastest runs" : "medians", FindBackend("cpu")->Identity().c_str());
  if (options.channels == 0 && options.extent == 0 && options.kernel == 0) MeasureStrips(options);
  const double product_rate = ProductRate(options);
  std::printf("product of matrices in the cache %.1f GFLOP/s\n", product_rate);
  const auto chosen = [](int64_t value, int64_t option) { return option == 0 || value == option; };
  for (const int64_t kernel : {3, 5}) {
    for (const int64_t extent : {14, 28, 56, 112}) {
      for (const int64_t channels : {64, 128, 256, 512}) {
        // Wide layers of real networks are small.
        if (channels * extent > 64 * 224) continue;
        if (!chosen(kernel, options.kernel) || !chosen(extent, options.extent) ||
            !chosen(channels, options.channels))
          continue;
        for (const int64_t dim : {2, 3})
          MeasureSeam(channels, extent, kernel, dim, product_rate, options);
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
    } else if ((word == "--threads" || word == "--rounds") && k + 1 < argc &&
               std::atoi(argv[k + 1]) > 0) {
      (word == "--threads" ? options.threads : options.rounds) = std::atoi(argv[++k]);
    } else if ((word == "--channels" || word == "--extent" || word == "--kernel") && k + 1 < argc &&
               std::atoi(argv[k + 1]) > 0) {
      (word == "--channels" ? options.channels
       : word == "--extent" ? options.extent
                            : options.kernel) = std::atoi(argv[++k]);
    } else {
      std::fprintf(stderr,
                   "usage: corrections [--threads N] [--rounds N] [--relu] [--min] [--channels N] "
                   "[--extent N] [--kernel N]\n");
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
