// Errors of Winograd's algorithms: the largest error of an output, relative to the layer's largest
// one. Covers every kernel of every instruction set of this machine, over layers of several depths
// and kinds of data. Prints a Markdown table with the bound that the kernel states; fails when a
// bound is exceeded.
//
// usage: winograd_errors [SEEDS]

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "base/random.h"
#include "base/status.h"
#include "kernels/cpu/kernels/winograd.h"
#include "kernels/cpu/program.h"
#include "kernels/cpu/simd/native_isa.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

constexpr int64_t kChannelsOut = 16;
using Sums = std::array<double, kChannelsOut>;
enum class Data { kUniform, kNormal, kPositive };
constexpr Data kData[] = {Data::kUniform, Data::kNormal, Data::kPositive};

double Draw(Rng& rng, Data data) {
  if (data == Data::kUniform) return rng.Uniform(-1, 1);
  return data == Data::kNormal ? rng.Normal()
                               : std::fabs(rng.Normal());  // the last one as after a ReLU
}

/// A layer without padding in blocks of channels: 20 x 20 outputs, or 10 x 10 x 10 where the kernel
/// has three dimensions.
class Layer {
 public:
  Layer(const WinogradIsa& isa, const WinogradTransforms& transforms, int64_t channels) {
    plan_.isa = &isa;
    plan_.transforms = &transforms;
    plan_.channels_in = channels;
    WinogradProblem& p = plan_.problem;
    p.channels_out = kChannelsOut;
    for (size_t d = 0; d < 3; ++d) {
      p.out[d] = transforms.r[0] > 1 ? 10 : (d == 0 ? 1 : 20);
      p.in[d] = p.out[d] + transforms.r[d] - 1;
      p.step[d] = 1;
    }
    p.src = Dense(p.in, channels);
    p.dst = Dense(p.out, kChannelsOut);
    CutIntoTiles(plan_, 1);
  }

  /// Runs on one thread, whichever thread calls.
  double Error(Rng& rng, Data data) const {
    const ThreadScope scope(1);
    std::vector<float> src(static_cast<size_t>(plan_.problem.src.n));
    for (float& value : src) value = static_cast<float>(Draw(rng, data));
    std::vector<double> weights(static_cast<size_t>(kChannelsOut * plan_.channels_in * Taps()));
    for (double& value : weights)
      value = static_cast<double>(
          static_cast<float>(Draw(rng, data == Data::kPositive ? Data::kNormal : data)));
    std::vector<float> packed(static_cast<size_t>(plan_.WeightFloats())),
        dst(static_cast<size_t>(plan_.problem.dst.n));
    PackWinogradWeights(plan_, weights, {}, packed.data());
    const std::vector<float> bias(kChannelsOut, 0.0f);
    WinogradEpilogue epilogue{};
    epilogue.bias = bias.data();
    const AlignedBytes scratch(plan_.ScratchBytes());
    RunWinograd(plan_, src.data(), packed.data(), epilogue, dst.data(),
                reinterpret_cast<float*>(scratch.data()));
    return ErrorOf(dst, src, ByTap(weights));
  }

