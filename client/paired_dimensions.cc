#include "client/paired_dimensions.h"

#include <algorithm>
#include <tuple>

#include "base/status.h"

namespace mendel {
namespace {

/// The name of dimension `d`; empty where the model fixes it.
std::string NameOf(const DeclaredValue& input, size_t d) {
  const DeclaredDimension& dimension = input.shape[d];
  if (dimension.size >= 0) return "";
  // Paddle's exporter calls every unknown extent "?".
  const bool named = !dimension.name.empty() && dimension.name != "?";
  return named ? dimension.name : Cat(input.name, ":", d);
}

/// Names that are one, by the first of them.
class Union {
 public:
  void Add(const std::string& name) {
    if (first_.emplace(name, name).second) order_.push_back(name);
  }

  std::string First(const std::string& name) const {
    const auto found = first_.find(name);
    return found == first_.end() || found->second == name ? name : First(found->second);
  }

  void Join(const std::string& x, const std::string& y) {
    Add(x);
    Add(y);
    const std::string a = First(x), b = First(y);
    const auto rank = [&](const std::string& name) {
      return std::find(order_.begin(), order_.end(), name) - order_.begin();
    };
    if (a != b) first_[rank(a) < rank(b) ? b : a] = rank(a) < rank(b) ? a : b;
  }

 private:
  std::map<std::string, std::string> first_;
  std::vector<std::string> order_;
};

/// Names of both models in one list.
std::string Side(char side, const std::string& name) { return side + name; }

}  // namespace

DimensionGroups PairDimensions(const ModelInterface& a, const ModelInterface& b,
                               const std::map<std::string, std::string>& inputs,
                               const std::set<std::string>& open_a,
                               const std::set<std::string>& open_b) {
  Union one;
  for (const DeclaredValue& input : a.inputs) {
    for (size_t d = 0; d < input.shape.size(); ++d) one.Add(Side('A', NameOf(input, d)));
  }
  for (const std::string& name : open_a) one.Add(Side('A', name));
  for (const DeclaredValue& x : a.inputs) {
    const auto pair = inputs.find(x.name);
    if (pair == inputs.end()) continue;
    const auto y = std::find_if(b.inputs.begin(), b.inputs.end(), [&](const DeclaredValue& input) {
      return input.name == pair->second;
    });
    if (y == b.inputs.end()) continue;
    for (size_t d = 0; d < std::min(x.shape.size(), y->shape.size()); ++d) {
      const std::string p = NameOf(x, d), q = NameOf(*y, d);
      if (open_a.contains(p) && open_b.contains(q)) one.Join(Side('A', p), Side('B', q));
    }
  }
  const bool unknown = a.inputs.empty() || b.inputs.empty();
  for (const std::string& name : open_b) {
    if (unknown && open_a.contains(name)) one.Join(Side('A', name), Side('B', name));
  }
  DimensionGroups groups;
  const auto group = [&](char side, const std::string& name) -> DimensionGroup& {
    const std::string first = one.First(Side(side, name));
    return groups[first[0] == 'A' ? first.substr(1) : first.substr(1) + " of B"];
  };
  for (const std::string& name : open_a) group('A', name).a.insert(name);
  for (const std::string& name : open_b) group('B', name).b.insert(name);
  return groups;
}

Sizes SizesOfNames(const DimensionGroups& groups, std::set<std::string> DimensionGroup::*side,
                   const Sizes& sizes) {
  Sizes all;
  for (const auto& [first, size] : sizes) {
    const auto group = groups.find(first);
    if (group == groups.end()) continue;
    for (const std::string& name : group->second.*side) all[name] = size;
  }
  return all;
}

std::vector<std::string> NotesOnGroups(const DimensionGroups& groups) {
  std::vector<std::string> notes;
  for (const auto& [first, group] : groups) {
    for (const auto& [side, other, own] :
         {std::tuple("A", "B", &group.a), std::tuple("B", "A", &group.b)}) {
      if (own->size() < 2) continue;
      std::string text;
      for (const std::string& name : *own) text += Cat(text.empty() ? "'" : ", '", name, "'");
      notes.push_back(Cat("dimensions ", text, " of ", side, " have one size, as in ", other,
                          "; other sizes are not compared"));
    }
  }
  return notes;
}

}  // namespace mendel
