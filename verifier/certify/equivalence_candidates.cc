#include "verifier/certify/equivalence_candidates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "base/random.h"
#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/index_limit.h"

namespace mendel {
namespace {

/// Tolerance of doubles that went through two different networks of a hundred layers.
constexpr double kTolerance = 1e-6;
constexpr int64_t kIntegersBelow = 16;

/// Sums of a value's elements under four fixed sign patterns, and of their magnitudes.
struct Fingerprint {
  std::array<double, 4> sums{};
  double magnitude = 0;
};

/// None for values that cannot be distinguished from others: not finite, or one number throughout.
std::optional<Fingerprint> FingerprintOf(const HostValue& value) {
  Fingerprint print;
  bool varies = value.scalars.size() == 1;
  Rng signs(2017);  // the same pattern for every value
  uint64_t bits = 0;
  for (size_t i = 0; i < value.scalars.size(); ++i) {
    if (i % 16 == 0) bits = signs.Next();
    const double element = value.scalars[i];
    if (!std::isfinite(element)) return std::nullopt;
    varies = varies || element != value.scalars[0];
    print.magnitude += std::abs(element);
    for (double& sum : print.sums) {
      sum += (bits & 1) != 0 ? element : -element;
      bits >>= 1;
    }
  }
  return varies && print.magnitude > 0 ? std::optional(print) : std::nullopt;
}

bool Alike(const Fingerprint& a, const Fingerprint& b) {
  const double tolerance = kTolerance * std::max(a.magnitude, b.magnitude);
  for (size_t k = 0; k < a.sums.size(); ++k) {
    if (std::abs(a.sums[k] - b.sums[k]) > tolerance) return false;
  }
  return std::abs(a.magnitude - b.magnitude) <= tolerance;
}

HostValue RandomInput(const Graph& graph, size_t input, Rng& rng) {
  const TensorType& type = graph.node(graph.inputs()[input]).outputs[0];
  HostValue value{type, {}, {}};
  const int64_t count = NumElements(type);
  const int64_t below =
      type.dtype == DType::kBool
          ? 2
          : std::max<int64_t>(1, SmallestIndexedTable(graph, input).value_or(kIntegersBelow));
  for (int64_t i = 0; i < count; ++i) {
    if (IsFloat(type.dtype)) {
      value.scalars.push_back(rng.Normal());
    } else {
      value.integers.push_back(rng.Between(0, below - 1));
    }
  }
  return value;
}

struct PrintedValue {
  ValueId id;
  Fingerprint print;
};

/// By type; in the graph's order.
using Prints = std::map<std::string, std::vector<PrintedValue>>;

absl::StatusOr<Prints> PrintsOf(const Graph& graph, const std::vector<HostValue>& inputs,
                                const Deadline& deadline) {
  std::vector<int32_t> readers_left;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    readers_left.push_back(static_cast<int32_t>(graph.users(static_cast<int32_t>(i)).size()));
  }
  std::vector<std::vector<HostValue>> values(graph.nodes().size());
  std::vector<bool> runs(graph.nodes().size(), false);  // depends on inputs
  for (size_t k = 0; k < inputs.size(); ++k)
    values[static_cast<size_t>(graph.inputs()[k])] = {inputs[k]};
  Prints prints;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (deadline.Passed())
      return absl::DeadlineExceededError("looking for equal values: out of time");
    const Node& node = graph.nodes()[i];
    if (IsInput(node)) runs[i] = true;
    if (IsInput(node) || IsConstant(node)) continue;
    std::vector<const HostValue*> operands;
    for (ValueId input : node.inputs) {
      // Constants are converted when they are needed: in double, all of them at once would be twice
      // the model.
      std::vector<HostValue>& produced = values[static_cast<size_t>(input.node)];
      if (produced.empty())
        produced = {HostValue::FromTensor(ConstantValue(graph.node(input.node)))};
      operands.push_back(&produced[static_cast<size_t>(input.output)]);
      runs[i] = runs[i] || runs[static_cast<size_t>(input.node)];
    }
    values[i] = WithView(graph, static_cast<int32_t>(i), [&](const NodeView& view) {
      return EvaluateNode(*node.op, view, operands);
    });
    for (size_t k = 0; runs[i] && k < node.outputs.size(); ++k) {
      if (!IsFloat(node.outputs[k].dtype)) continue;
      if (const auto print = FingerprintOf(values[i][k])) {
        prints[TypeString(node.outputs[k])].push_back(
            {{static_cast<int32_t>(i), static_cast<int32_t>(k)}, *print});
      }
    }
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const ValueId input = node.inputs[k];
      const bool repeated =
          std::any_of(node.inputs.begin(), node.inputs.begin() + static_cast<std::ptrdiff_t>(k),
                      [&](ValueId other) { return other.node == input.node; });
      if (!repeated && --readers_left[static_cast<size_t>(input.node)] == 0)
        values[static_cast<size_t>(input.node)].clear();
    }
  }
  return prints;
}

const Fingerprint* Find(const Prints& prints, const Graph& graph, ValueId id) {
  const auto of_type = prints.find(TypeString(graph.type(id)));
  if (of_type == prints.end()) return nullptr;
  for (const PrintedValue& value : of_type->second) {
    if (value.id == id) return &value.print;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<NumericComparison> CompareNumerically(const Graph& a, const Graph& b, uint64_t seed,
                                                     const Deadline& deadline) {
  Rng rng(seed);
  std::vector<HostValue> inputs;
  for (size_t k = 0; k < a.inputs().size(); ++k) inputs.push_back(RandomInput(a, k, rng));
  MENDEL_ASSIGN_OR_RETURN(const Prints of_a, PrintsOf(a, inputs, deadline));
  MENDEL_ASSIGN_OR_RETURN(const Prints of_b, PrintsOf(b, inputs, deadline));
  NumericComparison result;
  for (const auto& [type, printed] : of_b) {
    const auto candidates = of_a.find(type);
    if (candidates == of_a.end()) continue;
    for (const PrintedValue& value : printed) {
      const auto match = std::find_if(
          candidates->second.begin(), candidates->second.end(),
          [&](const PrintedValue& candidate) { return Alike(candidate.print, value.print); });
      if (match != candidates->second.end()) result.candidates.emplace_back(match->id, value.id);
    }
  }
  std::sort(result.candidates.begin(), result.candidates.end(),
            [](const CandidatePair& x, const CandidatePair& y) { return x.second < y.second; });
  const size_t outputs = std::min(a.outputs().size(), b.outputs().size());
  for (size_t k = 0; k < outputs; ++k) {
    const Fingerprint* x = Find(of_a, a, a.outputs()[k].value);
    const Fingerprint* y = Find(of_b, b, b.outputs()[k].value);
    result.outputs_differ =
        result.outputs_differ || (x != nullptr && y != nullptr && !Alike(*x, *y));
  }
  return result;
}

}  // namespace mendel
