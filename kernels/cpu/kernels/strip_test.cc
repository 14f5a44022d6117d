// The strip kernels of every instruction set, against direct sums in double: random shapes, layouts
// and boxes.

#include "kernels/cpu/kernels/strip.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "base/random.h"
#include "base/status.h"
#include "kernels/cpu/testing/guarded.h"
#include "kernels/cpu/testing/test_support.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

using Extents = std::array<int64_t, 3>;

/// A tensor in a random layout, dense or with gaps; at times one stride is of more than 2^31 bytes.
struct Data {
  int64_t images = 1, channels = 1;
  Extents extent{1, 1, 1};
  StripTensor layout;
  GuardedFloats values;
  bool huge = false;

  Data(Rng& rng, int64_t n, int64_t c, const Extents& e) : images(n), channels(c), extent(e) {
    const bool gaps = rng.Flip();
    const auto pitch = [&](int64_t dense) {
      return gaps && rng.Flip() ? dense + rng.Between(1, 20) : dense;
    };
    const uint64_t kind = rng.Below(3);
    layout.block = kind == 2 ? 8 << rng.Below(2) : 1;
    const int64_t blocks = (c + layout.block - 1) / layout.block;
    const int64_t inner = kind == 1 ? c : layout.block;
    layout.d[2] = pitch(inner);
    layout.d[1] = pitch(e[2] * layout.d[2]);
    layout.d[0] = pitch(e[1] * layout.d[1]);
    const int64_t image = pitch(e[0] * layout.d[0]);
    layout.c = kind == 1 ? 1 : image;
    layout.n = kind == 1 ? image : pitch(blocks * image);
    huge = rng.Flip(0.02);
    if (huge) (rng.Flip() ? layout.n : layout.d[rng.Below(3)]) += int64_t{1} << 29;
    values = GuardedFloats(
        static_cast<int64_t>(At(n - 1, blocks * layout.block - 1, {e[0] - 1, e[1] - 1, e[2] - 1})) +
            1,
        RandomGuard(rng));
    ForEach([&](size_t at) { values[at] = static_cast<float>(rng.Uniform(-1, 1)); });
  }
  /// Calls body(offset) for every float, those of gaps and of channels that fill a block included;
  /// only for elements where a stride is huge.
  template <class Body>
  void ForEach(const Body& body) const {
    for (size_t i = 0; !huge && i < values.size(); ++i) body(i);
    for (int64_t k = 0; huge && k < images * channels * extent[0] * extent[1] * extent[2]; ++k) {
      const int64_t x2 = k % extent[2], x1 = k / extent[2] % extent[1],
                    x0 = k / (extent[1] * extent[2]) % extent[0];
      const int64_t nc = k / (extent[0] * extent[1] * extent[2]);
      body(At(nc / channels, nc % channels, {x0, x1, x2}));
    }
  }
  size_t At(int64_t n, int64_t c, const Extents& x) const {
    return static_cast<size_t>(n * layout.n + layout.Channel(c) + x[0] * layout.d[0] +
                               x[1] * layout.d[1] + x[2] * layout.d[2]);
  }
};

bool Next(const Extents& extent, Extents& at) {
  for (size_t d = 3; d-- > 0;) {
    if (++at[d] < extent[d]) return true;
    at[d] = 0;
  }
  return false;
}

/// One random problem, run and compared element by element, outside the boxes too.
class Case {
 public:
  Case(const StripIsa& isa, Rng& rng) : rng_(rng), images_(rng.Between(1, 4)) {
    problem_.isa = &isa;
    problem_.groups = rng.Flip(0.3) ? rng.Between(2, 5) : 1;
    problem_.channels_out = rng.Between(1, rng.Flip() ? 6 : 150);
    for (size_t d = 0; d < 3; ++d) out_[d] = rng.Flip(d == 2 ? 0.1 : 0.5) ? 1 : rng.Between(1, 9);
    to_ = std::make_unique<Data>(rng, images_, channels(), out_);
    problem_.to = to_->layout;
    MakeBoxes();
    relu_ = rng.Flip();
    residual_last_ = rng.Flip();
    bias_ = GuardedFloats(channels(), RandomGuard(rng));
    for (float& bias : bias_) bias = static_cast<float>(rng.Uniform(-1, 1));
  }

