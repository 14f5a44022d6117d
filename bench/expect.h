// Error handling of benchmarks: an error is printed and ends the program.
#ifndef MENDEL_BENCH_EXPECT_H_
#define MENDEL_BENCH_EXPECT_H_

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace mendel {

/// The value; exits with 1 and the message where there is none.
template <class T>
T Expect(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "%s\n", std::string(value.status().message()).c_str());
    std::exit(1);
  }
  return *std::move(value);
}

}  // namespace mendel

#endif  // MENDEL_BENCH_EXPECT_H_
