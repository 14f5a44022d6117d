// The parts that both C interfaces share (mendel.h, client/c_api/mendel_optimizer.h): errors and
// plan handles.
#ifndef MENDEL_RUNTIME_C_API_SUPPORT_H_
#define MENDEL_RUNTIME_C_API_SUPPORT_H_

#include <exception>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status.h"
#include "runtime/bundle_session.h"
#include "runtime/dynamic_session.h"
#include "runtime/mendel.h"
#include "runtime/session.h"

namespace mendel {

/// The message that mendel_last_error returns on this thread.
std::string& LastError();

/// Stores the message and returns the C form of the code.
mendel_status Report(const absl::Status& status);

/// Runs `body` and turns exceptions (out of memory) into errors: none may cross the C boundary.
template <class Body>
mendel_status Guarded(Body body) {
  try {
    return Report(body());
  } catch (const std::exception& error) {
    return Report(InternalError(error.what()));
  }
}

/// NULL: the defaults. InvalidArgument when the size is not the one of this library.
absl::StatusOr<SessionOptions> LoadOptions(const mendel_load_options* options);

/// A handle for mendel_free with member 0 compiled and selected.
absl::StatusOr<mendel_plan*> NewPlan(std::unique_ptr<BundleSession> bundle);

/// A handle without a plan until shapes are selected.
mendel_plan* NewDynamicPlan(std::unique_ptr<DynamicSession> dynamic);

/// The use of a handle of NewDynamicPlan; InvalidArgument for another handle, and for NULL.
absl::StatusOr<DynamicUse> DynamicUseOf(const mendel_plan* plan);

/// DynamicSession::Adopt for all `plans`; nothing is selected afterwards.
absl::Status Adopt(mendel_plan* plan, std::span<const Plan> plans);

}  // namespace mendel

#endif  // MENDEL_RUNTIME_C_API_SUPPORT_H_
