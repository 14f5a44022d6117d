// For tests of what measures programs: a program whose runs take what its clock says, and a backend
// of such programs.
#ifndef MENDEL_OPTIMIZER_PROFILE_CLOCKED_EXECUTABLE_H_
#define MENDEL_OPTIMIZER_PROFILE_CLOCKED_EXECUTABLE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status.h"
#include "runtime/backend.h"

namespace mendel {

/// Computes what `program` computes; TimeRun says what `clock` does without running it, for a run
/// that is `cold` or not. RunTimed says `steps`, if there are any, instead of what the steps take.
class ClockedExecutable final : public Executable {
 public:
  using Inputs = std::span<const std::span<const std::byte>>;
  using Outputs = std::span<const std::span<std::byte>>;
  ClockedExecutable(std::unique_ptr<Executable> program, double seconds,
                    std::vector<double> steps = {})
      : ClockedExecutable(
            std::move(program), [seconds] { return seconds; }, std::move(steps)) {}
  ClockedExecutable(std::unique_ptr<Executable> program, std::function<double()> clock,
                    std::vector<double> steps = {})
      : ClockedExecutable(
            std::move(program), [clock = std::move(clock)](bool) { return clock(); },
            std::move(steps)) {}
  ClockedExecutable(std::unique_ptr<Executable> program, std::function<double(bool cold)> clock,
                    std::vector<double> steps = {})
      : program_(std::move(program)), clock_(std::move(clock)), steps_(std::move(steps)) {}
  const std::vector<Step>& steps() const override { return program_->steps(); }
  absl::Status Run(Inputs inputs, Outputs outputs) override {
    return program_->Run(inputs, outputs);
  }
  absl::Status RunTimed(Inputs inputs, Outputs outputs, std::vector<double>& seconds) override {
    MENDEL_RETURN_IF_ERROR(program_->RunTimed(inputs, outputs, seconds));
    if (!steps_.empty()) seconds = steps_;
    return absl::OkStatus();
  }
  absl::StatusOr<double> TimeRun(Inputs, Outputs, const std::function<void()>& evict) override {
    return clock_(evict != nullptr);
  }
  MemoryReport memory() const override { return program_->memory(); }

 private:
  std::unique_ptr<Executable> program_;
  std::function<double(bool cold)> clock_;
  std::vector<double> steps_;
};

/// "reference" whose programs run by a clock, without algorithms. Its identity is its name.
class ClockedBackend : public Backend {
 public:
  explicit ClockedBackend(std::string name) : name_(std::move(name)) {}
  std::string_view name() const override { return name_; }
  absl::Status Probe() const override { return absl::OkStatus(); }
  std::string Identity() const override { return name_; }
  std::vector<std::string> Algorithms(const Graph&, int32_t, Numerics) const override { return {}; }
  absl::StatusOr<std::unique_ptr<Executable>> Compile(const Graph& graph,
                                                      const CompileOptions&) const override {
    MENDEL_ASSIGN_OR_RETURN(auto program, FindBackend("reference")->Compile(graph, {}));
    return WithClock(graph, std::move(program));
  }

 protected:
  /// The program of `graph`, by this backend's clock.
  virtual std::unique_ptr<Executable> WithClock(const Graph& graph,
                                                std::unique_ptr<Executable> program) const = 0;

 private:
  std::string name_;
};

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_PROFILE_CLOCKED_EXECUTABLE_H_
