#include "server/jobs/from_json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "base/status.h"

namespace mendel::server {
namespace {

using Json = nlohmann::json;

constexpr size_t kLongestText = 4096;
constexpr size_t kMostItems = 10'000;
constexpr int kDeepest = 64;

/// Values are destroyed by recursion as deep as brackets are nested; facts are shallow.
absl::StatusOr<Json> Object(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') quoted = !quoted;
    if (quoted) {
      i += c == '\\' ? 1 : 0;  // an escaped quotation mark ends no text
      continue;
    }
    depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
    deepest = std::max(deepest, depth);
  }
  Json json = deepest > kDeepest ? Json() : Json::parse(text, nullptr, false);
  if (!json.is_object()) return InvalidInput("the worker's answer is no JSON object");
  return json;
}

/// The member, or null.
const Json& Member(const Json& json, const char* name) {
  static const Json* const null = new Json();
  if (!json.is_object()) return *null;
  const auto found = json.find(name);
  return found == json.end() ? *null : *found;
}

/// Cut between characters.
std::string Text(const Json& json) {
  if (!json.is_string()) return "";
  std::string text = json.get<std::string>();
  if (text.size() <= kLongestText) return text;
  size_t end = kLongestText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
  return text;
}

double Number(const Json& json) {
  if (!json.is_number()) return 0;
  const double value = json.get<double>();
  return std::isfinite(value) ? value : 0;
}

int64_t Integer(const Json& json) {
  if (json.is_number_unsigned())
    return static_cast<int64_t>(
        std::min<uint64_t>(json.get<uint64_t>(), std::numeric_limits<int64_t>::max()));
  return json.is_number_integer() ? json.get<int64_t>() : 0;
}

int32_t Small(const Json& json) {
  return static_cast<int32_t>(
      std::clamp<int64_t>(Integer(json), 0, std::numeric_limits<int32_t>::max()));
}

/// The first items of an array.
std::vector<Json> Items(const Json& json) {
  std::vector<Json> items;
  if (!json.is_array()) return items;
  for (const Json& item : json) {
    if (items.size() == kMostItems) break;
    items.push_back(item);
  }
  return items;
}

v1::Verdict::Kind KindOf(const std::string& word) {
  static const auto* const kinds = new std::map<std::string, v1::Verdict::Kind>{
      {"equivalent", v1::Verdict::KIND_EQUIVALENT},
      {"equivalent-after-refit", v1::Verdict::KIND_EQUIVALENT_AFTER_REFIT},
      {"partial", v1::Verdict::KIND_PARTIAL},
      {"different", v1::Verdict::KIND_DIFFERENT},
      {"unproven", v1::Verdict::KIND_UNPROVEN},
  };
  const auto found = kinds->find(word);
  return found == kinds->end() ? v1::Verdict::KIND_UNSPECIFIED : found->second;
}

void AddOutput(const Json& json, int& boxes, v1::Verdict& verdict) {
  v1::OutputVerdict& output = *verdict.add_outputs();
  output.set_name(Text(Member(json, "name")));
  for (const Json& extent : Items(Member(json, "shape"))) output.add_shape(Integer(extent));
  output.set_elements(Integer(Member(json, "elements")));
  output.set_wrong_elements(Integer(Member(json, "wrong_elements")));
  for (const Json& one : Items(Member(json, "boxes"))) {
    if (boxes == kMostBoxes) break;
    v1::Box& box = *output.add_boxes();
    for (const Json& begin : Items(Member(one, "begin"))) box.add_begin(Integer(begin));
    for (const Json& end : Items(Member(one, "end"))) box.add_end(Integer(end));
    ++boxes;
  }
}

absl::Status ErrorIn(const Json& facts) {
  const Json& error = Member(facts, "error");
  if (!error.is_object()) return absl::OkStatus();
  const std::string name = Text(Member(error, "code"));
  for (int code = 1; code <= static_cast<int>(absl::StatusCode::kUnauthenticated); ++code) {
    if (absl::StatusCodeToString(static_cast<absl::StatusCode>(code)) == name) {
      return absl::Status(static_cast<absl::StatusCode>(code), Text(Member(error, "message")));
    }
  }
  return absl::UnknownError(Text(Member(error, "message")));
}

}  // namespace

