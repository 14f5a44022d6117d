#include "tests/judge_score.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "graph/evaluate.h"
#include "tests/graph_edit.h"

namespace mendel {
namespace {

constexpr int kStyles = 10;

/// Input element number `k` in the manner `style`.
double Element(Rng& rng, int style, int64_t k, int64_t hot) {
  switch (style) {
    case 0:
      return static_cast<double>(rng.Between(-3, 3));
    case 1:
      return rng.Normal();
    case 2:
      return static_cast<double>(rng.Between(1, 16)) / 8;  // positive
    case 3:
      return k == hot ? 1 : 0;
    case 4:
      return k % 2 == 0 ? 1.5 : -0.5;
    case 5:
      return 100 * rng.Normal();
    case 6:
      return 1e-3 * rng.Normal();
    case 7:
      return 0;
    case 8:
      return 1;
    default:
      return static_cast<double>(k % 17) / 4 - 2;
  }
}

std::vector<HostValue> InputsFor(const Graph& graph, Rng& rng, int style) {
  std::vector<HostValue> values;
  for (int32_t id : graph.inputs()) {
    HostValue value{graph.node(id).outputs[0], {}, {}};
    const int64_t count = NumElements(value.type);
    const int64_t hot = count == 0 ? 0 : static_cast<int64_t>(PickIndex(rng, static_cast<size_t>(count)));
    for (int64_t k = 0; k < count; ++k) {
      if (IsFloat(value.type.dtype)) {
        value.scalars.push_back(RoundTo(value.type.dtype, Element(rng, style, k, hot)));
      } else {
        value.integers.push_back(rng.Between(0, value.type.dtype == DType::kBool ? 1 : 3));
      }
    }
    values.push_back(std::move(value));
  }
  return values;
}

/// Takes the differences of one output into `gap`.
void Compare(const HostValue& a, const HostValue& b, const std::string& where, NumberGap& gap) {
  const int64_t count = NumElements(a.type);
  double scale = IsFloat(a.type.dtype) ? 1e-30 : 1;
  for (int64_t i = 0; i < count; ++i) {
    if (IsFloat(a.type.dtype) && std::isfinite(a.At(i))) scale = std::max(scale, std::abs(a.At(i)));
  }
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(a.At(i))) continue;
    ++gap.elements;
    if (!std::isfinite(b.At(i))) {
      if (!gap.undefined) gap.where = Cat(where, " element ", i, ": ", a.At(i), " against ", b.At(i));
      gap.undefined = true;
      continue;
    }
    const double relative = std::abs(a.At(i) - b.At(i)) / (IsFloat(a.type.dtype) ? scale : 1);
    if (relative <= gap.relative) continue;
    gap.relative = relative;
    gap.where = Cat(where, " element ", i, ": ", a.At(i), " against ", b.At(i));
  }
}

}  // namespace

NumberGap GapInNumbers(const Graph& f, const Graph& g, WeightMode weights, uint64_t seed, int rounds, double enough) {
  NumberGap gap;
  for (int round = 0; round < rounds && gap.relative <= enough; ++round) {
    Rng rng(seed + static_cast<uint64_t>(round));
    const int style = round % kStyles;
    const std::vector<HostValue> inputs = InputsFor(f, rng, style);
    const bool redraw = weights == WeightMode::kSymbolic;
    const uint64_t weight_seed = rng.Next();
    const auto a = Evaluate(redraw ? WithRandomWeights(f, weight_seed, round % 2 == 1) : f, inputs);
    const auto b = Evaluate(redraw ? WithRandomWeights(g, weight_seed, round % 2 == 1) : g, inputs);
    MENDEL_CHECK(a.ok() && b.ok());
    for (size_t k = 0; k < a->size(); ++k) {
      Compare((*a)[k], (*b)[k], Cat("round ", round, " output ", k), gap);
    }
  }
  return gap;
}

std::string_view OutcomeName(Outcome outcome) {
  constexpr std::array<std::string_view, kOutcomes> kNames = {"proven different, witness",
                                                              "different, no witness",
                                                              "formally different, numbers agree",
                                                              "unproven, numbers differ",
                                                              "harmless",
                                                              "false equivalent",
                                                              "false witness",
                                                              "error"};
  return kNames[static_cast<size_t>(outcome)];
}

Judgement JudgePair(const Graph& f, const Graph& g, WeightMode weights, uint64_t seed) {
  const auto certificate = Certify(f, g, {.weights = weights});
  if (certificate.ok()) {
    const NumberGap gap = GapInNumbers(f, g, weights, seed, 3 * kStyles, kSurelyDifferent);
    const bool wrong = gap.relative > kSurelyRounding || gap.undefined;
    return {wrong ? Outcome::kFalseEquivalent : Outcome::kHarmless, gap.where};
  }
  const std::string reason(certificate.status().message().data(), certificate.status().message().size());
  const bool different = certificate.status().code() == absl::StatusCode::kFailedPrecondition;
  if (!different && certificate.status().code() != absl::StatusCode::kUnimplemented) return {Outcome::kError, reason};
  const NumberGap gap = GapInNumbers(f, g, weights, seed, 2 * kStyles, kSurelyDifferent);
  if (gap.relative <= kSurelyDifferent) return {Outcome::kFormal, Cat(reason, "; ", gap.where)};
  return {different ? Outcome::kDifferent : Outcome::kUnproven, Cat(reason, "; ", gap.where)};
}

int64_t ScoreTable::Total(Outcome outcome) const {
  int64_t sum = 0;
  for (const auto& [kind, counts] : rows) sum += counts[static_cast<size_t>(outcome)];
  return sum;
}

int64_t ScoreTable::Total() const {
  int64_t sum = 0;
  for (size_t k = 0; k < kOutcomes; ++k) sum += Total(static_cast<Outcome>(k));
  return sum;
}

std::string ScoreTable::Print() const {
  std::string text = "| mutation |";
  std::string rule = "|---|";
  for (size_t k = 0; k < kOutcomes; ++k) {
    text += Cat(" ", OutcomeName(static_cast<Outcome>(k)), " |");
    rule += "---:|";
  }
  text += "\n" + rule + "\n";
  const auto row = [&](std::string_view name, const auto& count) {
    text += Cat("| ", name, " |");
    for (size_t k = 0; k < kOutcomes; ++k) text += Cat(" ", count(k), " |");
    text += "\n";
  };
  for (const auto& [kind, counts] : rows) {
    row(kind, [&counts = counts](size_t k) { return counts[k]; });
  }
  row("all", [&](size_t k) { return Total(static_cast<Outcome>(k)); });
  return text;
}

}  // namespace mendel
