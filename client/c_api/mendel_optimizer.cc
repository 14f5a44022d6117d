#include "client/c_api/mendel_optimizer.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/parallel.h"
#include "base/status.h"
#include "client/facts_context.h"
#include "client/model_session.h"
#include "client/optimize_model.h"
#include "client/plan_explanation.h"
#include "client/plan_facts.h"
#include "client/verify_pair.h"
#include "onnx/export.h"
#include "onnx/interface.h"
#include "optimizer/certificate_proto.h"
#include "runtime/bundle_session.h"
#include "runtime/c_api_support.h"
#include "runtime/plan_bundle.h"

struct mendel_stop {
  std::atomic<bool> requested = false;
};

struct mendel_program {
  std::vector<mendel::Plan> plans;
  std::string report = "null";  // JSON
};

namespace mendel {
namespace {

using Json = nlohmann::ordered_json;

/// Names in facts come from models and need not be UTF-8.
std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

char* NewText(const std::string& text) {
  auto copy = std::make_unique<char[]>(text.size() + 1);
  std::memcpy(copy.get(), text.c_str(), text.size() + 1);
  return copy.release();
}

absl::Status CheckModel(const mendel_model* model) {
  if (model == nullptr || (model->path == nullptr && model->bytes == nullptr))
    return InvalidInput("the model is NULL");
  return absl::OkStatus();
}

std::string NameOf(const mendel_model& model) {
  return model.path == nullptr ? "model" : model.path;
}

std::optional<std::string_view> BytesOf(const mendel_model& model) {
  if (model.bytes == nullptr) return std::nullopt;
  return std::string_view(static_cast<const char*>(model.bytes), model.size);
}

/// The call, with defaults where it is NULL.
absl::StatusOr<mendel_call> CallOf(const mendel_call* call) {
  if (call == nullptr) return mendel_call{sizeof(mendel_call), nullptr, nullptr, nullptr, nullptr};
  if (call->size != sizeof(mendel_call)) {
    return InvalidInput("the call has ", call->size, " bytes where this library has ",
                        sizeof(mendel_call));
  }
  return *call;
}

absl::Status ParseWords(CLI::App& app, const char* const* options) {
  std::vector<std::string> words;
  for (; options != nullptr && *options != nullptr; ++options) words.emplace_back(*options);
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  app.set_help_flag();
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    return InvalidInput(error.what());
  }
  return absl::OkStatus();
}

/// The lock of one long call. Restores ParallelFor's number of threads when destroyed.
class Turn {
 public:
  /// Waits for the lock; returns Cancelled if a stop is requested meanwhile.
  static absl::StatusOr<std::unique_ptr<Turn>> Take(const mendel_stop* stop) {
    static auto* mutex = new std::timed_mutex();
    while (!mutex->try_lock_for(std::chrono::milliseconds(50))) {
      if (stop != nullptr && stop->requested)
        return absl::CancelledError("stopped before it began");
    }
    std::unique_ptr<Turn> turn(new Turn(*mutex));
    if (stop != nullptr && stop->requested) return absl::CancelledError("stopped before it began");
    return turn;
  }
  ~Turn() {
    SetParallelism(parallelism_);
    mutex_.unlock();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  explicit Turn(std::timed_mutex& mutex) : mutex_(mutex), parallelism_(Parallelism()) {}

  std::timed_mutex& mutex_;
  int parallelism_;
};

/// Passes events on to the caller: new phases at once, others four times a second.
class Reporter {
 public:
  explicit Reporter(const mendel_call& call) : call_(call) {}
  void Show(const ProgressEvent& event) {
    if (call_.progress == nullptr || (call_.stop != nullptr && call_.stop->requested)) return;
    if (!event.last && event.phase == phase_ && clock_.Seconds() - shown_ < 0.25) return;
    shown_ = clock_.Seconds();
    phase_ = event.phase;
    const Json json = {{"phase", event.phase},
                       {"detail", event.detail},
                       {"candidates", event.candidates},
                       {"candidates_per_second", event.candidates_per_second},
                       {"best_speedup", event.best_speedup},
                       {"seconds_left", event.seconds_left}};
    call_.progress(call_.user, Dump(json).c_str());
  }

