#include "runtime/test_plan.h"

#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "runtime/backend.h"

namespace mendel {
namespace {

Tensor Random(Rng& rng, Shape shape) {
  std::vector<double> values(static_cast<size_t>(NumElements(shape)));
  for (double& value : values) value = rng.Normal();
  return Tensor::FromDoubles({DType::kF32, std::move(shape)}, values);
}

}  // namespace

Plan SmallPlan(const std::string& backend) {
  Rng rng(7);
  GraphBuilder builder("small");
  const ValueId x = builder.Input("x", {DType::kF32, {2, 8}});
  const ValueId w1 = builder.Constant(Random(rng, {8, 6}), "w1");
  const ValueId w2 = builder.Constant(Random(rng, {6, 3}), "w2");
  const auto hidden = builder.Add("MatMul", {x, w1}, {}, "fc1");
  MENDEL_CHECK(hidden.ok());
  const auto active = builder.Add("Relu", {*hidden}, {}, "act");
  MENDEL_CHECK(active.ok());
  const auto y = builder.Add("MatMul", {*active, w2}, {}, "fc2");
  MENDEL_CHECK(y.ok());
  builder.Output("y", *y);
  auto graph = builder.Build();
  MENDEL_CHECK(graph.ok());

  Plan plan;
  plan.graph = *graph;
  plan.baseline = *graph;
  plan::Target& target = *plan.info.mutable_target();
  target.set_backend(backend);
  const Backend* found = FindBackend(backend);
  target.set_identity(found != nullptr ? found->Identity() : "");
  target.set_threads(1);
  target.set_numerics("default");
  plan.info.set_weights(plan::WEIGHTS_MODE_SYMBOLIC);
  plan.info.set_model_name("small.onnx");
  return plan;
}

}  // namespace mendel
