#include "mutator/index/like_terms.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "mutator/index/contract.h"
#include "mutator/index/match_factors.h"

namespace mendel {
namespace {

/// Factors that move times a sum of products of weights.
struct Like {
  std::vector<Factor> moving;
  std::vector<Iterator> sums;      ///< sums of the moving factors
  std::vector<IndexTerm> kernels;  ///< weights; their sums are their own
  double seconds = 0;
};

/// A leaf, or a sum of tensors of one shape.
struct Source {
  IndexLeaf leaf;
  std::vector<int> summed;
  Shape shape;
  bool weight = false;
};

bool ContainsIterator(const std::vector<Iterator>& list, Iterator i) {
  return std::find(list.begin(), list.end(), i) != list.end();
}

bool AnyUses(const std::vector<Factor>& factors, Iterator i) {
  return std::any_of(factors.begin(), factors.end(),
                     [&](const Factor& factor) { return Uses(factor, i); });
}

/// A dimension that both terms move through: part + coefficient * sum + constant.
struct Walk {
  Affine part;
  Iterator sum = -1;
  int64_t coefficient = 0, count = 1, constant = 0;
  int64_t low() const { return constant + std::min<int64_t>(0, coefficient * (count - 1)); }
  int64_t high() const { return constant + std::max<int64_t>(0, coefficient * (count - 1)); }
};

class Combiner {
 public:
  Combiner(const Graph& graph, const IndexSite& site, const std::vector<bool>& weights,
           const Predictor& predictor)
      : site_(site), predictor_(predictor), stage_(site.program.stages.back()) {
    for (const IndexLeaf& leaf : site.leaves)
      sources_.push_back({leaf, {}, LeafShape(graph, leaf), IsWeightLeaf(weights, leaf)});
  }

  IndexSite Run() {
    DropUnusedSums(stage_);
    for (const IndexTerm& term : stage_.terms) likes_.push_back(SplitTerm(term));
    for (Like& like : likes_) like.seconds = Seconds(like);
    while (ShareWeights()) {
    }
    std::stable_sort(likes_.begin(), likes_.end(), [](const Like& a, const Like& b) {
      return std::pair(a.moving.size(), a.seconds) > std::pair(b.moving.size(), b.seconds);
    });
    while (AddKernels()) {
    }
    return Result();
  }

 private:
  int64_t extent(Iterator i) const { return stage_.extents[static_cast<size_t>(i)]; }

  Like SplitTerm(const IndexTerm& term) const {
    Like like;
    IndexTerm kernel;
    kernel.numerator = term.numerator;
    kernel.denominator = term.denominator;
    for (const Factor& factor : term.factors) {
      const bool weight = sources_[static_cast<size_t>(factor.tensor)].weight;
      (weight ? kernel.factors : like.moving).push_back(factor);
    }
    for (const Iterator sum : term.sums)
      (AnyUses(like.moving, sum) ? like.sums : kernel.sums).push_back(sum);
    like.kernels = {std::move(kernel)};
    return like;
  }

  /// The iterators of a kernel's result, those of the output first.
  std::vector<Iterator> KernelDims(const Like& like) const {
    std::vector<Iterator> dims = stage_.OutputIterators();
    dims.insert(dims.end(), like.sums.begin(), like.sums.end());
    std::erase_if(dims, [&](Iterator i) {
      return std::none_of(like.kernels.begin(), like.kernels.end(),
                          [&](const IndexTerm& kernel) { return AnyUses(kernel.factors, i); });
    });
    return dims;
  }

  /// The terms as one product, with a further tensor for a kernel of several terms.
  IndexTerm Joined(const Like& like, int kernel) const {
    IndexTerm term;
    term.sums = like.sums;
    term.factors = like.moving;
    if (like.kernels.size() == 1) {
      const IndexTerm& own = like.kernels[0];
      term.sums.insert(term.sums.end(), own.sums.begin(), own.sums.end());
      term.factors.insert(term.factors.end(), own.factors.begin(), own.factors.end());
      term.numerator = own.numerator;
      term.denominator = own.denominator;
      return term;
    }
    Factor factor{kernel, {}};
    for (const Iterator i : KernelDims(like)) factor.index.push_back({Affine::Of(i), 1});
    term.factors.push_back(std::move(factor));
    return term;
  }

