// make_small_plan BACKEND FILE.plan [corrected|bundle]: writes a plan of runtime/test_plan.h for
// tests that drive programs.
#include <cstdio>
#include <string>

#include "runtime/plan_bundle.h"
#include "runtime/test_plan.h"

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  const std::string kind = argc == 4 ? argv[3] : "";
  const absl::Status status =
      kind == "bundle"      ? mendel::WritePlanBundle(mendel::SmallBundle(argv[1]), argv[2])
      : kind == "corrected" ? mendel::WritePlan(mendel::CorrectedPlan(argv[1]), argv[2])
                            : mendel::WritePlan(mendel::SmallPlan(argv[1]), argv[2]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
