#include <algorithm>
#include <optional>

#include "mutator/index/contract.h"
#include "mutator/index/products.h"

namespace mendel {
namespace {

/// Sums i and j that a form of the image adds up as c (i + ratio j).
struct WindowPair {
  Iterator i = 0, j = 0;
  int64_t ratio = 1;
};

class WindowMerger {
 public:
  WindowMerger(const Program& program, const std::vector<bool>& weights)
      : program_(program), weights_(WeightTensors(program, weights)) {}

  Program Run() {
    for (IndexExpression& stage : program_.stages) {
      for (IndexTerm& term : stage.terms) {
        while (const std::optional<WindowPair> pair = Find(stage, term)) Merge(stage, term, *pair);
      }
    }
    return std::move(program_);
  }

 private:
  bool IsSum(const IndexTerm& term, Iterator i) const {
    return std::find(term.sums.begin(), term.sums.end(), i) != term.sums.end();
  }

  /// Places of the iterator in what is computed at run time.
  int64_t RunTimePlaces(const IndexTerm& term, Iterator i) const {
    const auto places = OccurrencesOf(term, i);
    return std::count_if(places.begin(), places.end(), [&](const Occurrence& at) {
      return !weights_[static_cast<size_t>(term.factors[at.factor].tensor)];
    });
  }

  std::optional<WindowPair> Find(const IndexExpression& stage, const IndexTerm& term) const {
    for (const Factor& factor : term.factors) {
      if (weights_[static_cast<size_t>(factor.tensor)]) continue;
      for (const IndexForm& form : factor.index) {
        if (form.divisor != 1) continue;
        for (const auto& [i, step] : form.affine.terms) {
          for (const auto& [j, other] : form.affine.terms) {
            const bool fits = i != j && step > 0 && other >= step && other % step == 0 &&
                              IsSum(term, i) && IsSum(term, j);
            if (!fits || RunTimePlaces(term, i) != 1 || RunTimePlaces(term, j) != 1) continue;
            // Outside of its range some weight is zero.
            if (IsGuarded(program_, stage, term, i)) return WindowPair{i, j, other / step};
          }
        }
      }
    }
    return std::nullopt;
  }

  static void Merge(IndexExpression& stage, IndexTerm& term, const WindowPair& pair) {
    const Iterator t =
        stage.NewIterator(pair.ratio * (stage.extent(pair.j) - 1) + stage.extent(pair.i));
    std::replace(term.sums.begin(), term.sums.end(), pair.i, t);
    Substitute(term, pair.i, Affine::Of(t) + Affine::Of(pair.j, -pair.ratio));
  }

  Program program_;
  const std::vector<bool> weights_;
};

}  // namespace

Program MergeWindows(const Program& program, const std::vector<bool>& weights) {
  return WindowMerger(program, weights).Run();
}

}  // namespace mendel
