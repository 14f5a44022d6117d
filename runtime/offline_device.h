// Devices that plans are made for on machines that have none of them: times are predicted, kernels are written and not run.
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
  /// Under the name of the backend that will run the plan; Isa is the architecture. Compile refuses what that backend would refuse;
  /// what its executables compute is the graph's meaning in double, not what the kernels would compute. Its algorithms are those
  /// that the backend has on such devices with the libraries that it knows, whether they are found here or not.
  virtual const Backend& backend() const = 0;
  /// Predicted seconds of every node by these algorithms, 0 for nodes that run as part of others. InvalidArgument names the node
  /// and an algorithm that it does not have.
  virtual absl::StatusOr<std::vector<double>> Seconds(const Graph& graph, const CompileOptions& options) const = 0;
  /// How seconds are predicted, for people.
  virtual std::string Told() const = 0;
  /// Writes all kernels of `graph` and compiles them where a compiler for the device is found, and asks the libraries that are
  /// found here and can be asked without the device whether they have the algorithms: a sentence for people. Internal when a text
  /// does not compile.
  virtual absl::StatusOr<std::string> BuildKernels(const Graph& graph, const CompileOptions& options) const = 0;
};

/// Sorted.
std::vector<std::string> OfflineDeviceNames();

/// "cuda:sm_90": name and Isa of its backend. InvalidArgument tells the devices that there are.
absl::StatusOr<std::unique_ptr<OfflineDevice>> MakeOfflineDevice(const std::string& name);

/// The plan's times are predictions: it was made offline. It runs on any device of its architecture.
bool IsUnmeasured(const plan::PlanInfo& info);

struct OfflineDeviceRegistrar {
  /// `names`: of all devices; `make` gets one of them.
  OfflineDeviceRegistrar(std::vector<std::string> names, std::unique_ptr<OfflineDevice> (*make)(const std::string& name));
};
#define MENDEL_REGISTER_OFFLINE_DEVICES(names, make) const ::mendel::OfflineDeviceRegistrar offline_registrar(names, make)

}  // namespace mendel

#endif  // MENDEL_RUNTIME_OFFLINE_DEVICE_H_