  double Seconds(const Like& like) const {
    Program program;
    std::vector<bool> weights;
    for (const Source& source : sources_) {
      program.leaves.push_back(source.shape);
      weights.push_back(source.weight);
    }
    Shape kernel;
    for (const Iterator i : KernelDims(like)) kernel.push_back(extent(i));
    program.leaves.push_back(kernel);
    weights.push_back(true);
    return TermSeconds(program, stage_, Joined(like, static_cast<int>(sources_.size())), weights,
                       predictor_) +
           AddSeconds();
  }

  double AddSeconds() const {
    double elements = 1;
    for (const Iterator i : stage_.OutputIterators()) elements *= static_cast<double>(extent(i));
    return predictor_.OperatorSeconds(0, 8 * elements);
  }

  int AddLeaf(LeafKind kind, int64_t count) {
    const IndexLeaf leaf{{}, kind, count};
    for (size_t k = 0; k < sources_.size(); ++k) {
      if (sources_[k].summed.empty() && sources_[k].leaf == leaf) return static_cast<int>(k);
    }
    sources_.push_back(
        {leaf, {}, kind == LeafKind::kOnes ? Shape{count} : Shape{count, count}, true});
    return static_cast<int>(sources_.size() - 1);
  }

  /// Combines two products that differ in one moving factor; false when there are none.
  bool ShareWeights() {
    for (size_t a = 0; a < likes_.size(); ++a) {
      for (size_t b = a + 1; b < likes_.size(); ++b) {
        if (!ShareWeight(likes_[a], likes_[b])) continue;
        likes_.erase(likes_.begin() + static_cast<std::ptrdiff_t>(b));
        return true;
      }
    }
    return false;
  }

  bool ShareWeight(Like& ours, const Like& theirs) {
    if (ours.kernels.size() != 1 || theirs.kernels.size() != 1 || ours.moving.empty() ||
        theirs.moving.size() != ours.moving.size())
      return false;
    const IndexTerm a = Joined(ours, -1), b = Joined(theirs, -1);
    if (a.factors.size() < 2 || a.numerator != b.numerator || a.denominator != b.denominator)
      return false;
    for (size_t f = 0; f < ours.moving.size(); ++f) {
      int other = -1;
      const auto names = MatchFactors(a.factors, b.factors, a.sums, b.sums, stage_.extents,
                                      static_cast<int>(f), &other);
      if (!names.has_value() || names->size() != a.sums.size()) continue;
      const Source &first = sources_[static_cast<size_t>(a.factors[f].tensor)],
                   &second = sources_[static_cast<size_t>(other)];
      if (first.shape != second.shape || second.weight || other == a.factors[f].tensor) continue;
      Source sum;
      for (const int tensor : {a.factors[f].tensor, other}) {
        const Source& source = sources_[static_cast<size_t>(tensor)];
        if (source.summed.empty()) sum.summed.push_back(tensor);
        sum.summed.insert(sum.summed.end(), source.summed.begin(), source.summed.end());
      }
      sum.shape = first.shape;
      sources_.push_back(std::move(sum));
      ours.moving[f].tensor = static_cast<int>(sources_.size() - 1);
      ours.seconds = Seconds(ours);
      return true;
    }
    return false;
  }

  bool AddKernels() {
    for (size_t a = 0; a < likes_.size(); ++a) {
      for (size_t b = a + 1; b < likes_.size(); ++b) {
        for (const auto& [to, from] : {std::pair(a, b), std::pair(b, a)}) {
          std::optional<Like> sum = Renamed(likes_[to], likes_[from]);
          if (!sum.has_value()) sum = Embedded(likes_[to], likes_[from]);
          if (!sum.has_value()) continue;
          sum->seconds = Seconds(*sum);
          if (sum->seconds >= likes_[a].seconds + likes_[b].seconds) continue;
          likes_[a] = *std::move(sum);
          likes_.erase(likes_.begin() + static_cast<std::ptrdiff_t>(b));
          return true;
        }
      }
    }
    return false;
  }

