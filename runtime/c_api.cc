#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "runtime/bundle_session.h"
#include "runtime/c_api_support.h"
#include "runtime/dynamic_session.h"
#include "runtime/mendel.h"
#include "runtime/session.h"

struct mendel_plan {
  mutable std::recursive_mutex turn;  // held by every call; mendel_run_shapes calls others
  std::unique_ptr<mendel::BundleSession> bundle;    // null where `dynamic` is set
  std::unique_ptr<mendel::DynamicSession> dynamic;  // null where `bundle` is set
  mendel::Session* session = nullptr;               // the selected one; null: none yet
  std::string device;
  // Buffers of a run, kept so that none allocates.
  std::vector<std::span<const std::byte>> sources;
  std::vector<std::span<std::byte>> sinks;
  std::vector<uint64_t> inputs, outputs;
};

namespace mendel {
namespace {

static_assert(static_cast<int>(DType::kF32) == MENDEL_F32 &&
              static_cast<int>(DType::kF16) == MENDEL_F16);
static_assert(static_cast<int>(DType::kBF16) == MENDEL_BF16 &&
              static_cast<int>(DType::kF64) == MENDEL_F64);
static_assert(static_cast<int>(DType::kI8) == MENDEL_I8 &&
              static_cast<int>(DType::kU8) == MENDEL_U8);
static_assert(static_cast<int>(DType::kI32) == MENDEL_I32 &&
              static_cast<int>(DType::kI64) == MENDEL_I64);
static_assert(static_cast<int>(DType::kBool) == MENDEL_BOOL &&
              static_cast<int>(DType::kI16) == MENDEL_I16);
static_assert(static_cast<int>(DType::kU64) == MENDEL_U64 &&
              static_cast<int>(DType::kF8E5M2FNUZ) == MENDEL_F8E5M2FNUZ && kDTypes == 17);

using Turn = std::scoped_lock<std::recursive_mutex>;

mendel_status Describe(const std::vector<ValueInfo>& values, int index, mendel_value* value) {
  if (value == nullptr || index < 0 || static_cast<size_t>(index) >= values.size()) {
    return Report(InvalidInput("there is no value number ", index));
  }
  const ValueInfo& info = values[static_cast<size_t>(index)];
  value->name = info.name.c_str();
  value->dtype = static_cast<mendel_dtype>(info.type.dtype);
  value->rank = static_cast<int>(info.type.shape.size());
  value->shape = info.type.shape.data();
  value->bytes = static_cast<size_t>(ByteSize(info.type));
  return Report(absl::OkStatus());
}

absl::Status CheckDynamic(const mendel_plan* plan) {
  if (plan == nullptr) return InvalidInput("the plan is NULL");
  if (plan->dynamic == nullptr)
    return InvalidInput("the plan has fixed shapes: it is not of mendel_open_model");
  return absl::OkStatus();
}

absl::Status NothingSelected() {
  return InvalidInput("no input shapes are selected yet: call mendel_select_shapes first");
}

absl::Status Select(mendel_plan& plan, size_t member) {
  MENDEL_ASSIGN_OR_RETURN(plan.session, plan.bundle->Member(member));
  return absl::OkStatus();
}

/// The inputs in order, with any shapes.
NamedShapes InputsOf(const mendel_plan& plan) {
  if (plan.bundle != nullptr) return plan.bundle->offered()[0];
  NamedShapes inputs;
  for (const std::string& name : plan.dynamic->inputs()) inputs.emplace_back(name, Shape());
  return inputs;
}

/// Copies of the deciding inputs' values; those of `wanted` shapes that are wrong are left out.
absl::StatusOr<DynamicSession::Values> DecidingValues(const mendel_plan& plan,
                                                      const NamedShapes& wanted,
                                                      const void* const* inputs) {
  DynamicSession::Values values;
  for (size_t k = 0; inputs != nullptr && k < wanted.size(); ++k) {
    const auto deciding = plan.dynamic->deciding().find(wanted[k].first);
    if (deciding == plan.dynamic->deciding().end()) continue;
    const TensorType& type = deciding->second;
    if (wanted[k].second != type.shape) continue;
    if (inputs[k] == nullptr) return InvalidInput("input '", wanted[k].first, "' is NULL");
    const auto* bytes = static_cast<const std::byte*>(inputs[k]);
    values.emplace(wanted[k].first,
                   Tensor(type, std::vector<std::byte>(bytes, bytes + ByteSize(type))));
  }
  return values;
}

/// `inputs` NULL: the plan cannot depend on their values.
absl::Status SelectInputs(mendel_plan& plan, const int* ranks, const int64_t* const* shapes,
                          const void* const* inputs) {
  NamedShapes wanted = InputsOf(plan);
  if (ranks == nullptr || shapes == nullptr) return InvalidInput("the shapes are NULL");
  for (size_t k = 0; k < wanted.size(); ++k) {
    if (ranks[k] < 0 || ranks[k] > kMaxRank || (ranks[k] > 0 && shapes[k] == nullptr)) {
      return InvalidInput("the shape of input '", wanted[k].first, "' has rank ", ranks[k],
                          ranks[k] > 0 ? " or is NULL" : "");
    }
    wanted[k].second.assign(shapes[k], shapes[k] + ranks[k]);
  }
  if (plan.dynamic != nullptr) {
    MENDEL_ASSIGN_OR_RETURN(const auto values, DecidingValues(plan, wanted, inputs));
    MENDEL_ASSIGN_OR_RETURN(plan.session, plan.dynamic->ForInputs(wanted, values));
    return absl::OkStatus();
  }
  MENDEL_ASSIGN_OR_RETURN(const size_t member, ChooseMember(plan.bundle->offered(), wanted));
  return Select(plan, member);
}

absl::Status RunPlan(mendel_plan& plan, const void* const* inputs, void* const* outputs) {
  if (plan.session == nullptr) return NothingSelected();
  Session& session = *plan.session;
  plan.sources.clear();
  plan.sinks.clear();
  for (size_t k = 0; k < session.inputs().size(); ++k) {
    if (inputs == nullptr || inputs[k] == nullptr)
      return InvalidInput("input '", session.inputs()[k].name, "' is NULL");
    plan.sources.emplace_back(static_cast<const std::byte*>(inputs[k]),
                              static_cast<size_t>(ByteSize(session.inputs()[k].type)));
  }
  for (size_t k = 0; k < session.outputs().size(); ++k) {
    if (outputs == nullptr || outputs[k] == nullptr)
      return InvalidInput("output '", session.outputs()[k].name, "' is NULL");
    plan.sinks.emplace_back(static_cast<std::byte*>(outputs[k]),
                            static_cast<size_t>(ByteSize(session.outputs()[k].type)));
  }
  return session.RunBuffers(plan.sources, plan.sinks);
}

/// The backend checks a null for values without bytes.
template <class Pointer>
absl::Status Addresses(const char* what, const std::vector<ValueInfo>& values,
                       Pointer const* pointers, std::vector<uint64_t>& addresses) {
  if (pointers == nullptr && !values.empty()) return InvalidInput("the ", what, "s are NULL");
  addresses.clear();
  for (size_t k = 0; k < values.size(); ++k)
    addresses.push_back(reinterpret_cast<uintptr_t>(pointers[k]));
  return absl::OkStatus();
}

absl::Status RunOnDevice(mendel_plan& plan, const void* const* inputs, void* const* outputs,
                         void* stream, void* ready_event) {
  if (plan.session == nullptr) return NothingSelected();
  MENDEL_RETURN_IF_ERROR(Addresses("input", plan.session->inputs(), inputs, plan.inputs));
  MENDEL_RETURN_IF_ERROR(Addresses("output", plan.session->outputs(), outputs, plan.outputs));
  return plan.session->executable().RunOnDevice({plan.inputs, plan.outputs, stream, ready_event});
}

}  // namespace

std::string& LastError() {
  thread_local std::string message;
  return message;
}

mendel_status Report(const absl::Status& status) {
  LastError() = std::string(status.message());
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return MENDEL_OK;
    case absl::StatusCode::kInvalidArgument:
      return MENDEL_INVALID;
    case absl::StatusCode::kNotFound:
      return MENDEL_NOT_FOUND;
    case absl::StatusCode::kUnimplemented:
      return MENDEL_UNSUPPORTED;
    case absl::StatusCode::kCancelled:
      return MENDEL_STOPPED;
    default:
      return MENDEL_ERROR;
  }
}

