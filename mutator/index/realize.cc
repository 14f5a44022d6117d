#include "mutator/index/realize.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/status.h"
#include "graph/rewrite.h"
#include "mutator/index/contract.h"

namespace mendel {
namespace {

/// Realizes the stages of one program, in order.
class Realizer {
 public:
  /// `weights`: for every tensor of `program`, does it depend on weights only?
  Realizer(Emitter& e, const Program& program, std::vector<ValueId> tensors,
           std::vector<bool> weights, DType dtype, const RealizeOptions& options)
      : e_(e),
        program_(program),
        tensors_(std::move(tensors)),
        weights_(std::move(weights)),
        dtype_(dtype),
        options_(options) {}

  ValueId Run() {
    for (const IndexExpression& stage : program_.stages) tensors_.push_back(EmitStage(stage));
    return tensors_.back();
  }

 private:
  ValueId EmitStage(const IndexExpression& stage) {
    const std::vector<Iterator> order = stage.OutputIterators();
    Shape whole, merged, begin, end;
    for (const Iterator i : order) whole.push_back(stage.extent(i));
    ValueId sum;
    std::optional<IndexedValue> bias;
    const std::vector<const IndexTerm*> terms = TermsInOrder(stage, order, bias);
    const auto add = [&](const IndexedValue& value) {
      const ValueId arranged = Arranged(e_, value, order);
      sum = sum.node < 0 ? arranged : e_.Add(sum, arranged);
    };
    for (const IndexTerm* term : terms) add(EmitTerm(stage, *term, order, &bias));
    if (bias.has_value()) add(*bias);
    if (stage.terms.empty()) e_.Fail(Unsupported("an expression without terms"));
    if (sum.node >= 0 && e_.shape(sum) != whole) sum = e_.Op("Expand", {sum}, {{"shape", whole}});
    for (const OutputDim& dim : stage.outputs) {
      merged.push_back(1);
      for (const Iterator i : dim.iterators) merged.back() *= stage.extent(i);
      begin.push_back(dim.begin);
      end.push_back(dim.begin + dim.extent);
    }
    return e_.Cut(ReshapeTo(e_, sum, merged), {begin, end});
  }

  bool IsWeight(const IndexTerm& term) const {
    return std::all_of(term.factors.begin(), term.factors.end(), [&](const Factor& factor) {
      return weights_[static_cast<size_t>(factor.tensor)];
    });
  }

  /// The first term of weights becomes the bias where other terms are no weights; products come
  /// before what is added to them.
  std::vector<const IndexTerm*> TermsInOrder(const IndexExpression& stage,
                                             const std::vector<Iterator>& order,
                                             std::optional<IndexedValue>& bias) {
    std::vector<const IndexTerm*> terms;
    for (const IndexTerm& term : stage.terms) terms.push_back(&term);
    if (!options_.elementwise) return terms;
    std::stable_sort(terms.begin(), terms.end(), [&](const IndexTerm* a, const IndexTerm* b) {
      return std::pair(IsWeight(*a), -static_cast<int>(a->factors.size())) <
             std::pair(IsWeight(*b), -static_cast<int>(b->factors.size()));
    });
    if (terms.size() < 2 || !IsWeight(*terms.back()) || IsWeight(*terms[terms.size() - 2]))
      return terms;
    bias = EmitTerm(stage, *terms.back(), order, nullptr);
    terms.pop_back();
    return terms;
  }

  /// numerator / denominator as a weight.
  ValueId Coefficient(const IndexTerm& term) {
    const auto number = [&](int64_t value) {
      return e_.Constant(Tensor::Scalar(dtype_, static_cast<double>(value)));
    };
    if (term.denominator == 1) return number(term.numerator);
    return e_.Op("Div", {number(term.numerator), number(term.denominator)});
  }

