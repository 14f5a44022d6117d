// SpaceToDepth(x[N, C, H, W]){blocksize}: y[n, (i b + j) C + c, h, w] = x[n, c, h b + i, w b + j].

#include <set>

#include "base/status.h"
#include "graph/element_structure.h"
#include "graph/grid.h"
#include "graph/movement.h"

namespace mendel::ops::space_to_depth {
namespace {

struct SpaceToDepthMeaning {
  template <class S>
  static S At(const Reader<S>& in, const NodeView& node, int, Index o) {
    const int64_t b = node.attrs.Int("blocksize");
    const int64_t channels = in.shape(0)[1];
    const int64_t block = o[1] / channels;
    const std::array<int64_t, 4> source = {o[0], o[1] % channels, o[2] * b + block / b,
                                           o[3] * b + block % b};
    return in(0, source);
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  const Shape& x = inputs[0].shape;
  const int64_t b = attrs.Int("blocksize");
  if (x.size() != 4) return InvalidInput("expected rank 4, not ", TypeString(inputs[0]));
  if (b < 1 || b > (int64_t{1} << 20) || x[2] % b != 0 || x[3] % b != 0) {
    return InvalidInput("blocksize ", b, " does not divide ", TypeString(inputs[0]));
  }
  return std::vector<TensorType>{{inputs[0].dtype, {x[0], x[1] * b * b, x[2] / b, x[3] / b}}};
}

/// All channels of the input channels that are met.
std::optional<GridRestriction> RestrictGrid(const GridRequest& request) {
  const int64_t b = request.node.attrs.Int("blocksize");
  const int64_t channels = request.node.inputs[0].shape[1];
  GridRestriction result = WholeRestriction(request.node, 0);
  result.computed = request.wanted;
  result.inputs[0][0] = request.wanted[0];
  std::set<int64_t> met;
  for (int64_t i = 0; i < request.wanted[1].size(); ++i)
    met.insert(request.wanted[1][i] % channels);
  result.inputs[0][1] = Positions::List({met.begin(), met.end()});
  std::vector<int64_t> all;
  for (int64_t block = 0; block < b * b; ++block) {
    for (int64_t c : met) all.push_back(block * channels + c);
  }
  result.computed[1] = Positions::List(std::move(all));
  for (size_t d = 2; d < 4; ++d) {
    std::vector<int64_t> list;
    for (int64_t i = 0; i < request.wanted[d].size(); ++i) {
      for (int64_t k = 0; k < b; ++k) list.push_back(request.wanted[d][i] * b + k);
    }
    result.inputs[0][d] = Positions::List(std::move(list));
  }
  return result;
}

OpSample Sample(Rng& rng) {
  const int64_t b = rng.Between(1, 3);
  const Shape shape = {rng.Between(1, 2), rng.Between(1, 3), b * rng.Between(1, 4),
                       b * rng.Between(1, 4)};
  return {{{SampleAnyDType(rng), shape}}, {{"blocksize", b}}, {}};
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "SpaceToDepth";
  op.min_inputs = op.max_inputs = 1;
  op.attributes = {{"blocksize", int64_t{1}, true}};
  op.infer = &Infer;
  op.meaning = MeaningOf<SpaceToDepthMeaning>();
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
  GraphBuilder builder;
  const Ints split = {x[0], x[1], x[2] / b, b, x[3] / b, b};
  MENDEL_ASSIGN_OR_RETURN(
      ValueId value,
      builder.Add("Reshape", {builder.Input("x", node.inputs[0])}, {{"shape", split}}));
  MENDEL_ASSIGN_OR_RETURN(value,
                          builder.Add("Transpose", {value}, {{"perm", Ints{0, 3, 5, 1, 2, 4}}}));
  MENDEL_ASSIGN_OR_RETURN(value,
                          builder.Add("Reshape", {value}, {{"shape", node.outputs[0].shape}}));
  builder.Output("y", value);
  return builder.Build();
}

MENDEL_REGISTER_OP(&Make);
MENDEL_REGISTER_GRID_STRUCTURE({.op = "SpaceToDepth", .restrict = &RestrictGrid});
MENDEL_REGISTER_ELEMENT_STRUCTURE({.op = "SpaceToDepth", .lower = &Lower});

}  // namespace
}  // namespace mendel::ops::space_to_depth
