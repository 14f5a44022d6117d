#include "kernels/cuda/offline/assumptions.h"

#include <utility>

#include "base/status.h"
#include "kernels/cuda/cublaslt/library.h"
#include "kernels/cuda/cudnn/library.h"
#include "kernels/cuda/tiled/library.h"

namespace mendel::cuda {
namespace {

bool Has(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

/// The format in which the call's factors are multiplied.
DType FactorsOf(const LibraryGroup& group) {
  const DType own = group.operands.at(0).dtype;
  return group.forms.empty() ? own : group.forms[0].rounded.value_or(own);
}

class AssumedCall final : public LibraryCall {
 public:
  explicit AssumedCall(std::string name) : name_(std::move(name)) {}
  std::string name() const override { return name_; }
  int64_t workspace_bytes() const override { return 0; }
  absl::StatusOr<std::unique_ptr<LoadedCall>> Load(const CallSite&,
                                                   LibraryHandles&) const override {
    return absl::FailedPreconditionError(
        Cat("'", name_, "' is an assumption for an offline plan, and no call of a library"));
  }

 private:
  const std::string name_;
};

/// `Library`: has FormNames and FormOf.
template <class Library>
class AssumedLibrary final : public CallLibrary {
 public:
  AssumedLibrary(std::string_view name, const GpuModel& gpu) : name_(name), gpu_(gpu) {}

  std::string_view name() const override { return name_; }
  std::string Identity() const override { return Cat(name_, ", assumed"); }
  bool Multiplies(Numerics numerics) const override {
    return OperandRounding(numerics) > 0 && numerics != Numerics::kHigh;
  }

  std::vector<std::string> Algorithms(const GroupingScope& scope, int32_t node,
                                      Numerics numerics) const override {
    std::vector<std::string> names;
    for (std::string& name : Library::FormNames(scope, node, numerics)) {
      if (Group(scope, node, name, numerics).ok()) names.push_back(std::move(name));
    }
    return names;
  }

  absl::StatusOr<LibraryGroup> Group(const GroupingScope& scope, int32_t node,
                                     const std::string& algorithm,
                                     Numerics numerics) const override {
    auto group = Library::FormOf(scope, node, algorithm, numerics);
    if (group.ok() && CallFlops(gpu_, algorithm, FactorsOf(*group)) == 0) {
      group = InvalidInput(gpu_.name, " has no such arithmetic");
    }
    if (!group.ok()) {
      const Node& it = scope.graph.node(node);
      return InvalidInput("node '", it.name, "' (", it.op->name, " ", node,
                          ") cannot be computed by '", algorithm,
                          "': ", std::string(group.status().message()));
    }
    group->call = std::make_shared<AssumedCall>(algorithm);
    return group;
  }

 private:
  const std::string name_;
  const GpuModel& gpu_;
};

}  // namespace

double CallFlops(const GpuModel& gpu, std::string_view algorithm, DType factors) {
  if (factors == DType::kF16) return kTensorCoreShare * gpu.f16_flops;
  if (factors == DType::kBF16) return kTensorCoreShare * gpu.bf16_flops;
  return Has(algorithm, "-tf32") ? kTensorCoreShare * gpu.tf32_flops : kCallShare * gpu.flops;
}

double TiledFlops(const GpuModel& gpu, std::optional<Numerics> tensor_cores, bool in_double) {
  if (!tensor_cores.has_value()) return kTiledShare * (in_double ? gpu.double_flops : gpu.flops);
  const double peak = *tensor_cores == Numerics::kTf32  ? gpu.tf32_flops
                      : *tensor_cores == Numerics::kF16 ? gpu.f16_flops
                                                        : gpu.bf16_flops;
  return kTiledTensorCoreShare * peak;
}

bool ConvertsLayout(const LibraryGroup& call) {
  const bool by_tensor_cores = FactorsOf(call) != DType::kF32 || Has(call.algorithm, "-tf32");
  return call.call != nullptr && by_tensor_cores && Has(call.algorithm, "cudnn") &&
         !Has(call.algorithm, "-nhwc");
}

std::vector<std::unique_ptr<const CallLibrary>> AssumedLibraries(const GpuModel& gpu) {
  std::vector<std::unique_ptr<const CallLibrary>> libraries;
  libraries.push_back(std::make_unique<AssumedLibrary<CudnnLibrary>>("cudnn", gpu));
  libraries.push_back(std::make_unique<AssumedLibrary<CublasLtLibrary>>("cublaslt", gpu));
  libraries.push_back(std::make_unique<TiledLibrary>(gpu.multiprocessors, gpu.compute_capability,
                                                     /*experiments=*/false));
  return libraries;
}

}  // namespace mendel::cuda
