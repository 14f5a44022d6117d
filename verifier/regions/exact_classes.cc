#include "verifier/regions/exact_classes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "graph/arithmetic.h"
#include "graph/op_helpers.h"
#include "verifier/witness/ball_evaluator.h"

namespace mendel {
namespace {

constexpr Kinds kAllKinds = kFiniteKinds | kNonFiniteKinds;

Kinds KindsOfBall(const Ball& ball) {
  if (SurelyLess(Ball(), ball)) return kPositiveKind;
  if (SurelyLess(ball, Ball())) return kNegativeKind;
  return ball.IsExact() ? kZeroKind : kFiniteKinds;
}

/// The interval in which functions that are undefined far from zero are defined.
struct Interval {
  double low = 0;
  double high = 0;
};
std::optional<Interval> DomainOf(std::string_view op) {
  if (op == "Acos" || op == "Asin" || op == "Atanh") return Interval{-1, 1};
  if (op == "Acosh") return Interval{1, std::numeric_limits<double>::infinity()};
  return std::nullopt;
}

bool IsOutside(const Interval& domain, const Ball& x) {
  return SurelyLess(x, Ball::FromDouble(domain.low)) ||
         (std::isfinite(domain.high) && SurelyLess(Ball::FromDouble(domain.high), x));
}

/// One value: an enclosure, and classes of the elements that it does not bound.
struct Value {
  BallValue balls;
  std::map<int64_t, Kinds> unbounded;

  Kinds KindsAt(int64_t flat) const {
    const auto it = unbounded.find(flat);
    return it != unbounded.end() ? it->second : KindsOfBall(balls.At(flat));
  }
};

class Evaluation {
 public:
  Evaluation(const Graph& graph, const BallContext& context, const Deadline& deadline)
      : graph_(graph), context_(context), deadline_(deadline), values_(graph.nodes().size()) {}

  absl::Status Run(std::span<const HostValue> inputs) {
    const BallScope scope(context_);
    for (size_t k = 0; k < inputs.size(); ++k)
      Store(graph_.inputs()[k], BallValue::FromHost(inputs[k]));
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const Node& node = graph_.nodes()[i];
      const int32_t id = static_cast<int32_t>(i);
      if (IsInput(node)) continue;
      if (deadline_.Passed()) return absl::DeadlineExceededError("classes: out of time");
      if (IsConstant(node)) {
        Store(id, BallValue::FromHost(HostValue::FromTensor(ConstantValue(node))));
      } else {
        MENDEL_RETURN_IF_ERROR(EvaluateNode(id));
      }
    }
    return absl::OkStatus();
  }

  std::vector<std::vector<ExactElement>> Outputs() const {
    const BallScope scope(context_);
    std::vector<std::vector<ExactElement>> outputs;
    for (const GraphOutput& output : graph_.outputs()) {
      const Value& value = ValueOf(output.value);
      std::vector<ExactElement>& elements = outputs.emplace_back();
      for (int64_t i = 0; i < NumElements(graph_.type(output.value)); ++i)
        elements.push_back({value.balls.At(i), value.KindsAt(i)});
    }
    return outputs;
  }

 private:
  const Value& ValueOf(ValueId id) const {
    return values_[static_cast<size_t>(id.node)][static_cast<size_t>(id.output)];
  }

  /// A value that is stored: its non-finite elements are known.
  void Store(int32_t id, BallValue balls) {
    Value value{std::move(balls), {}};
    for (size_t i = 0; i < value.balls.numbers.size(); ++i) {
      const Kinds kind = KindOf(value.balls.numbers[i]);
      if ((kind & kNonFiniteKinds) != 0) value.unbounded[static_cast<int64_t>(i)] = kind;
    }
    values_[static_cast<size_t>(id)].push_back(std::move(value));
  }

