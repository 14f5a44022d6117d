// The one interface between Mendel and the executors of graphs. One folder under kernels/
// implements it; no other code uses oneDNN, CUDA or the reference evaluator.
#ifndef MENDEL_RUNTIME_BACKEND_H_
#define MENDEL_RUNTIME_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/device_rates.h"
#include "graph/graph.h"
#include "runtime/numerics.h"

namespace mendel {

/// Names of algorithms that change the memory format alone begin so.
inline constexpr std::string_view kLayoutAlgorithm = "layout:";

/// The meaning of an algorithm's name when a program was compiled. Only its backend reads it.
struct StoredEngine {
  std::string library;  ///< with its version, e.g. "cuDNN 9.19.0"
  std::string device;   ///< that it was made for, e.g. "sm_90"
  std::string text;     ///< what the library makes the same engine of again

  bool operator==(const StoredEngine&) const = default;
};

struct CompileOptions {
  int threads = 1;
  /// The CPU of each thread (cpu_topology.h), the caller's first; the caller gets its own mask back
  /// after every run. Empty: the system chooses. Other values need a backend with
  /// ThreadsCanBePinned().
  std::vector<int> cpus = {};
  Numerics numerics = Numerics::kDefault;
  /// Algorithm by node id, where the choice differs from the backend's default (see
  /// Backend::Algorithms).
  std::map<int32_t, std::string> algorithms = {};
  /// Engines of nodes of `algorithms`, as an earlier Backend::Engines returned them, to run again.
  /// Other nodes use the current meaning of the name. InvalidArgument for an engine that cannot
  /// run: another version or device (both are named), a damaged text.
  std::map<int32_t, StoredEngine> engines = {};
  /// An executable that packs weights (cpu) also copies the constants that its kernels read
  /// unpacked, so that the graph's memory may be freed after the compilation. Not set: they are
  /// read in place and kept alive.
  bool copy_constants = false;
};

/// One kernel call of an executable.
struct Step {
  std::string name;            ///< the node's name, or its operator and number
  std::vector<int32_t> nodes;  ///< nodes of the graph that this step computes (a convolution with
                               ///< its bias and activation)
  std::string kernel;          ///< implementation, e.g. "jit_wino_4x3:avx512_core"
  double flops = 0;
  /// Nodes whose algorithms request a conversion, wherever the step stands; for steps that compute
  /// no node. Empty: those of the next step that computes some.
  std::vector<int32_t> requested_by = {};
};

/// Step time attributable to `nodes` by their algorithms: that of the steps that compute any of
/// them, and of conversions that these request, each divided equally among the nodes that request
/// it. One step that computes several nodes counts whole.
double SecondsOfNodes(std::span<const Step> steps, std::span<const double> seconds,
                      const std::set<int32_t>& nodes);

struct MemoryReport {
  int64_t arena_bytes = 0;    ///< activations, after reuse
  int64_t alive_bytes = 0;    ///< most that are alive at one step: no arena is smaller
  int64_t weight_bytes = 0;   ///< packed weights
  int64_t scratch_bytes = 0;  ///< kernels' own
};

/// A run whose inputs and outputs are on the executable's device. Handles and addresses have the
/// types of the device's interface: for CUDA a CUstream, a CUevent and CUdeviceptr.
struct DeviceRun {
  std::span<const uint64_t>
      inputs;  ///< addresses in the order of graph.inputs(), aligned to the element size
  std::span<const uint64_t>
      outputs;             ///< likewise; memory that no other input or output of the run shares
  void* stream = nullptr;  ///< null: the device's default stream
  void* ready_event = nullptr;  ///< recorded on the stream when the outputs are there; null: none
};

/// A compiled graph with its packed weights and static memory plan. Not thread-safe: one Run at a
/// time; several executables may run side by side.
class Executable {
 public:
  virtual ~Executable() = default;

  /// Buffers in the order of graph.inputs() and graph.outputs(), row-major, of exactly
  /// ByteSize(type) bytes (InvalidArgument otherwise), aligned to the element size. After the first
  /// call only libraries allocate.
  virtual absl::Status Run(std::span<const std::span<const std::byte>> inputs,
                           std::span<const std::span<std::byte>> outputs) = 0;

  /// Seconds of one run, as comparisons count them; outputs as Run. On the host: the wall clock
  /// around Run, after `evict`, which empties the host's caches (null: they stay warm). On a
  /// device: its time for the program alone, with inputs already there and no copy from or to
  /// the host. If `evict` is set, the device's caches are emptied instead. First calls may
  /// allocate.
  virtual absl::StatusOr<double> TimeRun(std::span<const std::span<const std::byte>> inputs,
                                         std::span<const std::span<std::byte>> outputs,
                                         const std::function<void()>& evict);

