// `mendel verify A B`: two models, or a model and a plan's program, compared.
#ifndef MENDEL_CLIENT_VERIFY_PAIR_H_
#define MENDEL_CLIENT_VERIFY_PAIR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/command.h"
#include "client/model_options.h"
#include "verifier/verifier.h"

namespace mendel {

struct PairOptions {
  std::string a;
  std::string b;
  ModelOptions import;
  std::vector<std::string> names;    ///< "a=b": A's name and B's
  std::vector<std::string> outputs;  ///< of A; empty: all
  WeightMode weights = WeightMode::kExact;
  int tests = 1;
  uint64_t seed = 1;
  bool regions = true;
  bool cut_points = true;
  bool explain_regions = false;
  std::optional<double> fold_tolerance;  ///< ulps; set: `equivalent-after-refit` is good
  std::string time_limit;                ///< empty: by the programs' arithmetic
  std::string memory_limit;              ///< empty: half of the machine
  std::string witness_folder;
  std::string junit;
};

/// Reports the verdict. An error is a failure to compare; a "no" is an answer (Context::Answer).
absl::Status VerifyPair(const PairOptions& options, Context& context);

}  // namespace mendel

#endif  // MENDEL_CLIENT_VERIFY_PAIR_H_
