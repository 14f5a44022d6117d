#include <algorithm>
#include <string_view>

#include "base/status.h"
#include "server/jobs/job_runner.h"
#include "server/jobs/worker_command.h"
#include "server/store/blob_store.h"
#include "server/store/project_name.h"

namespace mendel::server {
namespace {

constexpr int kMostThreads = 1024;
constexpr int kMostRules = 1000;
constexpr int kMostTests = 256;
constexpr size_t kLongestShapes = 64 << 10;

/// Collects the first fault; `path` is the field's.
class Checker {
 public:
  Checker(std::string prefix, const RunnerOptions& options)
      : prefix_(std::move(prefix)), options_(options) {}

  void Require(bool good, std::string_view field, std::string_view what) {
    if (!good && status_.ok()) status_ = InvalidInput(prefix_, ".", field, ": ", what);
  }
  void Name(const std::string& name, std::string_view kind, std::string_view field) {
    const std::string rest = SplitName(name).rest;
    const bool good = rest.starts_with(kind) && rest.size() > kind.size() &&
                      rest[kind.size()] == '/' && IsSha256(rest.substr(kind.size() + 1));
    Require(good, field, Cat("must be ", kind, "/ and 64 lower-case hexadecimal digits"));
  }
  void Shapes(const std::string& shapes) {
    Require(shapes.size() <= kLongestShapes, "shapes", "is too long");
    Require(std::none_of(shapes.begin(), shapes.end(),
                         [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 127; }),
            "shapes", "contains control characters");
    // The command line would read brackets as a list.
    Require(!shapes.starts_with("["), "shapes", "must begin with an input's name");
    if (shapes.empty() || !options_.check_shapes || !status_.ok()) return;
    const absl::Status read = options_.check_shapes(shapes);
    Require(read.ok(), "shapes", std::string(read.message()));
  }
  void Rule(const std::string& rule) {
    const bool good =
        !rule.empty() && rule.size() <= 100 && std::all_of(rule.begin(), rule.end(), [](char c) {
          return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
        });
    Require(good, "disabled_rules", "a rule's name is small letters, digits and underscores");
    Require(options_.rules.empty() ||
                std::binary_search(options_.rules.begin(), options_.rules.end(), rule),
            "disabled_rules", Cat("there is no rule '", rule, "'; 'mendel rules' lists them"));
  }
  void OneOf(const std::string& value, std::initializer_list<std::string_view> values,
             std::string_view field) {
    Require(value.empty() || std::find(values.begin(), values.end(), value) != values.end(), field,
            Cat("unknown value '", value, "'"));
  }
  void Time(const google::protobuf::Duration& time, int64_t most, std::string_view field) {
    Require(time.nanos() >= 0 && time.nanos() < 1'000'000'000 && time.seconds() >= 0, field,
            "is no positive duration");
    Require(SecondsOr(time, 0) <= static_cast<double>(most), field,
            Cat("is above the limit of ", most, " seconds"));
  }
  void Limits(const v1::Budget& budget) {
    Time(budget.time(), options_.max_budget_seconds, "budget.time");
    Time(budget.wall_time(), options_.max_wall_seconds, "budget.wall_time");
    Require(budget.candidates() >= 0, "budget.candidates", "is negative");
    Require(budget.memory_bytes() >= 0, "budget.memory_bytes", "is negative");
    const int64_t most = MemoryLimit(options_);
    Require(budget.memory_bytes() <= most, "budget.memory_bytes",
            Cat("is above the limit of ", most, " bytes"));
  }
  void Device(std::string_view field, const std::string& device, const std::string& isa) {
    if (options_.devices.empty()) {
      Require(device.empty() || device == "cpu", field, Cat("no worker has '", device, "'"));
      return;
    }
    const auto found = std::find_if(
        options_.devices.begin(), options_.devices.end(),
        [&](const WorkerDevice& one) { return one.name == (device.empty() ? "cpu" : device); });
    if (found == options_.devices.end() && Elsewhere(device)) return;
    Require(found != options_.devices.end(), field,
            Cat("no worker has '", device.empty() ? "cpu" : device, "'"));
    if (found == options_.devices.end()) return;
    Require(isa.empty() || isa == found->isa, "isa",
            Cat("no worker has '", isa, "'; this one has '", found->isa, "'"));
  }
  const absl::Status& status() const { return status_; }

