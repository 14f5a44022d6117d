// Status macros and the two families of error Mendel distinguishes.
//
// A caller's mistake (bad file, unsupported operator, mismatch) is InvalidArgument or Unimplemented
// and names the node and what was expected. A bug of ours is Internal and names the step. Running
// out of budget is not an error (see deadline.h).
#ifndef MENDEL_BASE_STATUS_H_
#define MENDEL_BASE_STATUS_H_

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace mendel {

namespace internal {
// Debian's Abseil has its own string_view, which StrCat takes and std::string_view does not convert
// to.
template <class T>
decltype(auto) CatArg(const T& value) {
  if constexpr (std::is_same_v<T, std::string_view>) {
    return absl::string_view(value.data(), value.size());
  } else {
    return (value);
  }
}
}  // namespace internal

/// Concatenates strings, string views and numbers.
template <class... Args>
std::string Cat(const Args&... args) {
  return absl::StrCat(internal::CatArg(args)...);
}

/// The caller's mistake: malformed input, a mismatch, a value out of its domain.
template <class... Args>
absl::Status InvalidInput(const Args&... args) {
  return absl::InvalidArgumentError(Cat(args...));
}

/// Well-formed input that Mendel does not support; the message names the node, operator, dtype or
/// option.
template <class... Args>
absl::Status Unsupported(const Args&... args) {
  return absl::UnimplementedError(Cat(args...));
}

/// A bug of ours. The message names the step that noticed it.
template <class... Args>
absl::Status InternalError(const Args&... args) {
  return absl::InternalError(Cat(args...));
}

/// `status` with "`context`: " before its message; OK stays OK.
inline absl::Status Annotate(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(absl::string_view(context.data(), context.size()),
                                                  ": ", status.message()));
}

}  // namespace mendel

#define MENDEL_CONCAT_IMPL(a, b) a##b
#define MENDEL_CONCAT(a, b) MENDEL_CONCAT_IMPL(a, b)

/// Returns from the enclosing function when `expr` (an absl::Status) is not OK.
#define MENDEL_RETURN_IF_ERROR(expr)                 \
  do {                                               \
    absl::Status mendel_status_ = (expr);            \
    if (!mendel_status_.ok()) return mendel_status_; \
  } while (false)

/// `MENDEL_ASSIGN_OR_RETURN(auto x, F());` - unwraps an absl::StatusOr or returns its error.
#define MENDEL_ASSIGN_OR_RETURN(lhs, expr) \
  MENDEL_ASSIGN_OR_RETURN_IMPL(MENDEL_CONCAT(mendel_or_, __LINE__), lhs, expr)
#define MENDEL_ASSIGN_OR_RETURN_IMPL(var, lhs, expr) \
  auto var = (expr);                                 \
  if (!var.ok()) return std::move(var).status();     \
  lhs = std::move(var).value()

#endif  // MENDEL_BASE_STATUS_H_
