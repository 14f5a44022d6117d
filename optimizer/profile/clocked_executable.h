// For tests of what measures programs: a program whose runs take what its clock says.
#ifndef MENDEL_OPTIMIZER_PROFILE_CLOCKED_EXECUTABLE_H_
#define MENDEL_OPTIMIZER_PROFILE_CLOCKED_EXECUTABLE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/backend.h"

namespace mendel {

/// Computes what `program` computes; TimeRun says `seconds` without running it.
class ClockedExecutable final : public Executable {
 public:
  using Inputs = std::span<const std::span<const std::byte>>;
  using Outputs = std::span<const std::span<std::byte>>;
  ClockedExecutable(std::unique_ptr<Executable> program, double seconds)
      : program_(std::move(program)), seconds_(seconds) {}
  const std::vector<Step>& steps() const override { return program_->steps(); }
  absl::Status Run(Inputs inputs, Outputs outputs) override {
    return program_->Run(inputs, outputs);
  }
  absl::Status RunTimed(Inputs inputs, Outputs outputs, std::vector<double>& seconds) override {
    return program_->RunTimed(inputs, outputs, seconds);
  }
  absl::StatusOr<double> TimeRun(Inputs, Outputs, const std::function<void()>&) override {
    return seconds_;
  }
  MemoryReport memory() const override { return program_->memory(); }

 private:
  std::unique_ptr<Executable> program_;
  double seconds_;
};

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_PROFILE_CLOCKED_EXECUTABLE_H_