  absl::Status EvaluateNode(int32_t id) {
    const Node& node = graph_.node(id);
    return WithView(graph_, id, [&](const NodeView& view) -> absl::Status {
      std::vector<const BallValue*> operands;
      for (ValueId input : node.inputs) operands.push_back(&ValueOf(input).balls);
      for (size_t k = 0; k < node.outputs.size(); ++k) {
        MENDEL_ASSIGN_OR_RETURN(BallValue balls,
                                EvaluateNodeInBalls(*node.op, view, operands, static_cast<int>(k)));
        Value value{std::move(balls), {}};
        Bound(node, view, static_cast<int>(k), value);
        values_[static_cast<size_t>(id)].push_back(std::move(value));
      }
      return absl::OkStatus();
    });
  }

  /// Classes of the elements that have no finite enclosure, and truth values that enclosures leave
  /// open: no comparison of NaN holds.
  void Bound(const Node& node, const NodeView& view, int output, Value& value) const {
    const TensorType& type = view.outputs[static_cast<size_t>(output)];
    const bool is_bool = type.dtype == DType::kBool && !value.balls.balls.empty();
    std::vector<int64_t> open;
    for (int64_t i = 0; i < NumElements(type); ++i) {
      const Ball ball = value.balls.At(i);
      if (is_bool ? !ball.IsExact() : !ball.IsFinite()) open.push_back(i);
    }
    if (const auto domain = DomainOf(node.op->name)) {
      const BallValue& operand = ValueOf(node.inputs[0]).balls;
      std::erase_if(open, [&](int64_t i) {
        const Ball x = operand.At(i);
        if (!x.IsFinite() || !IsOutside(*domain, x)) return false;
        value.unbounded[i] = kNaNKind;
        return true;
      });
    }
    if (open.empty()) return;
    if (node.op->opaque || node.op->meaning.extended == nullptr) {
      for (const int64_t i : open) {
        if (!is_bool) value.unbounded[i] = kAllKinds;
      }
      return;
    }
    EventTable events(EventTable::Purpose::kClasses);
    const ExtendedScope scope(events);
    std::vector<std::vector<Extended>> elements(node.inputs.size());
    std::vector<Operand<Extended>> operands;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const Value& input = ValueOf(node.inputs[k]);
      const bool integers = input.balls.balls.empty() && IsIntegral(view.inputs[k].dtype);
      for (int64_t i = 0; !integers && i < NumElements(view.inputs[k]); ++i) {
        const std::array<uint64_t, 3> words = {static_cast<uint64_t>(node.inputs[k].node),
                                               static_cast<uint64_t>(node.inputs[k].output),
                                               static_cast<uint64_t>(i)};
        elements[k].push_back(
            WithEventWhereUndefined({ExtendedId("element", words), 1, 0, input.KindsAt(i)}));
      }
      operands.push_back({&view.inputs[k], integers ? nullptr : elements[k].data(),
                          integers ? input.balls.integers.data() : nullptr});
    }
    const Arithmetic<Extended> arithmetic;
    std::vector<Extended> result(
        static_cast<size_t>(NumElements(view.outputs[static_cast<size_t>(output)])));
    node.op->meaning.extended(Reader<Extended>(arithmetic, operands), view, output, result);
    for (const int64_t i : open) {
      const Extended& element = result[static_cast<size_t>(i)];
      if (!is_bool) {
        value.unbounded[i] = element.events == 0 ? element.kinds : kAllKinds;
      } else if (element.events == 0 && std::has_single_bit(element.kinds)) {
        value.balls.balls[static_cast<size_t>(i)] =
            Ball::FromInt(element.kinds == kZeroKind ? 0 : 1);
      }
    }
  }

  const Graph& graph_;
  const BallContext& context_;
  const Deadline& deadline_;
  std::vector<std::vector<Value>> values_;
};

}  // namespace

absl::StatusOr<std::vector<std::vector<ExactElement>>> EvaluateClasses(
    const Graph& graph, std::span<const HostValue> inputs, int precision_bits,
    const Deadline& deadline, ConstantReading reading) {
  const BallContext context(precision_bits, reading);
  Evaluation evaluation(graph, context, deadline);
  MENDEL_RETURN_IF_ERROR(evaluation.Run(inputs));
  return evaluation.Outputs();
}

}  // namespace mendel
