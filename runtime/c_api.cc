#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "runtime/bundle_session.h"
#include "runtime/c_api_support.h"
#include "runtime/mendel.h"
#include "runtime/session.h"

struct mendel_plan {
  std::unique_ptr<mendel::BundleSession> bundle;
  mendel::Session* session = nullptr;  // the selected member's
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
static_assert(static_cast<int>(DType::kBool) == MENDEL_BOOL);

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

absl::Status Select(mendel_plan& plan, size_t member) {
  MENDEL_ASSIGN_OR_RETURN(plan.session, plan.bundle->Member(member));
  return absl::OkStatus();
}

absl::Status SelectShapes(mendel_plan& plan, const int* ranks, const int64_t* const* shapes) {
  NamedShapes wanted = plan.bundle->offered()[0];
  if (ranks == nullptr || shapes == nullptr) return InvalidInput("the shapes are NULL");
  for (size_t k = 0; k < wanted.size(); ++k) {
    if (ranks[k] < 0 || ranks[k] > kMaxRank || (ranks[k] > 0 && shapes[k] == nullptr)) {
      return InvalidInput("the shape of input '", wanted[k].first, "' has rank ", ranks[k],
                          ranks[k] > 0 ? " or is NULL" : "");
    }
    wanted[k].second.assign(shapes[k], shapes[k] + ranks[k]);
  }
  MENDEL_ASSIGN_OR_RETURN(const size_t member, ChooseMember(plan.bundle->offered(), wanted));
  return Select(plan, member);
}

absl::Status RunPlan(mendel_plan& plan, const void* const* inputs, void* const* outputs) {
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
  return plan == nullptr ? -1 : static_cast<int>(plan->bundle->size());
}

mendel_status mendel_select(mendel_plan* plan, int member) {
  if (plan == nullptr) return mendel::Report(mendel::InvalidInput("the plan is NULL"));
  return mendel::Guarded([&]() -> absl::Status {
    if (member < 0 || static_cast<size_t>(member) >= plan->bundle->size())
      return mendel::InvalidInput("there is no member ", member);
    return mendel::Select(*plan, static_cast<size_t>(member));
  });
}

mendel_status mendel_select_shapes(mendel_plan* plan, const int* ranks,
                                   const int64_t* const* shapes) {
  if (plan == nullptr) return mendel::Report(mendel::InvalidInput("the plan is NULL"));
  return mendel::Guarded([&] { return mendel::SelectShapes(*plan, ranks, shapes); });
}

int mendel_input_count(const mendel_plan* plan) {
  return plan == nullptr ? -1 : static_cast<int>(plan->session->inputs().size());
}

int mendel_output_count(const mendel_plan* plan) {
  return plan == nullptr ? -1 : static_cast<int>(plan->session->outputs().size());
}

mendel_status mendel_input(const mendel_plan* plan, int index, mendel_value* value) {
  if (plan == nullptr) return mendel::Report(mendel::InvalidInput("the plan is NULL"));
  return mendel::Describe(plan->session->inputs(), index, value);
}

mendel_status mendel_output(const mendel_plan* plan, int index, mendel_value* value) {
  if (plan == nullptr) return mendel::Report(mendel::InvalidInput("the plan is NULL"));
  return mendel::Describe(plan->session->outputs(), index, value);
}

mendel_status mendel_run(mendel_plan* plan, const void* const* inputs, void* const* outputs) {
  if (plan == nullptr) return mendel::Report(mendel::InvalidInput("the plan is NULL"));
  return mendel::Guarded([&] { return mendel::RunPlan(*plan, inputs, outputs); });
}

mendel_status mendel_run_shapes(mendel_plan* plan, const int* ranks, const int64_t* const* shapes,
                                const void* const* inputs, void* const* outputs) {
  const mendel_status selected = mendel_select_shapes(plan, ranks, shapes);
  return selected == MENDEL_OK ? mendel_run(plan, inputs, outputs) : selected;
}

const char* mendel_device(const mendel_plan* plan) {
  return plan == nullptr ? nullptr : plan->device.c_str();
}

mendel_status mendel_run_device(mendel_plan* plan, const void* const* inputs, void* const* outputs,
                                void* stream, void* ready_event) {
  if (plan == nullptr) return mendel::Report(mendel::InvalidInput("the plan is NULL"));
  return mendel::Guarded(
      [&] { return mendel::RunOnDevice(*plan, inputs, outputs, stream, ready_event); });
}

}  // extern "C"
