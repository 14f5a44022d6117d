#include "graph/element_structure.h"

#include <map>

namespace mendel {
namespace {

std::map<std::string_view, ElementStructure>& Registry() {
  static auto* registry = new std::map<std::string_view, ElementStructure>();
  return *registry;
}

}  // namespace

const ElementStructure* FindElementStructure(std::string_view op) {
  const auto it = Registry().find(op);
  return it == Registry().end() ? nullptr : &it->second;
}

ElementStructureRegistrar::ElementStructureRegistrar(const ElementStructure& structure) {
  Registry()[structure.op] = structure;
}

SeparableTaps::Dim IdentityTaps(int input_dim, int64_t extent) {
  SeparableTaps::Dim dim{input_dim, {}};
  for (int64_t t = 0; t < extent; ++t) dim.taps.push_back({{t, 1.0}});
  return dim;
}

}  // namespace mendel
