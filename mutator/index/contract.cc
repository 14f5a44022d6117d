#include "mutator/index/contract.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace mendel {
namespace {

constexpr double kLoadSeconds = 1e-4;  // of a second at load time, to order equal costs
constexpr double kMostWeightBytes = 64 << 20;

using Mask = uint32_t;

/// One dimension of an intermediate tensor: the position part / step - low.
struct Atom {
  Affine part;  ///< coefficients are multiples of `step`, there is no constant
  int64_t low = 0;
  int64_t extent = 1;
  int64_t step = 1;

  Affine Position() const {
    Affine position = Affine::Constant(-low);
    for (const auto& [i, coefficient] : part.terms) position.terms[i] = coefficient / step;
    return position;
  }
};

/// The product of one or two operands, summed over what nothing else uses.
struct Contraction {
  std::vector<Factor> operands;
  std::vector<Atom> dims;
  std::vector<Iterator> sums;
  double seconds = 0;
};

/// The tensor of one subset of factors.
struct Group {
  double seconds = std::numeric_limits<double>::infinity();  ///< to make it, everything included
  Mask left = 0;                                             ///< 0: a factor as it is
  std::optional<Contraction> made;
  std::vector<IndexForm> index;  ///< how the term reads it
  Shape shape;
  bool weight = false;
};

/// The order of one term.
class TermOrder {
 public:
  TermOrder(const Program& program, const IndexExpression& stage, const IndexTerm& term,
            const std::vector<bool>& weights, const Predictor& predictor)
      : stage_(stage),
        term_(term),
        predictor_(predictor),
        groups_(size_t{1} << term.factors.size()) {
    const std::vector<Iterator> outputs = stage.OutputIterators();
    outputs_.insert(outputs.begin(), outputs.end());
    for (size_t f = 0; f < term.factors.size(); ++f) {
      const size_t tensor = static_cast<size_t>(term.factors[f].tensor);
      Single(Mask{1} << f, term.factors[f], program.TensorShape(term.factors[f].tensor),
             weights[tensor]);
    }
    for (Mask mask = 1; mask < groups_.size(); ++mask) {
      if ((mask & (mask - 1)) != 0) Cheapest(mask);
    }
  }

  double seconds() const { return groups_.back().seconds; }

  /// Appends the stages of the order to `program`; returns the term that is left.
  IndexTerm Emit(Program& program) const {
    const Mask all = static_cast<Mask>(groups_.size() - 1);
    const Group& last = groups_[all];
    IndexTerm term = term_;
    if (last.left == 0) return term;
    term.factors = {EmitGroup(program, last.left), EmitGroup(program, all & ~last.left)};
    term.sums = last.made->sums;
    return term;
  }

 private:
  int64_t extent(Iterator i) const { return stage_.extents[static_cast<size_t>(i)]; }

  bool IsKept(Iterator i, Mask mask) const {
    if (outputs_.count(i) > 0) return true;
    for (size_t f = 0; f < term_.factors.size(); ++f) {
      if ((mask >> f & 1) == 0 && Uses(term_.factors[f], i)) return true;
    }
    return false;
  }

  void Single(Mask mask, const Factor& factor, const Shape& shape, bool weight) {
    Group& group = groups_[mask];
    group.index = factor.index;
    group.shape = shape;
    group.weight = weight;
    group.seconds = 0;
    if (groups_.size() == 2) {  // a term of one factor is summed where it stands
      group.seconds = Seconds({factor}, {}, mask, {}, weight);
      return;
    }
    Contraction sum = Contract({factor}, mask);
    if (sum.sums.empty()) return;
    Take(group, std::move(sum));
    group.seconds = group.made->seconds;
  }

  static void Take(Group& group, Contraction made) {
    group.index.clear();
    group.shape.clear();
    for (const Atom& atom : made.dims) {
      group.index.push_back({atom.Position(), 1});
      group.shape.push_back(atom.extent);
    }
    group.made = std::move(made);
  }

