// The one interface between Mendel and what executes graphs. One folder under kernels/ implements it; nothing else knows
// oneDNN, CUDA or the reference evaluator.
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
#include "graph/graph.h"
#include "runtime/numerics.h"

namespace mendel {

/// What a name of an algorithm stood for when a program was compiled: only who made it reads it.
struct StoredEngine {
  std::string library;  ///< with its version, e.g. "cuDNN 9.19.0"
  std::string device;   ///< that it was made for, e.g. "sm_90"
  std::string text;     ///< what the library makes the same engine of again

  bool operator==(const StoredEngine&) const = default;
};

struct CompileOptions {
  int threads = 1;
  /// The CPU of each thread (cpu_topology.h), the caller's first, which gets its own mask back after every run; empty: where the
  /// system puts them. Only backends that ThreadsCanBePinned() take others.
  std::vector<int> cpus = {};
  Numerics numerics = Numerics::kDefault;
  /// Algorithm by node id, where the choice is not the backend's own default (see Backend::Algorithms).
  std::map<int32_t, std::string> algorithms = {};
  /// For nodes of `algorithms`: what Backend::Engines told, maybe long ago, and is to run again. Nodes without one get what the
  /// name stands for now. InvalidArgument where it cannot be: another version or device (both are named), a damaged text.
  std::map<int32_t, StoredEngine> engines = {};
  /// An executable that packs weights (cpu) also copies the constants that its kernels read as they are stored, so that none of the
  /// graph's memory has to outlive the compilation. Not set: they are read where they lie, and kept alive.
  bool copy_constants = false;
};

/// One kernel call of an executable.
struct Step {
  std::string name;            ///< the node's name, or its operator and number
  std::vector<int32_t> nodes;  ///< nodes of the graph that this step computes (a convolution with its bias and activation)
  std::string kernel;          ///< implementation, e.g. "jit_wino_4x3:avx512_core"
  double flops = 0;
  /// Of a step that computes no node but converts a value: the nodes whose algorithms want it so, wherever the step stands. Empty:
  /// those of the next step that computes some.
  std::vector<int32_t> asked_by = {};
};

/// Of the `seconds` of each step, those that running `nodes` by their algorithms takes: of the steps that compute any of them, and
/// of conversions that these ask for, each divided equally among the nodes that ask. One step that computes several nodes counts
/// whole.
double SecondsOfNodes(std::span<const Step> steps, std::span<const double> seconds, const std::set<int32_t>& nodes);

struct MemoryReport {
  int64_t arena_bytes = 0;    ///< activations, after reuse
  int64_t alive_bytes = 0;    ///< most that are alive at one step: no arena is smaller
  int64_t weight_bytes = 0;   ///< packed weights
  int64_t scratch_bytes = 0;  ///< kernels' own
};

/// A run whose inputs and outputs lie on the executable's device. Handles and addresses are those of the device's own interface:
/// for CUDA a CUstream, a CUevent and CUdeviceptr.
struct DeviceRun {
  std::span<const uint64_t> inputs;   ///< addresses in the order of graph.inputs(), aligned to the element size
  std::span<const uint64_t> outputs;  ///< likewise; memory that no other input or output of the run shares
  void* stream = nullptr;             ///< null: the device's default stream
  void* ready_event = nullptr;        ///< recorded on the stream when the outputs are there; null: none
};

/// A compiled graph with its packed weights and static memory plan. Not thread-safe: one Run at a time; several executables
/// may run side by side.
class Executable {
 public:
  virtual ~Executable() = default;

  /// Buffers in the order of graph.inputs() and graph.outputs(), row-major, of exactly ByteSize(type) bytes
  /// (InvalidArgument otherwise), aligned to the element size. After the first call only libraries allocate.
  virtual absl::Status Run(std::span<const std::span<const std::byte>> inputs, std::span<const std::span<std::byte>> outputs) = 0;

  /// Seconds of one run as comparisons count them; outputs as Run. Without a device of its own: the wall clock around Run, after
  /// `evict`, which empties the host's caches (null: they are left warm). Where values live on a device: what that spends on the
  /// program alone, inputs there already and nothing copied from or to the host; where `evict` is set it empties the device's
  /// caches instead of calling it. First calls may allocate.
  virtual absl::StatusOr<double> TimeRun(std::span<const std::span<const std::byte>> inputs,
                                         std::span<const std::span<std::byte>> outputs, const std::function<void()>& evict);

