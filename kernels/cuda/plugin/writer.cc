// Registers the folder: CUDA text for corrected boxes, and what of a CUDA installation this machine
// has.

#include "base/status.h"
#include "kernels/cuda/emit/from_graph.h"
#include "kernels/cuda/emit/kernel_text.h"
#include "kernels/cuda/emit/roofline.h"
#include "kernels/cuda/nvrtc/compiler.h"
#include "kernels/cuda/nvrtc/installation.h"
#include "runtime/kernel_text.h"

namespace mendel::cuda::plugin::writer {
namespace {

absl::StatusOr<std::vector<KernelEstimate>> EstimatesOf(const Graph& graph, int32_t patch,
                                                        const Correction& correction,
                                                        const EmittedKernel& kernel) {
  std::vector<KernelEstimate> estimates;
  const auto compiler = Compiler::Get();
  for (const GpuModel& gpu : KnownGpus()) {
    KernelEstimate estimate{gpu.name, Cat("sm_", gpu.compute_capability),
                            RooflineSeconds(correction, kernel.launch, kernel.tile, gpu),
                            MutantSeconds(graph, patch, gpu)};
    if (compiler.ok() && (*compiler)->Supports(gpu.compute_capability)) {
      MENDEL_ASSIGN_OR_RETURN(
          const CompiledKernel compiled,
          (*compiler)->Compile(kernel.text, kernel.name, gpu.compute_capability));
      estimate.registers = compiled.usage.registers;
      estimate.spilled_bytes = compiled.usage.spilled_bytes;
      estimate.occupancy = Occupancy(gpu.compute_capability, compiled.usage.registers,
                                     static_cast<int>(kernel.launch.shared), kernel.tile.threads());
    }
    estimates.push_back(std::move(estimate));
  }
  return estimates;
}

class Writer : public KernelWriter {
 public:
  std::string_view name() const override { return "cuda"; }

  std::vector<std::string> Describe() const override { return DescribeInstallation(); }

  absl::StatusOr<KernelTexts> Write(const Graph& graph,
                                    const KernelWriterOptions& options) const override {
    KernelTexts texts;
    for (size_t id = 0; id < graph.nodes().size(); ++id) {
      const int32_t patch = static_cast<int32_t>(id);
      if (graph.node(patch).op->name != "Patch") continue;
      auto patch_kernels =
          PatchKernelsOf(graph, patch, options.channels_last ? Layout::kNhwc : Layout::kNchw);
      if (absl::IsUnimplemented(patch_kernels.status())) {
        texts.refused.emplace_back(patch_kernels.status().message());
        continue;
      }
      if (!patch_kernels.ok()) return patch_kernels.status();
      for (const PatchKernel& kernel : patch_kernels->kernels) {
        MENDEL_RETURN_IF_ERROR(Add(graph, patch, kernel.correction, options.estimates, texts));
      }
    }
    return texts;
  }

 private:
  static absl::Status Add(const Graph& graph, int32_t patch, const Correction& correction,
                          bool estimates, KernelTexts& texts) {
    const auto emitted = EmitKernel(correction);
    if (absl::IsUnimplemented(emitted.status())) {
      texts.refused.emplace_back(emitted.status().message());
      return absl::OkStatus();
    }
    if (!emitted.ok()) return emitted.status();
    KernelText kernel{emitted->name + ".cu",
                      emitted->text,
                      patch,
                      correction.mutant,
                      static_cast<int64_t>(correction.boxes.size()),
                      emitted->launch.grid,
                      emitted->launch.block,
                      emitted->launch.shared,
                      {}};
    if (estimates) {
      MENDEL_ASSIGN_OR_RETURN(kernel.estimates, EstimatesOf(graph, patch, correction, *emitted));
    }
    texts.kernels.push_back(std::move(kernel));
    return absl::OkStatus();
  }
};

const KernelWriter* Make() { return new Writer(); }

MENDEL_REGISTER_KERNEL_WRITER(&Make);

}  // namespace
}  // namespace mendel::cuda::plugin::writer