 private:
  const mendel_call& call_;
  Stopwatch clock_;
  double shown_ = -1;
  std::string phase_;
};

absl::StatusOr<mendel_program*> OptimizeProgram(const mendel_model* model,
                                                const mendel_call* given) {
  MENDEL_RETURN_IF_ERROR(CheckModel(model));
  MENDEL_ASSIGN_OR_RETURN(const mendel_call call, CallOf(given));
  OptimizeSettings settings;
  CLI::App app;
  AddOptimizeSettings(app, settings);
  MENDEL_RETURN_IF_ERROR(ParseWords(app, call.options));
  settings.model = NameOf(*model);
  settings.import.bytes = BytesOf(*model);
  MENDEL_ASSIGN_OR_RETURN(const auto turn, Turn::Take(call.stop));
  Reporter reporter(call);
  OptimizeWatcher watcher;
  watcher.progress = [&](const ProgressEvent& event) { reporter.Show(event); };
  watcher.phase = [&](const std::string& phase) {
    reporter.Show({.phase = phase, .detail = "", .seconds_left = -1});
  };
  watcher.interrupted = call.stop == nullptr ? nullptr : &call.stop->requested;
  FactsContext context;
  MENDEL_ASSIGN_OR_RETURN(const Optimized optimized, OptimizeModel(settings, watcher, context));
  MENDEL_RETURN_IF_ERROR(ReportOptimization(optimized, settings, watcher, context));
  auto program = std::make_unique<mendel_program>();
  for (const OptimizeResult& result : optimized.results) program->plans.push_back(result.plan);
  program->report = Dump(context.facts());
  return program.release();
}

absl::StatusOr<Json> MemberFacts(const Plan& plan) {
  FactsContext context;
  ReportExplanation(plan, context);
  ReportPlanTimes(plan.info, context);
  Json& facts = context.facts();
  const Json mutants = std::move(facts["mutants"]);
  ReportPlanInfo(plan.info, context);
  facts["mutant_counts"] = std::move(facts["mutants"]);
  facts["mutants"] = mutants;
  for (const auto& [name, shape] : InputShapes(plan.graph)) facts["inputs"][name] = shape;
  facts["certificate"] = nullptr;
  if (!plan.certificate_bytes.empty()) {
    MENDEL_ASSIGN_OR_RETURN(const Certificate certificate,
                            ParseCertificate(plan.certificate_bytes));
    facts["certificate"] = {{"bound_log2", certificate.bound_log2},
                            {"tests", certificate.draws.size()},
                            {"elements", certificate.elements},
                            {"segments", certificate.segments},
                            {"degree", certificate.degree}};
  }
  return std::move(facts);
}

absl::StatusOr<std::string> FactsOf(const mendel_program& program) {
  Json facts = {{"members", Json::array()}, {"report", Json::parse(program.report)}};
  for (const Plan& plan : program.plans) {
    MENDEL_ASSIGN_OR_RETURN(Json member, MemberFacts(plan));
    facts["members"].push_back(std::move(member));
  }
  return Dump(facts);
}

absl::StatusOr<std::string> VerifyModels(const mendel_model* a, const mendel_model* b,
                                         const mendel_call* given) {
  MENDEL_RETURN_IF_ERROR(CheckModel(a));
  MENDEL_RETURN_IF_ERROR(CheckModel(b));
  MENDEL_ASSIGN_OR_RETURN(const mendel_call call, CallOf(given));
  PairOptions pair;
  CLI::App app;
  AddPairOptions(app, pair);
  MENDEL_RETURN_IF_ERROR(ParseWords(app, call.options));
  if (!pair.memory_limit.empty())
    return InvalidInput("--memory-limit needs a process of its own: use the command mendel verify");
  pair.a = NameOf(*a);
  pair.b = NameOf(*b);
  pair.a_bytes = BytesOf(*a);
  pair.b_bytes = BytesOf(*b);
  MENDEL_ASSIGN_OR_RETURN(const auto turn, Turn::Take(call.stop));
  Reporter reporter(call);
  reporter.Show({.phase = "compare", .detail = "", .seconds_left = -1});
  FactsContext context;
  MENDEL_RETURN_IF_ERROR(
      ComparePair(pair, call.stop == nullptr ? nullptr : &call.stop->requested, nullptr, context));
  return Dump(context.facts());
}

Json DeclaredJson(const std::vector<DeclaredValue>& values) {
  Json json = Json::array();
  for (const DeclaredValue& value : values) {
    Json shape = Json::array();
    for (const DeclaredDimension& dim : value.shape) {
      if (dim.size >= 0) {
        shape.push_back(dim.size);
      } else {
        shape.push_back(dim.name.empty() ? Json() : Json(dim.name));
      }
    }
    json.push_back({{"name", value.name},
                    {"type", DTypeName(value.dtype)},
                    {"shape", value.has_shape ? std::move(shape) : Json()}});
  }
  return json;
}

absl::StatusOr<std::string> DescribeModel(const mendel_model* model) {
  MENDEL_RETURN_IF_ERROR(CheckModel(model));
  const auto bytes = BytesOf(*model);
  MENDEL_ASSIGN_OR_RETURN(const ModelInterface interface,
                          bytes.has_value() ? ParseInterface(*bytes) : ReadInterface(model->path));
  return Dump({{"inputs", DeclaredJson(interface.inputs)},
               {"outputs", DeclaredJson(interface.outputs)},
               {"producer_name", interface.producer_name},
               {"graph_name", interface.graph_name},
               {"domain", interface.domain},
               {"description", interface.description},
               {"version", interface.version},
               {"metadata", interface.metadata}});
}

absl::StatusOr<mendel_plan*> CompileModel(const mendel_model* model, const char* shapes,
                                          const mendel_load_options* options) {
  MENDEL_RETURN_IF_ERROR(CheckModel(model));
  ModelOptions import;
  if (shapes != nullptr && *shapes != '\0') import.shapes.emplace_back(shapes);
  import.bytes = BytesOf(*model);
  MENDEL_ASSIGN_OR_RETURN(const SessionOptions session, LoadOptions(options));
  FactsContext context;
  MENDEL_ASSIGN_OR_RETURN(auto bundle, LoadModelSession(NameOf(*model), import, session, context));
  return NewPlan(std::move(bundle));
}

absl::StatusOr<DynamicLimits> LimitsOf(const mendel_dynamic_limits* given) {
  DynamicLimits limits;
  if (given == nullptr) return limits;
  if (given->size != sizeof(mendel_dynamic_limits)) {
    return InvalidInput("the limits have ", given->size, " bytes where this library has ",
                        sizeof(mendel_dynamic_limits));
  }
  if (given->bytes < 0) return InvalidInput("the limit of bytes is negative: ", given->bytes);
  if (given->plans > 0) limits.plans = given->plans;
  if (given->bytes > 0) limits.bytes = given->bytes;
  return limits;
}

absl::StatusOr<mendel_plan*> OpenModel(const mendel_model* model,
                                       const mendel_load_options* options,
                                       const mendel_dynamic_limits* limits) {
  MENDEL_RETURN_IF_ERROR(CheckModel(model));
  MENDEL_ASSIGN_OR_RETURN(const SessionOptions session, LoadOptions(options));
  MENDEL_ASSIGN_OR_RETURN(const DynamicLimits bounds, LimitsOf(limits));
  MENDEL_ASSIGN_OR_RETURN(auto dynamic,
                          OpenDynamicModel(NameOf(*model), BytesOf(*model), session, bounds));
  return NewDynamicPlan(std::move(dynamic));
}

absl::Status DescribeUse(const mendel_plan* plan, mendel_dynamic_use* use) {
  MENDEL_ASSIGN_OR_RETURN(const DynamicSession* const dynamic, DynamicOf(plan));
  if (use == nullptr || use->size != sizeof(mendel_dynamic_use))
    return InvalidInput("the structure for the use is NULL or of another size");
  const DynamicUse now = dynamic->use();
  *use = {sizeof(mendel_dynamic_use), now.plans, now.bytes, now.hits, now.made, now.dropped};
  return absl::OkStatus();
}

/// Runs `make` and hands its result over, `convert`ed, through `out`, which is NULL on failure.
template <class Out, class Make, class Convert>
mendel_status HandOver(Out* out, Make make, Convert convert) {
  return Guarded([&]() -> absl::Status {
    if (out == nullptr) return InvalidInput("the pointer for the result is NULL");
    *out = nullptr;
    MENDEL_ASSIGN_OR_RETURN(auto made, make());
    *out = convert(made);
    return absl::OkStatus();
  });
}

template <class Out, class Make>
mendel_status HandOver(Out* out, Make make) {
  return HandOver(out, make, [](Out made) { return made; });
}

}  // namespace
}  // namespace mendel

