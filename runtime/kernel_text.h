// Kernels as text: what a backend's folder can write for a graph without the device that would run it. `mendel explain` and
// `mendel doctor` ask through this interface, so that no other folder knows a vendor's language.
#ifndef MENDEL_RUNTIME_KERNEL_TEXT_H_
#define MENDEL_RUNTIME_KERNEL_TEXT_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"

namespace mendel {

struct KernelText {
  std::string file_name;
  std::string text;
  std::string mutant;                ///< the node whose boxes it mends
  std::vector<std::string> remarks;  ///< launch, resources, estimates: a line each
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
  /// One line a library or device that was looked for: found where and in which version, or why not.
  virtual std::vector<std::string> Describe() const = 0;
  /// Kernels for the mended boxes of `graph`. `nchw`: the layout that the activations have on the device, else channels last.
  virtual absl::StatusOr<KernelTexts> Write(const Graph& graph, bool nchw) const = 0;
};

/// By name, sorted.
std::span<const KernelWriter* const> AllKernelWriters();
/// Null when there is none of this name.
const KernelWriter* FindKernelWriter(std::string_view name);

struct KernelWriterRegistrar {
  explicit KernelWriterRegistrar(const KernelWriter* (*make)());
};
#define MENDEL_REGISTER_KERNEL_WRITER(make) const ::mendel::KernelWriterRegistrar kernel_writer_registrar(make)

}  // namespace mendel

#endif  // MENDEL_RUNTIME_KERNEL_TEXT_H_
