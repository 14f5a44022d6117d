#include "mutator/index/match_factors.h"

#include <algorithm>

namespace mendel {
namespace {

using Names = std::map<Iterator, Iterator>;

class Matcher {
 public:
  Matcher(const std::vector<Factor>& ours, const std::vector<Factor>& theirs,
          const std::vector<Iterator>& our_sums, const std::vector<Iterator>& their_sums,
          const Extents& extents, int any_tensor)
      : ours_(ours),
        theirs_(theirs),
        our_sums_(our_sums),
        their_sums_(their_sums),
        extents_(extents),
        any_tensor_(any_tensor),
        used_(theirs.size(), false) {}

  std::optional<Names> Run(int* other) {
    if (ours_.size() != theirs_.size() || our_sums_.size() != their_sums_.size() || !From(0, other))
      return std::nullopt;
    return names_;
  }

 private:
  static bool Has(const std::vector<Iterator>& list, Iterator i) {
    return std::find(list.begin(), list.end(), i) != list.end();
  }

  bool From(size_t f, int* other) {
    if (f == ours_.size()) return true;
    const bool any = static_cast<int>(f) == any_tensor_;
    for (size_t k = 0; k < theirs_.size(); ++k) {
      if (used_[k] || (!any && theirs_[k].tensor != ours_[f].tensor)) continue;
      const Names before = names_;
      used_[k] = true;
      if (Unify(ours_[f], theirs_[k]) && From(f + 1, other)) {
        if (any && other != nullptr) *other = theirs_[k].tensor;
        return true;
      }
      used_[k] = false;
      names_ = before;
    }
    return false;
  }

  bool Unify(const Factor& ours, const Factor& theirs) {
    if (ours.index.size() != theirs.index.size()) return false;
    for (size_t d = 0; d < ours.index.size(); ++d) {
      if (ours.index[d].divisor != theirs.index[d].divisor ||
          !UnifyForms(ours.index[d].affine, theirs.index[d].affine))
        return false;
    }
    return true;
  }

  bool UnifyForms(const Affine& ours, const Affine& theirs) {
    if (ours.constant != theirs.constant || ours.terms.size() != theirs.terms.size()) return false;
    for (const auto& [i, coefficient] : theirs.terms) {
      if (!Has(their_sums_, i)) {
        if (ours.Coefficient(i) != coefficient) return false;
        continue;
      }
      const auto known = names_.find(i);
      if (known != names_.end()) {
        if (ours.Coefficient(known->second) != coefficient) return false;
        continue;
      }
      if (!Name(i, coefficient, ours)) return false;
    }
    return true;
  }

  bool Name(Iterator theirs, int64_t coefficient, const Affine& form) {
    for (const auto& [i, own] : form.terms) {
      const bool taken = std::any_of(names_.begin(), names_.end(),
                                     [&, i = i](const auto& n) { return n.second == i; });
      if (own != coefficient || taken || !Has(our_sums_, i) ||
          extents_[static_cast<size_t>(i)] != extents_[static_cast<size_t>(theirs)])
        continue;
      names_[theirs] = i;
      return true;
    }
    return false;
  }

  const std::vector<Factor>& ours_;
  const std::vector<Factor>& theirs_;
  const std::vector<Iterator>& our_sums_;
  const std::vector<Iterator>& their_sums_;
  const Extents& extents_;
  const int any_tensor_;
  std::vector<bool> used_;
  Names names_;
};

}  // namespace

std::optional<Names> MatchFactors(const std::vector<Factor>& ours,
                                  const std::vector<Factor>& theirs,
                                  const std::vector<Iterator>& our_sums,
                                  const std::vector<Iterator>& their_sums, const Extents& extents,
                                  int any_tensor, int* other) {
  return Matcher(ours, theirs, our_sums, their_sums, extents, any_tensor).Run(other);
}

void RenameIterators(std::vector<Factor>& factors, const std::map<Iterator, Iterator>& names) {
  for (Factor& factor : factors) {
    for (IndexForm& form : factor.index) {
      Affine renamed = Affine::Constant(form.affine.constant);
      for (const auto& [i, coefficient] : form.affine.terms) {
        const auto name = names.find(i);
        renamed = renamed + Affine::Of(name == names.end() ? i : name->second, coefficient);
      }
      form.affine = std::move(renamed);
    }
  }
}

}  // namespace mendel
