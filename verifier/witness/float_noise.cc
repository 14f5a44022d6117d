#include "verifier/witness/float_noise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_set>

#include "base/parallel.h"
#include "base/random.h"
#include "base/status.h"

namespace mendel {
namespace {

/// Operators with more operations or operands an element round inside, too.
constexpr double kSimpleFlops = 1.5;
constexpr size_t kSimpleOperands = 2;
/// Elements that share a stream of random numbers.
constexpr int64_t kGrain = 1 << 13;

double UnitRoundoff(DType dtype) {
  switch (dtype) {
    case DType::kF8E4M3FN:
    case DType::kF8E4M3FNUZ:
      return 0x1p-4;
    case DType::kF8E5M2:
    case DType::kF8E5M2FNUZ:
      return 0x1p-3;
    case DType::kF16:
      return 0x1p-11;
    case DType::kBF16:
      return 0x1p-8;
    case DType::kF32:
      return 0x1p-24;
    default:
      return 0x1p-53;
  }
}

/// Decides whether results of one node are numbers of their dtype without rounding. Operands decide
/// it for f64, where double precision cannot: moved and selected values are among them.
class Exactness {
 public:
  Exactness(DType dtype, std::span<const HostValue* const> operands) : dtype_(dtype) {
    if (dtype != DType::kF64) return;
    for (const HostValue* operand : operands) {
      for (const double value : operand->scalars) known_.insert(std::abs(value));
    }
  }

  bool Holds(double value) const {
    if (!std::isfinite(value) || value == 0) return true;
    if (dtype_ != DType::kF64) return RoundTo(dtype_, value) == value;
    return static_cast<double>(static_cast<float>(value)) == value ||
           known_.contains(std::abs(value));
  }

 private:
  DType dtype_;
  std::unordered_set<double> known_;
};

/// The function's result is a rounded number even where a double is not: sigmoid(50) is 1 there.
/// Softmax and the like are made of such functions.
bool AlwaysRounds(std::string_view op) {
  constexpr std::array<std::string_view, 27> kFunctions = {
      "Acos",       "Acosh",     "Asin",
      "Asinh",      "Atan",      "Atanh",
      "Celu",       "Cos",       "Cosh",
      "Elu",        "Erf",       "Exp",
      "Gelu",       "HardSwish", "Log",
      "LogSoftmax", "Mish",      "Selu",
      "Sigmoid",    "Sin",       "Sinh",
      "Softmax",    "Softplus",  "Tan",
      "Tanh",       "Softsign",  "ReduceLogSumExp"};
  return std::find(kFunctions.begin(), kFunctions.end(), op) != kFunctions.end();
}

/// `unit` with a random sign; a draw of the generator serves 64 of them.
class RandomSigns {
 public:
  explicit RandomSigns(uint64_t seed) : rng_(seed) {}
  double Of(double unit) {
    if (left_-- == 0) {
      bits_ = rng_.Next();
      left_ = 63;
    }
    const bool positive = (bits_ & 1) != 0;
    bits_ >>= 1;
    return positive ? unit : -unit;
  }

 private:
  Rng rng_;
  uint64_t bits_ = 0;
  int left_ = 0;
};

class NoisyEvaluation {
 public:
  NoisyEvaluation(uint64_t seed, bool moves_operands)
      : rng_(seed), moves_operands_(moves_operands) {}

  std::vector<HostValue> operator()(const OpDefinition& op, const NodeView& node,
                                    std::span<const HostValue* const> operands) {
    std::vector<HostValue> results = EvaluateNode(op, node, operands);
    const bool floats = std::any_of(results.begin(), results.end(), [](const HostValue& value) {
      return IsFloat(value.type.dtype);
    });
    if (!floats) return results;
    const std::vector<HostValue> moved = MovedResults(op, node, operands, results);
    for (size_t k = 0; k < results.size(); ++k) {
      HostValue& result = results[k];
      if (!IsFloat(result.type.dtype)) continue;
      const Exactness exactness(result.type.dtype, operands);
      const double unit = UnitRoundoff(result.type.dtype);
      const bool always = AlwaysRounds(op.name);
      ForAll(result.scalars, [&](size_t at, double& value, RandomSigns& signs) {
        if (always ? !std::isfinite(value) || value == 0 : exactness.Holds(value)) return;
        const double from = moved.empty() ? value : moved[k].scalars[at];
        value = RoundTo(result.type.dtype, from * (1 + signs.Of(unit)));
      });
    }
    return results;
  }

 private:
  /// A chunk of values has its own stream of signs: the number of threads changes nothing.
  template <class Body>
  void ForAll(std::vector<double>& values, const Body& body) {
    const uint64_t seed = rng_.Next();
    ParallelChunks(static_cast<int64_t>(values.size()), kGrain, [&](int64_t begin, int64_t end) {
      RandomSigns signs(seed + static_cast<uint64_t>(begin));
      for (size_t at = static_cast<size_t>(begin); at < static_cast<size_t>(end); ++at)
        body(at, values[at], signs);
    });
  }

  /// The node on operands that have moved, where it rounds inside.
  std::vector<HostValue> MovedResults(const OpDefinition& op, const NodeView& node,
                                      std::span<const HostValue* const> operands,
                                      const std::vector<HostValue>& results) {
    double elements = 0;
    for (const HostValue& result : results)
      elements += static_cast<double>(NumElements(result.type));
    const bool simple =
        operands.size() <= kSimpleOperands && CostOf(op, node).flops <= kSimpleFlops * elements;
    if (!moves_operands_ || simple) return {};
    std::vector<HostValue> moved;
    std::vector<const HostValue*> inputs;
    for (const HostValue* operand : operands) {
      moved.push_back(*operand);
      const double unit = UnitRoundoff(operand->type.dtype);
      ForAll(moved.back().scalars,
             [unit](size_t, double& value, RandomSigns& signs) { value *= 1 + signs.Of(unit); });
    }
    for (const HostValue& value : moved) inputs.push_back(&value);
    return EvaluateNode(op, node, inputs);
  }

  Rng rng_;
  bool moves_operands_;
};

}  // namespace

absl::StatusOr<std::vector<std::vector<double>>> FloatNoise(const Graph& graph,
                                                            std::span<const HostValue> inputs,
                                                            std::span<const HostValue> exact,
                                                            uint64_t seed, int runs,
                                                            bool moves_operands) {
  std::vector<std::vector<double>> noise;
  for (const HostValue& value : exact)
    noise.emplace_back(static_cast<size_t>(NumElements(value.type)), 0.0);
  for (int run = 0; run < runs; ++run) {
    NoisyEvaluation evaluation(seed + static_cast<uint64_t>(run), moves_operands);
    MENDEL_ASSIGN_OR_RETURN(const std::vector<HostValue> values,
                            EvaluateWith(graph, inputs, std::ref(evaluation)));
    for (size_t k = 0; k < values.size(); ++k) {
      for (size_t i = 0; i < noise[k].size(); ++i) {
        const int64_t flat = static_cast<int64_t>(i);
        const double distance = ElementDistance(values[k], exact[k], flat);
        noise[k][i] = std::max(
            noise[k][i], std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance);
      }
    }
  }
  return noise;
}

}  // namespace mendel
