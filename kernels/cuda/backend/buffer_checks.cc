#include "kernels/cuda/backend/buffer_checks.h"

#include "base/status.h"

namespace mendel::cuda {
namespace {

absl::Status CheckCount(std::string_view what, const std::vector<DeviceCopy>& copies,
                        size_t count) {
  if (count == copies.size()) return absl::OkStatus();
  return InvalidInput("expected ", copies.size(), " ", what, "s, not ", count);
}

absl::Status CheckAlignment(std::string_view what, const DeviceCopy& copy, uint64_t address) {
  const auto element = static_cast<uint64_t>(DTypeSize(copy.type.dtype));
  if (address % element == 0) return absl::OkStatus();
  return InvalidInput(what, " '", copy.name, "' is not aligned to its element size, ", element,
                      " bytes");
}

template <class Buffer>
absl::Status CheckAll(std::string_view what, const std::vector<DeviceCopy>& copies,
                      std::span<const Buffer> buffers) {
  MENDEL_RETURN_IF_ERROR(CheckCount(what, copies, buffers.size()));
  for (size_t k = 0; k < copies.size(); ++k) {
    const TensorType& type = copies[k].type;
    if (static_cast<int64_t>(buffers[k].size()) != ByteSize(type)) {
      return InvalidInput(what, " '", copies[k].name, "' is ", TypeString(type), ": ",
                          ByteSize(type), " bytes, not ", buffers[k].size());
    }
    MENDEL_RETURN_IF_ERROR(
        CheckAlignment(what, copies[k], reinterpret_cast<uintptr_t>(buffers[k].data())));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckBuffers(std::string_view what, const std::vector<DeviceCopy>& copies,
                          std::span<const std::span<const std::byte>> buffers) {
  return CheckAll(what, copies, buffers);
}

absl::Status CheckBuffers(std::string_view what, const std::vector<DeviceCopy>& copies,
                          std::span<const std::span<std::byte>> buffers) {
  return CheckAll(what, copies, buffers);
}

absl::Status CheckAddresses(std::string_view what, const std::vector<DeviceCopy>& copies,
                            std::span<const uint64_t> addresses) {
  MENDEL_RETURN_IF_ERROR(CheckCount(what, copies, addresses.size()));
  for (size_t k = 0; k < copies.size(); ++k) {
    if (copies[k].buffer.bytes > 0 && addresses[k] == 0)
      return InvalidInput(what, " '", copies[k].name, "' is NULL");
    MENDEL_RETURN_IF_ERROR(CheckAlignment(what, copies[k], addresses[k]));
  }
  return absl::OkStatus();
}

}  // namespace mendel::cuda
