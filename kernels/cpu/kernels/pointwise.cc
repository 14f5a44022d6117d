#include "kernels/cpu/kernels/pointwise.h"

#include <algorithm>

#include "kernels/cpu/simd/native_isa.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

/// One call's operands.
class Product {
 public:
  Product(const PointwisePlan& plan, const PointwiseOperands& operands,
          const WinogradEpilogue& epilogue)
      : plan_(plan), operands_(operands), epilogue_(epilogue) {}

  /// Computes panels [first, last) of positions [begin, end). Prepared positions and scaled weights
  /// go to `scratch`.
  void Run(int64_t begin, int64_t end, size_t first, size_t last, float* scratch) const {
    const PointwiseInput input =
        plan_.prepared ? *operands_.input : PointwiseInput{nullptr, nullptr, 0};
    if (!plan_.gated) return RunBlocks(begin, end, first, last, input, operands_.weights, scratch);
    const int64_t each = plan_.positions / plan_.batch;
    for (int64_t image = begin / each; image * each < end; ++image) {
      const float* factor = operands_.input->factor + image * plan_.channels_in;
      for (size_t k = first; plan_.scaled && k < last; ++k) {
        const PointwisePlan::Panel& panel = plan_.panels[k];
        plan_.isa->scale_weights(operands_.weights + panel.weights, factor, plan_.channels_in,
                                 panel.vectors, scratch + panel.weights);
      }
      RunBlocks(std::max(begin, image * each), std::min(end, (image + 1) * each), first, last,
                {factor, nullptr, 0}, plan_.scaled ? scratch : operands_.weights, scratch);
    }
  }

 private:
  void RunBlocks(int64_t begin, int64_t end, size_t first, size_t last, const PointwiseInput& input,
                 const float* weights, float* scratch) const {
    const int64_t blocks = (end - begin + plan_.block - 1) / plan_.block;
    for (int64_t b = 0; b < blocks; ++b) {
      RunBlock(begin + (end - begin) * b / blocks, begin + (end - begin) * (b + 1) / blocks, first,
               last, input, weights, scratch);
    }
  }

  void RunBlock(int64_t begin, int64_t end, size_t first, size_t last, const PointwiseInput& input,
                const float* weights, float* scratch) const {
    PositionOffsets src_at, dst_at, panel_at;
    LocatePositions(plan_, plan_.src, begin, end, src_at);
    LocatePositions(plan_, plan_.dst, begin, end, dst_at);
    PointwiseBlock block{};
    block.src = operands_.src;
    block.src_at = src_at.data();
    block.src_c = plan_.src.c;
    block.depth = plan_.channels_in;
    block.dst = operands_.dst;
    block.dst_at = panel_at.data();
    block.dst_c = plan_.dst.c;
    block.count = end - begin;
    block.padded = plan_.padded;
    if (plan_.Copies()) {
      plan_.isa->prepare(input, operands_.src, src_at.data(), plan_.src.c, block.count,
                         plan_.channels_in, scratch, plan_.row);
      for (int64_t p = 0; p < block.count; ++p) src_at[static_cast<size_t>(p)] = p * plan_.row;
      block.src = scratch;
      block.src_c = plan_.isa->lanes;
    }
    for (size_t k = first; k < last; ++k) {
      const PointwisePlan::Panel& panel = plan_.panels[k];
      for (size_t p = 0; p < static_cast<size_t>(block.count); ++p)
        panel_at[p] = dst_at[p] + panel.dst;
      block.weights = weights + panel.weights;
      block.bias = epilogue_.bias + panel.channel;
      block.vectors = panel.vectors;
      block.channels = panel.channels;
      block.next = k + 1 < last ? weights + plan_.panels[k + 1].weights : nullptr;
      block.lines = k + 1 < last
                        ? plan_.channels_in * plan_.panels[k + 1].vectors * plan_.isa->lanes / 16
                        : 0;
      plan_.isa->pointwise(block, epilogue_);
    }
  }

