// Small plans for tests of the runtime, the command and the C API.
#ifndef MENDEL_RUNTIME_TEST_PLAN_H_
#define MENDEL_RUNTIME_TEST_PLAN_H_

#include <string>

#include "runtime/plan.h"

namespace mendel {

/// y = relu(x w1) w2 with x f32[2,8], w1 f32[8,6], w2 f32[6,3] and y f32[2,3]; the baseline is the same graph. For `backend` of
/// the machine the test runs on.
Plan SmallPlan(const std::string& backend);

/// y = conv(x, w) with x and y f32[1,4,8,8], whose row 3 is mended ("mended", one box); carries the kernels that this program
/// writes for it, if it has a writer.
Plan MendedPlan(const std::string& backend);

}  // namespace mendel

#endif  // MENDEL_RUNTIME_TEST_PLAN_H_
