// Runs a program: binds the caller's buffers and calls the kernels in order.
#ifndef MENDEL_KERNELS_CPU_EXECUTABLE_H_
#define MENDEL_KERNELS_CPU_EXECUTABLE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/program.h"
#include "runtime/memory_planner.h"

namespace mendel::cpu {

class CpuExecutable : public Executable {
 public:
  /// `offsets`: of every arena buffer, in the arena of `plan`.
  CpuExecutable(Program program, const std::vector<int64_t>& offsets, const MemoryPlan& plan);
  absl::Status Prepare();

  absl::Status Run(std::span<const std::span<const std::byte>> inputs,
                   std::span<const std::span<std::byte>> outputs) override;
  const std::vector<Step>& steps() const override { return steps_; }
  absl::Status RunTimed(std::span<const std::span<const std::byte>> inputs,
                        std::span<const std::span<std::byte>> outputs,
                        std::vector<double>& seconds) override;
  MemoryReport memory() const override { return report_; }

 private:
  absl::Status Bind(std::span<const std::span<const std::byte>> inputs,
                    std::span<const std::span<std::byte>> outputs);

  /// True where the step's branch is taken, by conditions that earlier steps have computed.
  bool IsNeeded(const ProgramStep& step) const;

  Program program_;
  std::vector<Step> steps_;
  AlignedBytes arena_;
  AlignedBytes scratch_;
  Bindings bindings_;
  MemoryReport report_;
};

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_EXECUTABLE_H_
