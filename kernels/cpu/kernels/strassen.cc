#include "kernels/cpu/kernels/strassen.h"

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

constexpr int64_t kProducts = 7;
constexpr int64_t kLine = 16;

/// Visits the packed weights in their order: body(group's first panel, part of the depth, product,
/// panel, floats before them).
template <class Body>
void ForEachWeights(const StrassenPlan& plan, int64_t first, int64_t last, int64_t begin,
                    int64_t end, const Body& body) {
  int64_t at = kProducts * plan.half_in * std::min(first * plan.width, plan.half_out);
  const int64_t stop = std::min(last, first + plan.group);
  for (int64_t k = 0; k < plan.Parts(); ++k) {
    const int64_t depth = std::min(plan.depth, plan.half_in - k * plan.depth);
    for (int64_t i = 0; i < kProducts; ++i) {
      for (int64_t panel = first; panel < stop; ++panel) {
        if (k >= begin && k < end) body(k, i, panel, at);
        at += depth * plan.PanelVectors(panel) * plan.isa->lanes;
      }
    }
  }
}

/// One call's operands.
class Product {
 public:
  Product(const StrassenPlan& plan, const PointwiseOperands& operands,
          const WinogradEpilogue& epilogue)
      : plan_(plan), operands_(operands), epilogue_(epilogue) {}

  /// Panels [first, last), whole groups but the last one, of positions [begin, end).
  void Run(int64_t begin, int64_t end, int64_t first, int64_t last, float* scratch) const {
    const int64_t blocks = (end - begin + plan_.block - 1) / plan_.block;
    for (int64_t b = 0; b < blocks; ++b) {
      Block block(plan_, begin + (end - begin) * b / blocks,
                  begin + (end - begin) * (b + 1) / blocks, scratch);
      for (int64_t group = first; group < last; group += plan_.group) {
        const int64_t panels = std::min(last - group, plan_.group);
        for (int64_t k = 0; k < plan_.Parts(); ++k) {
          if (group == first || plan_.Parts() > 1) Factors(block, k);
          Multiply(block, group, group + panels, k);
        }
        for (int64_t panel = group; panel < group + panels; ++panel) Outputs(block, group, panel);
      }
    }
  }

 private:
  struct Block {
    Block(const StrassenPlan& plan, int64_t begin, int64_t end, float* scratch)
        : count(end - begin),
          pairs((count + 1) / 2),
          factors(scratch),
          products(scratch + kProducts * plan.FactorFloats()) {
      LocatePositions(plan.product, plan.product.src, begin, end, src_at);
      LocatePositions(plan.product, plan.product.dst, begin, end, dst_at);
      for (size_t r = 0; r < static_cast<size_t>(pairs); ++r)
        factor_at[r] = static_cast<int64_t>(r) * plan.row;
    }
    int64_t count;
    int64_t pairs;
    float* factors;
    float* products;
    PositionOffsets src_at, dst_at, factor_at, product_at;
  };

  void Factors(const Block& block, int64_t k) const {
    StrassenBlock b{};
    b.src = operands_.src;
    b.src_at = block.src_at.data();
    b.src_c = plan_.product.src.c;
    b.count = block.count;
    b.pairs = block.pairs;
    b.channels = plan_.product.channels_in;
    b.half = plan_.half_in;
    b.begin = k * plan_.depth;
    b.end = std::min(b.begin + plan_.depth, plan_.half_in);
    b.factors = block.factors;
    b.row = plan_.row;
    b.factor_stride = plan_.FactorFloats();
    plan_.isa->strassen_factors(b);
  }

  /// The group's products of one part of the depth, added to those of the parts before.
  void Multiply(Block& block, int64_t first, int64_t last, int64_t part) const {
    alignas(64) static constexpr float kNoBias[64] = {};
    WinogradEpilogue add{};
    PointwiseBlock b{};
    b.src_at = block.factor_at.data();
    b.src_c = plan_.isa->lanes;
    b.depth = std::min(plan_.depth, plan_.half_in - part * plan_.depth);
    b.bias = kNoBias;
    b.dst_at = block.product_at.data();
    b.dst_c = plan_.isa->lanes;
    b.count = block.pairs;
    ForEachWeights(plan_, first, last, part, part + 1,
                   [&](int64_t, int64_t i, int64_t panel, int64_t at) {
                     b.src = block.factors + i * plan_.FactorFloats();
                     b.weights = operands_.weights + at;
                     b.vectors = plan_.PanelVectors(panel);
                     b.channels = b.vectors * plan_.isa->lanes;
                     for (size_t r = 0; r < static_cast<size_t>(block.pairs); ++r)
                       block.product_at[r] = static_cast<int64_t>(r) * b.channels;
                     b.dst = block.products + i * plan_.ProductFloats() +
                             (panel - first) * plan_.block / 2 * plan_.width;
                     add.residual = part > 0 ? b.dst : nullptr;
                     const int64_t floats = b.depth * b.channels;
                     b.lines = std::min(floats, plan_.WeightFloats() - at - floats) / kLine;
                     b.next = b.weights + floats;
                     plan_.isa->pointwise(b, add);
                   });
  }

