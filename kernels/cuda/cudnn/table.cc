#include "kernels/cuda/cudnn/table.h"

#include <memory>

#include "base/status.h"
#include "kernels/cuda/driver_table/library.h"

namespace mendel::cuda {
namespace {

constexpr int kOldestCudnn = 90800;
// Errors of cudnn_graph_v9.h: no memory of the host, no memory of the device.
constexpr int kNoHostMemory = 4003, kNoDeviceMemory = 4004;

absl::StatusOr<const Cudnn*> OpenCudnn() {
  MENDEL_ASSIGN_OR_RETURN(const Library library, OpenLibrary({"libcudnn.so.9"}));
  auto cudnn = std::make_unique<Cudnn>();
  cudnn->path = library.path;
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cudnnGetVersion", cudnn->GetVersion));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cudnnGetLastErrorString", cudnn->GetLastErrorString));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cudnnBackendCreateDescriptor", cudnn->CreateDescriptor));
  MENDEL_RETURN_IF_ERROR(
      Resolve(library, "cudnnBackendDestroyDescriptor", cudnn->DestroyDescriptor));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cudnnBackendFinalize", cudnn->Finalize));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cudnnBackendSetAttribute", cudnn->SetAttribute));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cudnnBackendGetAttribute", cudnn->GetAttribute));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cudnnCreate", cudnn->CreateHandle));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cudnnDestroy", cudnn->DestroyHandle));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cudnnSetStream", cudnn->SetStream));
  MENDEL_RETURN_IF_ERROR(Resolve(library, "cudnnBackendExecute", cudnn->Execute));
  cudnn->version = static_cast<int>(cudnn->GetVersion());
  if (cudnn->version < kOldestCudnn) {
    return absl::FailedPreconditionError(
        Cat(library.path, " is version ", cudnn->version, ", older than ", kOldestCudnn));
  }
  return cudnn.release();
}

}  // namespace

absl::StatusOr<const Cudnn*> Cudnn::Get() {
  static const auto* cudnn = new absl::StatusOr<const Cudnn*>(OpenCudnn());
  return *cudnn;
}

absl::Status Cudnn::Check(int result, const std::string& what) const {
  if (result == 0) return absl::OkStatus();
  char text[512] = "";
  if (GetLastErrorString != nullptr) GetLastErrorString(text, sizeof text);
  const std::string all = text;
  const std::string description =
      Cat("cuDNN: ", what, ": ", all.substr(0, all.find('\n')), " (", result, ")");
  if (result == kNoHostMemory || result == kNoDeviceMemory)
    return absl::ResourceExhaustedError(description);
  return result / 1000 == 3 ? absl::UnimplementedError(description)
                            : absl::InternalError(description);
}

std::string Cudnn::VersionText() const {
  return Cat(version / 10000, ".", version % 10000 / 100, ".", version % 100);
}

}  // namespace mendel::cuda
