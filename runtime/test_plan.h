// Small plans, and damage to their files, for tests of the runtime, the command and the C API.
#ifndef MENDEL_RUNTIME_TEST_PLAN_H_
#define MENDEL_RUNTIME_TEST_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/plan.h"

namespace mendel {

/// y = relu(x w1) w2 with x f32[rows,8], w1 f32[8,6], w2 f32[6,3] and y f32[rows,3]; the baseline
/// is the same graph. `backend` is a backend of this machine.
Plan SmallPlan(const std::string& backend, int64_t rows = 2);

/// SmallPlan with 2, 4 and 16 rows.
std::vector<Plan> SmallBundle(const std::string& backend);

/// y = conv(x, w) with x and y f32[1,4,8,8], whose row 3 is corrected ("corrected", one box);
/// it contains kernel texts if this program is linked with a writer of them.
Plan CorrectedPlan(const std::string& backend);

/// A path in the tests' folder that no other process uses.
std::string TestPath(const std::string& name);
std::vector<std::byte> FileBytes(const std::string& path);
/// Recomputes the hashes of a plan's file (or a bundle's), as an attacker would.
void Seal(std::vector<std::byte>& file, std::vector<SectionEntry> entries,
          uint32_t version = kPlanFileVersion);

}  // namespace mendel

#endif  // MENDEL_RUNTIME_TEST_PLAN_H_
