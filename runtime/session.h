// A plan ready to run, for the command line and the C API.
#ifndef MENDEL_RUNTIME_SESSION_H_
#define MENDEL_RUNTIME_SESSION_H_

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/tensor.h"
#include "runtime/backend.h"
#include "runtime/plan.h"

namespace mendel {

/// A graph input or output.
struct ValueInfo {
  std::string name;
  TensorType type;
};

struct SessionOptions {
  /// 0: as many as the plan was tuned for.
  int threads = 0;
  /// The CPUs of its threads: "none" (the system chooses), "cores" or a list of CPUs (ChooseCpus,
  /// cpu_topology.h). InvalidArgument unless the backend's threads can be pinned.
  std::string affinity = "none";
  /// Accepts a plan of another machine: its algorithms are dropped, and the backend's defaults are
  /// used.
  bool retune = false;
  /// Run the plan's baseline graph instead of the chosen one.
  bool baseline = false;
};

/// One compiled plan with its buffers. It keeps the plan's weights that kernels read unpacked. They
/// stay in place if the plan is in a file, whose pages are released until the next read; otherwise
/// they are copied, so that the plan may be deleted. Not thread-safe: one Run at a time; several
/// sessions may run side by side.
class Session {
 public:
  /// Compiles `plan` on its backend. InvalidArgument when this program has no such backend, the
  /// machine differs (CheckTarget), or the plan lacks a requested baseline.
  static absl::StatusOr<std::unique_ptr<Session>> Create(const Plan& plan,
                                                         const SessionOptions& options);

  /// In the graph's order.
  const std::vector<ValueInfo>& inputs() const { return inputs_; }
  const std::vector<ValueInfo>& outputs() const { return outputs_; }
  int threads() const { return threads_; }
  Executable& executable() { return *executable_; }

  /// The inputs in the graph's order. InvalidArgument names the missing, unknown or mistyped one.
  absl::StatusOr<std::vector<Tensor>> InOrder(const std::map<std::string, Tensor>& inputs) const;
  /// Takes every input by name, as InOrder. Outputs are in the graph's order.
  absl::StatusOr<std::vector<Tensor>> Run(const std::map<std::string, Tensor>& inputs);
  /// Buffers in the order of inputs() and outputs(), as Executable::Run.
  absl::Status RunBuffers(std::span<const std::span<const std::byte>> inputs,
                          std::span<const std::span<std::byte>> outputs);

 private:
  Session() = default;

  int threads_ = 1;
  std::vector<ValueInfo> inputs_;
  std::vector<ValueInfo> outputs_;
  std::unique_ptr<Executable> executable_;
};

}  // namespace mendel

#endif  // MENDEL_RUNTIME_SESSION_H_