extern "C" {

mendel_stop* mendel_stop_new(void) { return new mendel_stop(); }

void mendel_stop_request(mendel_stop* stop) {
  if (stop != nullptr) stop->requested = true;
}

void mendel_stop_free(mendel_stop* stop) { delete stop; }

void mendel_text_free(char* text) { delete[] text; }

mendel_status mendel_optimize(const mendel_model* model, const mendel_call* call,
                              mendel_program** program) {
  return mendel::HandOver(program, [&] { return mendel::OptimizeProgram(model, call); });
}

mendel_status mendel_program_read(const char* path, mendel_program** program) {
  return mendel::HandOver(program, [&]() -> absl::StatusOr<mendel_program*> {
    if (path == nullptr) return mendel::InvalidInput("the path is NULL");
    auto read = std::make_unique<mendel_program>();
    MENDEL_ASSIGN_OR_RETURN(read->plans, mendel::ReadPlans(path));
    return read.release();
  });
}

mendel_status mendel_program_write(const mendel_program* program, const char* path) {
  return mendel::Guarded([&]() -> absl::Status {
    if (program == nullptr || path == nullptr)
      return mendel::InvalidInput("the program or the path is NULL");
    return mendel::WritePlans(program->plans, path);
  });
}

mendel_status mendel_program_export(const mendel_program* program, int member, const char* path) {
  return mendel::Guarded([&]() -> absl::Status {
    if (program == nullptr || path == nullptr)
      return mendel::InvalidInput("the program or the path is NULL");
    if (member < 0 || static_cast<size_t>(member) >= program->plans.size())
      return mendel::InvalidInput("there is no member ", member, " among ", program->plans.size(),
                                  ", which are numbered from 0");
    return mendel::ExportOnnx(program->plans[static_cast<size_t>(member)].graph, path);
  });
}

mendel_status mendel_program_facts(const mendel_program* program, char** json) {
  return mendel::HandOver(
      json,
      [&]() -> absl::StatusOr<std::string> {
        if (program == nullptr) return mendel::InvalidInput("the program is NULL");
        return mendel::FactsOf(*program);
      },
      mendel::NewText);
}

mendel_status mendel_program_compile(const mendel_program* program,
                                     const mendel_load_options* options, mendel_plan** plan) {
  return mendel::HandOver(plan, [&]() -> absl::StatusOr<mendel_plan*> {
    if (program == nullptr) return mendel::InvalidInput("the program is NULL");
    MENDEL_ASSIGN_OR_RETURN(const mendel::SessionOptions session, mendel::LoadOptions(options));
    MENDEL_ASSIGN_OR_RETURN(auto bundle, mendel::BundleSession::Create(program->plans, session));
    return mendel::NewPlan(std::move(bundle));
  });
}

void mendel_program_free(mendel_program* program) { delete program; }

mendel_status mendel_verify(const mendel_model* a, const mendel_model* b, const mendel_call* call,
                            char** json) {
  return mendel::HandOver(
      json, [&] { return mendel::VerifyModels(a, b, call); }, mendel::NewText);
}

mendel_status mendel_compile_model(const mendel_model* model, const char* shapes,
                                   const mendel_load_options* options, mendel_plan** plan) {
  return mendel::HandOver(plan, [&] { return mendel::CompileModel(model, shapes, options); });
}

mendel_status mendel_open_model(const mendel_model* model, const mendel_load_options* options,
                                const mendel_dynamic_limits* limits, mendel_plan** plan) {
  return mendel::HandOver(plan, [&] { return mendel::OpenModel(model, options, limits); });
}

mendel_status mendel_adopt(mendel_plan* plan, const mendel_program* program) {
  return mendel::Guarded([&]() -> absl::Status {
    if (program == nullptr) return mendel::InvalidInput("the program is NULL");
    return mendel::Adopt(plan, program->plans);
  });
}

mendel_status mendel_dynamic_use_of(const mendel_plan* plan, mendel_dynamic_use* use) {
  return mendel::Guarded([&] { return mendel::DescribeUse(plan, use); });
}

mendel_status mendel_describe_model(const mendel_model* model, char** json) {
  return mendel::HandOver(
      json, [&] { return mendel::DescribeModel(model); }, mendel::NewText);
}

}  // extern "C"