  void Cheapest(Mask mask) {
    const Mask lowest = mask & (~mask + 1);
    for (Mask left = (mask - 1) & mask; left > 0; left = (left - 1) & mask) {
      const Mask right = mask & ~left;
      if ((left & lowest) == 0) continue;
      const double parts = groups_[left].seconds + groups_[right].seconds;
      Group& group = groups_[mask];
      if (parts >= group.seconds) continue;
      const bool weight = groups_[left].weight && groups_[right].weight;
      group.weight = weight;
      Contraction made = Contract({AsFactor(left), AsFactor(right)}, mask);
      if (parts + made.seconds >= group.seconds) continue;
      group.seconds = parts + made.seconds;
      group.left = left;
      Take(group, std::move(made));
    }
  }

  /// A factor whose tensor is the number of the subset.
  Factor AsFactor(Mask mask) const { return {static_cast<int>(mask), groups_[mask].index}; }

  /// The positions of `form` that are kept, as one part.
  Affine KeptPart(const IndexForm& form, Mask mask) const {
    Affine part;
    for (const auto& [i, coefficient] : form.affine.terms) {
      if (IsKept(i, mask)) part.terms[i] = coefficient;
    }
    return part;
  }

  /// True when all iterators of `part` occur in this part only.
  bool StaysTogether(const std::vector<Factor>& operands, const Affine& part, Mask mask) const {
    for (const Factor& operand : operands) {
      for (const IndexForm& form : operand.index) {
        const Affine other = KeptPart(form, mask);
        const bool shares = std::any_of(part.terms.begin(), part.terms.end(),
                                        [&](const auto& t) { return other.Uses(t.first); });
        if (shares && (other.terms != part.terms || form.divisor != 1)) return false;
      }
    }
    return true;
  }

  Atom Composite(const std::vector<Factor>& operands, const Affine& part, Mask mask) const {
    Range range = RangeOf(part, stage_.extents);
    for (const Factor& operand : operands) {
      const Shape& shape = ShapeOf(operand, mask);
      for (size_t d = 0; d < shape.size(); ++d) {
        const Affine& form = operand.index[d].affine;
        if (form.terms != part.terms || operand.index[d].divisor != 1) continue;
        range.low = std::max(range.low, -form.constant);
        range.high = std::min(range.high, shape[d] - 1 - form.constant);
      }
    }
    int64_t step = 0;
    for (const auto& [i, coefficient] : part.terms) step = std::gcd(step, coefficient);
    const int64_t low = CeilDiv(range.low, step), high = FloorDiv(range.high, step);
    return {part, low, std::max(high, low) - low + 1, step};
  }

  const Shape& ShapeOf(const Factor& operand, Mask) const {
    return groups_[static_cast<size_t>(operand.tensor)].shape;
  }

  /// Dimensions of the result that `operand` has, with an empty part where a sum stands.
  std::vector<Atom> AtomsOf(const std::vector<Factor>& operands, const Factor& operand,
                            Mask mask) const {
    std::vector<Atom> atoms;
    for (const IndexForm& form : operand.index) {
      const Affine part = KeptPart(form, mask);
      if (part.terms.size() < form.affine.terms.size()) atoms.push_back({});
      if (part.terms.size() > 1 && StaysTogether(operands, part, mask)) {
        atoms.push_back(Composite(operands, part, mask));
        continue;
      }
      for (const auto& [i, coefficient] : part.terms)
        atoms.push_back({Affine::Of(i), 0, extent(i)});
    }
    return atoms;
  }

