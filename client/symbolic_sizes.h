// Sizes of symbolic dimensions that report programs apart which are equal for some sizes only.
#ifndef MENDEL_CLIENT_SYMBOLIC_SIZES_H_
#define MENDEL_CLIENT_SYMBOLIC_SIZES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace mendel {

/// A size of every open dimension, by name (ImportOptions::symbol_sizes).
using Sizes = std::map<std::string, int64_t>;

/// Sizes to compare two programs at, the most telling first: all 2, all 3, distinct primes, larger
/// coprime ones, and around the positions at which `graphs` cut, index or compare.
std::vector<Sizes> TellingSizes(const std::set<std::string>& dimensions,
                                const std::vector<Graph>& graphs);

/// "N = 2, M = 3".
std::string SizesText(const Sizes& sizes);

}  // namespace mendel

#endif  // MENDEL_CLIENT_SYMBOLIC_SIZES_H_
