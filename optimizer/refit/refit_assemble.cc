#include "optimizer/refit/refit_assemble.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "base/status.h"
#include "graph/evaluate.h"
#include "optimizer/refit/refit_values.h"

namespace mendel {
namespace {

/// Two float64 evaluations of one value differ by less than this part of their terms.
constexpr double kSameValue = 0x1p-40;

RefitTerm Flat(RefitTerms& terms, RefitTerm x) {
  return terms.Reshape(x, {NumElements(terms.type(x))});
}

/// `expression` in the shape of `view`, which it broadcasts to.
RefitTerm Fitted(RefitTerms& terms, RefitTerm expression, const Shape& shape) {
  if (NumElements(terms.type(expression)) == NumElements(shape))
    return terms.Reshape(expression, shape);
  Shape trailing = terms.shape(expression);
  if (trailing.size() > shape.size())
    trailing.erase(trailing.begin(), trailing.end() - static_cast<std::ptrdiff_t>(shape.size()));
  expression = terms.Reshape(expression, trailing);  // leading ones only are lost
  return terms.Op("Expand", {expression}, {{"shape", shape}});
}

/// The term of the constant's shape whose view `view` is `fitted`; nullopt if the view leaves
/// elements out or repeats them.
std::optional<RefitTerm> Undone(RefitTerms& terms, RefitTerm constant, RefitTerm view,
                                RefitTerm fitted) {
  while (view != constant) {
    const Node node = terms.node(view);
    view = node.inputs[0];
    if (node.op->name == "Reshape") {
      fitted = terms.Reshape(fitted, terms.shape(view));
    } else if (node.op->name == "Transpose") {
      const Ints& perm = node.attrs.IntList("perm");
      if (const Node& top = terms.node(fitted);
          top.op->name == "Transpose" && top.attrs.IntList("perm") == perm) {
        fitted = top.inputs[0];
        continue;
      }
      Ints inverse(perm.size());
      for (size_t d = 0; d < perm.size(); ++d)
        inverse[static_cast<size_t>(perm[d])] = static_cast<int64_t>(d);
      fitted = terms.Op("Transpose", {fitted}, {{"perm", inverse}});
    } else {
      return std::nullopt;
    }
  }
  return fitted;
}

/// For every position of `view` the element of `constant` that it shows.
std::vector<int64_t> ElementsOf(const RefitTerms& terms, RefitTerm constant, RefitTerm view) {
  std::vector<RefitTerm> chain;
  for (RefitTerm at = view; at != constant; at = terms.node(at).inputs[0]) chain.push_back(at);
  HostValue value{{DType::kI64, terms.shape(constant)}, {}, {}};
  value.integers.resize(static_cast<size_t>(NumElements(value.type)));
  std::iota(value.integers.begin(), value.integers.end(), int64_t{0});
  for (size_t k = chain.size(); k-- > 0;) {
    const Node& node = terms.node(chain[k]);
    const std::vector<TensorType> inputs = {value.type};
    std::vector<TensorType> outputs = node.outputs;
    for (TensorType& type : outputs) type.dtype = DType::kI64;
    const std::vector<const HostValue*> operands = {&value};
    auto results = EvaluateNode(*node.op, NodeView{inputs, node.attrs, outputs}, operands);
    value = std::move(results[static_cast<size_t>(chain[k].output)]);
  }
  return std::move(value.integers);
}

class Assembler {
 public:
  Assembler(RefitTerms& terms, RefitTerm constant, const RefitNames& names)
      : t_(terms),
        constant_(constant),
        names_(names),
        stored_(ConstantValue(terms.node(constant))) {}

  RefitReplacement Run(std::span<const RefitCandidate> candidates) {
    result_.report.type = stored_.type();
    result_.report.elements = stored_.size();
    result_.moved = std::all_of(candidates.begin(), candidates.end(),
                                [](const RefitCandidate& c) { return c.moved; });
    for (const RefitCandidate& candidate : candidates) {
      Add(candidate);
      if (!result_.failure.empty()) return std::move(result_);
    }
    if (!whole_.has_value()) Gather();
    result_.term = *whole_;
    result_.report.replaced = whole_is_candidate_ ? stored_.size() : covered_;
    return std::move(result_);
  }

 private:
  void Add(const RefitCandidate& candidate) {
    const RefitTerm fitted = Fitted(t_, candidate.expression, t_.shape(candidate.view));
    const std::optional<RefitTerm> undone = Undone(t_, constant_, candidate.view, fitted);
    if (undone.has_value() && whole_is_candidate_ && *undone == *whole_) return;
    const RefitTerm values = undone.value_or(fitted);
    const bool same_bytes =
        undone.has_value() && !whole_is_candidate_ && pieces_.empty() && SameBytes(*undone);
    // An integer is never folded: it is the same or another one.
    if (!IsFloat(stored_.dtype()) && !same_bytes) return Fail(0, "is another integer", 0, 0);
    if (undone.has_value() && candidate.moved && !same_bytes) FailWhereAnother(*undone);
    if (!same_bytes && result_.failure.empty()) {
      const std::vector<int64_t> elements =
          undone ? std::vector<int64_t>() : ElementsOf(t_, constant_, candidate.view);
      Measure(candidate, values, elements);
      if (!undone) pieces_.push_back({Flat(t_, fitted), elements});
    }
    if (undone.has_value() && !whole_is_candidate_) {
      whole_ = undone;
      whole_is_candidate_ = true;
    }
    std::string& text = result_.report.expression;
    const std::string expression = ExpressionString(t_, candidate.expression, names_);
    if (text.find(expression) == std::string::npos) text += (text.empty() ? "" : "; ") + expression;
  }