  void Outputs(const Block& block, int64_t group, int64_t panel) const {
    StrassenPanel p{};
    p.products = block.products + (panel - group) * plan_.block / 2 * plan_.width;
    p.product_stride = plan_.ProductFloats();
    p.vectors = plan_.PanelVectors(panel);
    p.dst = operands_.dst;
    p.dst_at = block.dst_at.data();
    p.dst_c = plan_.product.dst.c;
    p.count = block.count;
    p.pairs = block.pairs;
    p.padded = plan_.product.padded;
    for (int64_t half = 0; half < 2; ++half) {
      const int64_t channel = half * plan_.half_out + panel * plan_.width;
      p.bias[half] = epilogue_.bias + channel;
      p.at[half] = channel / plan_.isa->lanes * p.dst_c;
      p.channels[half] =
          std::min(p.vectors * plan_.isa->lanes, plan_.product.channels_out - channel);
    }
    plan_.isa->strassen_outputs(p, epilogue_);
  }

  const StrassenPlan& plan_;
  const PointwiseOperands& operands_;
  const WinogradEpilogue& epilogue_;
};

/// The sum of B's quarters for a product: one, and another added (1), subtracted (-1) or left out
/// (0).
struct QuarterSum {
  int64_t row, column;
  double sign;
  int64_t other_row, other_column;
};
constexpr std::array<QuarterSum, kProducts> kSums = {{{0, 0, 1, 1, 1},
                                                      {0, 0, 0, 0, 0},
                                                      {0, 1, -1, 1, 1},
                                                      {1, 0, -1, 0, 0},
                                                      {1, 1, 0, 0, 0},
                                                      {0, 0, 1, 0, 1},
                                                      {1, 0, 1, 1, 1}}};

}  // namespace

int64_t StrassenPlan::PanelVectors(int64_t panel) const {
  return std::min(width, half_out - panel * width) / isa->lanes;
}

StrassenPlan CutStrassen(const PointwisePlan& product) {
  // Measured with a second-level cache of 1 MB. One seventh of the factors is read at a time, and
  // products wait until all seven are there.
  constexpr int64_t kFactorFloats = int64_t{384} << 10;
  constexpr int64_t kProductFloats = int64_t{88} << 10;
  StrassenPlan plan;
  plan.product = product;
  plan.isa = product.isa;
  const int64_t lanes = plan.isa->lanes;
  const auto half = [&](int64_t channels) {
    return (channels + 2 * lanes - 1) / (2 * lanes) * lanes;
  };
  plan.half_in = half(product.channels_in);
  plan.half_out = half(product.channels_out);
  const int64_t own = product.share_panels
                          ? product.positions
                          : (product.positions + product.shares - 1) / product.shares;
  const int64_t blocks = (own + kLargestPointwiseBlock - 1) / kLargestPointwiseBlock;
  plan.block = ((own + blocks - 1) / blocks + 1) / 2 * 2;
  const int64_t pairs = plan.block / 2;
  // Returns the width that computes the fewest surplus rows; the wider one when equal.
  const auto computed = [&](int64_t vectors) {
    const int64_t rows = plan.isa->rows[vectors];
    const int64_t all = plan.half_out / lanes;
    return (pairs + rows - 1) / rows * rows * all + all % vectors * pairs / 4;
  };
  int64_t best = plan.isa->panel_vectors;
  if (best > 2 && computed(best - 1) < computed(best)) --best;
  plan.width = best * lanes;
  plan.panels = (plan.half_out + plan.width - 1) / plan.width;
  const int64_t parts = (kProducts * pairs * plan.half_in + kFactorFloats - 1) / kFactorFloats;
  plan.depth = ((plan.half_in + parts - 1) / parts + lanes - 1) / lanes * lanes;
  plan.row = (plan.depth + kLine - 1) / kLine * kLine;
  if (plan.row / kLine % 2 == 0)
    plan.row += kLine;  // neighboring pairs in different sets of the cache
  const int64_t most =
      std::clamp<int64_t>(kProductFloats / (kProducts * pairs * plan.width), 1, plan.panels);
  const int64_t sharing = product.share_panels ? product.shares : 1;
  const int64_t groups = ((plan.panels + most - 1) / most + sharing - 1) / sharing * sharing;
  plan.group = (plan.panels + groups - 1) / groups;
  return plan;
}

