// mendel cache ls|prune|verify|predictor: the store of measurements, and the error of predictions
// from it.

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"
#include "client/command.h"
#include "client/format.h"
#include "optimizer/profile/operator_profiles.h"
#include "optimizer/profile/profile_cache.h"

namespace mendel::commands::cache {
namespace {

struct Options {
  std::string action;
  std::string cache = DefaultCachePath();
  double days = 90;
};

/// The error of predicted times of operators for which the predictor has not seen the stored ones.
absl::Status ReportPredictor(ProfileCache& cache, Context& context) {
  MENDEL_ASSIGN_OR_RETURN(const OperatorProfiles profiles, OperatorProfiles::Load(cache, ""));
  const PredictorError error = HeldOutError(profiles.samples());
  context.facts()["predictor"] = {{"samples", error.tested},
                                  {"median_factor", error.median_factor},
                                  {"p90_factor", error.p90_factor}};
  context.Line(Cat("predictor: ", error.tested,
                   " measured operators, five-fold: predicted times are off by a factor of ",
                   Decimals(error.median_factor, 2), " in the median, ",
                   Decimals(error.p90_factor, 2), " at the 90th percentile"));
  return absl::OkStatus();
}

absl::Status Run(const Options& options, Context& context) {
  MENDEL_ASSIGN_OR_RETURN(const auto cache, ProfileCache::Open(options.cache));
  context.facts()["file"] = options.cache;
  if (options.action == "verify") {
    MENDEL_RETURN_IF_ERROR(cache->Verify());
    context.Line(Cat(options.cache, ": every entry is intact"));
    return absl::OkStatus();
  }
  if (options.action == "predictor") return ReportPredictor(*cache, context);
  if (options.action == "prune") {
    MENDEL_ASSIGN_OR_RETURN(const int64_t removed, cache->Prune(options.days));
    context.facts()["removed"] = removed;
    context.Line(Cat(options.cache, ": removed ", removed, " entries older than ",
                     Decimals(options.days, 0), " days"));
    return absl::OkStatus();
  }
  MENDEL_ASSIGN_OR_RETURN(const auto stats, cache->Stats());
  context.Line(options.cache);
  context.facts()["entries"] = nlohmann::ordered_json::array();
  for (const CacheStats& kind : stats) {
    context.facts()["entries"].push_back(
        {{"kind", kind.kind}, {"entries", kind.entries}, {"bytes", kind.bytes}});
    context.Line(Cat("  ", kind.kind, "  ", kind.entries, " entries, ",
                     ByteText(static_cast<double>(kind.bytes))));
  }
  return absl::OkStatus();
}

Action Setup(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("action", options->action, "ls, prune, verify or predictor")
      ->required()
      ->check(CLI::IsMember({"ls", "prune", "verify", "predictor"}));
  app.add_option("--cache", options->cache, "Profile cache file")->capture_default_str();
  app.add_option("--days", options->days, "prune: age of the entries that stay")
      ->capture_default_str();
  return [options](Context& context) { return Run(*options, context); };
}

Command Make() {
  return {"cache", "Lists, prunes or checks the profile cache; tests its predictor", &Setup};
}

MENDEL_REGISTER_COMMAND(&Make);

}  // namespace
}  // namespace mendel::commands::cache
