// cuBLASLt as a library whose calls compute MatMul nodes.
#ifndef MENDEL_KERNELS_CUDA_CUBLASLT_LIBRARY_H_
#define MENDEL_KERNELS_CUDA_CUBLASLT_LIBRARY_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/backend/library_groups.h"
#include "kernels/cuda/backend/resources.h"
#include "kernels/cuda/cublaslt/matmul.h"
#include "kernels/cuda/cublaslt/product_match.h"
#include "kernels/cuda/cublaslt/table.h"
#include "kernels/cuda/driver_table/driver.h"

namespace mendel::cuda {

/// "cublaslt", "cublaslt:1" and so on are the first few algorithms that cuBLASLt's heuristics
/// propose for the product with its epilogue (product_match.h) on device 0. Proposals need the
/// device, so that there is no such library without one. Plans that are made offline name the first
/// of a kind by its form (FormNames). Where the numerics class allows TF32, products of f32 also
/// have "cublaslt-tf32", "cublaslt-tf32:1" and so on. Under `f16` and `bf16` they also have
/// "cublaslt-f16" or "cublaslt-bf16", whose operands are rounded to the format before
/// (MemoryFormat). "cublaslt-f16-kept" and "cublaslt-bf16-kept" have the residual, the bias and the
/// result in the format, too, and take a Gelu by tanh along. The first names multiply the same
/// numbers in every class (LtDescriptors). `strict` leaves Relu out.
///
/// Thread-safe. The device's primary context is retained from the first query on, and is then
/// current on the calling thread.
class CublasLtLibrary final : public CallLibrary {
 public:
  /// Both must outlive the library and its calls, each of which takes at most `workspace_bytes`.
  /// `offered`: algorithms of a node and kind ("cublaslt", "cublaslt-tf32"), at most kMostOffered.
  CublasLtLibrary(const CublasLt& lt, const Driver& driver, int64_t workspace_bytes,
                  size_t offered = kOffered)
      : lt_(lt), driver_(driver), workspace_bytes_(workspace_bytes), offered_(offered) {}
  ~CublasLtLibrary() override;
  CublasLtLibrary(const CublasLtLibrary&) = delete;
  CublasLtLibrary& operator=(const CublasLtLibrary&) = delete;

  std::string_view name() const override { return "cublaslt"; }
  std::string Identity() const override;
  bool Multiplies(Numerics numerics) const override {
    return OperandRounding(numerics) > 0 && numerics != Numerics::kHigh;
  }
  MemoryFormat FormRead(std::string_view algorithm) const override;
  /// Names as many algorithms as there are with any part of the epilogue, since other libraries may
  /// take the rest. Parts for which cuBLASLt proposes nothing, or returns an error, do not count.
  /// None after an error with the product alone, which Group then returns.
  std::vector<std::string> Algorithms(const GroupingScope& scope, int32_t node,
                                      Numerics numerics) const override;
  /// The group has as much of the epilogue as there are algorithms for.
  absl::StatusOr<LibraryGroup> Group(const GroupingScope& scope, int32_t node,
                                     const std::string& algorithm,
                                     Numerics numerics) const override;

  /// These two need no cuBLASLt: the names of the kinds whose form the node has, and the group that
  /// a call of such a name computes at most. An algorithm need not exist. InvalidArgument for a
  /// name that is none of them.
  static std::vector<std::string> FormNames(const GroupingScope& scope, int32_t node,
                                            Numerics numerics);
  static absl::StatusOr<LibraryGroup> FormOf(const GroupingScope& scope, int32_t node,
                                             const std::string& algorithm, Numerics numerics);

 private:
  struct Proposed {
    ProductMatch match;
    std::vector<LtAlgorithm> algorithms;  ///< not empty
  };
  /// The `matches` that there are algorithms for, in their order.
  absl::StatusOr<std::vector<Proposed>> Propose(std::vector<ProductMatch> matches) const;
  // The caller holds the mutex, and has called Open before AlgorithmsFor.
  absl::Status Open() const;
  absl::StatusOr<std::vector<LtAlgorithm>> AlgorithmsFor(const LtProduct& product) const;

  const CublasLt& lt_;
  const Driver& driver_;
  const int64_t workspace_bytes_;
  const size_t offered_;
  mutable std::mutex mutex_;  // of all that follows
  mutable int device_ = 0;
  mutable DriverContext* context_ = nullptr;
  mutable Owned<void*> handle_;
  mutable std::map<LtProduct, std::vector<LtAlgorithm>> known_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUBLASLT_LIBRARY_H_
