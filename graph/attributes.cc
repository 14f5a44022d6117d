#include "graph/attributes.h"

#include "base/check.h"

namespace mendel {

void Attributes::Erase(std::string_view name) {
  const auto it = values_.find(name);
  if (it != values_.end()) values_.erase(it);
}

const AttrValue& Attributes::Get(std::string_view name) const {
  const auto it = values_.find(name);
  MENDEL_CHECK(it != values_.end());
  return it->second;
}

}  // namespace mendel
