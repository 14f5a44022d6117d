// make_small_plan BACKEND FILE.plan [mended]: writes a plan of runtime/test_plan.h for tests that drive programs.
#include <cstdio>

#include "runtime/test_plan.h"

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  const absl::Status status = mendel::WritePlan(argc == 4 ? mendel::MendedPlan(argv[1]) : mendel::SmallPlan(argv[1]), argv[2]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
