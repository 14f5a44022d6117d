// Kernels as text: a backend's folder writes them for a graph without the device that would run it.
// `mendel explain` and `mendel doctor` use this interface, so that no other folder depends on a
// vendor's language.
#ifndef MENDEL_RUNTIME_KERNEL_TEXT_H_
#define MENDEL_RUNTIME_KERNEL_TEXT_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace mendel {

/// Estimates of a kernel on a device that is not here.
struct KernelEstimate {
  std::string device;        ///< e.g. "H100"
  std::string architecture;  ///< e.g. "sm_90"
  /// By roofline of published figures, the launch included; not measured.
  double kernel_seconds = 0;
  double mutant_seconds = 0;  ///< of the mutant that the kernel corrects, likewise
  /// Properties of the compiled text, if a compiler was found: `registers` per thread (0: not
  /// compiled), bytes spilled, and the share of a multiprocessor's threads that can be resident.
  int registers = 0;
  int spilled_bytes = 0;
  double occupancy = 0;
};

struct KernelText {
  std::string file_name;
  std::string text;
  int32_t node = -1;                      ///< the Patch whose boxes it corrects
  std::string mutant;                     ///< its name
  int64_t boxes = 0;                      ///< that one launch computes
  int64_t blocks = 0;                     ///< blocks of the launch
  int64_t threads = 0;                    ///< a block
  int64_t shared = 0;                     ///< bytes of shared memory a block
  std::vector<KernelEstimate> estimates;  ///< an entry a known device, when they were requested
};

struct KernelWriterOptions {
  /// The layout that the activations have on the device; else channels first.
  bool channels_last = false;
  bool estimates = false;  ///< compiles the texts where a compiler is found: seconds a kernel
};

struct KernelTexts {
  std::vector<KernelText> kernels;
  std::vector<std::string> refused;  ///< corrections that no kernel computes, and why
};

class KernelWriter {
 public:
  virtual ~KernelWriter() = default;
  /// "cuda".
  virtual std::string_view name() const = 0;
  /// One line for each library or device: the place and version found, or the reason why it is
  /// missing.
  virtual std::vector<std::string> Describe() const = 0;
  /// Kernels for the corrected boxes of `graph`. The texts depend on graph and layout only.
  virtual absl::StatusOr<KernelTexts> Write(const Graph& graph,
                                            const KernelWriterOptions& options) const = 0;
};

/// All writers, sorted by name.
std::span<const KernelWriter* const> AllKernelWriters();
/// Null when there is none of this name.
const KernelWriter* FindKernelWriter(std::string_view name);

struct KernelWriterRegistrar {
  explicit KernelWriterRegistrar(const KernelWriter* (*make)());
};
#define MENDEL_REGISTER_KERNEL_WRITER(make) \
  const ::mendel::KernelWriterRegistrar kernel_writer_registrar(make)

}  // namespace mendel

#endif  // MENDEL_RUNTIME_KERNEL_TEXT_H_
