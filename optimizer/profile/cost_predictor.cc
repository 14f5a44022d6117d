#include "optimizer/profile/cost_predictor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace mendel {
namespace {

constexpr size_t kMinSamples = 8;
constexpr double kRidge = 1;   // of features
constexpr double kShrink = 2;  // samples' worth of doubt about an operator's own intercept
constexpr int kTrees = 60;
constexpr double kRate = 0.15;
constexpr double kLeafDoubt = 3;  // a leaf of few samples moves less
constexpr int kThresholds = 8;    // candidates a feature
// A guessed core, where nothing was measured.
constexpr double kFlopsPerSecond = 3e10, kBytesPerSecond = 1e10, kCallSeconds = 1e-6;

double Log2(double value) { return std::log2(1 + std::max(0.0, value)); }

double Extent(const Shape& shape, size_t dim) {
  return dim < shape.size() ? static_cast<double>(shape[dim]) : 1;
}

/// Solves the symmetric positive definite system a x = b by Cholesky's decomposition, in place.
std::vector<double> SolvePositive(std::vector<std::vector<double>> a, std::vector<double> b) {
  const size_t n = b.size();
  for (size_t j = 0; j < n; ++j) {
    for (size_t k = 0; k < j; ++k) a[j][j] -= a[j][k] * a[j][k];
    a[j][j] = std::sqrt(std::max(a[j][j], 1e-12));
    for (size_t i = j + 1; i < n; ++i) {
      for (size_t k = 0; k < j; ++k) a[i][j] -= a[i][k] * a[j][k];
      a[i][j] /= a[j][j];
    }
  }
  for (size_t i = 0; i < n; ++i) {
    for (size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (size_t i = n; i-- > 0;) {
    for (size_t k = i + 1; k < n; ++k) b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

/// The split of some samples that explains most of `rest`: feature, threshold, and how much the
/// squared error falls.
struct Split {
  size_t feature = 0;
  double threshold = 0;
  double gain = -1;
};

Split BestSplit(const std::vector<CostSample>& samples, const std::vector<double>& rest,
                const std::vector<size_t>& part) {
  Split best;
  for (size_t f = 0; f < kCostFeatures; ++f) {
    std::vector<double> values;
    for (size_t k : part) values.push_back(samples[k].features[f]);
    std::sort(values.begin(), values.end());
    for (int step = 1; step < kThresholds && !values.empty(); ++step) {
      const double threshold = values[values.size() * static_cast<size_t>(step) / kThresholds];
      double sum[2] = {0, 0}, count[2] = {0, 0};
      for (size_t k : part) {
        const int side = samples[k].features[f] < threshold ? 0 : 1;
        sum[side] += rest[k];
        count[side] += 1;
      }
      const double gain =
          sum[0] * sum[0] / (count[0] + kLeafDoubt) + sum[1] * sum[1] / (count[1] + kLeafDoubt);
      if (gain > best.gain) best = {f, threshold, gain};
    }
  }
  return best;
}

}  // namespace

CostFeatures FeaturesOf(const OpDefinition& op, const NodeView& node,
                        const std::vector<bool>& constant) {
  const Cost cost = CostOf(op, node);
  const Shape& out = node.outputs[0].shape;
  double weights = 0, kernel = 1, strides = 1;
  for (size_t k = 0; k < node.inputs.size(); ++k) {
    if (!constant[k]) continue;
    weights += static_cast<double>(ByteSize(node.inputs[k]));
    const Shape& shape = node.inputs[k].shape;
    for (size_t d = 2; k == 1 && d < shape.size(); ++d) kernel *= static_cast<double>(shape[d]);
  }
  bool inner_moves = false;
  if (node.attrs.Has("strides")) {
    for (int64_t stride : node.attrs.IntList("strides")) strides *= static_cast<double>(stride);
  }
  if (node.attrs.Has("perm")) {
    const Ints& perm = node.attrs.IntList("perm");
    inner_moves = !perm.empty() && perm.back() != static_cast<int64_t>(perm.size()) - 1;
  }
  const double elements = static_cast<double>(NumElements(node.outputs[0]));
  return {Log2(cost.flops),
          Log2(cost.bytes),
          Log2(elements),
          Log2(weights),
          Log2(cost.flops / std::max(1.0, elements)),
          Log2(Extent(out, 0)),
          Log2(Extent(out, 1)),
          Log2(out.empty() ? 1 : static_cast<double>(out.back())),
          static_cast<double>(node.inputs.size()),
          Log2(kernel),
          Log2(strides),
          inner_moves ? 1.0 : 0.0};
}

CostPredictor CostPredictor::Train(const std::vector<CostSample>& samples) {
  CostPredictor result;
  if (samples.size() < kMinSamples) return result;
  result.trained_ = true;
  std::vector<double> rest;
  for (const CostSample& sample : samples) rest.push_back(std::log(sample.seconds));
  constexpr size_t n = kCostFeatures + 1;
  std::vector<std::vector<double>> normal(n, std::vector<double>(n, 0));
  std::vector<double> right(n, 0);
  for (size_t k = 0; k < samples.size(); ++k) {
    std::vector<double> row(samples[k].features.begin(), samples[k].features.end());
    row.push_back(1);
    for (size_t i = 0; i < n; ++i) {
      right[i] += row[i] * rest[k];
      for (size_t j = 0; j < n; ++j) normal[i][j] += row[i] * row[j];
    }
  }
  for (size_t i = 0; i < n; ++i) normal[i][i] += i + 1 < n ? kRidge : 1e-6;
  result.weights_ = SolvePositive(std::move(normal), std::move(right));
  std::map<std::string, std::pair<double, double>> by_op;  // sum of what is left, number of samples
  for (size_t k = 0; k < samples.size(); ++k) {
    rest[k] -= result.Linear(samples[k].op, samples[k].features);
    by_op[samples[k].op].first += rest[k];
    by_op[samples[k].op].second += 1;
  }
  for (const auto& [op, sum] : by_op) result.intercepts_[op] = sum.first / (sum.second + kShrink);
  for (size_t k = 0; k < samples.size(); ++k) rest[k] -= result.intercepts_[samples[k].op];
  for (int round = 0; round < kTrees; ++round) {
    const Tree tree = FitTree(samples, rest);
    for (size_t k = 0; k < samples.size(); ++k)
      rest[k] -= tree.leaf[LeafOf(tree, samples[k].features)];
    result.trees_.push_back(tree);
  }
  return result;
}

CostPredictor::Tree CostPredictor::FitTree(const std::vector<CostSample>& samples,
                                           const std::vector<double>& rest) {
  std::vector<size_t> all(samples.size());
  std::iota(all.begin(), all.end(), size_t{0});
  const Split root = BestSplit(samples, rest, all);
  Tree tree;
  tree.feature[0] = root.feature;
  tree.threshold[0] = root.threshold;
  for (size_t side = 0; side < 2; ++side) {
    std::vector<size_t> part;
    for (size_t k : all) {
      if ((samples[k].features[root.feature] < root.threshold) == (side == 0)) part.push_back(k);
    }
    const Split split = BestSplit(samples, rest, part);
    tree.feature[1 + side] = split.feature;
    tree.threshold[1 + side] = split.threshold;
  }
  std::array<double, 4> sum{}, count{};
  for (size_t k : all) {
    const size_t leaf = LeafOf(tree, samples[k].features);
    sum[leaf] += rest[k];
    count[leaf] += 1;
  }
  for (size_t leaf = 0; leaf < 4; ++leaf)
    tree.leaf[leaf] = kRate * sum[leaf] / (count[leaf] + kLeafDoubt);
  return tree;
}

size_t CostPredictor::LeafOf(const Tree& tree, const CostFeatures& features) {
  const size_t side = features[tree.feature[0]] < tree.threshold[0] ? 0 : 1;
  return 2 * side + (features[tree.feature[1 + side]] < tree.threshold[1 + side] ? 0 : 1);
}

double CostPredictor::Linear(const std::string& op, const CostFeatures& features) const {
  double sum = weights_.back();
  for (size_t f = 0; f < kCostFeatures; ++f) sum += weights_[f] * features[f];
  const auto intercept = intercepts_.find(op);
  return intercept == intercepts_.end() ? sum : sum + intercept->second;
}

double CostPredictor::Seconds(const std::string& op, const CostFeatures& features) const {
  if (!trained_) {
    return kCallSeconds + std::max(std::exp2(features[0]) / kFlopsPerSecond,
                                   std::exp2(features[1]) / kBytesPerSecond);
  }
  double sum = Linear(op, features);
  for (const Tree& tree : trees_) sum += tree.leaf[LeafOf(tree, features)];
  return std::exp(sum);
}

PredictorError HeldOutError(const std::vector<CostSample>& samples) {
  constexpr size_t kFolds = 5;
  PredictorError error;
  std::vector<double> factors;
  for (size_t fold = 0; fold < kFolds; ++fold) {
    std::vector<CostSample> train;
    for (size_t k = 0; k < samples.size(); ++k) {
      if (k % kFolds != fold) train.push_back(samples[k]);
    }
    const CostPredictor predictor = CostPredictor::Train(train);
    error.trained = train.size();
    for (size_t k = fold; k < samples.size(); k += kFolds) {
      const double ratio =
          predictor.Seconds(samples[k].op, samples[k].features) / samples[k].seconds;
      factors.push_back(std::max(ratio, 1 / ratio));
    }
  }
  error.tested = factors.size();
  if (factors.empty()) return error;
  std::sort(factors.begin(), factors.end());
  error.median_factor = factors[factors.size() / 2];
  error.p90_factor = factors[factors.size() * 9 / 10];
  return error;
}

}  // namespace mendel