  /// Gives own sums of the kernels other names than `taken`: terms may use one name for the sum of
  /// a moving factor here and for one of a kernel there.
  void Freshen(Like& like, const std::vector<Iterator>& taken) {
    for (IndexTerm& kernel : like.kernels) {
      for (Iterator& sum : kernel.sums) {
        if (!ContainsIterator(taken, sum)) continue;
        const Iterator fresh = stage_.NewIterator(extent(sum));
        RenameIterators(kernel.factors, {{sum, fresh}});
        sum = fresh;
      }
    }
  }

  /// The same moving factors but for names.
  std::optional<Like> Renamed(const Like& ours, const Like& theirs) {
    const auto names =
        MatchFactors(ours.moving, theirs.moving, ours.sums, theirs.sums, stage_.extents);
    if (!names.has_value() || names->size() != ours.sums.size()) return std::nullopt;
    Like sum = ours, other = theirs;
    Freshen(other, ours.sums);
    Freshen(other, theirs.sums);
    for (IndexTerm& kernel : other.kernels) {
      RenameIterators(kernel.factors, *names);
      Append(sum, std::move(kernel));
    }
    return sum;
  }

  /// Kernels that are equal but for their coefficients are one.
  static void Append(Like& like, IndexTerm kernel) {
    for (IndexTerm& own : like.kernels) {
      if (own.sums != kernel.sums || own.factors != kernel.factors) continue;
      const int64_t numerator =
          own.numerator * kernel.denominator + kernel.numerator * own.denominator;
      own.denominator *= kernel.denominator;
      const int64_t common = std::max<int64_t>(1, std::gcd(numerator, own.denominator));
      own.numerator = numerator / common;
      own.denominator /= common;
      return;
    }
    like.kernels.push_back(std::move(kernel));
  }

  std::optional<Walk> WalkOf(const Like& like, const IndexForm& form) const {
    if (form.divisor != 1) return std::nullopt;
    Walk walk;
    walk.part.terms = form.affine.terms;
    walk.constant = form.affine.constant;
    for (const auto& [i, coefficient] : form.affine.terms) {
      if (!ContainsIterator(like.sums, i)) continue;
      if (walk.sum >= 0) return std::nullopt;
      walk.sum = i;
      walk.coefficient = coefficient;
      walk.count = extent(i);
      walk.part.terms.erase(i);
    }
    return walk;
  }

  /// One moving factor: both kernels over a common window of every dimension, those of `ours`.
  std::optional<Like> Embedded(const Like& ours, const Like& theirs) {
    if (ours.moving.size() != 1 || theirs.moving.size() != 1 ||
        ours.moving[0].tensor != theirs.moving[0].tensor)
      return std::nullopt;
    Like sum = ours, other = theirs;
    const Extents extents = stage_.extents;
    for (const std::vector<Iterator>* taken : {&ours.sums, &theirs.sums}) {
      Freshen(sum, *taken);
      Freshen(other, *taken);
    }
    for (size_t d = 0; d < ours.moving[0].index.size(); ++d) {
      const auto a = WalkOf(ours, ours.moving[0].index[d]),
                 b = WalkOf(theirs, theirs.moving[0].index[d]);
      if (!a.has_value() || !b.has_value() || !Join(*a, *b, d, sum, other)) {
        stage_.extents = extents;
        return std::nullopt;
      }
    }
    std::vector<Iterator> left = other.sums;
    std::erase_if(left, [&](Iterator i) { return !AnyUses(other.moving, i); });
    if (!left.empty() && other.moving != sum.moving) {
      stage_.extents = extents;
      return std::nullopt;
    }
    for (IndexTerm& kernel : other.kernels) Append(sum, std::move(kernel));
    std::erase_if(sum.sums, [&](Iterator i) { return !AnyUses(sum.moving, i); });
    return sum;
  }

