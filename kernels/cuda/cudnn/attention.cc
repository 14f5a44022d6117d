#include "kernels/cuda/cudnn/attention.h"

#include <algorithm>
#include <initializer_list>
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
  if (!fits) return InvalidInput("matrices of an attention do not fit");
  if (!attention.mask.has_value()) return absl::OkStatus();
  const Shape& mask = attention.mask->shape;
  const auto spreads = [](int64_t extent, int64_t over) { return extent == 1 || extent == over; };
  const bool masks = mask.size() == 4 && attention.mask->strides.size() == 4 &&
                     spreads(mask[0], q[0]) && spreads(mask[1], q[1]) && spreads(mask[2], q[2]) &&
                     mask[3] == k[2];
  return masks ? absl::OkStatus() : InvalidInput("the mask of an attention does not fit");
}

HeadMatrices Contiguous(const Shape& shape) { return {shape, RowMajorStrides(shape)}; }

class AttentionGraph {
 public:
  AttentionGraph(const Cudnn& cudnn, const CudnnAttention& attention)
      : cudnn_(cudnn), attention_(attention) {}

  absl::StatusOr<Shared> Make() {
    const CudnnAttention& it = attention_;
    HeadMatrices keys = it.k;
    std::swap(keys.shape[2], keys.shape[3]);
    std::swap(keys.strides[2], keys.strides[3]);
    const HeadMatrices scores =
        Contiguous({it.q.shape[0], it.q.shape[1], it.q.shape[2], it.k.shape[2]});
    const HeadMatrices rows = Contiguous({it.q.shape[0], it.q.shape[1], it.q.shape[2], 1});
    const HeadMatrices one = Contiguous({1, 1, 1, 1});
    Shared score = Product(Stored(kAttentionQ, it.dtype, it.q), Stored(kAttentionK, it.dtype, keys),
                           Inner(scores));
    score = Pointwise(cudnn::kMultiply, score, Tensor(kAttentionScale, DType::kF32, one, kByValue),
                      Inner(scores));
    if (it.mask.has_value())
      score = Pointwise(cudnn::kAdd, score, Stored(kAttentionMask, it.mask_dtype, *it.mask),
                        Inner(scores));
    const Shared most = Reduced(cudnn::kMaximumOver, score, Inner(rows));
    const Shared below = Pointwise(cudnn::kSubtract, score, most, Inner(scores));
    const Shared powers = Pointwise(cudnn::kExp, below, nullptr, Inner(scores));
    const Shared sums = Reduced(cudnn::kSumOver, powers, Inner(rows));
    const Shared logarithms = Pointwise(cudnn::kLog, sums, nullptr, Inner(rows));
    Pointwise(cudnn::kAdd, most, logarithms, Stored(kAttentionSums, DType::kF32, rows));
    const Shared weights = Pointwise(cudnn::kDivide, powers, sums, Inner(scores, it.dtype));
    Product(weights, Stored(kAttentionV, it.dtype, it.v), Stored(kAttentionY, it.dtype, it.y));
    const Shared graph = New(cudnn::kGraph, "the graph");
    graph->Refer(cudnn::kGraphOperations, operations_);
    MENDEL_RETURN_IF_ERROR(graph->Finalize());
    return graph;
  }

 private:
  enum Place { kInMemory, kVirtual, kByValue };

  Shared New(cudnn::Type type, const char* what) const {
    return std::make_shared<Descriptor>(cudnn_, type, what);
  }

