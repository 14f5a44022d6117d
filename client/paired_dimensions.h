// Symbolic dimensions of two models that must have one size.
//
// Tools rename dimensions: x["N"] in one model is x["batch"], or unnamed, in the other. Dimensions
// are one where they have one name, or one place of paired inputs.
#ifndef MENDEL_CLIENT_PAIRED_DIMENSIONS_H_
#define MENDEL_CLIENT_PAIRED_DIMENSIONS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "client/symbolic_sizes.h"
#include "onnx/interface.h"

namespace mendel {

/// By the first name in A's order: all names of one size, itself among them. An unnamed dimension
/// `d` of input x is "x:d".
using DimensionGroups = std::map<std::string, std::set<std::string>>;

/// Groups of the dimensions `open`. Inputs are paired as by MatchInterfaces: by `names` (A's name
/// to B's), by name, then by position.
DimensionGroups PairDimensions(const ModelInterface& a, const ModelInterface& b,
                               const std::map<std::string, std::string>& names,
                               const std::set<std::string>& open);

/// The sizes of all names, for sizes of the groups.
Sizes SizesOfNames(const DimensionGroups& groups, const Sizes& sizes);

/// A sentence for each group in which one model has two names of its own.
std::vector<std::string> NotesOnGroups(const DimensionGroups& groups, const ModelInterface& a,
                                       const ModelInterface& b);

}  // namespace mendel

#endif  // MENDEL_CLIENT_PAIRED_DIMENSIONS_H_