  IndexedValue EmitTerm(const IndexExpression& stage, const IndexTerm& term,
                        const std::vector<Iterator>& order, std::optional<IndexedValue>* bias) {
    std::vector<ValueId> operands;
    std::vector<bool> weights;
    for (const Factor& factor : term.factors) {
      operands.push_back(tensors_[static_cast<size_t>(factor.tensor)]);
      weights.push_back(weights_[static_cast<size_t>(factor.tensor)]);
    }
    if (operands.empty()) return {Coefficient(term), {}};
    bool scaled = term.numerator == 1 && term.denominator == 1;
    for (size_t f = 0; f < operands.size() && !scaled; ++f) {  // weights are scaled at load time
      if (!weights[f]) continue;
      operands[f] = e_.Mul(operands[f], Coefficient(term));
      scaled = true;
    }
    IndexedValue value =
        EmitProduct(stage, term, order, operands, weights, scaled ? bias : nullptr);
    if (!scaled) value.value = e_.Mul(value.value, Coefficient(term));
    return value;
  }

  IndexedValue EmitProduct(const IndexExpression& stage, const IndexTerm& term,
                           const std::vector<Iterator>& order, const std::vector<ValueId>& operands,
                           const std::vector<bool>& weights, std::optional<IndexedValue>* bias) {
    std::optional<IndexedValue> value;
    if (term.factors.size() == 1) {
      if (options_.elementwise) value = EmitPool(e_, term, operands[0], order, stage.extents);
      return value.has_value() ? *value : EmitSum(stage, term, operands[0]);
    }
    if (term.factors.size() == 2) {
      const Product product{term,    stage.extents,      order, operands,
                            weights, options_.pointwise, bias};
      if (options_.convolutions) value = EmitConv(e_, product);
      if (!value.has_value() && options_.elementwise && IsElementwise(term))
        value = EmitMul(e_, product);
      if (!value.has_value()) value = EmitMatMul(e_, product);
      if (value.has_value()) return *value;
    }
    e_.Fail(Unsupported("a term that is no convolution, matrix product or sum of views"));
    return {};
  }

  /// No iterator of the result occurs in one factor only, or nothing is summed.
  static bool IsElementwise(const IndexTerm& term) {
    if (term.sums.empty()) return true;
    for (const size_t side : {size_t{0}, size_t{1}}) {
      for (const IndexForm& form : term.factors[side].index) {
        for (const auto& [i, coefficient] : form.affine.terms) {
          if (!Uses(term.factors[1 - side], i)) return false;
        }
      }
    }
    return true;
  }

  /// One factor: reductions in forms of their own, or whose form a Reshape splits, are summed by
  /// ReduceSum, the others value by value.
  IndexedValue EmitSum(const IndexExpression& stage, const IndexTerm& term, ValueId tensor) {
    std::vector<Iterator> shifts, reduced;
    Shape counts;
    for (const Iterator sum : term.sums) {
      const auto places = OccurrencesOf(term, sum);
      const bool alone = std::all_of(places.begin(), places.end(), [&](const Occurrence& at) {
        const IndexForm& form = term.factors[0].index[at.dim];
        return !IsShared(form) || IsSplit(form, stage.extents);
      });
      if (alone && places.size() == 1) {
        reduced.push_back(sum);
      } else {
        shifts.push_back(sum);
        counts.push_back(stage.extent(sum));
      }
    }
    if (NumElements(counts) > options_.most_shifts) {
      e_.Fail(Unsupported("a sum of ", NumElements(counts), " shifted views"));
      return {};
    }
    return Reduced(SumOfShifts(stage, term, tensor, shifts, counts), reduced);
  }

  static bool IsShared(const IndexForm& form) {
    return form.affine.terms.size() > 1 || form.divisor > 1;
  }

  /// True where every iterator is a digit of the position: 4 * a + b with b below 4.
  static bool IsSplit(const IndexForm& form, const Extents& extents) {
    std::vector<std::pair<int64_t, int64_t>> digits;  // coefficient, extent
    for (const auto& [i, coefficient] : form.affine.terms)
      digits.emplace_back(std::abs(coefficient), extents[static_cast<size_t>(i)]);
    std::sort(digits.begin(), digits.end());
    int64_t reach = 0;
    for (const auto& [coefficient, extent] : digits) {
      if (coefficient <= reach) return false;
      reach += coefficient * (extent - 1);
    }
    return form.divisor == 1;
  }

