#include "kernels/cpu/lowering/decomposed_activation.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

namespace mendel::cpu {
namespace {

/// Walks from a candidate for the result towards x.
class Match {
 public:
  Match(const Graph& graph, Folded& folded, ValueId x) : graph_(graph), folded_(folded), x_(x) {}

  std::optional<DecomposedActivation> Of(int32_t last) {
    const auto is = [&](const auto& form) {
      nodes_.clear();
      return form() && Closed(last);
    };
    const ValueId value{last, 0};
    const bool found =
        is([&] { return Gated(value, 0.5, [&](ValueId gate) { return GeluGate(gate); }); }) ||
        is([&] { return Gated(value, 1.0 / 6, [&](ValueId gate) { return ClipGate(gate); }); }) ||
        is([&] { return TimesHardSigmoid(value); });
    if (!found) return std::nullopt;
    return DecomposedActivation{{nodes_.begin(), nodes_.end()}, algorithm_};
  }

 private:
  const Node* Made(ValueId value, std::string_view op) {
    const Node& node = graph_.node(value.node);
    if (node.op->name != op || node.outputs[0] != graph_.type(x_)) return nullptr;
    nodes_.insert(value.node);
    return &node;
  }

  bool IsNumber(ValueId value, double number) {
    if (!folded_.IsConstant(value) || NumElements(graph_.type(value)) != 1) return false;
    return std::abs(folded_.Exact(value).At(0) - number) <= 1e-6 * std::abs(number);
  }

  /// A product or sum of a value and `number`; the value.
  std::optional<ValueId> With(ValueId value, std::string_view op, double number) {
    const Node* node = Made(value, op);
    if (node == nullptr) return std::nullopt;
    for (const size_t k : {size_t{0}, size_t{1}}) {
      if (IsNumber(node->inputs[k], number)) return node->inputs[1 - k];
    }
    return std::nullopt;
  }

  /// x * factor, or x / (1 / factor).
  std::optional<ValueId> Scaled(ValueId value, double factor) {
    if (graph_.node(value.node).op->name != "Div") return With(value, "Mul", factor);
    const Node* node = Made(value, "Div");
    return node != nullptr && IsNumber(node->inputs[1], 1 / factor) ? std::optional(node->inputs[0])
                                                                    : std::nullopt;
  }

  /// factor * x * gate, the factor anywhere.
  template <class Gate>
  bool Gated(ValueId value, double factor, const Gate& gate) {
    if (const auto product = Scaled(value, factor); product.has_value()) {
      const Node* node = Made(*product, "Mul");
      return node != nullptr &&
             EitherWay(*node, [&](ValueId a, ValueId b) { return a == x_ && gate(b); });
    }
    const Node* node = Made(value, "Mul");
    return node != nullptr && EitherWay(*node, [&](ValueId a, ValueId b) {
             const ValueId part = a == x_ ? b : a;
             const auto whole = Scaled(part, factor);
             return whole.has_value() && (a == x_ ? gate(*whole) : *whole == x_ && gate(b));
           });
  }

  template <class Test>
  bool EitherWay(const Node& node, const Test& test) {
    const std::set<int32_t> before = nodes_;
    if (test(node.inputs[0], node.inputs[1])) return true;
    nodes_ = before;
    return test(node.inputs[1], node.inputs[0]);
  }

  /// 1 + erf(..) or 1 + tanh(..).
  bool GeluGate(ValueId value) {
    const auto bent = With(value, "Add", 1);
    if (!bent.has_value()) return false;
    const bool tanh = graph_.node(bent->node).op->name == "Tanh";
    algorithm_ = tanh ? dnnl::algorithm::eltwise_gelu_tanh : dnnl::algorithm::eltwise_gelu_erf;
    const Node* node = Made(*bent, tanh ? "Tanh" : "Erf");
    if (node == nullptr) return false;
    const auto inner =
        Scaled(node->inputs[0], tanh ? std::sqrt(2 / 3.14159265358979323846) : std::sqrt(0.5));
    return inner.has_value() && (tanh ? Cubic(*inner) : *inner == x_);
  }