  /// Makes dimension `d` of both the same form.
  bool Join(const Walk& a, const Walk& b, size_t d, Like& ours, Like& theirs) {
    const bool same_part = a.part == b.part;
    if (same_part && a.sum < 0 && b.sum < 0) return a.constant == b.constant;
    int64_t low = a.low(), high = a.high(), step = std::abs(a.coefficient);
    if (same_part) {
      step = std::gcd(step, std::gcd(std::abs(b.coefficient), std::abs(a.low() - b.low())));
      low = std::min(a.low(), b.low());
      high = std::max(a.high(), b.high());
      if (step == 0) return false;
    } else {
      const Affine apart = b.part + a.part * -1;
      const Range range = RangeOf(apart, stage_.extents);
      if (step != 1 || a.sum < 0 || range.low + b.low() < low || range.high + b.high() > high)
        return false;
    }
    Iterator common = a.sum;
    const bool keeps = a.sum >= 0 && a.coefficient == step && low == a.low() && high == a.high();
    if (!keeps) common = stage_.NewIterator((high - low) / step + 1);
    const Affine form = a.part + Affine::Of(common, step, low);
    if (!keeps && !Move(a, form, d, ours)) return false;
    if (!Move(b, form, d, theirs)) return false;
    if (!keeps) ours.sums.push_back(common);
    return true;
  }

  /// Rewrites a term whose dimension `d` walks as `walk` says so that it reads it at `form`.
  bool Move(const Walk& walk, const Affine& form, size_t d, Like& like) {
    like.moving[0].index[d].affine = form;
    const Affine tap = form + walk.part * -1 + Affine::Constant(-walk.constant);
    for (IndexTerm& kernel : like.kernels) {
      if (walk.sum < 0) {
        if (!AddDelta(tap, kernel)) return false;
      } else if (!MoveTap(walk, tap, kernel)) {
        return false;
      }
    }
    return true;
  }

  /// Zero unless `tap` is zero.
  bool AddDelta(const Affine& tap, IndexTerm& kernel) {
    Affine forward = Affine::Constant(std::max<int64_t>(0, tap.constant));
    Affine back = Affine::Constant(std::max<int64_t>(0, -tap.constant));
    for (const auto& [i, coefficient] : tap.terms) {
      if (coefficient > 0) forward = forward + Affine::Of(i, coefficient);
      if (coefficient < 0) back = back + Affine::Of(i, -coefficient);
    }
    if (back.terms.empty()) {  // one tap
      kernel.factors.push_back({AddLeaf(LeafKind::kOnes, 1), {{tap, 1}}});
      return true;
    }
    const Range a = RangeOf(forward, stage_.extents), b = RangeOf(back, stage_.extents);
    const int64_t extent = std::max(a.high, b.high) + 1;
    if (extent > 8192) return false;
    kernel.factors.push_back({AddLeaf(LeafKind::kIdentity, extent), {{back, 1}, {forward, 1}}});
    return true;
  }

  /// form / divisor in lowest terms.
  static void Reduce(Affine& form, int64_t& divisor) {
    int64_t common = std::gcd(divisor, std::abs(form.constant));
    for (const auto& [i, coefficient] : form.terms)
      common = std::gcd(common, std::abs(coefficient));
    for (auto& [i, coefficient] : form.terms) coefficient /= common;
    form.constant /= common;
    divisor /= common;
  }

  /// The tap of the kernel becomes `tap` / the walk's coefficient; zero outside its range.
  bool MoveTap(const Walk& walk, const Affine& tap, IndexTerm& kernel) {
    const bool forward = walk.coefficient > 0;
    Affine turned = forward ? tap : tap * -1;
    int64_t divisor = std::abs(walk.coefficient);
    Reduce(turned, divisor);
    bool guarded = false;
    for (Factor& factor : kernel.factors) {
      const Shape& shape = sources_[static_cast<size_t>(factor.tensor)].shape;
      for (size_t d = 0; d < factor.index.size(); ++d) {
        IndexForm& form = factor.index[d];
        if (!form.affine.Uses(walk.sum)) continue;
        if (form.divisor == 1 && form.affine.IsIterator()) {
          form = {turned, divisor};
          guarded = guarded || shape[d] == walk.count;
        } else if (divisor == 1) {
          form.affine = form.affine.Substituted(walk.sum, turned);
        } else {
          return false;
        }
      }
    }
    if (!guarded)
      kernel.factors.push_back({AddLeaf(LeafKind::kOnes, walk.count), {{turned, divisor}}});
    return true;
  }