  Contraction Contract(std::vector<Factor> operands, Mask mask) {
    if (operands.size() == 1) operands[0].tensor = static_cast<int>(mask);
    Contraction made;
    made.operands = operands;
    for (const Factor& operand : operands) {
      for (const IndexForm& form : operand.index) {
        for (const auto& [i, coefficient] : form.affine.terms) {
          const bool known = std::find(made.sums.begin(), made.sums.end(), i) != made.sums.end();
          if (!known && !IsKept(i, mask)) made.sums.push_back(i);
        }
      }
    }
    size_t main = 0;
    if (operands.size() == 2) {
      const Group& a = groups_[static_cast<size_t>(operands[0].tensor)];
      const Group& b = groups_[static_cast<size_t>(operands[1].tensor)];
      if (std::pair(!b.weight, NumElements(b.shape)) > std::pair(!a.weight, NumElements(a.shape)))
        main = 1;
    }
    const auto append = [&](const Atom& atom) {
      const bool known = std::any_of(made.dims.begin(), made.dims.end(), [&](const Atom& other) {
        return other.part.terms == atom.part.terms;
      });
      if (!known && !atom.part.terms.empty()) made.dims.push_back(atom);
    };
    const std::vector<Atom> own = AtomsOf(operands, operands[main], mask);
    const auto is_own = [&](const Atom& atom) {
      return std::any_of(own.begin(), own.end(),
                         [&](const Atom& o) { return o.part.terms == atom.part.terms; });
    };
    std::vector<Atom> others;
    if (operands.size() == 2) others = AtomsOf(operands, operands[1 - main], mask);
    std::erase_if(others, is_own);
    bool placed = false;
    for (const Atom& atom : own) {
      if (!placed && atom.part.terms.empty()) {
        for (const Atom& other : others) append(other);
        placed = true;
      }
      append(atom);
    }
    for (const Atom& other : others) append(other);
    made.seconds = Seconds(operands, made.dims, mask, made.sums, groups_[mask].weight);
    return made;
  }

  /// Elements of an operand as a matrix product would read it, where no convolution reads it.
  double ReadElements(const std::vector<Factor>& operands, const Factor& operand, Mask mask) const {
    const double stored = static_cast<double>(NumElements(ShapeOf(operand, mask)));
    double unfolded = 1;
    bool unfolds = false;
    std::set<Iterator> seen;
    for (const IndexForm& form : operand.index) {
      const Affine part = KeptPart(form, mask);
      const bool together = part.terms.size() > 1 && StaysTogether(operands, part, mask);
      const size_t kept = together ? 1 : part.terms.size();
      const size_t summed = form.affine.terms.size() - part.terms.size();
      unfolds = unfolds || kept > 1 || summed > 1;
      for (const auto& [i, coefficient] : form.affine.terms) {
        if (seen.insert(i).second) unfolded *= static_cast<double>(extent(i));
      }
    }
    return unfolds ? std::max(stored, 2 * unfolded) : stored;
  }

  double Seconds(const std::vector<Factor>& operands, const std::vector<Atom>& dims, Mask mask,
                 const std::vector<Iterator>& sums, bool weight) const {
    double elements = 1, inner = 1, read = 0;
    const bool whole = mask + 1 == groups_.size();
    if (whole) {
      for (const Iterator i : outputs_) elements *= static_cast<double>(extent(i));
    } else {
      for (const Atom& atom : dims) elements *= static_cast<double>(atom.extent);
    }
    for (const Iterator i : whole&& groups_.size() == 2 ? term_.sums : sums)
      inner *= static_cast<double>(extent(i));
    for (Factor operand : operands) {
      if (operands.size() == 1) operand.tensor = static_cast<int>(mask);
      read += ReadElements(operands, operand, mask);
    }
    const double flops = 2 * elements * inner;
    if (weight) {
      if (!whole && 4 * elements > kMostWeightBytes) return std::numeric_limits<double>::infinity();
      return kLoadSeconds * predictor_.OperatorSeconds(flops, 0);
    }
    return predictor_.OperatorSeconds(flops, 4 * (elements + read));
  }

  Factor EmitGroup(Program& program, Mask mask) const {
    const Group& group = groups_[mask];
    const bool single = (mask & (mask - 1)) == 0;
    size_t number = 0;
    while (single && (mask >> number) != 1) ++number;
    if (!group.made.has_value()) return term_.factors[number];
    std::vector<Factor> operands = {single ? term_.factors[number]
                                           : EmitGroup(program, group.left)};
    if (!single) operands.push_back(EmitGroup(program, mask & ~group.left));
    program.stages.push_back(StageOf(*group.made, operands));
    return {program.StageTensor(program.stages.size() - 1), group.index};
  }

