// Devices for which plans are made on machines without them: times are predicted, and kernels are
// written but not run.
#ifndef MENDEL_RUNTIME_OFFLINE_DEVICE_H_
#define MENDEL_RUNTIME_OFFLINE_DEVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "mendel/plan.pb.h"
#include "runtime/backend.h"

namespace mendel {

class OfflineDevice {
 public:
  virtual ~OfflineDevice() = default;
  /// A backend with the name of the one that will run the plan; Isa is the architecture. Compile
  /// refuses the same graphs. Its executables compute the graph's meaning in double, not the
  /// kernels' results. Its algorithms are those for such devices with the supported libraries,
  /// found here or not.
  virtual const Backend& backend() const = 0;
  /// Predicted seconds of every node by these algorithms, 0 for nodes that run as part of others.
  /// InvalidArgument names the node and an algorithm that it does not have.
  virtual absl::StatusOr<std::vector<double>> Seconds(const Graph& graph,
                                                      const CompileOptions& options) const = 0;
  /// Describes for people how seconds are predicted.
  virtual std::string Description() const = 0;
  /// Writes all kernels of `graph` and compiles them where a compiler for the device is found.
  /// Queries the libraries found here, where they work without the device, whether they have the
  /// algorithms. Returns a sentence for people. Internal when a text does not compile.
  virtual absl::StatusOr<std::string> BuildKernels(const Graph& graph,
                                                   const CompileOptions& options) const = 0;
};

/// Sorted.
std::vector<std::string> OfflineDeviceNames();

/// "cuda:sm_90": name and Isa of its backend. InvalidArgument lists the available devices.
absl::StatusOr<std::unique_ptr<OfflineDevice>> MakeOfflineDevice(const std::string& name);

/// True if the plan's times are predictions: it was made offline. It runs on any device of its
/// architecture.
bool IsUnmeasured(const plan::PlanInfo& info);

struct OfflineDeviceRegistrar {
  /// `names`: of all devices; `make` gets one of them.
  OfflineDeviceRegistrar(std::vector<std::string> names,
                         std::unique_ptr<OfflineDevice> (*make)(const std::string& name));
};
#define MENDEL_REGISTER_OFFLINE_DEVICES(names, make) \
  const ::mendel::OfflineDeviceRegistrar offline_registrar(names, make)

}  // namespace mendel

#endif  // MENDEL_RUNTIME_OFFLINE_DEVICE_H_
