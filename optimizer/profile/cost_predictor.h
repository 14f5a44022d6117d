// Seconds of operators that were never measured, learned from those that were.
#ifndef MENDEL_OPTIMIZER_PROFILE_COST_PREDICTOR_H_
#define MENDEL_OPTIMIZER_PROFILE_COST_PREDICTOR_H_

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "graph/op_definition.h"

namespace mendel {

inline constexpr size_t kCostFeatures = 12;
/// The features that predict an operator's time: logarithms of its arithmetic, its traffic and its
/// extents.
using CostFeatures = std::array<double, kCostFeatures>;

/// `constant`: which operands are known when the plan is loaded (an entry an operand).
CostFeatures FeaturesOf(const OpDefinition& op, const NodeView& node,
                        const std::vector<bool>& constant);

struct CostSample {
  std::string op;
  CostFeatures features{};
  double seconds = 0;  ///< positive
};

/// Ridge regression of log seconds on the features and an intercept an operator, then boosted
/// regression trees of depth two on what is left (Friedman, "Greedy function approximation: a
/// gradient boosting machine", 2001). Deterministic.
class CostPredictor {
 public:
  /// With fewer than 8 samples predictions are a roofline of a guessed machine.
  static CostPredictor Train(const std::vector<CostSample>& samples);

  double Seconds(const std::string& op, const CostFeatures& features) const;
  /// False: predictions are guesses.
  bool trained() const { return trained_; }

 private:
  /// One split and one further split on each side.
  struct Tree {
    std::array<size_t, 3> feature{};
    std::array<double, 3> threshold{};
    std::array<double, 4> leaf{};
  };
  double Linear(const std::string& op, const CostFeatures& features) const;
  static size_t LeafOf(const Tree& tree, const CostFeatures& features);
  static Tree FitTree(const std::vector<CostSample>& samples, const std::vector<double>& rest);

  bool trained_ = false;
  std::vector<double> weights_;  // weights of the features, then the common intercept
  std::map<std::string, double> intercepts_;
  std::vector<Tree> trees_;
};

/// The error of predictions for times that the predictor has not seen.
struct PredictorError {
  size_t trained = 0;
  size_t tested = 0;
  /// Median and 90th percentile of max(predicted / measured, measured / predicted).
  double median_factor = 0;
  double p90_factor = 0;
};
/// Five-fold cross-validation: every sample is predicted by a predictor that was trained without
/// it.
PredictorError HeldOutError(const std::vector<CostSample>& samples);

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_PROFILE_COST_PREDICTOR_H_
