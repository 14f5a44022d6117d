#include "verifier/witness/class_witness.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/status.h"
#include "graph/rewrite.h"
#include "verifier/regions/exact_classes.h"
#include "verifier/witness/witness_pair.h"

namespace mendel {
namespace {

constexpr double kMostFlops = 2e8;
constexpr int kBits = 128;

bool IsNumber(const ExactElement& e) { return e.ball.IsFinite(); }
bool IsNone(const ExactElement& e) { return (e.kinds & kFiniteKinds) == 0; }

bool Differ(const ExactElement& f, const ExactElement& g) {
  if (IsNumber(f) && IsNumber(g)) return !MayBeEqual(f.ball, g.ball);
  return (IsNumber(f) && IsNone(g)) || (IsNone(f) && IsNumber(g));
}

}  // namespace

absl::StatusOr<std::optional<Witness>> WitnessByClasses(const Graph& joint,
                                                        const WitnessQuery& query,
                                                        const std::vector<HostValue>& inputs,
                                                        int64_t flat, const Deadline& deadline) {
  const Shape element = IndexAt(query.box, flat);
  MENDEL_ASSIGN_OR_RETURN(const Graph pair,
                          RestrictPair(joint, {{query.output, ElementBox(element)}}));
  if (TotalFlops(pair) > kMostFlops || deadline.Passed()) return std::nullopt;
  Witness witness;
  // Decimal constants of definitions have three readings: a witness holds for each.
  for (const ConstantReading reading :
       {ConstantReading::kFloat, ConstantReading::kDouble, ConstantReading::kReal}) {
    const auto classes = EvaluateClasses(pair, inputs, kBits, deadline, reading);
    if (!classes.ok()) return std::nullopt;
    const ExactElement& f = (*classes)[0][0];
    const ExactElement& g = (*classes)[1][0];
    if (!Differ(f, g)) return std::nullopt;
    witness.undefined = !IsNumber(f) || !IsNumber(g);
    witness.value_f = IsNumber(f) ? f.ball.Middle() : std::nan("");
    witness.value_g = IsNumber(g) ? g.ball.Middle() : std::nan("");
    witness.error_f = IsNumber(f) ? f.ball.ErrorOfMiddle() : 0;
    witness.error_g = IsNumber(g) ? g.ball.ErrorOfMiddle() : 0;
  }
  const double distance = std::abs(witness.value_f - witness.value_g);
  if (!witness.undefined) {
    if (!std::isfinite(distance)) return std::nullopt;
    witness.gap = std::max(0.0, distance - witness.error_f - witness.error_g);
  }
  for (const HostValue& input : inputs) witness.inputs.push_back(input.ToTensor());
  witness.element = element;
  witness.precision_bits = kBits;
  return witness;
}

}  // namespace mendel
