#include "verifier/witness/witness_inputs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>
#include <variant>

#include "graph/index_limit.h"

namespace mendel {
namespace {

constexpr size_t kMaxThresholds = 512;
/// Elements looked at in one constant: biases and bounds are short, kernels long and alike.
constexpr int64_t kElementsOfConstant = 32;

std::vector<double> ThresholdsOf(const Graph& graph) {
  std::set<double> values;
  const auto add = [&](double value) {
    if (std::isfinite(value) && value != 0 && values.size() < kMaxThresholds) values.insert(value);
  };
  for (const Node& node : graph.nodes()) {
    if (IsConstant(node)) {
      const Tensor& tensor = ConstantValue(node);
      const int64_t stride = std::max<int64_t>(1, tensor.size() / kElementsOfConstant);
      for (int64_t i = 0; i < tensor.size(); i += stride) add(tensor.DoubleAt(i));
      continue;
    }
    for (const auto& [name, value] : node.attrs.values()) {
      if (const double* number = std::get_if<double>(&value)) add(*number);
    }
  }
  return {values.begin(), values.end()};
}

/// Integers that the programs compare with: exact, also beyond 2^53.
std::vector<int64_t> IntegersOf(const Graph& graph) {
  std::set<int64_t> values;
  for (const Node& node : graph.nodes()) {
    if (!IsConstant(node) || !IsIntegral(ConstantValue(node).dtype())) continue;
    const Tensor& tensor = ConstantValue(node);
    const int64_t stride = std::max<int64_t>(1, tensor.size() / kElementsOfConstant);
    for (int64_t i = 0; i < tensor.size() && values.size() < kMaxThresholds; i += stride)
      values.insert(tensor.IntAt(i));
  }
  return {values.begin(), values.end()};
}

constexpr size_t kMaxDisputed = 64;
/// Constants that differ in more elements are not two versions of one.
constexpr size_t kMaxElementsApart = 16;
constexpr int64_t kElementsCompared = 65536;

/// Numbers by which two versions of one constant differ, and the one between them.
std::vector<double> NumbersApart(const Tensor& a, const Tensor& b) {
  std::vector<double> between;
  for (int64_t i = 0;
       i < std::min(a.size(), kElementsCompared) && between.size() <= 3 * kMaxElementsApart; ++i) {
    const double x = a.DoubleAt(i);
    const double y = b.DoubleAt(i);
    if (x == y || !std::isfinite(x) || !std::isfinite(y)) continue;
    between.insert(between.end(), {x, y, x + (y - x) / 2});
  }
  if (between.size() > 3 * kMaxElementsApart) between.clear();
  return between;
}

/// Integers in which two constants of one type differ.
std::vector<int64_t> DisputedIntegersOf(const Graph& graph) {
  std::vector<int64_t> disputed;
  std::vector<const Tensor*> constants;
  for (const Node& node : graph.nodes()) {
    if (!IsConstant(node) || !IsIntegral(ConstantValue(node).dtype())) continue;
    const Tensor& tensor = ConstantValue(node);
    for (const Tensor* other : constants) {
      if (other->type() != tensor.type() || disputed.size() >= kMaxDisputed) continue;
      for (int64_t i = 0; i < std::min<int64_t>(tensor.size(), kMaxDisputed); ++i) {
        if (tensor.IntAt(i) != other->IntAt(i))
          disputed.insert(disputed.end(), {tensor.IntAt(i), other->IntAt(i)});
      }
    }
    constants.push_back(&tensor);
  }
  return disputed;
}

/// A comparison with a constant that one program has changed distinguishes them only between both
/// values.
std::vector<double> DisputedOf(const Graph& graph) {
  std::vector<double> disputed;
  std::vector<const Tensor*> constants;
  for (const Node& node : graph.nodes()) {
    if (!IsConstant(node)) continue;
    const Tensor& tensor = ConstantValue(node);
    if (!IsFloat(tensor.dtype())) continue;
    for (const Tensor* other : constants) {
      if (disputed.size() >= kMaxDisputed) return disputed;
      if (other->type() != tensor.type()) continue;
      const std::vector<double> between = NumbersApart(*other, tensor);
      disputed.insert(disputed.end(), between.begin(), between.end());
    }
    constants.push_back(&tensor);
  }
  return disputed;
}

double LargestFinite(DType dtype) {
  if (IsFloat8(dtype)) return LargestFloat8(dtype);
  if (dtype == DType::kF16) return 65504;
  if (dtype == DType::kBF16) return 0x1.FEp127;
  return dtype == DType::kF32 ? std::numeric_limits<float>::max()
                              : std::numeric_limits<double>::max();
}

/// A float tensor with the nearest numbers that its dtype holds.
HostValue Rounded(const TensorType& type, std::vector<double> values) {
  const double largest = LargestFinite(type.dtype);
  for (double& value : values) value = std::clamp(value, -largest, largest);
  return HostValue::FromTensor(Tensor::FromDoubles(type, values));
}

std::pair<int64_t, int64_t> RangeOf(DType dtype) {
  if (dtype == DType::kBool) return {0, 1};
  if (dtype == DType::kU64)  // modulo 2^64
    return {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  return {LowestInteger(dtype), HighestInteger(dtype)};
}

}  // namespace

WitnessInputs::WitnessInputs(const Graph& graph, uint64_t seed)
    : rng_(seed),
      thresholds_(ThresholdsOf(graph)),
      integers_(IntegersOf(graph)),
      disputed_(DisputedOf(graph)),
      disputed_integers_(DisputedIntegersOf(graph)) {
  for (size_t k = 0; k < graph.inputs().size(); ++k) {
    types_.push_back(graph.type({graph.inputs()[k], 0}));
    tables_.push_back(IsIntegral(types_.back().dtype) ? SmallestIndexedTable(graph, k)
                                                      : std::nullopt);
  }
}

std::vector<HostValue> WitnessInputs::Draw(int k) {
  std::vector<HostValue> values;
  for (size_t i = 0; i < types_.size(); ++i) {
    values.push_back(IsFloat(types_[i].dtype) ? Floats(types_[i], k)
                                              : Integers(types_[i], tables_[i], k));
  }
  return values;
}

std::vector<HostValue> WitnessInputs::LargeBetweenEnds(double scale) {
  constexpr int64_t kEnds = 4;
  std::vector<HostValue> values = Draw(0);
  for (HostValue& value : values) {
    const Shape& shape = value.type.shape;
    if (value.scalars.empty() || shape.empty()) continue;
    const auto longest = std::max_element(shape.begin(), shape.end());
    const int64_t inner =
        std::accumulate(longest + 1, shape.end(), int64_t{1}, std::multiplies<>());
    for (size_t i = 0; i < value.scalars.size(); ++i) {
      const int64_t at = static_cast<int64_t>(i) / inner % *longest;
      if (at >= kEnds && at < *longest - kEnds) value.scalars[i] *= scale;
    }
    value = Rounded(value.type, std::move(value.scalars));
  }
  return values;
}

double WitnessInputs::Threshold() {
  if (!disputed_.empty() && rng_.Flip()) return disputed_[rng_.Below(disputed_.size())];
  if (thresholds_.empty()) return rng_.Normal();
  constexpr std::array<double, 7> kFactors = {1 + 0x1p-10, 1 - 0x1p-10, 2, 0.5, -1, -2, 1000};
  const double threshold = thresholds_[rng_.Below(thresholds_.size())];
  return rng_.Flip() ? threshold : threshold * kFactors[rng_.Below(kFactors.size())];
}

/// A constant or a neighbor of it; wraps.
int64_t WitnessInputs::IntegerThreshold() {
  if (!disputed_integers_.empty() && rng_.Flip())
    return disputed_integers_[rng_.Below(disputed_integers_.size())];
  if (integers_.empty() || rng_.Flip(0.1)) {
    constexpr double kExact = 0x1p53;
    return static_cast<int64_t>(std::clamp(std::round(Threshold()), -kExact, kExact));
  }
  const uint64_t value = static_cast<uint64_t>(integers_[rng_.Below(integers_.size())]);
  return static_cast<int64_t>(value + static_cast<uint64_t>(rng_.Between(-2, 2)));
}

WitnessInputs::Recipe WitnessInputs::FloatRecipe(int k, size_t count) {
  const auto normal = [this](double scale) {
    return [this, scale](size_t) { return scale * rng_.Normal(); };
  };
  const auto sign = [this] { return rng_.Flip() ? 1.0 : -1.0; };
  constexpr int kRecipes = 20;
  switch (k % kRecipes) {
    case 0:
      return normal(1);
    case 1:
      return [this](size_t) { return rng_.Uniform(-1, 1); };
    case 2:
      return [this](size_t) { return Threshold(); };
    case 3:
      return normal(1000);
    case 4:
      return [](size_t) { return 0.0; };
    case 5:
      return normal(1e-3);
    case 6:
      return [this, sign](size_t) { return sign() * std::pow(10, rng_.Uniform(-3, 3)); };
    case 7:
      return [all = Threshold()](size_t) { return all; };
    case 8:
      return [this](size_t) { return rng_.Flip(0.1) ? rng_.Normal() : 0.0; };
    case 9:
      return [](size_t) { return 1.0; };
    case 10:
      return [this](size_t) { return static_cast<double>(rng_.Between(-4, 4)); };
    case 11:
      return
          [hot = rng_.Below(std::max<size_t>(1, count))](size_t i) { return i == hot ? 1.0 : 0.0; };
    case 12:
      return normal(1e10);
    case 13:
      return normal(1e-10);
    case 14:
      return [this](size_t) { return std::abs(rng_.Normal()); };
    case 15:
      return [this](size_t) { return -std::abs(rng_.Normal()); };
    case 16:
      return [this, sign](size_t) { return sign() * std::pow(10, rng_.Uniform(-38, 38)); };
    case 17:
      return [this](size_t) { return rng_.Flip(0.05) ? 100 * Threshold() : rng_.Normal(); };
    case 18:
      return normal(30);
    default:
      return [this, sign](size_t) { return sign() * std::pow(10, rng_.Uniform(20, 38)); };
  }
}

HostValue WitnessInputs::Floats(const TensorType& type, int k) {
  std::vector<double> values(static_cast<size_t>(NumElements(type)));
  const Recipe recipe = FloatRecipe(k, values.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = recipe(i);
  return Rounded(type, std::move(values));
}

HostValue WitnessInputs::Integers(const TensorType& type, std::optional<int64_t> table, int k) {
  auto [low, high] = RangeOf(type.dtype);
  const bool around_thresholds = k % 5 == 3;
  if (table.has_value()) {
    // Negative indices count from the end: one recipe in four draws them too.
    low = k % 4 == 3 ? std::max(low, -*table) : 0;
    high = std::min(high, std::max<int64_t>(1, *table) - 1);
  } else if (type.dtype != DType::kBool && !around_thresholds && k % 8 != 7) {
    constexpr std::array<int64_t, 4> kReach = {1, 10, 100, 1000};
    const int64_t reach = kReach[static_cast<size_t>(k) % kReach.size()];
    low = std::max(low, k % 2 == 0 ? 0 : -reach);
    high = std::min(high, reach);
  }
  HostValue value{type, {}, std::vector<int64_t>(static_cast<size_t>(NumElements(type)))};
  const bool constant = k % 5 == 4;  // all alike: masks of ones, one token repeated
  const auto draw = [&, low = low, high = high] {
    if (around_thresholds) return std::clamp(IntegerThreshold(), low, high);
    const uint64_t extent =
        static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;  // 0: all 64 bits
    return static_cast<int64_t>(static_cast<uint64_t>(low) +
                                (extent == 0 ? rng_.Next() : rng_.Below(extent)));
  };
  const int64_t all = draw();
  for (int64_t& element : value.integers) element = constant ? all : draw();
  return value;
}

std::vector<HostValue> WitnessInputs::Near(const std::vector<HostValue>& inputs) {
  std::vector<HostValue> moved = inputs;
  const bool all = rng_.Flip();
  const double reach = std::pow(10, rng_.Uniform(-3, 2));
  for (size_t k = 0; k < moved.size(); ++k) {
    HostValue& value = moved[k];
    if (!value.integers.empty()) {
      const size_t at = rng_.Below(value.integers.size());
      value.integers[at] =
          Integers(value.type, tables_[k], static_cast<int>(rng_.Below(8))).integers[at];
    }
    if (value.scalars.empty()) continue;
    for (size_t left = all ? value.scalars.size() : 1 + rng_.Below(3); left > 0; --left) {
      double& element = value.scalars[all ? left - 1 : rng_.Below(value.scalars.size())];
      element += reach * std::max(std::abs(element), 1e-3) * rng_.Normal();
    }
    value = Rounded(value.type, std::move(value.scalars));
  }
  return moved;
}

}  // namespace mendel