  const PointwisePlan& plan_;
  const PointwiseOperands& operands_;
  const WinogradEpilogue& epilogue_;
};

/// Number of vectors times positions that panels of `most` vectors compute, surplus ones included.
int64_t Computed(const PointwisePlan& plan, int64_t most) {
  const int64_t vectors = (plan.channels_out + plan.isa->lanes - 1) / plan.isa->lanes;
  const auto positions = [&](int64_t of) {
    const int64_t rows = plan.isa->rows[of];
    return (plan.positions + rows - 1) / rows * rows;
  };
  const int64_t rest = vectors % most;
  return vectors / most * most * positions(most) + (rest == 0 ? 0 : rest * positions(rest));
}

void MakePanels(PointwisePlan& plan) {
  plan.panels.clear();
  const int64_t lanes = plan.isa->lanes;
  const int64_t most = plan.isa->panel_vectors;
  const bool narrow = most > 2 && Computed(plan, most - 1) < Computed(plan, most);
  const int64_t width = (narrow ? most - 1 : most) * lanes;
  int64_t weights = 0;
  for (const int64_t phase : plan.phases) {
    for (int64_t channel = 0; channel < plan.channels_out; channel += width) {
      PointwisePlan::Panel panel;
      panel.channel = channel;
      panel.channels = std::min(width, plan.channels_out - channel);
      panel.vectors = (panel.channels + lanes - 1) / lanes;
      panel.weights = weights;
      panel.dst = phase + channel / lanes * plan.dst.c;
      weights += panel.vectors * lanes * plan.channels_in;
      plan.panels.push_back(panel);
    }
  }
}

}  // namespace

void LocatePositions(const PointwisePlan& plan, const WinogradStrides& strides, int64_t begin,
                     int64_t end, PositionOffsets& at) {
  int64_t index[3];
  int64_t rest = begin;
  for (size_t d = 3; d-- > 0; rest /= plan.extent[d]) index[d] = rest % plan.extent[d];
  int64_t image = rest;
  for (int64_t p = begin; p < end; ++p) {
    at[static_cast<size_t>(p - begin)] = image * strides.n + index[0] * strides.d[0] +
                                         index[1] * strides.d[1] + index[2] * strides.d[2];
    for (size_t d = 3; d-- > 0;) {
      if (++index[d] < plan.extent[d]) break;
      index[d] = 0;
      if (d == 0) ++image;
    }
  }
}

const DirectIsa* DirectIsaHere() { return NativeKernelsHere(&DirectAvx2, &DirectAvx512); }

int64_t PointwisePlan::WeightFloats() const {
  return panels.empty() ? 0
                        : panels.back().weights + panels.back().vectors * isa->lanes * channels_in;
}

int64_t PointwisePlan::ShareFloats() const {
  if (scaled) return WeightFloats();
  return Copies() ? block * row : 0;
}

int64_t PointwisePlan::ScratchBytes() const {
  return shares * ShareFloats() * static_cast<int64_t>(sizeof(float));
}

void CutPointwise(PointwisePlan& plan, int threads) {
  // Positions of an image, for each output channel, from which on scaling weights is faster.
  constexpr int64_t kScaledPositions = 4;
  plan.positions = plan.batch * plan.extent[0] * plan.extent[1] * plan.extent[2];
  MakePanels(plan);
  // Vectors far apart are gathered: they fall into few sets of the cache, once more for every
  // panel.
  plan.gathered = !plan.prepared && plan.src.c != plan.isa->lanes &&
                  plan.channels_in > 4 * plan.isa->lanes && plan.panels.size() > 1;
  plan.scaled = plan.gated && !plan.gathered &&
                plan.positions / plan.batch >= kScaledPositions * plan.channels_out;
  plan.shares = std::max(1, threads);
  // A block's inputs get half of a second-level cache, and a panel of weights the rest. The block
  // is a multiple of the registers' capacity.
  constexpr int64_t kInputFloats = int64_t{96} << 10;
  constexpr int64_t kFewest = 24, kMost = 192;
  constexpr int64_t kLine = 16;
  plan.block = std::clamp(kInputFloats / std::max<int64_t>(1, plan.channels_in) / kFewest * kFewest,
                          kFewest * 2, kMost);
  const int64_t panels = static_cast<int64_t>(plan.panels.size());
  // Each thread reads its own weights where those exceed the inputs, and its own positions
  // otherwise.
  const bool heavy = plan.WeightFloats() > plan.positions * plan.channels_in ||
                     plan.positions < plan.shares * kFewest;
  plan.share_panels =
      plan.shares > 1 && heavy && (panels % plan.shares == 0 || panels >= 4 * plan.shares);
  plan.row = (plan.channels_in + kLine - 1) / kLine * kLine;
  if (plan.row / kLine % 2 == 0)
    plan.row += kLine;  // neighboring positions in different sets of the cache
}

