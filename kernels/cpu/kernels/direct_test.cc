// The direct kernels of every instruction set, against sums in double.

#include <algorithm>
#include <limits>
#include <string>

#include "base/random.h"
#include "base/status.h"
#include "gtest/gtest.h"
#include "kernels/cpu/kernels/pointwise.h"
#include "kernels/cpu/kernels/strassen.h"
#include "kernels/cpu/testing/direct_case.h"

namespace mendel::cpu {
namespace {

class PointwiseCase : public Case {
 public:
  PointwiseCase(const DirectIsa& isa, Rng& rng, bool strassen = false)
      : Case(isa, rng), strassen_(strassen) {
    plan_.isa = &isa;
    plan_.batch = rng.Between(1, 2);
    plan_.channels_in = rng.Between(1, rng.Flip() ? 40 : 300);
    plan_.channels_out = rng.Between(1, rng.Flip() ? 40 : 200);
    for (int64_t& extent : plan_.extent) extent = rng.Between(1, 6);
    if (rng.Flip(0.2)) plan_.extent[2] = rng.Between(100, 300);
    if (!strassen && rng.Flip(0.2)) {  // one position has a loop of its own
      plan_.batch = 1;
      for (int64_t& extent : plan_.extent) extent = 1;
    }
    last_ = rng.Flip();
    plan_.padded = !last_;
    for (size_t d = 0; d < 3; ++d) {
      step_[d] = rng.Flip(0.2) ? 2 : 1;
      in_[d] = (plan_.extent[d] - 1) * step_[d] + 1;
      fold_[d] = !strassen && rng.Flip(0.2) ? 2 : 1;
      out_[d] = plan_.extent[d] * fold_[d];
    }
    src_ = StridedBox(last_, plan_.batch, plan_.channels_in, isa.lanes, in_, rng);
    dst_ = StridedBox(last_, plan_.batch, plan_.channels_out, isa.lanes, out_, rng);
    plan_.src = src_.strides;
    plan_.dst = dst_.strides;
    for (size_t d = 0; d < 3; ++d) {
      std::vector<int64_t> phases;
      for (int64_t phase : plan_.phases) {
        for (int64_t k = 0; k < fold_[d]; ++k) phases.push_back(phase + k * plan_.dst.d[d]);
      }
      plan_.phases = phases;
    }
    for (size_t d = 0; d < 3; ++d) {
      plan_.src.d[d] *= step_[d];
      plan_.dst.d[d] *= fold_[d];
    }
    plan_.prepared = !strassen && rng.Flip(0.3);
    plan_.gated = !strassen && !plan_.prepared && rng.Flip();
    CutPointwise(plan_, threads_);
  }

  std::string Describe() const {
    return Cat(isa_.name, last_ ? " channels-last" : " blocked", " batch ", plan_.batch,
               " channels ", plan_.channels_in, " -> ", plan_.channels_out, " positions ",
               plan_.extent[0], "x", plan_.extent[1], "x", plan_.extent[2], " step ", step_[0],
               step_[1], step_[2], " phases ", plan_.phases.size(),
               plan_.prepared ? " prepared" : "", plan_.gated ? " gated" : "",
               plan_.scaled ? " scaled" : "", " threads ", threads_);
  }