  std::string Describe() const {
    return Cat(problem_.isa->name, " groups ", problem_.groups, " x ", problem_.channels_out,
               " boxes ", problem_.boxes.size());
  }

  double Error() {
    Guarded<double> want(static_cast<int64_t>(to_->values.size()), Guard::kEnd);
    to_->ForEach([&](size_t at) { want[at] = static_cast<double>(to_->values[at]); });
    for (size_t b = 0; b < problem_.boxes.size(); ++b) Expect(b, want);
    Run();
    double largest = 1, error = 0;
    to_->ForEach([&](size_t at) {
      const double difference = std::fabs(want[at] - static_cast<double>(to_->values[at]));
      largest = std::max(largest, std::fabs(want[at]));
      error = std::isnan(difference) ? std::numeric_limits<double>::infinity()
                                     : std::max(error, difference);
    });
    return error / largest;
  }

 private:
  int64_t channels() const { return problem_.groups * problem_.channels_out; }

  /// Boxes side by side along a random dimension of the output, each thin or not.
  void MakeBoxes() {
    const size_t along = rng_.Below(3);
    for (int64_t at = 0; at < out_[along];) {
      const int64_t end = std::min(out_[along], at + rng_.Between(1, 2));
      Extents begin{};
      StripBox box;
      box.out = out_;
      begin[along] = at;
      box.out[along] = end - at;
      const int64_t image = rng_.Between(0, images_ - 1);
      box.images = rng_.Between(1, images_ - image);
      at = end + rng_.Between(0, 2);
      box.to = static_cast<int64_t>(to_->At(image, 0, begin));
      const uint64_t kind = rng_.Below(3);
      if (kind == 1) box.residual = StripBox::kInPlace;
      if (kind == 2) {
        residuals_.push_back(std::make_unique<Data>(rng_, box.images, channels(), box.out));
        box.residual = static_cast<int>(residuals_.size()) - 1;
        box.residual_from = residuals_.back()->layout;
      }
      for (int64_t terms = rng_.Flip(0.2) ? 2 : 1; terms > 0; --terms)
        box.terms.push_back(MakeTerm(box));
      problem_.boxes.push_back(box);
    }
  }

  StripTerm MakeTerm(const StripBox& box) {
    StripTerm term;
    StripWeights weights;
    const bool reuse = rng_.Flip() && !problem_.weights.empty() && box.terms.empty();
    if (reuse) {
      term.weights = static_cast<int>(rng_.Below(problem_.weights.size()));
      weights = problem_.weights[static_cast<size_t>(term.weights)];
    } else {
      term.weights = static_cast<int>(problem_.weights.size());
      weights.channels_in = rng_.Between(1, rng_.Flip() ? 5 : 70);
      for (int64_t& taps : weights.taps) taps = rng_.Flip() ? 1 : rng_.Between(1, 4);
      problem_.weights.push_back(weights);
      values_.emplace_back(static_cast<size_t>(channels() * weights.channels_in * weights.Taps()));
      for (double& value : values_.back()) value = rng_.Uniform(-1, 1);
      scales_.emplace_back(rng_.Flip() ? static_cast<size_t>(channels()) : 0);
      for (double& value : scales_.back()) value = rng_.Uniform(0.5, 2);
    }
    for (size_t d = 0; d < 3; ++d) {
      term.stride[d] = rng_.Flip() ? 1 : rng_.Between(1, 3);
      term.step[d] = rng_.Flip() ? 1 : rng_.Between(1, 3);
      const int64_t reach =
          (box.out[d] - 1) * term.stride[d] + (weights.taps[d] - 1) * term.step[d] + 1;
      term.in[d] = rng_.Between(1, reach + 2);
      term.pad[d] = rng_.Between(-2, reach);
    }
    term.source = static_cast<int>(sources_.size());
    sources_.push_back(
        std::make_unique<Data>(rng_, box.images, problem_.groups * weights.channels_in, term.in));
    term.from = sources_.back()->layout;
    return term;
  }

