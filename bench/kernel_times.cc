// Native kernels of the CPU backend beside oneDNN's, layer by layer, for bench/kernels, which makes
// a table of it. The backend's registries say what there is: every algorithm that it offers for a
// layer is tried. What is wrong by more than its class allows is reported and not timed. Before a
// run the caches are emptied and the inputs read, as if the layer before had just written them.
// Prints fields between tabs:
//   machine  identity  instruction set
//   layer    kind  layer  threads  kernel  class  error  own ms  spread  library's kernel  ms
//   spread  own with conversions library's wrong    kind  layer  threads  kernel  class  error
// Milliseconds are medians (or minima) of interleaved runs, of the steps that compute something;
// spreads are (third - first quartile) / median. Exits with 1 when something was wrong.

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/deadline.h"
#include "base/status.h"
#include "bench/expect.h"
#include "bench/kernel_cases.h"
#include "bench/kernel_contenders.h"
#include "runtime/backend.h"
#include "runtime/measure.h"

namespace mendel {
namespace {

struct Options {
  std::vector<int> threads = {1, 2};
  double seconds = 300;
  std::string filter, set;
  bool minima = false;

  bool Takes(const std::string& text) const { return text.find(filter) != std::string::npos; }
  double Reported(const std::vector<double>& ms) const {
    const Timing timing = Summarize(ms);
    return minima ? timing.min_ms : timing.median_ms;
  }
};

struct Timed {
  const Contender* contender;
  std::vector<double> kernels_ms, whole_ms;
};

/// Larger than any cache; touched line by line before each run.
class Evictor {
 public:
  void Evict(const std::vector<Tensor>& inputs) {
    for (size_t k = 0; k < buffer_.size(); k += kLine) ++buffer_[k];
    for (const Tensor& input : inputs) {
      for (size_t k = 0; k < input.bytes().size(); k += kLine)
        sum_ = sum_ + static_cast<unsigned>(input.bytes()[k]);
    }
  }

 private:
  static constexpr size_t kLine = 64;
  std::vector<unsigned char> buffer_ = std::vector<unsigned char>(size_t{64} << 20);
  volatile unsigned sum_ = 0;
};

void Measure(const CheckedLayer& layer, double seconds, std::vector<Timed>& timed) {
  constexpr int kFewest = 5, kMost = 40;
  static Evictor evictor;
  const Stopwatch watch;
  for (int round = 0; round <= kMost && (round <= kFewest || watch.Seconds() < seconds); ++round) {
    for (Timed& one : timed) {
      evictor.Evict(layer.inputs);
      const RunSeconds taken = Expect(one.contender->run());
      if (round == 0) continue;  // teams are made anew, pages touched
      one.kernels_ms.push_back(1e3 * taken.kernels);
      one.whole_ms.push_back(1e3 * taken.whole);
    }
  }
}

std::string Description(const KernelCase& layer, int threads, const Contender& contender) {
  char error[32];
  std::snprintf(error, sizeof(error), "%.1e", contender.error);
  return Cat(layer.kind, "\t", layer.text, "\t", threads, "\t", contender.name, "\t",
             NumericsName(contender.numerics), "\t", error);
}

/// Rows of the own contenders, each beside the library's fastest.
void Print(const KernelCase& layer, const Options& options, int threads,
           const std::vector<Timed>& timed) {
  const Timed* best = nullptr;
  double fastest = std::numeric_limits<double>::infinity();
  for (const Timed& one : timed) {
    if (one.contender->own) continue;
    if (const double ms = options.Reported(one.kernels_ms); ms < fastest) best = &one, fastest = ms;
  }
  if (best == nullptr) return;
  const double spread = Summarize(best->kernels_ms).spread;
  for (const Timed& one : timed) {
    if (!one.contender->own) continue;
    std::printf("layer\t%s\t%.5f\t%.3f\t%s\t%.5f\t%.3f\t%.5f\t%.5f\n",
                Description(layer, threads, *one.contender).c_str(),
                options.Reported(one.kernels_ms), Summarize(one.kernels_ms).spread,
                best->contender->kernels.c_str(), fastest, spread, options.Reported(one.whole_ms),
                options.Reported(best->whole_ms));
  }
  std::fflush(stdout);
}

/// False when a contender was wrong.
bool Compare(const Backend& backend, const KernelCase& layer, const Options& options,
             const Deadline& until) {
  const bool whole = options.Takes(layer.kind) || options.Takes(layer.text);
  const auto wanted = [&](const std::string& name) { return whole || options.Takes(name); };
  const Graph graph = Expect(layer.make());
  bool any = whole;
  for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()) && !any; ++node) {
    const std::vector<std::string> names = backend.Algorithms(graph, node, Numerics::kBf16);
    any = std::any_of(names.begin(), names.end(), wanted);
  }
  if (!any) return true;
  const CheckedLayer checked = Expect(CheckLayer(graph));
  bool right = true;
  for (size_t k = 0; k < options.threads.size(); ++k) {
    const std::vector<Contender> contenders =
        Expect(MakeContenders(backend, checked, options.threads[k], wanted));
    std::vector<Timed> timed;
    for (const Contender& contender : contenders) {
      if (contender.Right()) {
        timed.push_back({&contender, {}, {}});
      } else {
        right = false;
        std::printf("wrong\t%s\n", Description(layer, options.threads[k], contender).c_str());
      }
    }
    const bool matters = std::any_of(timed.begin(), timed.end(),
                                     [](const Timed& one) { return one.contender->own; });
    if (!matters) continue;
    Measure(checked, until.SecondsLeft() / static_cast<double>(options.threads.size() - k), timed);
    Print(layer, options, options.threads[k], timed);
  }
  return right;
}

int Run(const Options& options) {
  const Backend* const backend = FindBackend("cpu");
  if (backend == nullptr) {
    std::fprintf(stderr, "this build has no CPU backend\n");
    return 2;
  }
  std::printf("machine\t%s\t%s\n", backend->Identity().c_str(), backend->Isa().c_str());
  if (backend->Isa().compare(0, options.set.size(), options.set) != 0) return 0;
  const std::vector<KernelCase> cases = KernelCases();
  const Stopwatch watch;
  bool right = true;
  for (size_t k = 0; k < cases.size(); ++k) {
    const double left = std::max(0.0, options.seconds - watch.Seconds());
    right = Compare(*backend, cases[k], options,
                    Deadline::After(left / static_cast<double>(cases.size() - k))) &&
            right;
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace mendel

int main(int argc, char** argv) {
  mendel::Options options;
  CLI::App app("Native kernels of the CPU backend beside oneDNN's");
  app.add_option("--threads", options.threads, "Numbers of threads")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  app.add_option("--seconds", options.seconds,
                 "In which to be done, about: each layer is run a few times whatever they are")
      ->check(CLI::PositiveNumber);
  app.add_option("--filter", options.filter,
                 "Only own algorithms whose name, or layers whose kind or text, contains this");
  app.add_option("--set", options.set,
                 "Only the machine's line where its instruction set's name begins otherwise");
  app.add_flag("--minima", options.minima,
               "Fastest runs instead of medians, where the machine is not quiet");
  CLI11_PARSE(app, argc, argv);
  return mendel::Run(options);
}
