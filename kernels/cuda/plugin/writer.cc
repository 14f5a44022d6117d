// Registers the folder: CUDA text for mended boxes, and what of a CUDA installation this machine has.

#include <cstdio>

#include "base/status.h"
#include "kernels/cuda/driver_table/driver.h"
#include "kernels/cuda/emit/from_graph.h"
#include "kernels/cuda/emit/kernel_text.h"
#include "kernels/cuda/emit/roofline.h"
#include "kernels/cuda/nvrtc/compiler.h"
#include "runtime/kernel_text.h"

namespace mendel::cuda {
namespace {

std::string Percent(double share) {
  char text[16];
  std::snprintf(text, sizeof text, "%.0f %%", 100 * share);
  return text;
}

std::string Microseconds(double seconds) {
  char text[24];
  std::snprintf(text, sizeof text, "%.1f us", seconds * 1e6);
  return text;
}

absl::StatusOr<std::vector<std::string>> Remarks(const Correction& correction, const EmittedKernel& kernel) {
  std::vector<std::string> remarks = {Cat(correction.boxes.size(), " boxes in one launch: ", kernel.launch.grid, " blocks of ",
                                          kernel.launch.block, " threads, ", kernel.launch.shared, " bytes of shared memory")};
  const auto compiler = Compiler::Get();
  for (const GpuModel& gpu : KnownGpus()) {
    std::string remark = Cat(gpu.name, ": ", Microseconds(RooflineSeconds(correction, kernel.launch, kernel.tile, gpu)),
                             " by roofline (an estimate, not measured)");
    if (compiler.ok() && (*compiler)->Supports(gpu.compute_capability)) {
      MENDEL_ASSIGN_OR_RETURN(const CompiledKernel compiled,
                              (*compiler)->Compile(kernel.text, kernel.name, gpu.compute_capability));
      remark += Cat("; sm_", gpu.compute_capability, ": ", compiled.usage.registers, " registers, ", compiled.usage.spilled_bytes,
                    " bytes spilled, occupancy about ",
                    Percent(Occupancy(gpu.compute_capability, compiled.usage.registers, static_cast<int>(kernel.launch.shared),
                                      kernel.tile.threads())));
    }
    remarks.push_back(std::move(remark));
  }
  return remarks;
}

class Writer : public KernelWriter {
 public:
  std::string_view name() const override { return "cuda"; }

  std::vector<std::string> Describe() const override {
    const auto compiler = Compiler::Get();
    const auto driver = Driver::Get();
    return {compiler.ok() ? Cat("NVRTC ", (*compiler)->version(), " at ", (*compiler)->path())
                          : Cat("NVRTC: ", std::string(compiler.status().message())),
            driver.ok()
                ? Cat("driver for CUDA ", (*driver)->version / 1000, ".", (*driver)->version % 1000 / 10, " at ", (*driver)->path)
                : Cat("driver: ", std::string(driver.status().message()))};
  }

  absl::StatusOr<KernelTexts> Write(const Graph& graph, bool nchw) const override {
    KernelTexts texts;
    for (size_t id = 0; id < graph.nodes().size(); ++id) {
      const Node& node = graph.node(static_cast<int32_t>(id));
      if (node.op->name != "Patch") continue;
      auto mending = MendingOf(graph, static_cast<int32_t>(id), nchw ? Layout::kNchw : Layout::kNhwc);
      if (absl::IsUnimplemented(mending.status())) {
        texts.refused.emplace_back(mending.status().message());
        continue;
      }
      if (!mending.ok()) return mending.status();
      for (const MendingKernel& kernel : mending->kernels) MENDEL_RETURN_IF_ERROR(Add(kernel.correction, texts));
    }
    return texts;
  }

 private:
  static absl::Status Add(const Correction& correction, KernelTexts& texts) {
    const auto emitted = EmitKernel(correction);
    if (absl::IsUnimplemented(emitted.status())) {
      texts.refused.emplace_back(emitted.status().message());
      return absl::OkStatus();
    }
    if (!emitted.ok()) return emitted.status();
    MENDEL_ASSIGN_OR_RETURN(std::vector<std::string> remarks, Remarks(correction, *emitted));
    texts.kernels.push_back({emitted->name + ".cu", emitted->text, correction.mutant, std::move(remarks)});
    return absl::OkStatus();
  }
};

const KernelWriter* Make() { return new Writer(); }

MENDEL_REGISTER_KERNEL_WRITER(&Make);

}  // namespace
}  // namespace mendel::cuda