  IndexedValue SumOfShifts(const IndexExpression& stage, const IndexTerm& term, ValueId tensor,
                           const std::vector<Iterator>& shifts, const Shape& counts) {
    const Factor& factor = term.factors[0];
    const Shape shape = program_.TensorShape(factor.tensor);
    IndexedValue sum;
    Shape values(counts.size(), 0);
    do {
      std::vector<IndexForm> index = factor.index;
      bool zero = false;
      for (size_t d = 0; d < index.size(); ++d) {
        for (size_t k = 0; k < shifts.size(); ++k) {
          index[d].affine = index[d].affine.Substituted(shifts[k], Affine::Constant(values[k]));
        }
        const Range range = RangeOf(index[d].affine, stage.extents);
        zero = zero || range.high < 0 || range.low >= shape[d] * index[d].divisor;
      }
      if (!zero) {
        const IndexedValue view = EmitIndexed(e_, tensor, index, stage.extents);
        if (sum.value.node < 0) {
          sum = view;
        } else {
          sum.value = e_.Add(sum.value, Arranged(e_, view, sum.dims));
        }
      }
    } while (NextIndex(counts, values));
    if (sum.value.node < 0) e_.Fail(Unsupported("a term that is zero everywhere"));
    return sum;
  }

  IndexedValue Reduced(const IndexedValue& x, const std::vector<Iterator>& sums) {
    Ints axes;
    IndexedValue result = x;
    for (size_t d = 0; d < x.dims.size(); ++d) {
      if (std::find(sums.begin(), sums.end(), x.dims[d]) == sums.end()) continue;
      axes.push_back(static_cast<int64_t>(d));
      std::erase(result.dims, x.dims[d]);
    }
    if (!axes.empty())
      result.value = e_.Op("ReduceSum", {x.value}, {{"axes", axes}, {"keepdims", int64_t{0}}});
    return result;
  }

  Emitter& e_;
  const Program& program_;
  std::vector<ValueId> tensors_;
  const std::vector<bool> weights_;
  const DType dtype_;
  const RealizeOptions& options_;
};

}  // namespace

absl::StatusOr<Graph> RealizeProgram(const Graph& subprogram, const IndexSite& site,
                                     const Program& program, const RealizeOptions& options) {
  Emitter e;
  const std::vector<ValueId> inputs = e.InputsOf(subprogram);
  std::vector<ValueId> tensors;
  const DType dtype = subprogram.type(subprogram.outputs().back().value).dtype;
  for (const IndexLeaf& leaf : site.leaves) {
    const auto place =
        std::find(subprogram.inputs().begin(), subprogram.inputs().end(), leaf.value.node);
    tensors.push_back(place == subprogram.inputs().end() || leaf.kind != LeafKind::kValue
                          ? EmitLeaf(e, subprogram, leaf, dtype)
                          : inputs[static_cast<size_t>(place - subprogram.inputs().begin())]);
  }
  const std::vector<bool> constant = ConstantExpressions(subprogram);
  std::vector<bool> weights;
  for (const IndexLeaf& leaf : site.leaves) weights.push_back(IsWeightLeaf(constant, leaf));
  const ValueId result =
      Realizer(e, program, std::move(tensors), WeightTensors(program, weights), dtype, options)
          .Run();
  const size_t last = subprogram.outputs().size() - 1;
  const std::vector<ValueId> others =
      last > 0 ? e.Inline(subprogram, inputs) : std::vector<ValueId>();
  for (size_t k = 0; k < last; ++k) e.Output(subprogram.outputs()[k].name, others[k]);
  e.Output(subprogram.outputs()[last].name, result);
  MENDEL_ASSIGN_OR_RETURN(const Graph graph, e.Finish());
  return Deduplicate(graph);
}

}  // namespace mendel
