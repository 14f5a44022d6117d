#include "kernels/cuda/cublaslt/matmul.h"

#include <algorithm>

#include "base/status.h"

namespace mendel::cuda {
namespace {

using cublaslt::Proposal;

constexpr uint64_t kAnyAlignedAddress = 256;

int LtDataType(DType dtype) {
  return dtype == DType::kF16 ? cublaslt::kFloat16
                              : (dtype == DType::kBF16 ? cublaslt::kBFloat16 : cublaslt::kFloat32);
}

int ComputeType(const LtProduct& product) {
  if (product.operands != DType::kF32) return cublaslt::kCompute32F;
  return product.tf32 ? cublaslt::kCompute32FFastTf32 : cublaslt::kCompute32FPedantic;
}

uint32_t EpilogueOf(const LtProduct& product) {
  const uint32_t bias = product.bias ? uint32_t{cublaslt::kBias} : 0;
  switch (product.activation) {
    case LtActivation::kRelu:
      return cublaslt::kRelu | bias;
    case LtActivation::kGeluTanh:
      return cublaslt::kGeluTanh | bias;
    case LtActivation::kNone:
      break;
  }
  return product.bias ? bias : static_cast<uint32_t>(cublaslt::kNoEpilogue);
}

/// Creates descriptors and sets attributes; all errors name what was being made.
class PartMaker {
 public:
  explicit PartMaker(const CublasLt& lt) : lt_(lt) {}

  absl::StatusOr<Owned<void*>> Operation(const LtProduct& product) {
    void* made = nullptr;
    const int result = lt_.MatmulDescCreate(&made, ComputeType(product), cublaslt::kFloat32);
    MENDEL_RETURN_IF_ERROR(lt_.Check(result, "cublasLtMatmulDescCreate"));
    Owned<void*> operation(made, lt_.MatmulDescDestroy);
    const auto set = [&](int attribute, const auto& value) {
      return lt_.Check(lt_.MatmulDescSetAttribute(made, attribute, &value, sizeof value),
                       Cat("cublasLtMatmulDescSetAttribute ", attribute));
    };
    // The operands are exchanged: by columns, y' = right' left'.
    MENDEL_RETURN_IF_ERROR(set(cublaslt::kTransposeA, product.right.transposed
                                                          ? cublaslt::kTransposed
                                                          : cublaslt::kNotTransposed));
    MENDEL_RETURN_IF_ERROR(set(cublaslt::kTransposeB, product.left.transposed
                                                          ? cublaslt::kTransposed
                                                          : cublaslt::kNotTransposed));
    MENDEL_RETURN_IF_ERROR(set(cublaslt::kEpilogue, EpilogueOf(product)));
    // Heuristics use the address for its alignment.
    if (product.bias) MENDEL_RETURN_IF_ERROR(set(cublaslt::kBiasPointer, kAnyAlignedAddress));
    return operation;
  }

  /// The layout of a matrix that has [rows, columns] in the graph.
  absl::StatusOr<Owned<void*>> Layout(const LtProduct& product, DType dtype, int64_t rows,
                                      int64_t columns, const LtMatrix& matrix) {
    if (matrix.transposed) std::swap(rows, columns);
    void* made = nullptr;
    const int result =
        lt_.MatrixLayoutCreate(&made, LtDataType(dtype), static_cast<uint64_t>(columns),
                               static_cast<uint64_t>(rows), matrix.leading);
    MENDEL_RETURN_IF_ERROR(lt_.Check(result, "cublasLtMatrixLayoutCreate"));
    Owned<void*> layout(made, lt_.MatrixLayoutDestroy);
    if (product.batch == 1) return layout;
    const auto set = [&](int attribute, const auto& value) {
      return lt_.Check(lt_.MatrixLayoutSetAttribute(made, attribute, &value, sizeof value),
                       Cat("cublasLtMatrixLayoutSetAttribute ", attribute));
    };
    MENDEL_RETURN_IF_ERROR(set(cublaslt::kBatchCount, static_cast<int32_t>(product.batch)));
    MENDEL_RETURN_IF_ERROR(set(cublaslt::kBatchStride, matrix.batch_stride));
    return layout;
  }

