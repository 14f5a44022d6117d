// Helpers of the tests of a refit: programs of one input, and weights folded as a simplifier folds
// them.
#ifndef MENDEL_OPTIMIZER_REFIT_REFIT_CASES_H_
#define MENDEL_OPTIMIZER_REFIT_REFIT_CASES_H_

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "graph/emitter.h"
#include "graph/evaluate.h"
#include "optimizer/refit/refit.h"

namespace mendel {

inline Tensor Random(Rng& rng, Shape shape, double least = -1, double most = 1) {
  std::vector<double> values(static_cast<size_t>(NumElements(shape)));
  for (double& value : values) value = rng.Uniform(least, most);
  return Tensor::FromDoubles({DType::kF32, std::move(shape)}, values);
}

/// An expression of weights as a simplifier computes it: every node rounded to float32.
inline Tensor Folded(const std::function<ValueId(Emitter&)>& expression) {
  Emitter e;
  e.Output("y", expression(e));
  const auto graph = e.Finish();
  EXPECT_TRUE(graph.ok()) << graph.status();
  std::vector<std::vector<HostValue>> values;
  for (size_t id = 0; id < graph->nodes().size(); ++id) {
    const Node& node = graph->nodes()[id];
    if (IsConstant(node)) {
      values.push_back({HostValue::FromTensor(ConstantValue(node))});
      continue;
    }
    std::vector<const HostValue*> operands;
    for (ValueId input : node.inputs)
      operands.push_back(
          &values[static_cast<size_t>(input.node)][static_cast<size_t>(input.output)]);
    auto results = WithView(*graph, static_cast<int32_t>(id), [&](const NodeView& view) {
      return EvaluateNode(*node.op, view, operands);
    });
    for (HostValue& result : results) result = HostValue::FromTensor(result.ToTensor());
    values.push_back(std::move(results));
  }
  const ValueId y = graph->outputs()[0].value;
  return values[static_cast<size_t>(y.node)][static_cast<size_t>(y.output)].ToTensor();
}

/// `tensor` with one element moved by `ulps` of its own.
inline Tensor Nudged(const Tensor& tensor, int64_t element, int ulps) {
  std::vector<double> values = tensor.ToDoubles();
  float value = static_cast<float>(values[static_cast<size_t>(element)]);
  for (int k = 0; k < ulps; ++k) value = std::nextafter(value, 2 * value);
  values[static_cast<size_t>(element)] = value;
  return Tensor::FromDoubles(tensor.type(), values);
}

/// A graph of one input "x" and one output "y".
inline Graph Program(const Shape& x, const std::function<ValueId(Emitter&, ValueId)>& body) {
  Emitter e;
  const ValueId input = e.Input("x", {DType::kF32, x});
  e.Output("y", body(e, input));
  auto graph = e.Finish();
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

inline RefitReport Verify(const Graph& a, const Graph& b) {
  auto report = Refit(a, b);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *std::move(report) : RefitReport();
}

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_REFIT_REFIT_CASES_H_