absl::StatusOr<mendel_plan*> NewPlan(std::unique_ptr<BundleSession> bundle) {
  auto plan = std::make_unique<mendel_plan>();
  plan->bundle = std::move(bundle);
  MENDEL_RETURN_IF_ERROR(Select(*plan, 0));
  plan->device = plan->session->executable().device();
  return plan.release();
}

mendel_plan* NewDynamicPlan(std::unique_ptr<DynamicSession> dynamic) {
  auto plan = std::make_unique<mendel_plan>();
  plan->dynamic = std::move(dynamic);
  plan->device = "cpu";
  return plan.release();
}

absl::StatusOr<DynamicUse> DynamicUseOf(const mendel_plan* plan) {
  MENDEL_RETURN_IF_ERROR(CheckDynamic(plan));
  const Turn turn(plan->turn);
  return plan->dynamic->use();
}

absl::Status Adopt(mendel_plan* plan, std::span<const Plan> plans) {
  MENDEL_RETURN_IF_ERROR(CheckDynamic(plan));
  const Turn turn(plan->turn);
  plan->session = nullptr;
  for (const Plan& one : plans) MENDEL_RETURN_IF_ERROR(plan->dynamic->Adopt(one));
  return absl::OkStatus();
}

absl::StatusOr<SessionOptions> LoadOptions(const mendel_load_options* options) {
  SessionOptions session;
  if (options == nullptr) return session;
  if (options->size != sizeof(mendel_load_options)) {
    return InvalidInput("the load options have ", options->size, " bytes where this library knows ",
                        sizeof(mendel_load_options));
  }
  session.threads = options->threads;
  if (options->affinity != nullptr) session.affinity = options->affinity;
  return session;
}

}  // namespace mendel

