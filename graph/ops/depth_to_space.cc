// DepthToSpace(x[N, C, H, W]){blocksize, mode}: y[n, c, h b + i, w b + j] = x[n, (i b + j) C' + c,
// h, w] (mode "DCR") or x[n, (c b + i) b + j, h, w] (mode "CRD"), with C' = C / b^2 output
// channels.

#include "base/status.h"
#include "graph/element_structure.h"
#include "graph/grid.h"
#include "graph/movement.h"

namespace mendel::ops::depth_to_space {
namespace {

struct DepthToSpaceMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView& node, int, Index o) {
    const int64_t b = node.attrs.Int("blocksize");
    const int64_t i = o[2] % b;
    const int64_t j = o[3] % b;
    const int64_t channels = node.outputs[0].shape[1];
    const int64_t channel =
        node.attrs.Str("mode") == "DCR" ? (i * b + j) * channels + o[1] : (o[1] * b + i) * b + j;
    const std::array<int64_t, 4> source = {o[0], channel, o[2] / b, o[3] / b};
    return in(0, source);
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  const Shape& x = inputs[0].shape;
  const int64_t b = attrs.Int("blocksize");
  const std::string& mode = attrs.Str("mode");
  if (x.size() != 4) return InvalidInput("expected rank 4, not ", TypeString(inputs[0]));
  if (mode != "DCR" && mode != "CRD") return InvalidInput("unknown mode '", mode, "'");
  if (b < 1 || b > (int64_t{1} << 20) || x[1] % (b * b) != 0)
    return InvalidInput("blocksize ", b, " does not divide ", TypeString(inputs[0]));
  return std::vector<TensorType>{{inputs[0].dtype, {x[0], x[1] / (b * b), x[2] * b, x[3] * b}}};
}

/// Rows and columns of all blocks that are met.
std::optional<GridRestriction> RestrictGrid(const GridRequest& request) {
  const int64_t b = request.node.attrs.Int("blocksize");
  const int64_t channels = request.node.outputs[0].shape[1];
  const bool dcr = request.node.attrs.Str("mode") == "DCR";
  GridRestriction result = WholeRestriction(request.node, 0);
  result.computed = request.wanted;
  result.inputs[0][0] = request.wanted[0];
  const std::vector<int64_t> wanted = request.wanted[1].ToList();
  std::vector<int64_t> list;
  for (int64_t block = 0; dcr && block < b * b; ++block) {
    for (int64_t c : wanted) list.push_back(block * channels + c);
  }
  for (size_t k = 0; !dcr && k < wanted.size(); ++k) {
    for (int64_t block = 0; block < b * b; ++block) list.push_back(wanted[k] * b * b + block);
  }
  result.inputs[0][1] = Positions::List(std::move(list));
  for (size_t d = 2; d < 4; ++d) {
    std::vector<int64_t> blocks, all;
    for (int64_t i = 0; i < request.wanted[d].size(); ++i) {
      const int64_t block = request.wanted[d][i] / b;
      if (!blocks.empty() && blocks.back() == block) continue;
      blocks.push_back(block);
      for (int64_t k = 0; k < b; ++k) all.push_back(block * b + k);
    }
    result.computed[d] = Positions::List(std::move(all));
    result.inputs[0][d] = Positions::List(std::move(blocks));
  }
  return result;
}

OpSample Sample(Rng& rng) {
  const int64_t b = rng.Between(1, 3);
  const Shape shape = {rng.Between(1, 2), b * b * rng.Between(1, 3), rng.Between(1, 4),
                       rng.Between(1, 4)};
  return {{{SampleAnyDType(rng), shape}},
          {{"blocksize", b}, {"mode", std::string(rng.Flip() ? "DCR" : "CRD")}},
          {}};
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "DepthToSpace";
  op.min_inputs = op.max_inputs = 1;
  op.attributes = {{"blocksize", int64_t{1}, true}, {"mode", std::string("DCR")}};
  op.infer = &Infer;
  op.meaning = MeaningOf<DepthToSpaceMeaning>();
  op.linear_inputs = &LinearInFirst;
  op.bound = &BoundOfSelection;
  op.sample = &Sample;
  op.sign = &SignOfFirst;
  op.storage = StorageTypes::kAll;
  return op;
}

absl::StatusOr<Graph> Lower(const NodeView& node) {
  const Shape& x = node.inputs[0].shape;
  const int64_t b = node.attrs.Int("blocksize");
  const int64_t channels = x[1] / (b * b);
  const bool dcr = node.attrs.Str("mode") == "DCR";
  GraphBuilder builder;
  const Ints split =
      dcr ? Ints{x[0], b, b, channels, x[2], x[3]} : Ints{x[0], channels, b, b, x[2], x[3]};
  const Ints perm = dcr ? Ints{0, 3, 4, 1, 5, 2} : Ints{0, 1, 4, 2, 5, 3};
  MENDEL_ASSIGN_OR_RETURN(
      ValueId value,
      builder.Add("Reshape", {builder.Input("x", node.inputs[0])}, {{"shape", split}}));
  MENDEL_ASSIGN_OR_RETURN(value, builder.Add("Transpose", {value}, {{"perm", perm}}));
  MENDEL_ASSIGN_OR_RETURN(value,
                          builder.Add("Reshape", {value}, {{"shape", node.outputs[0].shape}}));
  builder.Output("y", value);
  return builder.Build();
}

MENDEL_REGISTER_OP(&Make);
MENDEL_REGISTER_GRID_STRUCTURE({.op = "DepthToSpace", .restrict = &RestrictGrid});
MENDEL_REGISTER_ELEMENT_STRUCTURE({.op = "DepthToSpace", .lower = &Lower});

}  // namespace
}  // namespace mendel::ops::depth_to_space