  absl::StatusOr<Owned<void*>> Preference(int64_t workspace_limit) {
    void* made = nullptr;
    MENDEL_RETURN_IF_ERROR(
        lt_.Check(lt_.MatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate"));
    Owned<void*> preference(made, lt_.MatmulPreferenceDestroy);
    const auto set = [&](int attribute, const auto& value) {
      return lt_.Check(lt_.MatmulPreferenceSetAttribute(made, attribute, &value, sizeof value),
                       Cat("cublasLtMatmulPreferenceSetAttribute ", attribute));
    };
    MENDEL_RETURN_IF_ERROR(
        set(cublaslt::kMaxWorkspaceBytes, static_cast<uint64_t>(workspace_limit)));
    MENDEL_RETURN_IF_ERROR(
        set(cublaslt::kReductionSchemes, static_cast<uint32_t>(cublaslt::kReductionInSums)));
    return preference;
  }

 private:
  const CublasLt& lt_;
};

}  // namespace

std::string EpilogueName(const LtProduct& product) {
  constexpr const char* kActivations[] = {"", "_relu", "_gelu"};
  return Cat(product.residual ? "_residual" : "", product.bias ? "_bias" : "",
             kActivations[static_cast<size_t>(product.activation)]);
}

absl::StatusOr<LtDescriptors> LtDescriptors::Make(const CublasLt& lt, const LtProduct& product) {
  PartMaker maker(lt);
  LtDescriptors made;
  MENDEL_ASSIGN_OR_RETURN(made.operation_, maker.Operation(product));
  MENDEL_ASSIGN_OR_RETURN(
      made.left_, maker.Layout(product, product.operands, product.m, product.k, product.left));
  MENDEL_ASSIGN_OR_RETURN(
      made.right_, maker.Layout(product, product.operands, product.k, product.n, product.right));
  const LtMatrix result{false, product.n, product.m * product.n};
  MENDEL_ASSIGN_OR_RETURN(made.result_,
                          maker.Layout(product, product.dtype, product.m, product.n, result));
  return made;
}

absl::StatusOr<std::vector<LtAlgorithm>> ProposeAlgorithms(const CublasLt& lt, void* handle,
                                                           const LtProduct& product,
                                                           int64_t workspace_limit, int most) {
  MENDEL_ASSIGN_OR_RETURN(const LtDescriptors described, LtDescriptors::Make(lt, product));
  MENDEL_ASSIGN_OR_RETURN(const Owned<void*> preference, PartMaker(lt).Preference(workspace_limit));
  std::vector<Proposal> proposals(static_cast<size_t>(most));
  int count = 0;
  const int result = lt.MatmulAlgoGetHeuristic(
      handle, described.operation(), described.right(), described.left(), described.result(),
      described.result(), preference.get(), most, proposals.data(), &count);
  const absl::Status proposed = lt.Check(result, "cublasLtMatmulAlgoGetHeuristic");
  if (absl::IsUnimplemented(proposed)) return std::vector<LtAlgorithm>();
  MENDEL_RETURN_IF_ERROR(proposed);
  std::vector<LtAlgorithm> algorithms;
  for (int k = 0; k < std::clamp(count, 0, most); ++k) {
    const Proposal& proposal = proposals[static_cast<size_t>(k)];
    const int64_t workspace = static_cast<int64_t>(proposal.workspace_bytes);
    if (proposal.state == 0 && workspace <= workspace_limit)
      algorithms.push_back({proposal.algorithm, workspace});
  }
  return algorithms;
}

absl::Status SetBias(const CublasLt& lt, const LtDescriptors& descriptors, uint64_t address) {
  return lt.Check(lt.MatmulDescSetAttribute(descriptors.operation(), cublaslt::kBiasPointer,
                                            &address, sizeof address),
                  "cublasLtMatmulDescSetAttribute: the bias");
}

absl::Status EnqueueProduct(const CublasLt& lt, void* handle, const LtProduct& product,
                            const LtDescriptors& descriptors, const LtAlgorithm& algorithm,
                            const LtOperands& operands, uint64_t workspace, DriverStream* stream) {
  const auto at = [](uint64_t address) { return reinterpret_cast<void*>(address); };
  const float one = 1, beta = product.residual ? 1 : 0;
  const int result =
      lt.Matmul(handle, descriptors.operation(), &one, at(operands.right), descriptors.right(),
                at(operands.left), descriptors.left(), &beta,
                at(product.residual ? operands.residual : operands.result), descriptors.result(),
                at(operands.result), descriptors.result(), &algorithm.data, at(workspace),
                static_cast<size_t>(algorithm.workspace_bytes), stream);
  return lt.Check(result, "cublasLtMatmul");
}

}  // namespace mendel::cuda