extern "C" {

const char* mendel_version(void) { return MENDEL_VERSION; }

const char* mendel_last_error(void) { return mendel::LastError().c_str(); }

mendel_plan* mendel_load(const char* path, int threads) {
  const mendel_load_options options = {sizeof(options), threads, nullptr};
  return mendel_load_with(path, &options);
}

mendel_plan* mendel_load_with(const char* path, const mendel_load_options* options) {
  mendel_plan* plan = nullptr;
  mendel::Guarded([&]() -> absl::Status {
    if (path == nullptr) return mendel::InvalidInput("the path is NULL");
    MENDEL_ASSIGN_OR_RETURN(const mendel::SessionOptions session, mendel::LoadOptions(options));
    MENDEL_ASSIGN_OR_RETURN(auto bundle, mendel::BundleSession::Load(path, session));
    MENDEL_ASSIGN_OR_RETURN(plan, mendel::NewPlan(std::move(bundle)));
    return absl::OkStatus();
  });
  return plan;
}

void mendel_free(mendel_plan* plan) { delete plan; }

int mendel_member_count(const mendel_plan* plan) {
  if (plan == nullptr) return -1;
  return plan->bundle == nullptr ? 0 : static_cast<int>(plan->bundle->size());
}

mendel_status mendel_select(mendel_plan* plan, int member) {
  if (plan == nullptr) return mendel::Report(mendel::InvalidInput("the plan is NULL"));
  const mendel::Turn turn(plan->turn);
  return mendel::Guarded([&]() -> absl::Status {
    if (member < 0 || member >= mendel_member_count(plan))
      return mendel::InvalidInput("there is no member ", member, " among ",
                                  mendel_member_count(plan), ", which are numbered from 0");
    return mendel::Select(*plan, static_cast<size_t>(member));
  });
}

mendel_status mendel_select_shapes(mendel_plan* plan, const int* ranks,
                                   const int64_t* const* shapes) {
  if (plan == nullptr) return mendel::Report(mendel::InvalidInput("the plan is NULL"));
  const mendel::Turn turn(plan->turn);
  return mendel::Guarded([&] { return mendel::SelectInputs(*plan, ranks, shapes, nullptr); });
}

mendel_status mendel_select_inputs(mendel_plan* plan, const int* ranks,
                                   const int64_t* const* shapes, const void* const* inputs) {
  if (plan == nullptr) return mendel::Report(mendel::InvalidInput("the plan is NULL"));
  const mendel::Turn turn(plan->turn);
  return mendel::Guarded([&] { return mendel::SelectInputs(*plan, ranks, shapes, inputs); });
}

int mendel_input_count(const mendel_plan* plan) {
  if (plan == nullptr) return -1;
  const mendel::Turn turn(plan->turn);
  if (plan->session == nullptr) return -1;
  return static_cast<int>(plan->session->inputs().size());
}

int mendel_output_count(const mendel_plan* plan) {
  if (plan == nullptr) return -1;
  const mendel::Turn turn(plan->turn);
  if (plan->session == nullptr) return -1;
  return static_cast<int>(plan->session->outputs().size());
}

mendel_status mendel_input(const mendel_plan* plan, int index, mendel_value* value) {
  if (plan == nullptr) return mendel::Report(mendel::InvalidInput("the plan is NULL"));
  const mendel::Turn turn(plan->turn);
  if (plan->session == nullptr) return mendel::Report(mendel::NothingSelected());
  return mendel::Describe(plan->session->inputs(), index, value);
}

mendel_status mendel_output(const mendel_plan* plan, int index, mendel_value* value) {
  if (plan == nullptr) return mendel::Report(mendel::InvalidInput("the plan is NULL"));
  const mendel::Turn turn(plan->turn);
  if (plan->session == nullptr) return mendel::Report(mendel::NothingSelected());
  return mendel::Describe(plan->session->outputs(), index, value);
}

mendel_status mendel_run(mendel_plan* plan, const void* const* inputs, void* const* outputs) {
  if (plan == nullptr) return mendel::Report(mendel::InvalidInput("the plan is NULL"));
  const mendel::Turn turn(plan->turn);
  return mendel::Guarded([&] { return mendel::RunPlan(*plan, inputs, outputs); });
}

mendel_status mendel_run_shapes(mendel_plan* plan, const int* ranks, const int64_t* const* shapes,
                                const void* const* inputs, void* const* outputs) {
  if (plan == nullptr) return mendel::Report(mendel::InvalidInput("the plan is NULL"));
  const mendel::Turn turn(plan->turn);
  const mendel_status selected = mendel_select_inputs(plan, ranks, shapes, inputs);
  if (selected != MENDEL_OK || plan->dynamic == nullptr || inputs == nullptr)
    return selected == MENDEL_OK ? mendel_run(plan, inputs, outputs) : selected;
  std::vector<const void*> taken;  // the plan may contain some inputs as constants
  const std::vector<std::string>& names = plan->dynamic->inputs();
  for (const mendel::ValueInfo& input : plan->session->inputs()) {
    taken.push_back(inputs[std::find(names.begin(), names.end(), input.name) - names.begin()]);
  }
  return mendel_run(plan, taken.data(), outputs);
}

const char* mendel_device(const mendel_plan* plan) {
  return plan == nullptr ? nullptr : plan->device.c_str();
}

mendel_status mendel_run_device(mendel_plan* plan, const void* const* inputs, void* const* outputs,
                                void* stream, void* ready_event) {
  if (plan == nullptr) return mendel::Report(mendel::InvalidInput("the plan is NULL"));
  const mendel::Turn turn(plan->turn);
  return mendel::Guarded(
      [&] { return mendel::RunOnDevice(*plan, inputs, outputs, stream, ready_event); });
}

}  // extern "C"