void PackStrassenWeights(const StrassenPlan& plan, const WeightMatrix& weights,
                         const std::vector<double>& scale, float* to) {
  struct Piece {
    int64_t part, product, panel, at;
  };
  std::vector<Piece> pieces;
  for (int64_t first = 0; first < plan.panels; first += plan.group) {
    ForEachWeights(plan, first, plan.panels, 0, plan.Parts(),
                   [&](int64_t part, int64_t product, int64_t panel, int64_t at) {
                     pieces.push_back({part, product, panel, at});
                   });
  }
  // A panel's outputs of one input, scaled; zero beyond the channels.
  const auto read = [&](const auto* values, int64_t in, int64_t out, std::vector<double>& line) {
    const int64_t width = static_cast<int64_t>(line.size());
    const int64_t inside = in < plan.product.channels_in
                               ? std::clamp<int64_t>(plan.product.channels_out - out, 0, width)
                               : 0;
    std::fill(line.begin() + inside, line.end(), 0.0);
    if (inside == 0) return;
    const auto* from = values + weights.At(0, out, in);
    for (int64_t o = 0; o < inside; ++o)
      line[static_cast<size_t>(o)] = static_cast<double>(from[o * weights.out]);
    if (scale.empty()) return;
    for (int64_t o = 0; o < inside; ++o)
      line[static_cast<size_t>(o)] *= scale[static_cast<size_t>(out + o)];
  };
  const auto pack = [&](const auto* values, const Piece& piece) {
    const QuarterSum& sum = kSums[static_cast<size_t>(piece.product)];
    const int64_t first = piece.panel * plan.width;
    std::vector<double> line(static_cast<size_t>(plan.PanelVectors(piece.panel) * plan.isa->lanes)),
        other(line.size());
    float* at = to + piece.at;
    const int64_t end = std::min((piece.part + 1) * plan.depth, plan.half_in);
    for (int64_t in = piece.part * plan.depth; in < end; ++in) {
      read(values, sum.row * plan.half_in + in, sum.column * plan.half_out + first, line);
      if (sum.sign != 0) {
        read(values, sum.other_row * plan.half_in + in, sum.other_column * plan.half_out + first,
             other);
        for (size_t o = 0; o < line.size(); ++o) line[o] += sum.sign * other[o];
      }
      at = std::transform(line.begin(), line.end(), at,
                          [](double value) { return WithoutSubnormal(static_cast<float>(value)); });
    }
  };
  weights.values.Visit([&](const auto* values) {
    ParallelRange(static_cast<int64_t>(pieces.size()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) pack(values, pieces[static_cast<size_t>(k)]);
    });
  });
}

void RunStrassen(const StrassenPlan& plan, const PointwiseOperands& operands,
                 const WinogradEpilogue& epilogue, float* scratch) {
  const Product product(plan, operands, epilogue);
  const int64_t groups = (plan.panels + plan.group - 1) / plan.group;
  const int64_t shares = plan.product.shares;
  ParallelRange(shares, 1, [&](int64_t begin, int64_t end) {
    for (int64_t share = begin; share < end; ++share) {
      float* own = scratch + share * kProducts * (plan.FactorFloats() + plan.ProductFloats());
      const auto part = [&](int64_t all, int64_t number) { return all * number / shares; };
      if (plan.product.share_panels) {
        const auto panel = [&](int64_t number) {
          return std::min(part(groups, number) * plan.group, plan.panels);
        };
        product.Run(0, plan.product.positions, panel(share), panel(share + 1), own);
      } else {
        product.Run(part(plan.product.positions, share), part(plan.product.positions, share + 1), 0,
                    plan.panels, own);
      }
    }
  });
}

}  // namespace mendel::cpu
