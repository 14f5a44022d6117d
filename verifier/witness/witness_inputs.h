// Candidate inputs for witnesses. They show differences that ordinary random inputs miss.
#ifndef MENDEL_VERIFIER_WITNESS_WITNESS_INPUTS_H_
#define MENDEL_VERIFIER_WITNESS_WITNESS_INPUTS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/random.h"
#include "graph/evaluate.h"
#include "graph/graph.h"

namespace mendel {

/// Every value drawn is a number that the input's own dtype holds. Not thread-safe.
class WitnessInputs {
 public:
  /// Draws for the inputs of `graph`. Its constants and float attributes are thresholds; some
  /// candidates lie near them. Where two constants of one type differ in few elements (`graph`
  /// joins two programs), numbers between the two are drawn more often.
  WitnessInputs(const Graph& graph, uint64_t seed);

  /// Candidate number `k`: normal, uniform, zero, one, tiny, huge, sparse, integral, positive,
  /// around thresholds; then the same recipes with other draws. Integers lie in the tables that
  /// they index; those that index nothing are small, now and then large.
  std::vector<HostValue> Draw(int k);
  /// Floats are normal of standard deviation `scale`, and of 1 near both ends of the longest axis,
  /// usually time. Integers are those of the first candidate.
  std::vector<HostValue> LargeBetweenEnds(double scale);
  /// `inputs` with some elements moved: all floats a little, or a few floats far, or one integer.
  std::vector<HostValue> Near(const std::vector<HostValue>& inputs);

 private:
  using Recipe = std::function<double(size_t element)>;
  Recipe FloatRecipe(int k, size_t count);
  double Threshold();
  int64_t IntegerThreshold();
  HostValue Floats(const TensorType& type, int k);
  HostValue Integers(const TensorType& type, std::optional<int64_t> table, int k);

  Rng rng_;
  std::vector<TensorType> types_;
  std::vector<std::optional<int64_t>> tables_;  // of each input
  std::vector<double> thresholds_;
  std::vector<int64_t> integers_;
  std::vector<double> disputed_;
  std::vector<int64_t> disputed_integers_;
};

}  // namespace mendel

#endif  // MENDEL_VERIFIER_WITNESS_WITNESS_INPUTS_H_