  Shared Tensor(int64_t id, DType dtype, const HeadMatrices& matrices, Place place) const {
    const Shared tensor = New(cudnn::kTensor, "a tensor");
    tensor->Int(cudnn::kTensorId, id);
    tensor->Enum(cudnn::kTensorDataType, cudnn::kDataType, cudnn::DataType(dtype));
    tensor->Ints(cudnn::kTensorDimensions, matrices.shape);
    tensor->Ints(cudnn::kTensorStrides, matrices.strides);
    tensor->Int(cudnn::kTensorAlignment, place == kByValue ? kFloatAlignment : kValueAlignment);
    tensor->Flag(cudnn::kTensorIsVirtual, place == kVirtual);
    tensor->Flag(cudnn::kTensorIsByValue, place == kByValue);
    (void)tensor->Finalize();  // sticks, and is reported by who refers to it
    return tensor;
  }
  Shared Stored(int64_t id, DType dtype, const HeadMatrices& matrices) const {
    return Tensor(id, dtype, matrices, kInMemory);
  }
  /// A tensor that is never stored.
  Shared Inner(const HeadMatrices& matrices, DType dtype = DType::kF32) {
    return Tensor(next_inner_++, dtype, matrices, kVirtual);
  }

  /// Adds an operation that `function` describes; its result is `y`.
  Shared Add(cudnn::Type type, int function_name, const Shared& function,
             std::initializer_list<std::pair<int, Shared>> operands, int result, Shared y) {
    (void)function->Finalize();
    const Shared operation = New(type, "an operation");
    operation->Refer(function_name, {function});
    for (const auto& [name, operand] : operands) {
      if (operand != nullptr) operation->Refer(name, {operand});
    }
    operation->Refer(result, {y});
    (void)operation->Finalize();
    operations_.push_back(operation);
    return y;
  }
  Shared Product(const Shared& a, const Shared& b, Shared y) {
    const Shared function = New(cudnn::kMatmul, "a product");
    function->Enum(cudnn::kMatmulPrecision, cudnn::kDataType, cudnn::kFloat32);
    return Add(cudnn::kMatmulOperation, cudnn::kMatmulOf, function,
               {{cudnn::kMatmulA, a}, {cudnn::kMatmulB, b}}, cudnn::kMatmulC, std::move(y));
  }
  Shared Pointwise(int mode, const Shared& x, const Shared& other, Shared y) {
    const Shared function = New(cudnn::kPointwise, "a pointwise function");
    function->Enum(cudnn::kPointwiseModeOf, cudnn::kPointwiseMode, mode);
    function->Enum(cudnn::kPointwisePrecision, cudnn::kDataType, cudnn::kFloat32);
    return Add(cudnn::kPointwiseOperation, cudnn::kOperationPointwise, function,
               {{cudnn::kOperationX, x}, {cudnn::kOperationB, other}}, cudnn::kOperationY,
               std::move(y));
  }
  Shared Reduced(int reduction, const Shared& x, Shared y) {
    const Shared function = New(cudnn::kReduction, "a reduction");
    function->Enum(cudnn::kReductionOperatorOf, cudnn::kReductionOperator, reduction);
    function->Enum(cudnn::kReductionPrecision, cudnn::kDataType, cudnn::kFloat32);
    return Add(cudnn::kReductionOperation, cudnn::kReductionOf, function, {{cudnn::kReductionX, x}},
               cudnn::kReductionY, std::move(y));
  }

  const Cudnn& cudnn_;
  const CudnnAttention& attention_;
  int64_t next_inner_ = 100;  // ids of what is never stored
  std::vector<Shared> operations_;
};

}  // namespace

int64_t CudnnAttention::SumsBytes() const {
  return q.shape[0] * q.shape[1] * q.shape[2] * static_cast<int64_t>(sizeof(float));
}

EngineRules RulesOf(const CudnnAttention& attention, bool may_compile) {
  return {attention.dtype, {}, may_compile};
}

absl::StatusOr<std::vector<CudnnEngine>> PlanAttention(const Cudnn& cudnn,
                                                       const CudnnAttention& attention,
                                                       const std::string& device_json,
                                                       const CudnnLimits& limits) {
  MENDEL_RETURN_IF_ERROR(CheckMatrices(attention));
  MENDEL_ASSIGN_OR_RETURN(Shared graph, AttentionGraph(cudnn, attention).Make());
  MENDEL_ASSIGN_OR_RETURN(const EngineQuery query,
                          EngineQuery::Make(cudnn, std::move(graph),
                                            RulesOf(attention, limits.may_compile), device_json));
  return PlanEngines(query, limits, "this attention");
}

}  // namespace mendel::cuda