  /// Where inputs and outputs of RunOnDevice lie: "cuda:0"; "cpu" where there is no such thing.
  virtual std::string device() const { return "cpu"; }
  /// Puts a run onto the caller's stream and returns: neither waits nor allocates. Runs of one executable follow each other on
  /// whatever streams they are. Unimplemented on "cpu"; InvalidArgument names the wrong buffer, or what is wrong about the stream.
  virtual absl::Status RunOnDevice(const DeviceRun& run);

  virtual const std::vector<Step>& steps() const = 0;
  /// As Run, and `seconds` receives the wall time of each step.
  virtual absl::Status RunTimed(std::span<const std::span<const std::byte>> inputs, std::span<const std::span<std::byte>> outputs,
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
  /// What stored measurements depend on: device, instruction set, library versions. Stable across processes.
  virtual std::string Identity() const = 0;
  /// Instruction set in short, for people; "" where it says nothing.
  virtual std::string Isa() const { return ""; }
  /// OK when the backend has kernels here that `numerics` allows and stricter classes do not, else what is missing: the class is
  /// then the next stricter one.
  virtual absl::Status Supports(Numerics numerics) const;
  /// Whether runs are done by threads of this process as CompileOptions asks for, so that it may say on which CPUs.
  virtual bool ThreadsCanBePinned() const { return false; }
  /// Algorithms besides the default that the backend can run `node` with under `numerics`; may be empty.
  virtual std::vector<std::string> Algorithms(const Graph& graph, int32_t node, Numerics numerics) const = 0;
  /// What algorithms have in common that like each other as neighbours: how they have values in memory, so that nothing is
  /// converted between them. "": as the default has them.
  virtual std::string AlgorithmKind(std::string_view algorithm) const;
  /// `nodes`, which have algorithms, in sets of those between which values need no conversion where all have algorithms of one
  /// kind: neighbours, directly or through nodes that compute values as they lie, and readers of one value. None: what kinds gain
  /// does not depend on who else has them, or is only worth measuring for whole programs.
  virtual std::vector<std::vector<int32_t>> KindRegions(const Graph& graph, const std::set<int32_t>& nodes) const;
  /// Folds weight-only expressions (in double, rounded once), fuses, assigns layouts, plans memory, packs weights.
  /// Unimplemented names the node that cannot run.
  virtual absl::StatusOr<std::unique_ptr<Executable>> Compile(const Graph& graph, const CompileOptions& options) const = 0;
  /// What algorithms of `options` stand for that names alone do not say, by node: with it, Compile makes the same program again,
  /// whatever the names stand for then.
  virtual absl::StatusOr<std::map<int32_t, StoredEngine>> Engines(const Graph& graph, const CompileOptions& options) const;
  /// The device that Compile's executables run on, for who measures them (measuring_device.h); null: the processor, or none is
  /// here.
  virtual const MeasuringDevice* measuring_device() const { return nullptr; }
};

/// Backends by name, sorted. "reference" is always there; "cpu" where oneDNN was found.
std::span<const Backend* const> AllBackends();
/// Null when there is none of this name.
const Backend* FindBackend(std::string_view name);

/// CompileOptions::cpus of ChooseCpus (cpu_topology.h); InvalidArgument when `affinity` is not "none" and the backend's threads
/// cannot be pinned.
absl::StatusOr<std::vector<int>> CpusFor(const Backend& backend, std::string_view affinity, int threads);

struct BackendRegistrar {
  explicit BackendRegistrar(const Backend* (*make)());
};
#define MENDEL_REGISTER_BACKEND(make) const ::mendel::BackendRegistrar backend_registrar(make)

/// Convenience for tests and tools: compiles nothing, runs `executable` on tensors of its program's input types; `outputs`: of the
/// types of its outputs.
absl::StatusOr<std::vector<Tensor>> RunOnTensors(Executable& executable, std::span<const TensorType> outputs,
                                                 std::span<const Tensor> inputs);
/// The same of a program compiled from `graph`.
absl::StatusOr<std::vector<Tensor>> RunOnTensors(Executable& executable, const Graph& graph, std::span<const Tensor> inputs);

}  // namespace mendel

#endif  // MENDEL_RUNTIME_BACKEND_H_
