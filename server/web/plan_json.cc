#include "server/web/plan_json.h"

#include <cmath>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "mendel/plan.pb.h"
#include "runtime/plan_file.h"

namespace mendel::server {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kLongestSection = 16 << 20;
constexpr int kMostMutants = 1000;
constexpr size_t kMostCandidates = 40;
constexpr int kMostBoxesShown = 2000;

/// The message of a section; nullopt when it is absent, too long, damaged or of another type.
template <class Message>
std::optional<Message> Section(const MappedPlan& file, const std::vector<SectionEntry>& entries,
                               std::string_view name) {
  for (const SectionEntry& entry : entries) {
    if (entry.name != name || entry.size > kLongestSection) continue;
    const std::span<const std::byte> bytes = file.bytes.subspan(entry.offset, entry.size);
    Message message;
    if (CheckSection(entry, bytes).ok() &&
        message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
      return message;
  }
  return std::nullopt;
}

Json Finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json BoxesJson(const plan::MendedOutput& output, int& boxes) {
  Json result = Json::array();
  for (const plan::BoxProto& box : output.boxes()) {
    if (++boxes > kMostBoxesShown) break;
    result.push_back({{"begin", std::vector<int64_t>(box.begin().begin(), box.begin().end())},
                      {"end", std::vector<int64_t>(box.end().begin(), box.end().end())}});
  }
  return result;
}

Json MutantJson(const plan::AppliedMutant& mutant, int& boxes) {
  Json json = {
      {"rule", mutant.rule()},
      {"claim", mutant.claim()},
      // The page's keys keep their old names for version 0.1: `correction` and `corrected`
      // replace them.
      {"mending", mutant.mending()},
      {"original_ns", Finite(mutant.original_ns())},
      {"mutant_ns", Finite(mutant.mutant_ns())},
      {"choices", std::map<std::string, int64_t>(mutant.choices().begin(), mutant.choices().end())},
      {"saved", Json::array()},
      {"where", Json::array()},
      {"mended", Json::array()}};
  for (const std::string& saved : mutant.saved()) json["saved"].push_back(saved);
  for (const std::string& name : mutant.where()) json["where"].push_back(name);
  for (const plan::MendedOutput& output : mutant.mended()) {
    json["mended"].push_back(
        {{"output", output.output()},
         {"elements", output.elements()},
         {"wrong_elements", output.wrong_elements()},
         {"shape", std::vector<int64_t>(output.shape().begin(), output.shape().end())},
         {"boxes", BoxesJson(output, boxes)}});
  }
  return json;
}

/// The candidates that lost, those that came farthest first.
Json CandidatesJson(const plan::PlanInfo& info) {
  Json json = Json::array();
  for (const plan::Candidate& candidate : info.candidates()) {
    if (candidate.outcome() == "used") continue;
    if (json.size() == kMostCandidates) break;
    json.push_back({{"rule", candidate.rule()},
                    {"outcome", candidate.outcome()},
                    {"reason", candidate.reason()},
                    {"where", Json(candidate.where_size() > 0 ? candidate.where(0) : "")},
                    {"original_ns", Finite(candidate.original_ns())},
                    {"mutant_ns", Finite(candidate.mutant_ns())}});
  }
  return json;
}

/// The search's counters and phases.
Json SearchJson(const plan::PlanInfo& info) {
  const plan::SearchCounters& search = info.search();
  int layouts = 0;
  for (const auto& [node, name] : info.algorithms()) layouts += name.starts_with("layout") ? 1 : 0;
  Json json = {{"proposed", search.proposed()},
               {"partial", search.partial()},
               {"corrected", search.mended()},
               {"measured", search.measured()},
               {"chosen", search.chosen()},
               {"algorithms", static_cast<int>(info.algorithms_size()) - layouts},
               {"layouts", layouts},
               {"numerics", info.target().numerics()},
               {"identity", info.target().identity()},
               {"version", info.mendel_version()},
               {"phases", Json::array()}};
  for (const plan::PhaseSeconds& phase : search.phases())
    json["phases"].push_back({{"phase", phase.phase()}, {"seconds", Finite(phase.seconds())}});
  return json;
}

Json CertificateJson(const plan::CertificateProto& certificate) {
  // The page's key keeps its old name for version 0.1: `verifier_version` replaces it.
  Json json = {{"judge_version", certificate.judge_version()},
               {"original_hash", certificate.original_hash()},
               {"plan_hash", certificate.plan_hash()},
               {"degree", Finite(certificate.degree())},
               {"elements", certificate.elements()},
               {"segments", certificate.segments()},
               {"shared_nodes", certificate.shared_nodes()},
               {"rounds", certificate.rounds()},
               {"bound_log2", Finite(certificate.bound_log2())},
               {"primes", Json::array()}};
  // Primes are texts: a browser's numbers have 53 bits.
  for (const plan::DrawProto& draw : certificate.draws())
    json["primes"].push_back(std::to_string(draw.prime()));
  return json;
}

}  // namespace

std::string PlanDetailsJson(BlobStore& blobs, const v1::Plan& plan) {
  const absl::StatusOr<BlobId> blob = ParseBlobName(plan.blob());
  const absl::StatusOr<std::string> path =
      blob.ok() ? blobs.Path(*blob) : absl::StatusOr<std::string>(blob.status());
  const absl::StatusOr<MappedPlan> file =
      path.ok() ? MapPlanFile(*path) : absl::StatusOr<MappedPlan>(path.status());
  if (!file.ok()) return "null";
  const absl::StatusOr<std::vector<SectionEntry>> entries =
      DecodeHeader(file->bytes, file->bytes.size());
  if (!entries.ok()) return "null";
  const auto info = Section<plan::PlanInfo>(*file, *entries, "info");
  if (!info) return "null";
  Json json = {{"mutants", Json::array()},
               {"certificate", nullptr},
               {"numeric", Json::array()},
               {"candidates", CandidatesJson(*info)},
               {"search", SearchJson(*info)}};
  int boxes = 0;
  for (const plan::AppliedMutant& mutant : info->mutants()) {
    if (json["mutants"].size() == kMostMutants) break;
    json["mutants"].push_back(MutantJson(mutant, boxes));
  }
  for (const plan::NumericResult& output : info->numeric()) {
    json["numeric"].push_back({{"output", output.output()},
                               {"baseline_max", Finite(output.baseline_max())},
                               {"plan_max", Finite(output.plan_max())}});
  }
  if (const auto certificate = Section<plan::CertificateProto>(*file, *entries, "certificate")) {
    json["certificate"] = CertificateJson(*certificate);
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace mendel::server
