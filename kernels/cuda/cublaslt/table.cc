#include "kernels/cuda/cublaslt/table.h"

#include <memory>

#include "base/status.h"
#include "kernels/cuda/driver_table/driver.h"
#include "kernels/cuda/driver_table/library.h"

namespace mendel::cuda {
namespace {

constexpr int kOldestCublas = 120000, kNewestCublas = 139999;

absl::Status ResolveDescriptors(const Library& library, CublasLt& lt) {
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cublasLtMatmulDescCreate", lt.MatmulDescCreate));
  MENDEL_RETURN_IF_ERROR(
      Resolve(library, "cublasLtMatmulDescSetAttribute", lt.MatmulDescSetAttribute));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cublasLtMatmulDescDestroy", lt.MatmulDescDestroy));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cublasLtMatrixLayoutCreate", lt.MatrixLayoutCreate));
  MENDEL_RETURN_IF_ERROR(
      Resolve(library, "cublasLtMatrixLayoutSetAttribute", lt.MatrixLayoutSetAttribute));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cublasLtMatrixLayoutDestroy", lt.MatrixLayoutDestroy));
  MENDEL_RETURN_IF_ERROR(
      Resolve(library, "cublasLtMatmulPreferenceCreate", lt.MatmulPreferenceCreate));
  MENDEL_RETURN_IF_ERROR(
      Resolve(library, "cublasLtMatmulPreferenceSetAttribute", lt.MatmulPreferenceSetAttribute));
  return Resolve(library, "cublasLtMatmulPreferenceDestroy", lt.MatmulPreferenceDestroy);
}

absl::StatusOr<const CublasLt*> OpenCublasLt() {
  MENDEL_ASSIGN_OR_RETURN(
      const Library library,
      OpenLibraryFor(Driver::VersionHere(), {"libcublasLt.so.13", "libcublasLt.so.12"}));
  auto lt = std::make_unique<CublasLt>();
  lt->path = library.path;
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cublasLtGetVersion", lt->GetVersion));
  lt->version = static_cast<int>(lt->GetVersion());
  if (lt->version < kOldestCublas || lt->version > kNewestCublas) {
    return absl::FailedPreconditionError(
        Cat(library.path, " is version ", CublasLtVersionText(lt->version), ", neither 12 nor 13"));
  }
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cublasLtGetStatusName", lt->GetStatusName));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cublasLtGetStatusString", lt->GetStatusString));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cublasLtCreate", lt->Create));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cublasLtDestroy", lt->Destroy));
  MENDEL_RETURN_IF_ERROR(ResolveDescriptors(library, *lt));
  MENDEL_RETURN_IF_ERROR(
      Resolve(library, "cublasLtMatmulAlgoGetHeuristic", lt->MatmulAlgoGetHeuristic));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cublasLtMatmul", lt->Matmul));
  return lt.release();
}

}  // namespace

absl::StatusOr<const CublasLt*> CublasLt::Get() {
  static const auto* lt = new absl::StatusOr<const CublasLt*>(OpenCublasLt());
  return *lt;
}

absl::Status CublasLt::Check(int result, const std::string& what) const {
  if (result == 0) return absl::OkStatus();
  const std::string description = Cat("cuBLASLt: ", GetStatusName(result), ": ", what, ": ",
                                      GetStatusString(result), " (", result, ")");
  if (result == cublaslt::kAllocationFailed) return absl::ResourceExhaustedError(description);
  const bool unsupported =
      result == cublaslt::kNotSupported || result == cublaslt::kArchitectureMismatch;
  return unsupported ? absl::UnimplementedError(description) : absl::InternalError(description);
}

std::string CublasLtVersionText(int version) {
  return Cat(version / 10000, ".", version % 10000 / 100, ".", version % 100);
}

}  // namespace mendel::cuda
