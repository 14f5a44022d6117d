// Jobs, plans and verdicts of a server in words and JSON.
#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/status.h"
#include "client/format.h"
#include "client/remote.h"

namespace mendel {
namespace {

using Json = nlohmann::ordered_json;

/// "2026-01-31T12:00:00Z"; empty for an absent time.
std::string TimeText(const google::protobuf::Timestamp& time) {
  if (time.seconds() == 0) return "";
  const std::time_t seconds = time.seconds();
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string WorkWord(const v1::JobSpec& spec) {
  switch (spec.work_case()) {
    case v1::JobSpec::kOptimize:
      return "optimize";
    case v1::JobSpec::kVerifyPlan:
      return "verify plan";
    case v1::JobSpec::kComparePair:
      return "compare";
    case v1::JobSpec::kRefitPlan:
      // The API's word keeps its old name for version 0.1: `rebind` replaces it.
      return "refit";
    case v1::JobSpec::WORK_NOT_SET:
      break;
  }
  return "";
}

/// "equivalent-after-refit", as docs/verify.md spells verdicts.
std::string KindWord(v1::Verdict::Kind kind) {
  std::string word = Lower(v1::Verdict::Kind_Name(kind)).substr(5);
  std::replace(word.begin(), word.end(), '_', '-');
  return word;
}

ExitCode AnswerOf(v1::Verdict::Kind kind, bool refit_is_good) {
  if (kind == v1::Verdict::KIND_EQUIVALENT) return kExitGood;
  if (kind == v1::Verdict::KIND_EQUIVALENT_AFTER_REFIT) return refit_is_good ? kExitGood : kExitNo;
  return kind == v1::Verdict::KIND_PARTIAL || kind == v1::Verdict::KIND_DIFFERENT ? kExitNo
                                                                                  : kExitUndecided;
}

}  // namespace

std::string StateWord(v1::JobState state) { return Lower(v1::JobState_Name(state)).substr(10); }

absl::StatusOr<v1::JobState> ParseState(const std::string& word) {
  for (int k = v1::JOB_STATE_PENDING; k <= v1::JOB_STATE_CANCELLED; ++k) {
    if (word == StateWord(static_cast<v1::JobState>(k))) return static_cast<v1::JobState>(k);
  }
  return InvalidInput("'", word,
                      "' is no state (pending, running, cancelling, succeeded, failed, cancelled)");
}

Json JobJson(const v1::Job& job) {
  Json json = {{"name", job.name()},
               {"work", WorkWord(job.spec())},
               {"state", StateWord(job.state())},
               {"client", job.client()},
               {"priority", job.priority()},
               {"created", TimeText(job.create_time())},
               {"started", TimeText(job.start_time())},
               {"ended", TimeText(job.end_time())},
               {"plan", job.plan()},
               {"attempts", job.attempts()},
               {"last_sequence", job.last_sequence()}};
  if (job.state() == v1::JOB_STATE_PENDING) json["queue_position"] = job.queue_position();
  if (job.has_error())
    json["error"] = {{"code", job.error().code()}, {"message", job.error().message()}};
  if (job.has_verdict()) json["verdict"] = KindWord(job.verdict().kind());
  if (job.has_progress()) {
    json["progress"] = {{"phase", job.progress().phase()},
                        {"candidates", job.progress().candidates()}};
    if (job.progress().best_speedup() > 0)
      json["progress"]["best_speedup"] = job.progress().best_speedup();
  }
  if (!job.bundle().empty()) json["bundle"] = job.bundle();
  return json;
}

Json PlanJson(const v1::Plan& plan) {
  Json json = {{"name", plan.name()},
               {"model", plan.model()},
               {"job", plan.job()},
               {"size_bytes", plan.size_bytes()},
               {"created", TimeText(plan.create_time())},
               {"device", plan.device()},
               {"isa", plan.isa()},
               {"threads", plan.threads()},
               {"baseline_ms", plan.baseline_ms()},
               {"plan_ms", plan.plan_ms()},
               {"speedup", plan.speedup()},
               {"unmeasured", plan.unmeasured()},
               {"bound_log2", plan.bound_log2()},
               {"weights", plan.weights()},
               {"max_relative_error", plan.max_relative_error()},
               {"stop_reason", plan.stop_reason()},
               {"mutants", Json::object()}};
  for (const auto& [rule, count] : plan.mutants()) json["mutants"][rule] = count;
  return json;
}

std::string JobLine(const v1::Job& job) {
  std::string line = Cat(job.name(), "  ", StateWord(job.state()), "  ", WorkWord(job.spec()), "  ",
                         TimeText(job.create_time()));
  if (job.state() == v1::JOB_STATE_PENDING) line += Cat("  ", job.queue_position(), " before it");
  if (job.has_progress() && job.state() == v1::JOB_STATE_RUNNING) {
    line += Cat("  ", job.progress().phase(), " ", job.progress().candidates(), " candidates");
    if (job.progress().best_speedup() > 0)
      line += Cat(", best ", Decimals(job.progress().best_speedup(), 2), "x");
  }
  if (job.has_error()) line += Cat("  ", job.error().message());
  if (job.has_verdict()) line += Cat("  ", KindWord(job.verdict().kind()));
  if (!job.plan().empty()) line += Cat("  ", job.plan());
  return line;
}

std::string PlanLine(const v1::Plan& plan) {
  return Cat(plan.name(), "  ", Decimals(plan.speedup(), 2),
             plan.unmeasured() ? "x (predicted)  " : "x  ", plan.device(), " ", plan.isa(), " ",
             plan.threads(), " threads  2^", Decimals(plan.bound_log2(), 0), "  ",
             ByteText(static_cast<double>(plan.size_bytes())), "  ", TimeText(plan.create_time()),
             "  of ", plan.model());
}

absl::Status ReportVerdict(const v1::Verdict& verdict, bool refit_is_good, Context& context) {
  const std::string kind = KindWord(verdict.kind());
  Json report = Json::parse(verdict.json(), nullptr, false);
  if (report.is_object()) {
    for (auto& [key, value] : report.items()) context.facts()[key] = value;
  }
  context.facts()["verdict"] = kind;
  std::string line = kind;
  if (verdict.kind() == v1::Verdict::KIND_EQUIVALENT) {
    line += Cat(": every output element, bound 2^", Decimals(verdict.bound_log2(), 0), ", ",
                verdict.tests(), " tests");
  } else if (!verdict.reason().empty()) {
    line += Cat(": ", verdict.reason());
  }
  context.Line(line);
  for (const v1::OutputVerdict& output : verdict.outputs()) {
    if (output.wrong_elements() == 0) continue;
    context.Line(Cat("  ", output.name(), ": ", output.wrong_elements(), " of ", output.elements(),
                     " elements in ", output.boxes_size(), " boxes"));
  }
  context.Answer(AnswerOf(verdict.kind(), refit_is_good));
  return absl::OkStatus();
}

}  // namespace mendel
