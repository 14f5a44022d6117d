#include "graph/sample_node.h"

#include <cmath>

#include "base/check.h"
#include "base/status.h"
#include "graph/graph.h"
#include "graph/text.h"

namespace mendel {
namespace {

/// A multiple of 1/steps in [low, high), or `low` when there is none.
double Draw(Rng& rng, double low, double high, int64_t steps) {
  const int64_t first = static_cast<int64_t>(std::ceil(low * static_cast<double>(steps)));
  const int64_t last = static_cast<int64_t>(std::ceil(high * static_cast<double>(steps))) - 1;
  return last < first ? low
                      : static_cast<double>(rng.Between(first, last)) / static_cast<double>(steps);
}

std::pair<double, double> DefaultRange(DType dtype) {
  if (IsFloat(dtype)) return {-2, 2};
  if (dtype == DType::kBool) return {0, 2};
  return {IsUnsigned(dtype) ? 0 : -8, 9};
}

}  // namespace

absl::StatusOr<SampledNode> MakeNode(const OpDefinition& op, std::vector<TensorType> inputs,
                                     Attributes attrs) {
  GraphBuilder builder;
  std::vector<ValueId> values;
  for (const TensorType& type : inputs)
    values.push_back(builder.Input(Cat("x", values.size()), type));
  MENDEL_ASSIGN_OR_RETURN(const int32_t id, builder.AddNode(op.name, values, std::move(attrs)));
  const Node& node = builder.node(id);
  return SampledNode{node.op, std::move(inputs), node.attrs, node.outputs, {}};
}

absl::StatusOr<SampledNode> SampleNode(const OpDefinition& op, Rng& rng) {
  MENDEL_CHECK(op.sample != nullptr);
  OpSample sample = op.sample(rng);
  MENDEL_ASSIGN_OR_RETURN(SampledNode node,
                          MakeNode(op, std::move(sample.inputs), std::move(sample.attrs)));
  node.ranges = std::move(sample.ranges);
  return node;
}

std::vector<HostValue> SampleInputs(const SampledNode& node, Rng& rng, int64_t steps) {
  std::vector<HostValue> values;
  for (const TensorType& type : node.inputs) {
    std::pair<double, double> range = DefaultRange(type.dtype);
    for (const auto& [input, within] : node.ranges) {
      if (static_cast<size_t>(input) == values.size()) range = within;
    }
    HostValue value{type, {}, {}};
    for (int64_t k = NumElements(type); k > 0; --k) {
      const double drawn = Draw(rng, range.first, range.second, IsFloat(type.dtype) ? steps : 1);
      if (IsFloat(type.dtype)) {
        value.scalars.push_back(drawn);
      } else {
        value.integers.push_back(static_cast<int64_t>(drawn));
      }
    }
    values.push_back(std::move(value));
  }
  return values;
}

std::string DescribeNode(const SampledNode& node) {
  std::string text = Cat(node.op->name, "(");
  for (size_t k = 0; k < node.inputs.size(); ++k)
    text += Cat(k == 0 ? "" : ", ", TypeString(node.inputs[k]));
  return text + ")" + PrintAttributes(node.attrs);
}

}  // namespace mendel
