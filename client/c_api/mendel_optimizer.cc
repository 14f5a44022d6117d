#include "client/c_api/mendel_optimizer.h"

#include <CLI/CLI.hpp>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "client/c_api/call.h"
#include "client/c_api/program.h"
#include "client/facts_context.h"
#include "client/model_session.h"
#include "client/verify_pair.h"
#include "onnx/export.h"
#include "onnx/interface.h"
#include "runtime/bundle_session.h"
#include "runtime/c_api_support.h"
#include "runtime/plan_bundle.h"

namespace mendel {
namespace {

using Json = nlohmann::ordered_json;

char* NewText(const std::string& text) {
  auto copy = std::make_unique<char[]>(text.size() + 1);
  std::memcpy(copy.get(), text.c_str(), text.size() + 1);
  return copy.release();
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
  MENDEL_RETURN_IF_ERROR(ComparePair(pair, StopOf(call), nullptr, context));
  return CompactJson(context.facts());
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
  return CompactJson({{"inputs", DeclaredJson(interface.inputs)},
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
  MENDEL_ASSIGN_OR_RETURN(const DynamicUse now, DynamicUseOf(plan));
  if (use == nullptr || use->size != sizeof(mendel_dynamic_use))
    return InvalidInput("the structure for the use is NULL or of another size");
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