 private:
  bool Elsewhere(const std::string& device) const {
    return std::find(options_.other_devices.begin(), options_.other_devices.end(), device) !=
           options_.other_devices.end();
  }

  std::string prefix_;
  const RunnerOptions& options_;
  absl::Status status_;
};

absl::Status CheckOptimize(const v1::OptimizeSpec& spec, const RunnerOptions& options) {
  Checker check("spec.optimize", options);
  check.Name(spec.model(), "models", "model");
  check.Shapes(spec.shapes());
  check.Device("device", spec.device(), spec.isa());
  check.Require(spec.threads() >= 0 && spec.threads() <= kMostThreads, "threads",
                "must be 0 to 1024");
  check.OneOf(spec.numerics(), {"strict", "default", "int8", "high", "tf32", "f16", "bf16"},
              "numerics");
  check.OneOf(spec.weights(), {"exact", "symbolic"}, "weights");
  check.Limits(spec.budget());
  check.Require(spec.disabled_rules_size() <= kMostRules, "disabled_rules", "are too many");
  for (const std::string& rule : spec.disabled_rules()) check.Rule(rule);
  check.Require(spec.max_weight_growth_bytes() >= 0, "max_weight_growth_bytes", "is negative");
  const int32_t bound = spec.target_bound_log2();
  check.Require(bound <= 0 && bound >= -1000, "target_bound_log2", "must be -1000 to -1, or 0");
  return check.status();
}

absl::Status CheckCompare(const v1::ComparePairSpec& spec, const RunnerOptions& options) {
  Checker check("spec.compare_pair", options);
  check.Name(spec.model_a(), "models", "model_a");
  check.Name(spec.model_b(), "models", "model_b");
  check.Shapes(spec.shapes());
  check.OneOf(spec.weights(), {"exact", "symbolic"}, "weights");
  check.Require(spec.tests() >= 0 && spec.tests() <= kMostTests, "tests", "must be 0 to 256");
  check.Time(spec.time_limit(), options.max_budget_seconds, "time_limit");
  check.Require(spec.memory_limit_bytes() >= 0, "memory_limit_bytes", "must not be negative");
  check.Require(spec.fold_tolerance_ulps() >= 0 && spec.fold_tolerance_ulps() <= 1e9,
                "fold_tolerance_ulps", "must be 0 to 1e9");
  return check.status();
}

}  // namespace

absl::Status CheckDevice(const v1::JobSpec& spec, const RunnerOptions& options) {
  if (!spec.has_optimize()) return absl::OkStatus();
  RunnerOptions own = options;
  own.other_devices.clear();
  Checker check("spec.optimize", own);
  check.Device("device", spec.optimize().device(), spec.optimize().isa());
  return check.status();
}

absl::Status CheckRebindDevice(const std::string& device, const RunnerOptions& options) {
  Checker check("spec.refit_plan", options);
  check.Device("plan", device, "");
  return check.status();
}

absl::Status CheckSpec(const v1::JobSpec& spec, const RunnerOptions& options) {
  if (spec.has_optimize()) return CheckOptimize(spec.optimize(), options);
  if (spec.has_compare_pair()) return CheckCompare(spec.compare_pair(), options);
  const bool rebinds = spec.has_refit_plan();
  if (!rebinds && !spec.has_verify_plan()) return InvalidInput("spec: no work is set");
  Checker check(rebinds ? "spec.refit_plan" : "spec.verify_plan", options);
  check.Name(rebinds ? spec.refit_plan().plan() : spec.verify_plan().plan(), "plans", "plan");
  check.Name(rebinds ? spec.refit_plan().model() : spec.verify_plan().model(), "models", "model");
  return check.status();
}

}  // namespace mendel::server