  /// The stage that computes a contraction, in iterators of its own.
  IndexExpression StageOf(const Contraction& made, std::vector<Factor> operands) const {
    IndexExpression stage;
    IndexTerm term;
    stage.extents = stage_.extents;
    for (const Atom& atom : made.dims) {
      const Iterator dim = stage.NewIterator(atom.extent);
      stage.outputs.push_back({{dim}, 0, atom.extent});
      for (Factor& operand : operands) {
        for (IndexForm& form : operand.index) Replace(form.affine, atom, dim);
      }
    }
    term.sums = made.sums;
    term.factors = std::move(operands);
    stage.terms = {std::move(term)};
    return stage;
  }

  static void Replace(Affine& form, const Atom& atom, Iterator dim) {
    if (atom.part.terms.size() == 1) {
      form = form.Substituted(atom.part.terms.begin()->first, Affine::Of(dim));
      return;
    }
    for (const auto& [i, coefficient] : atom.part.terms) {
      if (form.Coefficient(i) != coefficient) return;
    }
    for (const auto& [i, coefficient] : atom.part.terms) form.terms.erase(i);
    form = form + Affine::Of(dim, atom.step, atom.step * atom.low);
  }

  const IndexExpression& stage_;
  const IndexTerm& term_;
  const Predictor& predictor_;
  std::set<Iterator> outputs_;
  std::vector<Group> groups_;
};

}  // namespace

std::vector<bool> WeightTensors(const Program& program, const std::vector<bool>& weights) {
  std::vector<bool> all = weights;
  for (const IndexExpression& stage : program.stages) {
    all.push_back(std::all_of(stage.terms.begin(), stage.terms.end(), [&](const IndexTerm& term) {
      return std::all_of(term.factors.begin(), term.factors.end(), [&](const Factor& factor) {
        return all[static_cast<size_t>(factor.tensor)];
      });
    }));
  }
  return all;
}

double TermSeconds(const Program& program, const IndexExpression& stage, const IndexTerm& term,
                   const std::vector<bool>& weights, const Predictor& predictor) {
  if (term.factors.size() > kMostContracted) return std::numeric_limits<double>::infinity();
  return term.factors.empty() ? 0 : TermOrder(program, stage, term, weights, predictor).seconds();
}

Program OrderContractions(const Program& program, const std::vector<bool>& weights,
                          const Predictor& predictor) {
  const std::vector<bool> all = WeightTensors(program, weights);
  Program ordered;
  ordered.leaves = program.leaves;
  std::vector<int> tensors(program.leaves.size());
  for (size_t k = 0; k < tensors.size(); ++k) tensors[k] = static_cast<int>(k);
  for (const IndexExpression& old : program.stages) {
    IndexExpression stage = old;
    for (IndexTerm& term : stage.terms) {
      std::vector<bool> weight;  // by new number
      for (const Factor& factor : term.factors)
        weight.push_back(all[static_cast<size_t>(factor.tensor)]);
      for (Factor& factor : term.factors)
        factor.tensor = tensors[static_cast<size_t>(factor.tensor)];
      if (term.factors.empty() || term.factors.size() > kMostContracted) continue;
      std::vector<bool> by_tensor(ordered.leaves.size() + ordered.stages.size(), false);
      for (size_t f = 0; f < weight.size(); ++f)
        by_tensor[static_cast<size_t>(term.factors[f].tensor)] = weight[f];
      const TermOrder order(ordered, old, term, by_tensor, predictor);
      term = order.Emit(ordered);
    }
    ordered.stages.push_back(std::move(stage));
    tensors.push_back(ordered.StageTensor(ordered.stages.size() - 1));
  }
  return ordered;
}

}  // namespace mendel
