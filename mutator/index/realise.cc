#include "mutator/index/realise.h"

#include <algorithm>

#include "base/status.h"
#include "graph/rewrite.h"

namespace mendel {
namespace {

/// Realises the stages of one program, in order.
class Realiser {
 public:
  Realiser(Emitter& e, const Program& program, std::vector<ValueId> tensors, const RealiseOptions& options)
      : e_(e), program_(program), tensors_(std::move(tensors)), options_(options) {}

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
    for (const IndexTerm& term : stage.terms) {
      const ValueId value = EmitTerm(stage, term, order);
      sum = sum.node < 0 ? value : e_.Add(sum, value);
    }
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

  ValueId EmitTerm(const IndexExpression& stage, const IndexTerm& term, const std::vector<Iterator>& order) {
    if (term.factors.size() == 1) return EmitSum(stage, term, order);
    if (term.factors.size() == 2) {
      Product product{term, stage.extents, order, {}};
      for (const Factor& factor : term.factors) product.operands.push_back(tensors_[static_cast<size_t>(factor.tensor)]);
      std::optional<IndexedValue> value;
      if (options_.convolutions) value = EmitConv(e_, product);
      if (!value.has_value()) value = EmitMatMul(e_, product);
      if (value.has_value()) return Arranged(e_, *value, order);
    }
    e_.Fail(Unsupported("a term that is no convolution, matrix product or sum of views"));
    return {};
  }

  /// One factor: reductions in forms of their own are summed by ReduceSum, the others value by value.
  ValueId EmitSum(const IndexExpression& stage, const IndexTerm& term, const std::vector<Iterator>& order) {
    std::vector<Iterator> shifts, reduced;
    Shape counts;
    for (const Iterator sum : term.sums) {
      const auto places = OccurrencesOf(term, sum);
      const bool alone =
          std::all_of(places.begin(), places.end(), [&](const Occurrence& at) { return !IsShared(term.factors[0].index[at.dim]); });
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
    IndexedValue sum = SumOfShifts(stage, term, shifts, counts);
    return Arranged(e_, Reduced(sum, reduced), order);
  }

  static bool IsShared(const IndexForm& form) { return form.affine.terms.size() > 1 || form.divisor > 1; }

  IndexedValue SumOfShifts(const IndexExpression& stage, const IndexTerm& term, const std::vector<Iterator>& shifts,
                           const Shape& counts) {
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
        const IndexedValue view = EmitIndexed(e_, tensors_[static_cast<size_t>(factor.tensor)], index, stage.extents);
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
    if (!axes.empty()) result.value = e_.Op("ReduceSum", {x.value}, {{"axes", axes}, {"keepdims", int64_t{0}}});
    return result;
  }

  Emitter& e_;
  const Program& program_;
  std::vector<ValueId> tensors_;
  const RealiseOptions& options_;
};

}  // namespace

absl::StatusOr<Graph> RealiseProgram(const Graph& subprogram, const IndexSite& site, const Program& program,
                                     const RealiseOptions& options) {
  Emitter e;
  const std::vector<ValueId> inputs = e.InputsOf(subprogram);
  std::vector<ValueId> tensors;
  for (const ValueId leaf : site.leaves) {
    const auto place = std::find(subprogram.inputs().begin(), subprogram.inputs().end(), leaf.node);
    tensors.push_back(place == subprogram.inputs().end() ? e.CopyConstantExpression(subprogram, leaf)
                                                         : inputs[static_cast<size_t>(place - subprogram.inputs().begin())]);
  }
  const ValueId result = Realiser(e, program, std::move(tensors), options).Run();
  e.Output(subprogram.outputs()[0].name, result);
  MENDEL_ASSIGN_OR_RETURN(const Graph graph, e.Finish());
  return Deduplicate(graph);
}

}  // namespace mendel
