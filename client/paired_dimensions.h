// Symbolic dimensions of two models that must have one size.
//
// Names are a model's own: x["N"] in one model is x["batch"], or unnamed, in the other. Dimensions
// are one where one model gives them one name, or where they have one place of paired inputs.
#ifndef MENDEL_CLIENT_PAIRED_DIMENSIONS_H_
#define MENDEL_CLIENT_PAIRED_DIMENSIONS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "client/symbolic_sizes.h"
#include "onnx/interface.h"

namespace mendel {

/// The names that each model has for one size. An unnamed dimension `d` of input x is "x:d".
struct DimensionGroup {
  std::set<std::string> a, b;
  bool operator==(const DimensionGroup&) const = default;
};
/// By A's first name, or by "NAME of B" where A has none.
using DimensionGroups = std::map<std::string, DimensionGroup>;

/// Groups of the dimensions that no shape fixes. `inputs`: MatchedModel::inputs. Where an interface
/// is unknown, equal names are one.
DimensionGroups PairDimensions(const ModelInterface& a, const ModelInterface& b,
                               const std::map<std::string, std::string>& inputs,
                               const std::set<std::string>& open_a,
                               const std::set<std::string>& open_b);

/// The sizes of one model's names, for sizes of the groups.
Sizes SizesOfNames(const DimensionGroups& groups, std::set<std::string> DimensionGroup::*side,
                   const Sizes& sizes);

/// A sentence for each group in which one model has two names.
std::vector<std::string> NotesOnGroups(const DimensionGroups& groups);

}  // namespace mendel

#endif  // MENDEL_CLIENT_PAIRED_DIMENSIONS_H_
