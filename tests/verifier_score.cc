#include "tests/verifier_score.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "graph/evaluate.h"
#include "tests/graph_edit.h"
#include "verifier/compare.h"

namespace mendel {
namespace {

constexpr int kStyles = 10;
/// Time that one pair may take before it is left unproven.
constexpr double kSecondsAPair = 20;

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
    const int64_t hot =
        count == 0 ? 0 : static_cast<int64_t>(PickIndex(rng, static_cast<size_t>(count)));
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

/// Does element `flat` lie in one of the boxes?
bool Inside(const Shape& shape, int64_t flat, const std::vector<Box>& boxes) {
  if (boxes.empty()) return false;
  Shape index(shape.size());
  for (size_t d = shape.size(); d-- > 0; flat /= shape[d]) index[d] = flat % shape[d];
  return std::any_of(boxes.begin(), boxes.end(),
                     [&](const Box& box) { return box.Contains(index); });
}

/// Takes the differences of one output outside the ignored boxes into `gap`.
void Compare(const HostValue& a, const HostValue& b, const std::vector<Box>& ignored,
             const std::string& where, NumberGap& gap) {
  const int64_t count = NumElements(a.type);
  double scale = IsFloat(a.type.dtype) ? 1e-30 : 1;
  for (int64_t i = 0; i < count; ++i) {
    if (IsFloat(a.type.dtype) && std::isfinite(a.At(i))) scale = std::max(scale, std::abs(a.At(i)));
  }
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(a.At(i)) || Inside(a.type.shape, i, ignored)) continue;
    ++gap.elements;
    if (!std::isfinite(b.At(i))) {
      if (!gap.undefined)
        gap.where = Cat(where, " element ", i, ": ", a.At(i), " against ", b.At(i));
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

NumberGap GapInNumbers(const Graph& f, const Graph& g, WeightMode weights, uint64_t seed,
                       int rounds, double enough, const WrongBoxes* ignored) {
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
      Compare((*a)[k], (*b)[k], ignored == nullptr ? std::vector<Box>() : (*ignored)[k],
              Cat("round ", round, " output ", k), gap);
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

namespace {

std::vector<HostValue> HostInputs(const Witness& witness) {
  std::vector<HostValue> inputs;
  for (const Tensor& tensor : witness.inputs) inputs.push_back(HostValue::FromTensor(tensor));
  return inputs;
}

/// Empty when the enclosures of the witness lie apart and plain evaluation gives the values that it
/// states (or nothing finite).
std::string Refuted(const Graph& f, const Graph& g, const Witness& witness, size_t output) {
  if (!(witness.gap >= 0)) return "the gap is no number";
  const auto a = Evaluate(f, HostInputs(witness)), b = Evaluate(g, HostInputs(witness));
  if (!a.ok() || !b.ok()) return "the inputs do not fit";
  const int64_t flat = FlatIndex((*a)[output].type.shape, witness.element);
  const double values[2] = {(*a)[output].At(flat), (*b)[output].At(flat)};
  const double stated[2] = {witness.value_f, witness.value_g};
  for (int side = 0; side < 2; ++side) {
    // Cancellation may cost plain doubles most digits of one of the values, so they are held to the
    // larger one.
    const double scale = std::max({std::abs(stated[0]), std::abs(stated[1]), 1.0});
    if (!std::isfinite(values[side]) || !std::isfinite(stated[side])) return "";
    if (std::abs(values[side] - stated[side]) > 1e-6 * scale) {
      return Cat("states ", stated[side], ", evaluation gives ", values[side]);
    }
  }
  const bool equal = values[0] == values[1];
  const double scale = std::max(std::abs(stated[0]), std::abs(stated[1]));
  return equal && std::abs(stated[0] - stated[1]) > kSurelyDifferent * scale
             ? "both programs give the same"
             : "";
}

/// The verdict takes a literal for the constant that it is the rounding of, and says so.
bool RestsOnRoundedLiterals(const CompareReport& report) {
  return std::any_of(report.axioms.begin(), report.axioms.end(),
                     [](const auto& used) { return used.first.starts_with("literal "); });
}

/// The boxes of the report, by output; empty where an output's regions are not known.
WrongBoxes BoxesOf(const CompareReport& report) {
  WrongBoxes boxes;
  for (const ComparedOutput& output : report.outputs) {
    std::vector<Box> wrong;
    for (const ComparedBox& box : output.boxes)
      wrong.push_back(output.regions_known ? box.box : Box::Whole(output.shape));
    boxes.push_back(std::move(wrong));
  }
  return boxes;
}

}  // namespace

Verification ScorePair(const Graph& f, const Graph& g, WeightMode weights, uint64_t seed) {
  CompareOptions options;
  options.verifier.weights = weights;
  options.verifier.seed = seed;
  options.verifier.deadline = Deadline::After(kSecondsAPair);
  const auto report = ComparePrograms(f, g, options);
  if (!report.ok()) return {Outcome::kError, Cat(std::string(report.status().message()))};
  if (report->verdict == Verdict::kEquivalent) {
    const NumberGap gap = GapInNumbers(f, g, weights, seed, 3 * kStyles, kSurelyDifferent);
    const bool wrong =
        gap.relative > (RestsOnRoundedLiterals(*report) ? kSurelyDifferent : kSurelyRounding) ||
        gap.undefined;
    return {wrong ? Outcome::kFalseEquivalent : Outcome::kHarmless, gap.where};
  }
  if (report->verdict == Verdict::kUnproven) {
    const NumberGap gap = GapInNumbers(f, g, weights, seed, 2 * kStyles, kSurelyDifferent);
    return {gap.relative > kSurelyDifferent ? Outcome::kUnproven : Outcome::kFormal,
            Cat(report->reason, "; ", gap.where)};
  }
  bool witnessed = false;
  for (size_t k = 0; k < report->outputs.size(); ++k) {
    for (const ComparedBox& box : report->outputs[k].boxes) {
      if (!box.witness.has_value()) continue;
      witnessed = true;
      // The witness of symbolic weights gives both programs those of f.
      const std::string refuted =
          weights == WeightMode::kExact ? Refuted(f, g, *box.witness, k) : "";
      if (!refuted.empty()) return {Outcome::kFalseWitness, refuted};
    }
  }
  if (!witnessed) return {Outcome::kFalseWitness, "a verdict of different without any witness"};
  const WrongBoxes boxes = BoxesOf(*report);
  const NumberGap outside = GapInNumbers(f, g, weights, seed, kStyles, kSurelyDifferent, &boxes);
  if (outside.relative > kSurelyDifferent)
    return {Outcome::kFalseEquivalent, Cat("outside the wrong boxes: ", outside.where)};
  return {Outcome::kWitnessed, ""};
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
