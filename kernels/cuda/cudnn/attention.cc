#include "kernels/cuda/cudnn/attention.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/status.h"
#include "kernels/cuda/cudnn/descriptor.h"
#include "kernels/cuda/cudnn/engine_plan.h"

namespace mendel::cuda {
namespace {

using Shared = EngineQuery::Shared;

constexpr int64_t kValueAlignment = 16, kFloatAlignment = 4;

absl::Status CheckMatrices(const CudnnAttention& attention) {
  if (attention.dtype != DType::kF16 && attention.dtype != DType::kBF16)
    return Unsupported("cuDNN's attention is in f16 or bf16, not ", DTypeName(attention.dtype));
  for (const HeadMatrices* it : {&attention.q, &attention.k, &attention.v, &attention.y}) {
    if (it->shape.size() != 4 || it->strides.size() != 4 ||
        std::any_of(it->shape.begin(), it->shape.end(), [](int64_t extent) { return extent <= 0; }))
      return InvalidInput("an attention has non-empty matrices of batches and heads");
  }
  const Shape &q = attention.q.shape, &k = attention.k.shape, &v = attention.v.shape;
  const bool fits = q[0] == k[0] && q[0] == v[0] && q[1] == k[1] && q[1] == v[1] && q[3] == k[3] &&
                    k[2] == v[2] && attention.y.shape == Shape{q[0], q[1], q[2], v[3]};
  return fits ? absl::OkStatus() : InvalidInput("matrices of an attention do not fit");
}

Shared MatricesTensor(const Cudnn& cudnn, const char* what, int64_t id, int dtype,
                      const HeadMatrices& matrices, bool by_value = false) {
  const auto tensor = std::make_shared<Descriptor>(cudnn, cudnn::kTensor, what);
  tensor->Int(cudnn::kTensorId, id);
  tensor->Enum(cudnn::kTensorDataType, cudnn::kDataType, dtype);
  tensor->Ints(cudnn::kTensorDimensions, matrices.shape);
  tensor->Ints(cudnn::kTensorStrides, matrices.strides);
  tensor->Int(cudnn::kTensorAlignment, by_value ? kFloatAlignment : kValueAlignment);
  tensor->Flag(cudnn::kTensorIsVirtual, false);
  tensor->Flag(cudnn::kTensorIsByValue, by_value);
  (void)tensor->Finalize();  // sticks, and is reported by who refers to it
  return tensor;
}

absl::StatusOr<Shared> MakeAttentionGraph(const Cudnn& cudnn, const CudnnAttention& attention) {
  const int dtype = attention.dtype == DType::kF16 ? cudnn::kFloat16 : cudnn::kBFloat16;
  const auto operation = std::make_shared<Descriptor>(cudnn, cudnn::kAttention, "the attention");
  const auto refer = [&](int name, const char* what, int64_t id, const HeadMatrices& matrices) {
    operation->Refer(name, {MatricesTensor(cudnn, what, id, dtype, matrices)});
  };
  refer(cudnn::kAttentionQueries, "q", kAttentionQ, attention.q);
  refer(cudnn::kAttentionKeys, "k", kAttentionK, attention.k);
  refer(cudnn::kAttentionValues, "v", kAttentionV, attention.v);
  refer(cudnn::kAttentionResult, "y", kAttentionY, attention.y);
  const HeadMatrices one = {{1, 1, 1, 1}, {1, 1, 1, 1}};
  operation->Refer(cudnn::kAttentionScale, {MatricesTensor(cudnn, "the scale", kAttentionScaleId,
                                                           cudnn::kFloat32, one, true)});
  (void)operation->Finalize();
  const auto graph = std::make_shared<Descriptor>(cudnn, cudnn::kGraph, "the graph");
  graph->Refer(cudnn::kGraphOperations, {operation});
  MENDEL_RETURN_IF_ERROR(graph->Finalize());
  return graph;
}

}  // namespace

EngineRules RulesOf(const CudnnAttention& attention, bool may_compile) {
  return {attention.dtype, {}, may_compile};
}

absl::StatusOr<std::vector<CudnnEngine>> PlanAttention(const Cudnn& cudnn,
                                                       const CudnnAttention& attention,
                                                       const std::string& device_json,
                                                       const CudnnLimits& limits) {
  MENDEL_RETURN_IF_ERROR(CheckMatrices(attention));
  MENDEL_ASSIGN_OR_RETURN(Shared graph, MakeAttentionGraph(cudnn, attention));
  MENDEL_ASSIGN_OR_RETURN(const EngineQuery query,
                          EngineQuery::Make(cudnn, std::move(graph),
                                            RulesOf(attention, limits.may_compile), device_json));
  return PlanEngines(query, limits, "this attention");
}

}  // namespace mendel::cuda