  double Run() {
    const GuardedFloats src = src_.Random(rng_);
    const int64_t phases = static_cast<int64_t>(plan_.phases.size());
    const std::vector<double> weights =
        RandomDoubles(phases * plan_.channels_out * plan_.channels_in);
    const auto weight = [&](int64_t phase, int64_t o, int64_t c) {
      return weights[static_cast<size_t>((phase * plan_.channels_out + o) * plan_.channels_in + c)];
    };
    const std::vector<double> scale = RandomDoubles(rng_.Flip() ? plan_.channels_out : 0);
    const StrassenPlan seven = strassen_ ? CutStrassen(plan_) : StrassenPlan{};
    GuardedFloats packed = Zeros(strassen_ ? seven.WeightFloats() : plan_.WeightFloats());
    const WeightMatrix matrix{weights, plan_.channels_out * plan_.channels_in, plan_.channels_in,
                              1};
    if (strassen_) {
      PackStrassenWeights(seven, matrix, scale, packed.data());
    } else {
      PackPointwiseWeights(plan_, matrix, scale, packed.data());
    }
    const GuardedFloats factor = Random(plan_.channels_in * (plan_.gated ? plan_.batch : 1)),
                        summand = Random(plan_.channels_in);
    const PointwiseInput input{factor.data(), summand.data(),
                               rng_.Flip() ? 0.0f : -std::numeric_limits<float>::infinity()};
    Execute(plan_.channels_out, dst_, strassen_ ? seven.ScratchBytes() : plan_.ScratchBytes(),
            [&](const WinogradEpilogue& epilogue, float* dst, float* scratch) {
              const PointwiseOperands operands{src.data(), packed.data(), &input, dst};
              if (strassen_) return RunStrassen(seven, operands, epilogue, scratch);
              RunPointwise(plan_, operands, epilogue, scratch);
            });
    int64_t x[3];
    for (int64_t n = 0; n < plan_.batch; ++n) {
      for (x[0] = 0; x[0] < out_[0]; ++x[0]) {
        for (x[1] = 0; x[1] < out_[1]; ++x[1]) {
          for (x[2] = 0; x[2] < out_[2]; ++x[2]) CheckPosition(src, weight, scale, input, n, x);
        }
      }
    }
    return Error();
  }

 private:
  template <class Weight>
  void CheckPosition(const GuardedFloats& src, const Weight& weight,
                     const std::vector<double>& scale, const PointwiseInput& input, int64_t n,
                     const int64_t* x) {
    int64_t phase = 0, at_source[3];
    for (size_t d = 0; d < 3; ++d) {
      phase = phase * fold_[d] + x[d] % fold_[d];
      at_source[d] = x[d] / fold_[d] * step_[d];
    }
    for (int64_t o = 0; o < (last_ ? plan_.channels_out : Round(plan_.channels_out)); ++o) {
      const int64_t at = dst_.At(n, o, x);
      if (o >= plan_.channels_out) {
        CheckZero(at);
        continue;
      }
      double sum = 0;
      for (int64_t c = 0; c < plan_.channels_in; ++c) {
        double value = static_cast<double>(src[static_cast<size_t>(src_.At(n, c, at_source))]);
        if (plan_.prepared) {
          value = std::max(
              static_cast<double>(input.floor),
              value * static_cast<double>(input.factor[c]) + static_cast<double>(input.summand[c]));
        }
        if (plan_.gated) value *= static_cast<double>(input.factor[n * plan_.channels_in + c]);
        sum += value * weight(phase, o, c);
      }
      Check(at, o, sum * (scale.empty() ? 1 : scale[static_cast<size_t>(o)]));
    }
  }

  bool strassen_;
  PointwisePlan plan_;
  StridedBox src_, dst_;
  bool last_ = false;
  int64_t in_[3], out_[3], step_[3], fold_[3];
};

class StrassenCase : public PointwiseCase {
 public:
  StrassenCase(const DirectIsa& isa, Rng& rng) : PointwiseCase(isa, rng, true) {}
};

class Direct : public IsaTest {
 protected:
  static const DirectIsa& isa() { return Kernels(&DirectAvx2, &DirectAvx512); }
};
TEST_P(Direct, PointwiseProductsMeanTheirSums) { RunCases<PointwiseCase>(isa(), "pointwise"); }
TEST_P(Direct, StrassensProductsMeanTheirSums) { RunCases<StrassenCase>(isa(), "strassen"); }
MENDEL_FOR_ISAS(Direct, NativeIsa::kAvx2, NativeIsa::kAvx512);

}  // namespace
}  // namespace mendel::cpu