absl::StatusOr<ProgressLine> ProgressFromJson(std::string_view line) {
  MENDEL_ASSIGN_OR_RETURN(const Json json, Object(line));
  ProgressLine result;
  v1::Progress& progress = result.progress;
  progress.set_phase(Text(Member(json, "phase")));
  progress.set_detail(Text(Member(json, "detail")));
  progress.set_candidates(Integer(Member(json, "candidates")));
  progress.set_candidates_per_second(Number(Member(json, "candidates_per_second")));
  progress.set_best_speedup(Number(Member(json, "best_speedup")));
  const double left = Number(Member(json, "seconds_left"));
  if (Member(json, "seconds_left").is_number() && left >= 0 && left < 1e9) {
    progress.mutable_time_left()->set_seconds(static_cast<int64_t>(left));
    progress.mutable_time_left()->set_nanos(static_cast<int32_t>((left - std::floor(left)) * 1e9));
  }
  for (const Json& warning : Items(Member(json, "warnings")))
    result.warnings.push_back(Text(warning));
  return result;
}

absl::Status ErrorFromJson(std::string_view facts) {
  const absl::StatusOr<Json> json = Object(facts);
  return json.ok() ? ErrorIn(*json) : absl::OkStatus();
}

absl::StatusOr<v1::Plan> PlanFromJson(std::string_view facts) {
  MENDEL_ASSIGN_OR_RETURN(const Json json, Object(facts));
  v1::Plan plan;
  const Json& target = Member(json, "target");
  plan.set_device(Text(Member(target, "backend")));
  plan.set_isa(Text(Member(target, "isa")));
  plan.set_threads(Small(Member(target, "threads")));
  plan.set_baseline_ms(Number(Member(Member(json, "baseline"), "median_ms")));
  plan.set_plan_ms(Number(Member(Member(json, "plan"), "median_ms")));
  plan.set_speedup(Number(Member(json, "speedup")));
  plan.set_bound_log2(Number(Member(Member(json, "certificate"), "bound_log2")));
  plan.set_weights(Text(Member(json, "weights")));
  plan.set_unmeasured(Member(json, "unmeasured") == Json(true));
  for (const Json& output : Items(Member(json, "numeric"))) {
    plan.set_max_relative_error(
        std::max(plan.max_relative_error(), Number(Member(output, "plan_max"))));
  }
  plan.set_stop_reason(Text(Member(Member(json, "search"), "stop_reason")));
  const Json& mutants = Member(json, "mutants");
  if (!mutants.is_object()) return plan;
  for (const auto& [rule, count] : mutants.items()) {
    if (plan.mutants_size() == static_cast<int>(kMostItems)) break;
    (*plan.mutable_mutants())[rule.substr(0, kLongestText)] = Small(count);
  }
  return plan;
}

absl::StatusOr<v1::Verdict> VerdictFromJson(std::string_view facts) {
  MENDEL_ASSIGN_OR_RETURN(const Json json, Object(facts));
  v1::Verdict verdict;
  verdict.set_kind(KindOf(Text(Member(json, "verdict"))));
  verdict.set_reason(Text(Member(json, "reason")));
  if (verdict.kind() == v1::Verdict::KIND_UNSPECIFIED) {
    const absl::Status error = ErrorIn(json);
    if (absl::IsFailedPrecondition(error)) verdict.set_kind(v1::Verdict::KIND_DIFFERENT);
    if (absl::IsAborted(error) || absl::IsDeadlineExceeded(error))
      verdict.set_kind(v1::Verdict::KIND_UNPROVEN);
    if (verdict.kind() == v1::Verdict::KIND_UNSPECIFIED)
      return InvalidInput("the worker reported no verdict");
    verdict.set_reason(std::string(error.message()));
  }
  verdict.set_bound_log2(Number(Member(json, "bound_log2")));
  verdict.set_tests(Small(Member(json, "tests")));
  for (const Json& prime : Items(Member(json, "primes"))) {
    if (prime.is_number_unsigned()) verdict.add_primes(prime.get<uint64_t>());
  }
  if (Member(json, "seed").is_number_unsigned())
    verdict.set_seed(Member(json, "seed").get<uint64_t>());
  int boxes = 0;
  for (const Json& output : Items(Member(json, "outputs"))) AddOutput(output, boxes, verdict);
  if (facts.size() <= kMostReportBytes) verdict.set_json(std::string(facts));
  return verdict;
}

}  // namespace mendel::server
