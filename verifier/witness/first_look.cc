#include "verifier/witness/first_look.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/loop.h"
#include "graph/rewrite.h"
#include "verifier/witness/float_noise.h"
#include "verifier/witness/witness_inputs.h"
#include "verifier/witness/witness_pair.h"

namespace mendel {
namespace {

/// Relative to an output's largest element; double evaluation of a hundred layers rounds to about
/// 1e-14 of it.
constexpr double kRounding = 1e-12;
/// A difference that neither rounding nor literals known to f32 only (one sixth in a HardSwish)
/// explain.
constexpr double kFar = 1e-5;
/// The distance that rounding does not make where both programs have the same literals.
constexpr double kFarByWeights = 1e-10;
/// A difference beyond rounded literals is so many times the noise of float evaluation.
constexpr double kFarByNoise = 16;
constexpr double kMaxFlops = 1e12;
/// Behind at least kCostlyFlops of work, an output of up to kFewElements costs little more than one
/// element.
constexpr int64_t kFewElements = 4096;
constexpr double kCostlyFlops = 1e9;

/// Same operators on the same operands in the same order.
bool AreAlike(const Graph& f, const Graph& g) {
  return std::equal(f.nodes().begin(), f.nodes().end(), g.nodes().begin(), g.nodes().end(),
                    [](const Node& a, const Node& b) {
                      return a.op == b.op && a.inputs == b.inputs && a.outputs == b.outputs;
                    });
}

bool IsUniform(const Tensor& tensor) {
  for (int64_t i = 1; i < tensor.size(); ++i) {
    if (tensor.DoubleAt(i) != tensor.DoubleAt(0)) return false;
  }
  return true;
}

struct Distance {
  double least = 0;  ///< |f - g| over all elements, relative to the largest magnitude
  double largest = 0;
  int64_t far = 0;  ///< elements that are farther apart than the limit
};

/// The distance of finite values; nothing where some are not. `limit`, too, is relative to the
/// largest magnitude.
std::optional<Distance> DistanceOf(const HostValue& f, const HostValue& g, double limit) {
  const int64_t count = NumElements(f.type);
  double magnitude = 0;
  double least = HUGE_VAL;
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double difference = std::abs(f.At(i) - g.At(i));
    if (!std::isfinite(difference)) return std::nullopt;
    magnitude = std::max({magnitude, std::abs(f.At(i)), std::abs(g.At(i))});
    least = std::min(least, difference);
    largest = std::max(largest, difference);
  }
  if (magnitude == 0) return Distance{};
  int64_t far = 0;
  for (int64_t i = 0; i < count; ++i)
    far += std::abs(f.At(i) - g.At(i)) > limit * magnitude ? 1 : 0;
  return Distance{least / magnitude, largest / magnitude, far};
}

Box BoxOfElement(const Shape& shape, int64_t flat) {
  Box box{shape, shape};
  for (size_t d = shape.size(); d-- > 0; flat /= shape[d])
    box.end[d] = (box.begin[d] = flat % shape[d]) + 1;
  return box;
}

/// Programs of few bits, and those that cancel, are far apart by rounded literals alone: then
/// nothing is known about proofs.
absl::Status ForgiveRounding(const Graph& joint, const std::vector<HostValue>& inputs,
                             const std::vector<HostValue>& values, uint64_t seed, FirstLook& look) {
  MENDEL_ASSIGN_OR_RETURN(const auto noise, FloatNoise(joint, inputs, values, seed, 1, false));
  const size_t f = static_cast<size_t>(look.suspect->output);
  const size_t g = f + values.size() / 2;
  const int64_t flat = FlatIndex(values[f].type.shape, look.suspect->box.begin);
  const double gap = std::abs(values[f].At(flat) - values[g].At(flat));
  const size_t at = static_cast<size_t>(flat);
  if (gap > kFarByNoise * (noise[f][at] + noise[g][at])) return absl::OkStatus();
  look.far_apart = look.all_apart = false;
  look.elements_far_apart = 0;
  return absl::OkStatus();
}

}  // namespace

bool OnlyWeightsDiffer(const Graph& f, const Graph& g) {
  if (!OnlyConstantsDiffer(f, g)) return false;
  for (size_t i = 0; i < f.nodes().size(); ++i) {
    if (!IsConstant(f.nodes()[i])) continue;
    const Tensor& a = ConstantValue(f.nodes()[i]);
    const Tensor& b = ConstantValue(g.nodes()[i]);
    if (!(a == b) && (!IsFloat(a.type().dtype) || IsUniform(a) || IsUniform(b))) return false;
  }
  return true;
}

absl::StatusOr<FirstLook> LookForDifference(const Graph& f, const Graph& g, uint64_t seed) {
  FirstLook look;
  look.only_weights_differ = OnlyWeightsDiffer(f, g);
  MENDEL_ASSIGN_OR_RETURN(const Graph joint, JoinByValue(f, g));
  if (TotalFlops(joint) > kMaxFlops) return look;
  WitnessInputs draws(joint, seed);
  const std::vector<HostValue> inputs = draws.Draw(0);
  MENDEL_ASSIGN_OR_RETURN(const std::vector<HostValue> values, Evaluate(joint, inputs));
  const double rounding = AreAlike(f, g) ? 0 : kRounding;
  const double far = look.only_weights_differ ? kFarByWeights : kFar;
  const size_t outputs = f.outputs().size();
  look.all_apart = true;
  double farthest = rounding;
  std::optional<WitnessQuery> undefined;
  for (size_t k = 0; k < outputs; ++k) {
    const HostValue& x = values[k];
    const std::optional<Distance> distance = DistanceOf(x, values[outputs + k], far);
    const Gap gap = LargestGap(x, values[outputs + k]);
    if (gap.undefined >= 0 && !undefined.has_value())
      undefined = {static_cast<int>(k), BoxOfElement(x.type.shape, gap.undefined)};
    look.all_apart = look.all_apart && distance.has_value() &&
                     (NumElements(x.type) == 0 || distance->least > kRounding);
    if (distance.has_value()) look.elements_far_apart += distance->far;
    if (!distance.has_value() || distance->largest <= farthest) continue;
    farthest = distance->largest;
    look.far_apart = farthest > far;
    look.suspect = WitnessQuery{static_cast<int>(k), BoxOfElement(x.type.shape, gap.element)};
  }
  if (look.far_apart && !look.only_weights_differ)
    MENDEL_RETURN_IF_ERROR(ForgiveRounding(joint, inputs, values, seed, look));
  if (!look.suspect.has_value()) look.suspect = std::move(undefined);
  return look;
}

absl::StatusOr<std::optional<Witness>> WitnessOfLook(const Graph& f, const Graph& g,
                                                     const FirstLook& look,
                                                     WitnessOptions options) {
  if (!look.suspect.has_value()) return std::nullopt;
  options.max_candidates = 1;
  WitnessQuery query = *look.suspect;
  // One evaluation shows for all elements how well they show the difference, and those of a
  // loop's first steps cost least.
  const Shape& shape = f.type(f.outputs()[static_cast<size_t>(query.output)].value).shape;
  const bool few = NumElements(shape) <= kFewElements && TotalFlops(f) > kCostlyFlops;
  if (few || HasLoop(f)) query.box = Box::Whole(shape);
  auto answers = FindWitnesses(f, g, {&query, 1}, options);
  if (absl::IsUnimplemented(answers.status()) || absl::IsDeadlineExceeded(answers.status()))
    return std::nullopt;
  MENDEL_RETURN_IF_ERROR(answers.status());
  return std::move(answers->front().witness);
}

}  // namespace mendel