  /// The site with a stage for every kernel of several terms and every sum of moving tensors.
  IndexSite Result() {
    IndexSite result = site_;
    result.leaves.clear();
    result.program = {};
    std::vector<int> tensors(sources_.size(), -1);
    for (size_t k = 0; k < sources_.size(); ++k) {
      if (!sources_[k].summed.empty()) continue;
      tensors[k] = static_cast<int>(result.leaves.size());
      result.leaves.push_back(sources_[k].leaf);
      result.program.leaves.push_back(sources_[k].shape);
    }
    const auto rename = [&](std::vector<Factor>& factors) {
      for (Factor& factor : factors) {
        if (factor.tensor >= 0) factor.tensor = tensors[static_cast<size_t>(factor.tensor)];
      }
    };
    std::set<int> used;
    for (const Like& like : likes_) {
      for (const Factor& factor : like.moving) used.insert(factor.tensor);
    }
    for (const int k : used) {
      const Source& source = sources_[static_cast<size_t>(k)];
      if (source.summed.empty()) continue;
      result.program.stages.push_back(SumStage(source, tensors));
      tensors[static_cast<size_t>(k)] = LastTensor(result);
    }
    IndexExpression last = stage_;
    last.terms.clear();
    for (Like& like : likes_) {
      rename(like.moving);
      for (IndexTerm& kernel : like.kernels) rename(kernel.factors);
      std::erase_if(like.kernels, [](const IndexTerm& kernel) { return kernel.numerator == 0; });
      if (like.kernels.empty()) continue;
      int kernel = -1;
      if (like.kernels.size() > 1) {
        result.program.stages.push_back(KernelStage(like));
        kernel = LastTensor(result);
      }
      last.terms.push_back(Joined(like, kernel));
    }
    result.program.stages.push_back(std::move(last));
    return result;
  }

  static int LastTensor(const IndexSite& site) {
    return site.program.StageTensor(site.program.stages.size() - 1);
  }

  static IndexExpression SumStage(const Source& source, const std::vector<int>& tensors) {
    IndexExpression stage;
    std::vector<IndexForm> index;
    for (const int64_t extent : source.shape) {
      const Iterator i = stage.NewIterator(extent);
      stage.outputs.push_back({{i}, 0, extent});
      index.push_back({Affine::Of(i), 1});
    }
    for (const int tensor : source.summed)
      stage.terms.push_back({{}, {{tensors[static_cast<size_t>(tensor)], index}}});
    return stage;
  }

  IndexExpression KernelStage(const Like& like) const {
    IndexExpression stage;
    stage.extents = stage_.extents;
    for (const Iterator i : KernelDims(like)) stage.outputs.push_back({{i}, 0, extent(i)});
    stage.terms = like.kernels;
    return stage;
  }

  const IndexSite& site_;
  const Predictor& predictor_;
  IndexExpression stage_;
  std::vector<Source> sources_;
  std::vector<Like> likes_;
};

}  // namespace

void DropUnusedSums(IndexExpression& stage) {
  for (IndexTerm& term : stage.terms) {
    std::erase_if(term.sums, [&](Iterator sum) {
      if (AnyUses(term.factors, sum)) return false;
      term.numerator *= stage.extent(sum);
      return true;
    });
    const int64_t common = std::max<int64_t>(1, std::gcd(term.numerator, term.denominator));
    term.numerator /= common;
    term.denominator /= common;
  }
}

IndexSite CombineLikeTerms(const Graph& graph, const IndexSite& site,
                           const std::vector<bool>& weights, const Predictor& predictor) {
  return Combiner(graph, site, weights, predictor).Run();
}

}  // namespace mendel