  double Sum(const StripTerm& term, int64_t n, int64_t o, const Extents& at) const {
    const StripWeights& w = problem_.weights[static_cast<size_t>(term.weights)];
    const Data& source = *sources_[static_cast<size_t>(term.source)];
    double sum = 0;
    Extents tap{};
    int64_t number = 0;
    do {
      Extents x;
      bool inside = true;
      for (size_t d = 0; d < 3; ++d) {
        x[d] = at[d] * term.stride[d] - term.pad[d] + tap[d] * term.step[d];
        inside = inside && x[d] >= 0 && x[d] < term.in[d];
      }
      for (int64_t k = 0; inside && k < w.channels_in; ++k) {
        const double weight =
            values_[static_cast<size_t>(term.weights)]
                   [static_cast<size_t>((o * w.channels_in + k) * w.Taps() + number)];
        const int64_t channel = o / problem_.channels_out * w.channels_in + k;
        sum += weight * static_cast<double>(source.values[source.At(n, channel, x)]);
      }
      ++number;
    } while (Next(w.taps, tap));
    const std::vector<double>& scale = scales_[static_cast<size_t>(term.weights)];
    return scale.empty() ? sum : sum * scale[static_cast<size_t>(o)];
  }

  void Expect(size_t number, Guarded<double>& want) const {
    const StripBox& box = problem_.boxes[number];
    for (int64_t n = 0; n < box.images; ++n) {
      for (int64_t o = 0; o < channels(); ++o) {
        Extents at{};
        do {
          double value = static_cast<double>(bias_[static_cast<size_t>(o)]);
          for (const StripTerm& term : box.terms) value += Sum(term, n, o, at);
          const size_t to = static_cast<size_t>(box.to) + to_->At(n, o, at);
          double residual = box.residual == StripBox::kInPlace ? want[to] : 0;
          if (box.residual >= 0) {
            const Data& data = *residuals_[static_cast<size_t>(box.residual)];
            residual = static_cast<double>(data.values[data.At(n, o, at)]);
          }
          if (!residual_last_) value += residual;
          if (relu_ && value < 0) value = 0;
          if (residual_last_) value += residual;
          want[to] = value;
        } while (Next(box.out, at));
      }
    }
  }

  void Run() {
    const int threads = static_cast<int>(rng_.Between(1, 3));
    const StripPlan plan(problem_, threads);
    StripOperands operands;
    std::vector<GuardedFloats> packed;
    for (size_t w = 0; w < values_.size(); ++w) {
      packed.emplace_back(plan.PackedFloats(static_cast<int>(w)), RandomGuard(rng_));
      plan.Pack(static_cast<int>(w), values_[w], scales_[w], packed.back().data());
    }
    for (const GuardedFloats& weights : packed) operands.weights.push_back(weights.data());
    for (const auto& source : sources_) operands.sources.push_back(source->values.data());
    for (const auto& residual : residuals_) operands.residuals.push_back(residual->values.data());
    operands.to = to_->values.data();
    WinogradEpilogue epilogue{};
    epilogue.bias = bias_.data();
    epilogue.residual_last = residual_last_;
    epilogue.activation =
        relu_ ? WinogradEpilogue::Activation::kRelu : WinogradEpilogue::Activation::kNone;
    GuardedFloats scratch(plan.ScratchBytes() / static_cast<int64_t>(sizeof(float)), Guard::kEnd,
                          64);
    std::fill(scratch.begin(), scratch.end(), std::numeric_limits<float>::quiet_NaN());
    const ThreadScope scope(threads);
    plan.Run(operands, epilogue, scratch.data());
  }

  Rng& rng_;
  int64_t images_;
  Extents out_{1, 1, 1};
  StripProblem problem_;
  std::unique_ptr<Data> to_;
  std::vector<std::unique_ptr<Data>> sources_, residuals_;
  std::vector<std::vector<double>> values_, scales_;
  GuardedFloats bias_;
  bool relu_ = false;
  bool residual_last_ = false;
};

class Strip : public IsaTest {};
TEST_P(Strip, RandomBoxesEqualDirectSums) {
  const StripIsa& isa = Kernels(&StripAvx2, &StripAvx512);
  double worst = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Rng rng(seed);
    Case one(isa, rng);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << one.Describe());
    const double error = one.Error();
    ASSERT_LE(error, 1e-5);
    worst = std::max(worst, error);
  }
  std::printf("[ %s: seeds 1..300, largest error %.1e ]\n", isa.name, worst);
}
MENDEL_FOR_ISAS(Strip, NativeIsa::kAvx2, NativeIsa::kAvx512);

}  // namespace
}  // namespace mendel::cpu
