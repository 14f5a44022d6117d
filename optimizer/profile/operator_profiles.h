// Stored times of single operators, as they ran inside measured programs; what was never measured
// is predicted from them.
#ifndef MENDEL_OPTIMIZER_PROFILE_OPERATOR_PROFILES_H_
#define MENDEL_OPTIMIZER_PROFILE_OPERATOR_PROFILES_H_

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "graph/graph.h"
#include "optimizer/profile/cost_predictor.h"
#include "optimizer/profile/profile_cache.h"
#include "runtime/backend.h"

namespace mendel {

/// A line for every node of `graph` that depends on the inputs: operator, attributes, types, what
/// produces its operand, and the seconds of its step (`seconds` by node); 0 where another node's
/// step or nothing at all computes it. Kind "operators" of the profile cache; `device` names
/// everything else that times depend on.
std::string PrintOperatorProfiles(const Graph& graph, const std::vector<double>& seconds,
                                  const std::vector<Step>& steps, const std::string& device);

/// All stored profiles of one device, and a predictor trained on them.
class OperatorProfiles {
 public:
  /// Empty `device`: of every device (for the held-out error).
  static absl::StatusOr<OperatorProfiles> Load(ProfileCache& cache, const std::string& device);

  /// Seconds of `node` in a program: the mean of what was measured where it was, else a prediction;
  /// 0 for views and for operators that are mostly computed in the step of their producer.
  /// `producers`: operators that may produce its first operand that is not constant; the least cost
  /// over them counts.
  double Seconds(const OpDefinition& op, const NodeView& node, const std::vector<bool>& constant,
                 const std::set<std::string>& producers) const;

  /// The same for every node of a graph; 0 for what is computed when the plan is loaded.
  std::vector<double> NodeSeconds(const Graph& graph) const;

  const std::vector<CostSample>& samples() const { return samples_; }
  /// False: too little was measured for predictions to be more than guesses.
  bool trained() const { return predictor_.trained(); }

 private:
  struct Mean {
    double sum = 0;
    int count = 0;
  };
  double Alone(const OpDefinition& op, const NodeView& node, const std::vector<bool>& constant,
               const std::string& producer) const;

  std::map<std::string, Mean> measured_;  // by signature and producer
  std::map<std::pair<std::string, std::string>, std::pair<int, int>>
      free_;  // (operator, producer): free of all
  std::vector<CostSample> samples_;
  CostPredictor predictor_;
};

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_PROFILE_OPERATOR_PROFILES_H_