  bool SameBytes(RefitTerm term) const {
    while (t_.node(term).op->name == "Reshape") term = t_.node(term).inputs[0];
    return IsConstant(t_.node(term)) &&
           ConstantValue(t_.node(term)).Reshaped(stored_.shape()) == stored_;
  }

  /// Measure for a stored weight that moved, without three copies of it in doubles.
  void FailWhereAnother(RefitTerm term) {
    while (t_.node(term).op->name == "Reshape") term = t_.node(term).inputs[0];
    if (!IsConstant(t_.node(term))) return;
    const Tensor& other = ConstantValue(t_.node(term));
    for (int64_t p = 0; p < stored_.size(); ++p) {
      const double value = other.DoubleAt(p), stored = stored_.DoubleAt(p);
      if (value != stored && !(std::isnan(value) && std::isnan(stored)))
        return Fail(p, "is another weight", stored, value);
    }
  }

  /// Compares the stored elements, and those of earlier candidates, with the values; `elements`
  /// empty: in the constant's order.
  void Measure(const RefitCandidate& candidate, RefitTerm term,
               const std::vector<int64_t>& elements) {
    const FoldedValue folded = EvaluateWeights(t_, term);
    if (known_.empty())
      known_ = whole_is_candidate_
                   ? stored_.ToDoubles()
                   : std::vector<double>(static_cast<size_t>(stored_.size()), std::nan(""));
    RefitTensor& report = result_.report;
    for (int64_t p = 0; p < NumElements(folded.value.type); ++p) {
      const int64_t element = elements.empty() ? p : elements[static_cast<size_t>(p)];
      const double value = folded.value.At(p), magnitude = folded.magnitude.At(p),
                   stored = stored_.DoubleAt(element);
      double& known = known_[static_cast<size_t>(element)];
      if (!std::isnan(known) &&
          std::abs(known - value) > kSameValue * std::max(std::abs(value), magnitude)) {
        return Fail(element, "would be replaced by different values", known, value);
      }
      if (std::isnan(known)) ++covered_;
      known = value;
      const double ulps = UlpDistance(stored_.dtype(), stored, value, magnitude);
      if (stored == 0 && value == 0 && std::signbit(stored) != std::signbit(value))
        return Fail(element, "is a zero of the other sign", stored, value);
      if (candidate.moved && ulps != 0) return Fail(element, "is another weight", stored, value);
      if (RoundTo(stored_.dtype(), value) != stored) ++report.differing;
      report.largest_ulps = std::max(report.largest_ulps, ulps);
      report.largest_value_ulps =
          std::max(report.largest_value_ulps, UlpDistance(stored_.dtype(), stored, value, 0));
    }
  }

  void Fail(int64_t element, const char* what, double a, double b) {
    result_.failure = Cat("element ", element, " of ", TypeString(stored_.type()), " ", what, ": ",
                          a, " and ", b);
  }

  /// The elements of all pieces in the constant's order; what no piece shows stays as it is stored.
  void Gather() {
    std::vector<int64_t> sources(static_cast<size_t>(stored_.size()), -1);
    std::vector<RefitTerm> parts;
    int64_t offset = 0;
    for (const auto& [flat, elements] : pieces_) {
      for (size_t p = 0; p < elements.size(); ++p) {
        int64_t& source = sources[static_cast<size_t>(elements[p])];
        if (source < 0) source = offset + static_cast<int64_t>(p);
      }
      offset += static_cast<int64_t>(elements.size());
      parts.push_back(flat);
    }
    if (std::find(sources.begin(), sources.end(), -1) != sources.end()) {
      parts.push_back(t_.Constant(stored_.Reshaped({stored_.size()}), ""));
      for (size_t e = 0; e < sources.size(); ++e) {
        if (sources[e] < 0) sources[e] = offset + static_cast<int64_t>(e);
      }
    }
    const RefitTerm all =
        parts.size() == 1 ? parts[0] : t_.Op("Concat", parts, {{"axis", int64_t{0}}});
    const RefitTerm index =
        t_.Constant(Tensor::FromInts({DType::kI64, {stored_.size()}}, sources), "");
    whole_ = t_.Reshape(t_.Op("Gather", {all, index}, {{"axis", int64_t{0}}}), stored_.shape());
  }

  RefitTerms& t_;
  const RefitTerm constant_;
  const RefitNames& names_;
  const Tensor stored_;
  RefitReplacement result_;
  std::vector<double> known_;  // value of each element, NaN before any
  std::vector<std::pair<RefitTerm, std::vector<int64_t>>> pieces_;
  std::optional<RefitTerm> whole_;
  bool whole_is_candidate_ = false;
  int64_t covered_ = 0;
};

}  // namespace

RefitReplacement AssembleReplacement(RefitTerms& terms, RefitTerm constant,
                                     std::span<const RefitCandidate> candidates,
                                     const RefitNames& names) {
  return Assembler(terms, constant, names).Run(candidates);
}

}  // namespace mendel