 private:
  int64_t Taps() const {
    return int64_t{plan_.transforms->r[0]} * plan_.transforms->r[1] * plan_.transforms->r[2];
  }
  WinogradStrides Dense(const int64_t* extent, int64_t channels) const {
    const int64_t lanes = plan_.isa->lanes, positions = extent[0] * extent[1] * extent[2];
    return {(channels + lanes - 1) / lanes * lanes * positions,
            lanes * positions,
            {extent[1] * extent[2] * lanes, extent[2] * lanes, lanes}};
  }
  size_t At(const WinogradStrides& s, int64_t c, const int64_t* x) const {
    const int64_t lanes = plan_.isa->lanes;
    return static_cast<size_t>(c / lanes * s.c + c % lanes + x[0] * s.d[0] + x[1] * s.d[1] +
                               x[2] * s.d[2]);
  }
  /// Transposes from out x in x taps to taps x in x out: one input element is multiplied with its
  /// weights of all output channels.
  std::vector<double> ByTap(const std::vector<double>& weights) const {
    std::vector<double> turned(weights.size());
    const int64_t each = plan_.channels_in * Taps();
    for (int64_t o = 0; o < kChannelsOut; ++o) {
      for (int64_t k = 0; k < each; ++k) {
        const int64_t c = k / Taps(), tap = k % Taps();
        turned[static_cast<size_t>((tap * plan_.channels_in + c) * kChannelsOut + o)] =
            weights[static_cast<size_t>(o * each + k)];
      }
    }
    return turned;
  }
  /// The convolution by its definition at one position, in double.
  Sums SumsAt(const std::vector<float>& src, const std::vector<double>& by_tap,
              const int64_t* at) const {
    const int* r = plan_.transforms->r;
    Sums sums{};
    const double* weight = by_tap.data();
    for (int64_t tap = 0; tap < Taps(); ++tap) {
      const int64_t x[] = {at[0] + tap / (r[1] * r[2]), at[1] + tap / r[2] % r[1],
                           at[2] + tap % r[2]};
      for (int64_t c = 0; c < plan_.channels_in; ++c, weight += kChannelsOut) {
        const auto value = static_cast<double>(src[At(plan_.problem.src, c, x)]);
        for (size_t o = 0; o < kChannelsOut; ++o) sums[o] += weight[o] * value;
      }
    }
    return sums;
  }
  double ErrorOf(const std::vector<float>& dst, const std::vector<float>& src,
                 const std::vector<double>& by_tap) const {
    double largest = 0, error = 0;
    int64_t x[3];
    for (x[0] = 0; x[0] < plan_.problem.out[0]; ++x[0]) {
      for (x[1] = 0; x[1] < plan_.problem.out[1]; ++x[1]) {
        for (x[2] = 0; x[2] < plan_.problem.out[2]; ++x[2]) {
          const Sums want = SumsAt(src, by_tap, x);
          for (int64_t o = 0; o < kChannelsOut; ++o) {
            const double sum = want[static_cast<size_t>(o)];
            largest = std::max(largest, std::fabs(sum));
            error = std::max(
                error, std::fabs(sum - static_cast<double>(dst[At(plan_.problem.dst, o, x)])));
          }
        }
      }
    }
    return error / largest;
  }

  WinogradPlan plan_;
};

double LargestError(const WinogradIsa& isa, const WinogradTransforms& transforms, int64_t channels,
                    int seeds) {
  const Layer layer(isa, transforms, channels);
  std::vector<double> errors(std::size(kData) * static_cast<size_t>(seeds));
  ParallelFor(static_cast<int64_t>(errors.size()), [&](int64_t k) {
    Rng rng(static_cast<uint64_t>(1 + k / std::ssize(kData)));
    errors[static_cast<size_t>(k)] = layer.Error(rng, kData[k % std::ssize(kData)]);
  });
  return *std::max_element(errors.begin(), errors.end());
}

std::string Product(const int* factors) {
  return Cat(factors[0], "x", factors[1], "x", factors[2]);
}

int Run(int seeds) {
  constexpr int64_t kChannels[] = {1, 16, 64, 256, 512};
  std::printf("| kernel | set |");
  for (const int64_t channels : kChannels)
    std::printf(" %d channels |", static_cast<int>(channels));
  std::printf(" bound to 64 | bound at 512 |\n|---|---|---|---|---|---|---|---|---|\n");
  bool held = true;
  for (const NativeIsa set : {NativeIsa::kAvx2, NativeIsa::kAvx512}) {
    if (!MachineHas(set)) {
      std::printf("SKIP %s: this machine does not have it\n",
                  set == NativeIsa::kAvx2 ? "avx2" : "avx512");
      continue;
    }
    const WinogradIsa& isa = set == NativeIsa::kAvx2 ? WinogradAvx2() : WinogradAvx512();
    for (int k = 0; k < isa.transform_count; ++k) {
      const WinogradTransforms& transforms = isa.transforms[k];
      std::printf("| F(%s, %s) | %s |", Product(transforms.m).c_str(),
                  Product(transforms.r).c_str(), isa.name);
      for (const int64_t channels : kChannels) {
        const double error = LargestError(isa, transforms, channels, seeds);
        held = held && error <= WinogradErrorBound(transforms, channels);
        std::printf(" %.2e |", error);
      }
      std::printf(" %.1e | %.1e |\n", transforms.error_bound,
                  WinogradErrorBound(transforms, kChannels[4]));
      std::fflush(stdout);
    }
  }
  return held ? 0 : 1;
}

}  // namespace
}  // namespace mendel::cpu

int main(int argc, char** argv) {
  const int seeds = argc > 1 ? std::atoi(argv[1]) : 10;
  if (seeds < 1) {
    std::fprintf(stderr, "usage: winograd_errors [SEEDS], at least 1\n");
    return 2;
  }
  return mendel::cpu::Run(seeds);
}
