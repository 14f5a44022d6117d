// A descriptor of cuDNN's backend interface.
#ifndef MENDEL_KERNELS_CUDA_CUDNN_DESCRIPTOR_H_
#define MENDEL_KERNELS_CUDA_CUDNN_DESCRIPTOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/types.h"
#include "kernels/cuda/cudnn/table.h"

namespace mendel::cuda {

namespace cudnn {
/// cuDNN's number of f32, f16 or bf16.
inline int DataType(DType dtype) {
  return dtype == DType::kF16 ? kFloat16 : (dtype == DType::kBF16 ? kBFloat16 : kFloat32);
}
}  // namespace cudnn

/// Owns its descriptor and those that it refers to. The first error sticks: later calls do nothing,
/// and status() reports it.
class Descriptor {
 public:
  /// `what` is for messages.
  Descriptor(const Cudnn& cudnn, cudnn::Type type, std::string what)
      : cudnn_(cudnn), what_(std::move(what)) {
    status_ = cudnn_.Check(cudnn_.CreateDescriptor(type, &handle_), Cat("making ", what_));
  }
  ~Descriptor() {
    if (handle_ != nullptr)
      cudnn_.DestroyDescriptor(handle_);  // nothing can be done about an error here
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  void Ints(int name, const std::vector<int64_t>& values) {
    Set(name, cudnn::kInt64, values.size(), values.data());
  }
  void Int(int name, int64_t value) { Ints(name, {value}); }
  void Small(int name, int32_t value) { Set(name, cudnn::kInt32, 1, &value); }
  void Flag(int name, bool value) { Set(name, cudnn::kBoolean, 1, &value); }
  void Number(int name, float value) { Set(name, cudnn::kFloat, 1, &value); }
  void Enum(int name, cudnn::ValueType type, int value) { Set(name, type, 1, &value); }
  void Pointers(int name, const std::vector<void*>& values) {
    Set(name, cudnn::kPointer, values.size(), values.data());
  }
  void Text(int name, const std::string& value) {
    Set(name, cudnn::kChar, value.size(), value.data());
  }
  void Refer(int name, const std::vector<std::shared_ptr<Descriptor>>& others) {
    std::vector<void*> handles;
    for (const auto& other : others) {
      if (status_.ok()) status_ = other->status();
      handles.push_back(other->handle_);
      referred_.push_back(other);
    }
    Set(name, cudnn::kDescriptor, handles.size(), handles.data());
  }
  absl::Status Finalize() {
    if (status_.ok()) status_ = cudnn_.Check(cudnn_.Finalize(handle_), Cat("finalizing ", what_));
    return status_;
  }

  /// Up to `room` values into `values`; how many there are.
  absl::StatusOr<int64_t> Get(int name, cudnn::ValueType type, int64_t room, void* values) const {
    if (!status_.ok()) return status_;
    int64_t count = 0;
    const int result = cudnn_.GetAttribute(handle_, name, type, room, &count, values);
    if (result != 0) return cudnn_.Check(result, Cat("asking ", what_, " for ", name));
    return count;
  }

  const absl::Status& status() const { return status_; }
  void* handle() const { return handle_; }

 private:
  void Set(int name, cudnn::ValueType type, size_t count, const void* values) {
    if (!status_.ok()) return;
    status_ =
        cudnn_.Check(cudnn_.SetAttribute(handle_, name, type, static_cast<int64_t>(count), values),
                     Cat("attribute ", name, " of ", what_));
  }

  const Cudnn& cudnn_;
  std::string what_;
  void* handle_ = nullptr;
  absl::Status status_;
  std::vector<std::shared_ptr<Descriptor>> referred_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUDNN_DESCRIPTOR_H_
