// Disjoint sets of small integers.
#ifndef MENDEL_OPTIMIZER_EGRAPH_UNION_FIND_H_
#define MENDEL_OPTIMIZER_EGRAPH_UNION_FIND_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace mendel {

/// Union by the smaller number with path halving (Tarjan and van Leeuwen 1984): representatives do
/// not depend on the order of finds, so that everything built on them repeats. Find is const for
/// its callers: it only shortens paths.
class UnionFind {
 public:
  int32_t Add() {
    parent_.push_back(static_cast<int32_t>(parent_.size()));
    return parent_.back();
  }
  int32_t Find(int32_t x) const {
    while (parent_[At(x)] != x) x = parent_[At(x)] = parent_[At(parent_[At(x)])];
    return x;
  }
  /// The smaller of two representatives becomes the other's parent; returns it.
  int32_t Union(int32_t a, int32_t b) {
    a = Find(a);
    b = Find(b);
    if (a > b) std::swap(a, b);
    return parent_[At(b)] = a;
  }
  size_t size() const { return parent_.size(); }

 private:
  static size_t At(int32_t x) { return static_cast<size_t>(x); }
  mutable std::vector<int32_t> parent_;
};

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_EGRAPH_UNION_FIND_H_
