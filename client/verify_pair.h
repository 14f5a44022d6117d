// `mendel verify A B`: two models, or a model and a plan's program, compared.
#ifndef MENDEL_CLIENT_VERIFY_PAIR_H_
#define MENDEL_CLIENT_VERIFY_PAIR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "client/command.h"
#include "client/model_options.h"
#include "verifier/verifier.h"

namespace CLI {
class App;
}

namespace mendel {

struct PairOptions {
  std::string a;
  std::string b;
  /// Models in memory, whose names are `a` and `b`; not options.
  std::optional<std::string_view> a_bytes = {};
  std::optional<std::string_view> b_bytes = {};
  ModelOptions import;
  /// ModelOptions::symbol_sizes of B; those of `import` are A's. Not options.
  std::map<std::string, int64_t> b_sizes = {};
  std::vector<std::string> names;    ///< "a=b": A's name and B's
  std::vector<std::string> outputs;  ///< outputs of A; empty: all
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
  std::string html;
};

/// Declares --shapes, --bind and the options of a comparison. `pair` must outlive the parsing of
/// the command line.
void AddPairOptions(CLI::App& app, PairOptions& pair);

/// Compares and reports the verdict, without a limit of memory. The answer is "unproven" once
/// `*stop` is true (null: no stop token). `set_limit` receives the seconds that the comparison may
/// take from then on; it may be empty.
absl::Status ComparePair(const PairOptions& options, const std::atomic<bool>* stop,
                         const std::function<void(double seconds)>& set_limit, Context& context);

/// ComparePair in a process of its own, which ends at a limit of time or memory and reports it.
/// An error is a failure to compare; a "no" is an answer (Context::Answer).
absl::Status VerifyPair(const PairOptions& options, Context& context);

}  // namespace mendel

#endif  // MENDEL_CLIENT_VERIFY_PAIR_H_