  /// The place of inputs and outputs of RunOnDevice: "cuda:0"; "cpu" where there is no such thing.
  virtual std::string device() const { return "cpu"; }
  /// Enqueues a run on the caller's stream and returns: it neither waits nor allocates. Runs of one
  /// executable follow each other on all streams. Unimplemented on "cpu"; InvalidArgument names the
  /// wrong buffer, or the fault of the stream.
  virtual absl::Status RunOnDevice(const DeviceRun& run);

  virtual const std::vector<Step>& steps() const = 0;
  /// Runs, and `seconds` receives the wall time of each step.
  virtual absl::Status RunTimed(std::span<const std::span<const std::byte>> inputs,
                                std::span<const std::span<std::byte>> outputs,
                                std::vector<double>& seconds) = 0;
  virtual MemoryReport memory() const = 0;
};

class MeasuringDevice;

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;
  /// OK when this machine can run the backend, else why not.
  virtual absl::Status Probe() const = 0;
  /// Everything that stored measurements depend on: device, instruction set, library versions.
  /// Stable across processes.
  virtual std::string Identity() const = 0;
  /// Compilations share folded weights as long as the returned handle lives. Null if the backend
  /// shares none. Any thread.
  virtual std::shared_ptr<void> KeepWeights() const { return nullptr; }
  /// Instruction set in short, for people; "" where there is none.
  virtual std::string Isa() const { return ""; }
  /// OK when the backend has kernels here that `numerics` allows and stricter classes do not.
  /// Otherwise an error names the missing part, and the class equals the next stricter one.
  virtual absl::Status Supports(Numerics numerics) const;
  /// True where threads of this process run the program as CompileOptions requests, so that the
  /// process may choose their CPUs.
  virtual bool ThreadsCanBePinned() const { return false; }
  /// By these the search's derivations are ranked before anything is measured. The default: one
  /// core of a current processor.
  virtual DeviceRates Rates() const { return {}; }
  /// Algorithms besides the default that the backend can run `node` with under `numerics`; may be
  /// empty. Names of those that change the memory format alone begin with kLayoutAlgorithm.
  virtual std::vector<std::string> Algorithms(const Graph& graph, int32_t node,
                                              Numerics numerics) const = 0;
  /// The memory format that algorithms have in common when they suit each other as neighbors, so
  /// that nothing is converted between them. "": the default's format.
  virtual std::string AlgorithmKind(std::string_view algorithm) const;
  /// Sets of `nodes`, all of which have algorithms. Values need no conversion within a set if all
  /// its algorithms have one kind. A set contains neighbors, directly or through nodes that keep
  /// the format, and readers of one value. Empty: kinds gain the same everywhere, or only whole
  /// programs are worth measuring.
  virtual std::vector<std::vector<int32_t>> KindRegions(const Graph& graph,
                                                        const std::set<int32_t>& nodes) const;
  /// Folds weight-only expressions (in double, rounded once), fuses, assigns layouts, plans memory
  /// and packs weights. Unimplemented names the node that cannot run.
  virtual absl::StatusOr<std::unique_ptr<Executable>> Compile(
      const Graph& graph, const CompileOptions& options) const = 0;
  /// Engines that algorithms of `options` stand for, by node. Names alone do not identify them:
  /// with it, Compile makes the same program again, whatever the names mean then.
  virtual absl::StatusOr<std::map<int32_t, StoredEngine>> Engines(
      const Graph& graph, const CompileOptions& options) const;
  /// The device of Compile's executables, for measurements (measuring_device.h). Null: the
  /// processor, or no device is present.
  virtual const MeasuringDevice* measuring_device() const { return nullptr; }
};

/// Backends by name, sorted. "reference" is always there; "cpu" where oneDNN was found.
std::span<const Backend* const> AllBackends();
/// Null when there is none of this name.
const Backend* FindBackend(std::string_view name);

/// CompileOptions::cpus of ChooseCpus (cpu_topology.h); InvalidArgument when `affinity` is not
/// "none" and the backend's threads cannot be pinned.
absl::StatusOr<std::vector<int>> CpusFor(const Backend& backend, std::string_view affinity,
                                         int threads);

struct BackendRegistrar {
  explicit BackendRegistrar(const Backend* (*make)());
};
#define MENDEL_REGISTER_BACKEND(make) const ::mendel::BackendRegistrar backend_registrar(make)

/// Convenience for tests and tools: runs `executable` on tensors of its program's input types.
/// `outputs`: the types of its outputs. Nothing is compiled.
absl::StatusOr<std::vector<Tensor>> RunOnTensors(Executable& executable,
                                                 std::span<const TensorType> outputs,
                                                 std::span<const Tensor> inputs);
/// The same for a program compiled from `graph`.
absl::StatusOr<std::vector<Tensor>> RunOnTensors(Executable& executable, const Graph& graph,
                                                 std::span<const Tensor> inputs);

}  // namespace mendel

#endif  // MENDEL_RUNTIME_BACKEND_H_