void PackPointwiseWeights(const PointwisePlan& plan, const WeightMatrix& weights,
                          const std::vector<double>& scale, float* to) {
  const int64_t per_phase = static_cast<int64_t>(plan.panels.size() / plan.phases.size());
  const auto pack = [&](const auto* values, int64_t number) {
    const PointwisePlan::Panel& panel = plan.panels[static_cast<size_t>(number)];
    const int64_t width = panel.vectors * plan.isa->lanes;
    float* __restrict const panel_to = to + panel.weights;
    const auto* const from = values + weights.At(number / per_phase, panel.channel, 0);
    std::vector<double> factors;
    for (int64_t o = 0; o < panel.channels; ++o)
      factors.push_back(FactorOf(scale, panel.channel + o));
    if (weights.out == 1) {  // a line of outputs lies as it is written
      for (int64_t in = 0; in < plan.channels_in; ++in) {
        const auto* const line = from + in * weights.in;
        for (int64_t o = 0; o < panel.channels; ++o)
          panel_to[in * width + o] = ScaledWeight(line[o], factors[static_cast<size_t>(o)]);
      }
      return;
    }
    // Copies blocks of inputs, so that lines of the source and of the panel stay in the cache
    // whichever way the source lies. An output's inputs are too far from another's for the hardware
    // to prefetch.
    constexpr int64_t kBlock = 16, kAhead = 2 * kBlock;
    for (int64_t begin = 0; begin < plan.channels_in; begin += kBlock) {
      const int64_t end = std::min(plan.channels_in, begin + kBlock);
      const int64_t ahead = std::min(plan.channels_in - 1, begin + kAhead);
      for (int64_t o = 0; o < panel.channels; ++o) {
        const double factor = factors[static_cast<size_t>(o)];
        const auto* const line = from + o * weights.out;
        __builtin_prefetch(line + ahead * weights.in);
        for (int64_t in = begin; in < end; ++in)
          panel_to[in * width + o] = ScaledWeight(line[in * weights.in], factor);
      }
    }
  };
  weights.values.Visit([&](const auto* values) {
    ParallelRange(static_cast<int64_t>(plan.panels.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t number = begin; number < end; ++number) pack(values, number);
    });
  });
}

void RunPointwise(const PointwisePlan& plan, const PointwiseOperands& operands,
                  const WinogradEpilogue& epilogue, float* scratch) {
  const Product product(plan, operands, epilogue);
  const int64_t panels = static_cast<int64_t>(plan.panels.size());
  ParallelRange(plan.shares, 1, [&](int64_t begin, int64_t end) {
    for (int64_t share = begin; share < end; ++share) {
      float* own = scratch + share * plan.ShareFloats();
      const auto part = [&](int64_t all, int64_t number) { return all * number / plan.shares; };
      if (plan.share_panels) {
        product.Run(0, plan.positions, static_cast<size_t>(part(panels, share)),
                    static_cast<size_t>(part(panels, share + 1)), own);
      } else {
        product.Run(part(plan.positions, share), part(plan.positions, share + 1), 0,
                    plan.panels.size(), own);
      }
    }
  });
}

}  // namespace mendel::cpu
