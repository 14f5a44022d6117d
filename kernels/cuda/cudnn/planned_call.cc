#include "kernels/cuda/cudnn/planned_call.h"

#include <utility>

#include "base/status.h"
#include "kernels/cuda/backend/program.h"
#include "kernels/cuda/cudnn/descriptor.h"

namespace mendel::cuda {
namespace {

constexpr char kHandle[] = "cudnn";

void* Pointer(uint64_t address) { return reinterpret_cast<void*>(static_cast<uintptr_t>(address)); }

/// cuDNN's handle, bound to the stream of one executable.
class CudnnHandle final : public LibraryHandle {
 public:
  explicit CudnnHandle(const Cudnn& cudnn) : cudnn_(cudnn) {}
  ~CudnnHandle() override {
    if (handle_ != nullptr)
      cudnn_.DestroyHandle(handle_);  // nothing can be done about an error here
  }
  absl::Status Open(DriverStream* stream) {
    MENDEL_RETURN_IF_ERROR(cudnn_.Check(cudnn_.CreateHandle(&handle_), "cudnnCreate"));
    return cudnn_.Check(cudnn_.SetStream(handle_, stream), "cudnnSetStream");
  }
  void* get() const { return handle_; }

 private:
  const Cudnn& cudnn_;
  void* handle_ = nullptr;
};

class LoadedPlan final : public LoadedCall {
 public:
  LoadedPlan(const Cudnn& cudnn, void* handle)
      : cudnn_(cudnn),
        handle_(handle),
        plan_(cudnn, cudnn::kPlan, "the execution plan"),
        pack_(cudnn, cudnn::kVariantPack, "the variant pack") {}

  absl::Status Prepare(const CudnnEngine& engine, const std::string& device_json,
                       const std::vector<int64_t>& tensors, const InnerTensors& inner,
                       int64_t first_inner, const CallSite& site) {
    const auto device =
        std::make_shared<Descriptor>(cudnn_, cudnn::kDevice, "the device's properties");
    device->Text(cudnn::kDeviceJson, device_json);
    MENDEL_RETURN_IF_ERROR(device->Finalize());
    plan_.Refer(cudnn::kPlanDevice, {device});
    plan_.Text(cudnn::kPlanJson, engine.plan_json);
    if (const absl::Status made = plan_.Finalize(); !made.ok()) {
      if (absl::IsResourceExhausted(made)) return made;
      return absl::FailedPreconditionError(Cat("cuDNN ", cudnn_.VersionText(),
                                               " does not make the plan of engine ", engine.index,
                                               " again: ", std::string(made.message())));
    }
    std::vector<void*> pointers;
    for (const uint64_t address : site.pointers) pointers.push_back(Pointer(address));
    std::vector<int64_t> ids = tensors;
    numbers_ = inner.numbers;
    int64_t place = first_inner;
    for (const auto& [id, bytes] : inner.written) {
      ids.push_back(id);
      pointers.push_back(Pointer(site.workspace + static_cast<uint64_t>(place)));
      place += DeviceAligned(bytes);
    }
    for (auto& [id, number] : numbers_) {
      ids.push_back(id);
      pointers.push_back(&number);
    }
    pack_.Ints(cudnn::kPackIds, ids);
    pack_.Pointers(cudnn::kPackPointers, pointers);
    pack_.Pointers(cudnn::kPackWorkspace, {Pointer(site.workspace)});
    return pack_.Finalize();
  }

  absl::Status Enqueue() override {
    return cudnn_.Check(cudnn_.Execute(handle_, plan_.handle(), pack_.handle()),
                        "cudnnBackendExecute");
  }

 private:
  const Cudnn& cudnn_;
  void* handle_;
  std::map<int64_t, float> numbers_;  // cuDNN reads them when it enqueues
  Descriptor plan_, pack_;
};

class PlannedCall final : public LibraryCall {
 public:
  PlannedCall(const Cudnn& cudnn, std::string_view kind, CudnnEngine engine,
              std::vector<int64_t> tensors, std::string device_json, InnerTensors inner)
      : cudnn_(cudnn),
        name_(Cat(kind, " engine ", engine.index)),
        engine_(std::move(engine)),
        tensors_(std::move(tensors)),
        device_json_(std::move(device_json)),
        inner_(std::move(inner)) {}

  std::string name() const override { return name_; }
  int64_t workspace_bytes() const override {
    int64_t bytes = engine_.workspace_bytes;
    for (const auto& [id, written] : inner_.written) bytes = DeviceAligned(bytes) + written;
    return bytes;
  }

  absl::StatusOr<std::unique_ptr<LoadedCall>> Load(const CallSite& site,
                                                   LibraryHandles& handles) const override {
    std::unique_ptr<LibraryHandle>& handle = handles[kHandle];
    if (handle == nullptr) {
      auto made = std::make_unique<CudnnHandle>(cudnn_);
      MENDEL_RETURN_IF_ERROR(made->Open(site.stream));
      handle = std::move(made);
    }
    auto loaded =
        std::make_unique<LoadedPlan>(cudnn_, static_cast<const CudnnHandle&>(*handle).get());
    MENDEL_RETURN_IF_ERROR(loaded->Prepare(engine_, device_json_, tensors_, inner_,
                                           DeviceAligned(engine_.workspace_bytes), site));
    return std::unique_ptr<LoadedCall>(std::move(loaded));
  }

 private:
  const Cudnn& cudnn_;
  const std::string name_;
  const CudnnEngine engine_;
  const std::vector<int64_t> tensors_;
  const std::string device_json_;
  const InnerTensors inner_;
};

}  // namespace

std::shared_ptr<const LibraryCall> MakePlannedCall(const Cudnn& cudnn, std::string_view kind,
                                                   CudnnEngine engine, std::vector<int64_t> tensors,
                                                   std::string device_json, InnerTensors inner) {
  return std::make_shared<PlannedCall>(cudnn, kind, std::move(engine), std::move(tensors),
                                       std::move(device_json), std::move(inner));
}

}  // namespace mendel::cuda
