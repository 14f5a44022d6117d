#include "optimizer/refit/refit_pair.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/hash.h"
#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/text.h"
#include "optimizer/refit/refit_sums.h"

namespace mendel {
namespace {

template <size_t N>
bool IsOneOf(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

constexpr std::array<std::string_view, 5> kViews = {"Expand", "Reshape", "Slice", "Split",
                                                    "Transpose"};
constexpr std::array<std::string_view, 5> kMoves = {"Cast", "Concat", "Gather", "Pad", "Tile"};
constexpr std::array<std::string_view, 8> kCommutative = {"Add", "And", "Equal", "Max",
                                                          "Min", "Mul", "Or",    "Xor"};
/// Limits on the moves that are followed, and on the elements of the value.
constexpr size_t kMostMoves = 256;
constexpr int64_t kMostMoved = int64_t{1} << 22;
/// Operators that a fold of two or more constants may end in. Exponentials, powers and the like of
/// constants are no linear folds.
constexpr std::array<std::string_view, 12> kLinearFolds = {
    "Add", "BatchNormalization", "Conv",      "ConvTranspose", "Div", "MatMul", "Mul",
    "Neg", "Reciprocal",         "ReduceSum", "Sqrt",          "Sub"};

/// Does the output of `node` depend on input `k` by a linear function and a constant?
bool IsAffinePlace(const RefitTerms& terms, const Node& node, size_t k) {
  const std::string_view op = node.op->name;
  if (op == "Add" || op == "Sub" || op == "Concat" || op == "Patch") return true;
  if (op == "Conv" || op == "ConvTranspose") return true;
  if (op.ends_with("Normalization") && node.inputs.size() >= 2)
    return k == 1 || k == 2 || (op[0] == 'B' && k == 3);
  if (node.op->linear_inputs == nullptr) return false;
  std::vector<TensorType> types;
  for (RefitTerm input : node.inputs) types.push_back(terms.type(input));
  return ((node.op->linear_inputs(NodeView{types, node.attrs, node.outputs}) >> k) & 1) != 0;
}

/// The constant that `term` is a view of.
std::optional<RefitTerm> SourceOf(const RefitTerms& terms, RefitTerm term) {
  while (IsOneOf(terms.node(term).op->name, kViews)) term = terms.node(term).inputs[0];
  if (!IsConstant(terms.node(term))) return std::nullopt;
  return term;
}

/// Operands broadcast alike whatever ones their shapes begin with.
Shape WithoutLeadingOnes(const Shape& shape) {
  return Shape(std::find_if(shape.begin(), shape.end(), [](int64_t extent) { return extent != 1; }),
               shape.end());
}

/// The constants that an expression reads, and whether it only moves them.
struct Anatomy {
  std::set<int32_t> constants;
  bool moves_only = true;
};

Anatomy AnatomyOf(const RefitTerms& terms, RefitTerm expression) {
  Anatomy anatomy;
  std::set<int32_t> seen;
  std::vector<int32_t> open = {expression.node};
  while (!open.empty()) {
    const int32_t id = open.back();
    open.pop_back();
    if (!seen.insert(id).second) continue;
    const Node& node = terms.node({id, 0});
    if (IsConstant(node)) {
      anatomy.constants.insert(id);
    } else if (!IsOneOf(node.op->name, kViews) && !IsOneOf(node.op->name, kMoves)) {
      anatomy.moves_only = false;
    }
    for (RefitTerm input : node.inputs) open.push_back(input.node);
  }
  return anatomy;
}

/// Hashes of structure: weights count by type only, operands of commutative operators in any order.
std::vector<uint64_t> Fingerprints(const RefitTerms& terms) {
  std::vector<uint64_t> prints;
  for (int32_t id = 0; id < terms.size(); ++id) {
    const Node& node = terms.node({id, 0});
    KeyedHash hash({1, 2});
    if (terms.IsWeight({id, 0})) {
      hash.Add(TypeString(node.outputs[0]));
    } else {
      hash.Add(Cat(node.op->name, PrintAttributes(node.attrs)));
      std::vector<uint64_t> operands;
      for (RefitTerm input : node.inputs) {
        operands.push_back(prints[static_cast<size_t>(input.node)] * 31 +
                           static_cast<uint64_t>(input.output));
      }
      if (IsOneOf(node.op->name, kCommutative)) std::sort(operands.begin(), operands.end());
      for (uint64_t operand : operands) hash.Add(operand);
    }
    prints.push_back(hash.Finish().low);
  }
  return prints;
}

class Walk {
 public:
  Walk(RefitTerms& terms, const std::set<RefitTerm>& stored, const RefitNames& names)
      : t_(terms), stored_(stored), names_(names), prints_(Fingerprints(terms)) {}

  RefitPairing Run(const std::vector<std::pair<RefitTerm, RefitTerm>>& outputs) {
    for (const auto& [a, b] : outputs) Push(a, b, false);
    while (!open_.empty() && result_.mismatch.empty()) {
      const Pair pair = open_.back();
      open_.pop_back();
      if (pair.a == pair.b || !done_.insert(pair).second) continue;
      const std::optional<RefitTerm> source = SourceOf(t_, pair.b);
      if (t_.IsWeight(pair.a) && source.has_value() && stored_.contains(*source)) {
        Propose(pair);
      } else {
        Descend(pair);
      }
    }
    return std::move(result_);
  }

 private:
  struct Pair {
    RefitTerm a, b;
    bool linear = false;  ///< the outputs depend linearly on these, as far as weights go
    auto operator<=>(const Pair&) const = default;
  };

  void Push(RefitTerm a, RefitTerm b, bool linear) { open_.push_back({a, b, linear}); }
  void Mismatch(std::string why) { result_.mismatch = std::move(why); }
  std::string Describe(RefitTerm term) const {
    const auto name = names_.find(term.node);
    return Cat(t_.node(term).op->name, name == names_.end() ? "" : " '",
               name == names_.end() ? "" : name->second, name == names_.end() ? " " : "' ",
               TypeString(t_.type(term)));
  }

  /// Moves the factor of a product of weights one step further inside: to both terms of a sum, or a
  /// single number to the second operand of a contraction. Returns `term` itself where there is no
  /// such step.
  RefitTerm MultipliedOut(RefitTerm term) {
    const Node product = t_.node(term);
    if (product.op->name != "Mul" || !t_.IsWeight(term)) return term;
    for (const size_t k : {0, 1}) {
      const Node inner = t_.node(product.inputs[k]);
      const RefitTerm factor = product.inputs[1 - k];
      if (t_.shape(product.inputs[k]) != t_.shape(term)) continue;
      if (inner.op->name == "Add")
        return t_.Op("Add", {Scaled(inner.inputs[0], factor), Scaled(inner.inputs[1], factor)});
      if (inner.op->name == "Conv" && NumElements(t_.shape(factor)) == 1) {
        return t_.Op("Conv", {inner.inputs[0], Scaled(inner.inputs[1], t_.Reshape(factor, {}))},
                     inner.attrs);
      }
      if (inner.op->name == "MatMul" && NumElements(t_.shape(factor)) == 1) {
        return t_.Op("MatMul", {inner.inputs[0], Scaled(inner.inputs[1], t_.Reshape(factor, {}))});
      }
    }
    return term;
  }

  /// The factors of a product; a single number's shape does not matter.
  std::vector<RefitTerm> Factors(RefitTerm term) const {
    while (t_.node(term).op->name == "Reshape" && NumElements(t_.type(term)) == 1)
      term = t_.node(term).inputs[0];
    if (t_.node(term).op->name != "Mul") return {term};
    std::vector<RefitTerm> factors = Factors(t_.node(term).inputs[0]);
    for (RefitTerm factor : Factors(t_.node(term).inputs[1])) factors.push_back(factor);
    return factors;
  }

  bool IsSameNumber(RefitTerm a, RefitTerm b) const {
    if (a == b) return true;
    if (t_.type(a).dtype != t_.type(b).dtype || NumElements(t_.type(a)) != 1 ||
        NumElements(t_.type(b)) != 1)
      return false;
    const Node& x = t_.node(a);
    const Node& y = t_.node(b);
    if (IsConstant(x) && IsConstant(y)) {
      const Tensor& p = ConstantValue(x);
      const Tensor& q = ConstantValue(y);
      return IsFloat(p.dtype()) ? p.DoubleAt(0) == q.DoubleAt(0) : p.IntAt(0) == q.IntAt(0);
    }
    return x.op == y.op && x.inputs.size() == 1 && y.inputs.size() == 1 &&
           x.op->name == "Reciprocal" && IsSameNumber(x.inputs[0], y.inputs[0]);
  }

  /// Pairs products of weights in any order; single numbers that both have are left out. True where
  /// one factor of b is left, which then corresponds to the remaining factors of a.
  bool PairFactors(const Pair& pair) {
    std::vector<RefitTerm> of_a = Factors(pair.a);
    std::vector<RefitTerm> of_b = Factors(pair.b);
    for (size_t k = of_b.size(); k-- > 0;) {
      const auto same = std::find_if(of_a.begin(), of_a.end(),
                                     [&](RefitTerm x) { return IsSameNumber(x, of_b[k]); });
      if (same == of_a.end()) continue;
      of_a.erase(same);
      of_b.erase(of_b.begin() + static_cast<std::ptrdiff_t>(k));
    }
    if (of_b.size() != 1 || of_a.size() < 2) return false;
    RefitTerm product = of_a[0];
    for (size_t k = 1; k < of_a.size(); ++k) product = Scaled(product, of_a[k]);
    Push(product, of_b[0], pair.linear);
    return true;
  }

  RefitTerm Scaled(RefitTerm weight, RefitTerm factor) { return t_.Op("Mul", {weight, factor}); }

  /// The value that `term` moves there and back: transposed twice, cut and joined again, times one.
  std::optional<RefitTerm> Unmoved(RefitTerm term) const {
    if (!IsMove(term) || NumElements(t_.type(term)) > kMostMoved) return std::nullopt;
    std::map<RefitTerm, HostValue> values;
    std::optional<RefitTerm> source;
    if (!Follow(term, source, values) || !source.has_value()) return std::nullopt;
    if (t_.type(*source) != t_.type(term)) return std::nullopt;
    return values.at(term).scalars == values.at(*source).scalars ? source : std::nullopt;
  }

  bool IsMove(RefitTerm term) const {
    const std::string_view op = t_.node(term).op->name;
    return IsOneOf(op, kViews) || op == "Concat" || op == "Mul";
  }

  /// Evaluates moves over the numbers 1, 2, .. in place of the one value that they may read.
  bool Follow(RefitTerm term, std::optional<RefitTerm>& source,
              std::map<RefitTerm, HostValue>& values) const {
    if (values.contains(term)) return true;
    if (values.size() > kMostMoves) return false;
    const Node& node = t_.node(term);
    if (IsConstant(node)) {
      values[term] = HostValue::FromTensor(ConstantValue(node));
      return true;
    }
    if (!IsMove(term)) {
      if (source.has_value() || NumElements(t_.type(term)) > kMostMoved) return false;
      source = term;
      HostValue& numbers = values[term];
      numbers.type = t_.type(term);
      for (int64_t i = 0; i < NumElements(numbers.type); ++i)
        numbers.scalars.push_back(static_cast<double>(i + 1));
      return IsFloat(numbers.type.dtype);
    }
    std::vector<TensorType> types;
    for (RefitTerm input : node.inputs) {
      if (!Follow(input, source, values)) return false;
      types.push_back(t_.type(input));
    }
    std::vector<const HostValue*> operands;
    for (RefitTerm input : node.inputs) operands.push_back(&values.at(input));
    values[term] = EvaluateNode(*node.op, NodeView{types, node.attrs, node.outputs},
                                operands)[static_cast<size_t>(term.output)];
    return true;
  }

  void Descend(const Pair& pair) {
    const Node a = t_.node(pair.a);
    const Node b = t_.node(pair.b);
    if (IsOneContraction(t_, pair.b) && !IsOneContraction(t_, pair.a)) {
      if (const auto merged = MergedBranches(t_, pair.a)) return Push(*merged, pair.b, pair.linear);
    }
    // Two values may be cut in different pieces before they are joined again.
    if (a.op->name == "Concat" && b.op->name == "Concat") {
      const auto source_a = Unmoved(pair.a), source_b = Unmoved(pair.b);
      if (source_a.has_value() && source_b.has_value())
        return Push(*source_a, *source_b, pair.linear);
    }
    if (a.op != b.op || !(a.attrs == b.attrs) || a.inputs.size() != b.inputs.size() ||
        pair.a.output != pair.b.output || IsConstant(a) || IsInput(a)) {
      const RefitTerm out_a = MultipliedOut(pair.a);
      const RefitTerm out_b = MultipliedOut(pair.b);
      if (t_.IsWeight(pair.a) && t_.IsWeight(pair.b) && (out_a != pair.a || out_b != pair.b))
        return Push(out_a, out_b, pair.linear);
      if (const auto source = Unmoved(pair.a)) return Push(*source, pair.b, pair.linear);
      if (const auto source = Unmoved(pair.b)) return Push(pair.a, *source, pair.linear);
      return Mismatch(Cat(Describe(pair.a), " faces ", Describe(pair.b)));
    }
    const bool weights = t_.IsWeight(pair.a) && t_.IsWeight(pair.b);
    if (weights && a.op->name == "Mul" && PairFactors(pair)) return;
    const auto print = [&](RefitTerm term) {
      return static_cast<size_t>(term.node) < prints_.size()
                 ? prints_[static_cast<size_t>(term.node)]
                 : 0;
    };
    const bool swap = a.inputs.size() == 2 && IsOneOf(a.op->name, kCommutative) &&
                      print(a.inputs[0]) != print(b.inputs[0]) &&
                      print(a.inputs[0]) == print(b.inputs[1]);
    for (size_t k = 0; k < a.inputs.size(); ++k) {
      Push(a.inputs[k], b.inputs[swap ? 1 - k : k],
           (pair.linear || !weights) && IsAffinePlace(t_, b, k));
    }
  }

  void Propose(const Pair& pair) {
    const RefitTerm constant = *SourceOf(t_, pair.b);
    const TensorType& type = t_.type(constant);
    const Anatomy anatomy = AnatomyOf(t_, pair.a);
    const std::string what = Cat("constant ", Describe(constant));
    const Shape shape = WithoutLeadingOnes(t_.shape(pair.b));
    if (t_.type(pair.a).dtype != type.dtype ||
        BroadcastShapes(WithoutLeadingOnes(t_.shape(pair.a)), shape) != shape) {
      return Mismatch(Cat(what, " faces ", Describe(pair.a)));
    }
    if (!anatomy.moves_only) {
      const std::string expression = ExpressionString(t_, pair.a, names_);
      RefitTerm root = pair.a;
      while (IsOneOf(t_.node(root).op->name, kViews)) root = t_.node(root).inputs[0];
      if (IsIntegral(type.dtype))
        return Mismatch(Cat(what, " holds integers and faces ", expression));
      if (!pair.linear)
        return Mismatch(Cat(what, " does not enter linearly (an exponent, a threshold) and faces ",
                            expression));
      if (anatomy.constants.size() < 2 || !IsOneOf(t_.node(root).op->name, kLinearFolds)) {
        return Mismatch(
            Cat(what, " faces ", expression, ", which is no linear fold of two or more constants"));
      }
    }
    result_.candidates.push_back({constant, pair.b, pair.a, anatomy.moves_only});
  }

  RefitTerms& t_;
  const std::set<RefitTerm>& stored_;
  const RefitNames& names_;
  const std::vector<uint64_t> prints_;  ///< of the programs' terms, not of those made on the way
  std::vector<Pair> open_;
  std::set<Pair> done_;
  RefitPairing result_;
};

constexpr size_t kLongestExpression = 160;

void Print(const RefitTerms& terms, RefitTerm term, const RefitNames& names, std::string& text) {
  if (text.size() > kLongestExpression) return;
  const Node& node = terms.node(term);
  const std::string_view op = node.op->name;
  const auto infix = [&](const char* sign) {
    text += "(";
    Print(terms, node.inputs[0], names, text);
    text += sign;
    Print(terms, node.inputs[1], names, text);
    text += ")";
  };
  const auto known = names.find(term.node);
  if (known != names.end()) {
    text += known->second;
  } else if (IsConstant(node)) {
    text += NumElements(terms.type(term)) == 0 ? "[]" : Cat(ConstantValue(node).DoubleAt(0));
  } else if (op == "Mul" || op == "Add" || op == "MatMul" || op == "Div" || op == "Sub") {
    infix(op == "Mul"   ? " * "
          : op == "Add" ? " + "
          : op == "Sub" ? " - "
          : op == "Div" ? " / "
                        : " @ ");
  } else if (op == "BatchNormalization" && terms.IsFilled(node.inputs[0], 1)) {
    Print(terms, node.inputs[1], names, text);
    text += " / sqrt(";
    Print(terms, node.inputs[4], names, text);
    text += Cat(" + ", node.attrs.Float("epsilon"), ")");
  } else if (IsOneOf(op, kViews) && op != "Transpose") {
    Print(terms, node.inputs[0], names, text);
  } else {
    text += op == "Neg" ? "-" : Cat(op, "(");
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (k > 0) text += ", ";
      Print(terms, node.inputs[k], names, text);
    }
    if (op != "Neg") text += ")";
  }
}

}  // namespace

RefitPairing PairPrograms(RefitTerms& terms,
                          const std::vector<std::pair<RefitTerm, RefitTerm>>& outputs,
                          const std::set<RefitTerm>& stored, const RefitNames& names) {
  return Walk(terms, stored, names).Run(outputs);
}

std::string ExpressionString(const RefitTerms& terms, RefitTerm term, const RefitNames& names) {
  std::string text;
  Print(terms, term, names, text);
  if (text.size() > kLongestExpression) text.replace(kLongestExpression, std::string::npos, "...");
  return text;
}

}  // namespace mendel