  /// clip(x + 3, 0, 6).
  bool ClipGate(ValueId value) {
    algorithm_ = dnnl::algorithm::eltwise_hardswish;
    const Node* clip = Made(value, "Clip");
    if (clip == nullptr || clip->attrs.Float("min") != 0 || clip->attrs.Float("max") != 6)
      return false;
    return With(clip->inputs[0], "Add", 3) == x_;
  }

  bool TimesHardSigmoid(ValueId value) {
    algorithm_ = dnnl::algorithm::eltwise_hardswish;
    const Node* product = Made(value, "Mul");
    return product != nullptr && EitherWay(*product, [&](ValueId a, ValueId b) {
             const Node* gate = a == x_ ? Made(b, "HardSigmoid") : nullptr;
             return gate != nullptr && gate->inputs[0] == x_ &&
                    std::abs(gate->attrs.Float("alpha") * 6 - 1) <= 1e-6 &&
                    gate->attrs.Float("beta") == 0.5;
           });
  }

  /// x + 0.044715 x^3.
  bool Cubic(ValueId value) {
    const Node* sum = Made(value, "Add");
    return sum != nullptr && EitherWay(*sum, [&](ValueId a, ValueId b) {
             const auto cube = a == x_ ? With(b, "Mul", 0.044715) : std::nullopt;
             return cube.has_value() && Cube(*cube);
           });
  }

  bool Cube(ValueId value) {
    if (graph_.node(value.node).op->name == "Pow") {
      const Node* power = Made(value, "Pow");
      // The exponent must be exact: a power of a negative number is NaN for any other exponent
      // nearby.
      return power != nullptr && power->inputs[0] == x_ && IsNumber(power->inputs[1], 3) &&
             folded_.Exact(power->inputs[1]).At(0) == 3;
    }
    const Node* product = Made(value, "Mul");
    return product != nullptr && EitherWay(*product, [&](ValueId a, ValueId b) {
             const Node* square = a == x_ ? Made(b, "Mul") : nullptr;
             return square != nullptr && square->inputs[0] == x_ && square->inputs[1] == x_;
           });
  }

  /// True when nothing else reads x or a value on the way.
  bool Closed(int32_t last) const {
    const auto inside = [&](int32_t user) { return nodes_.count(user) > 0; };
    const auto alone = [&](int32_t node) {
      const std::vector<int32_t>& users = graph_.users(node);
      return !graph_.IsOutput(node) && std::all_of(users.begin(), users.end(), inside);
    };
    return alone(x_.node) && std::all_of(nodes_.begin(), nodes_.end(),
                                         [&](int32_t node) { return node == last || alone(node); });
  }

  const Graph& graph_;
  Folded& folded_;
  ValueId x_;
  std::set<int32_t> nodes_;
  dnnl::algorithm algorithm_{};
};

}  // namespace

std::optional<DecomposedActivation> FindDecomposedActivation(const Graph& graph, Folded& folded,
                                                             ValueId x) {
  constexpr size_t kMostNodes = 9;
  const std::vector<int32_t>& users = graph.users(x.node);
  if (users.size() < 2 || users.size() > 4) return std::nullopt;
  // The result is among the values computed from x alone, within a few steps.
  std::set<int32_t> reached(users.begin(), users.end());
  Match match(graph, folded, x);
  for (auto at = reached.begin(); at != reached.end() && reached.size() <= 2 * kMostNodes; ++at) {
    if (const auto op = graph.node(*at).op->name; op == "Mul" || op == "Div") {
      if (auto found = match.Of(*at); found.has_value()) return found;
    }
    reached.insert(graph.users(*at).begin(), graph.users(*at).end());
  }
  return std::nullopt;
}

}  // namespace mendel::cpu
