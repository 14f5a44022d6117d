// A draw may meet a zero denominator by chance: another one is then made.
#ifndef MENDEL_VERIFIER_CERTIFY_REDRAW_H_
#define MENDEL_VERIFIER_CERTIFY_REDRAW_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mendel {

/// Draws with a zero denominator that one test may waste.
inline constexpr int kMaxRedraws = 3;

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <class T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

/// attempt(0), attempt(1), ... until one is not Aborted; the last one's answer. Each makes a draw
/// of its own.
template <class Attempt>
auto WithRedraws(const Attempt& attempt) {
  auto result = attempt(0);
  for (int redraw = 1; redraw <= kMaxRedraws && absl::IsAborted(StatusOf(result)); ++redraw)
    result = attempt(redraw);
  return result;
}

}  // namespace mendel

#endif  // MENDEL_VERIFIER_CERTIFY_REDRAW_H_
