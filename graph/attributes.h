// Attributes of a node: named values, always complete (defaults filled in by the builder), so that equal nodes compare equal.
#ifndef MENDEL_GRAPH_ATTRIBUTES_H_
#define MENDEL_GRAPH_ATTRIBUTES_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "graph/tensor.h"
#include "graph/types.h"

namespace mendel {

using Ints = std::vector<int64_t>;
using Boxes = std::vector<Box>;
using AttrValue = std::variant<int64_t, double, std::string, Ints, std::vector<double>, Tensor, Boxes>;

/// Sorted by name. The getters CHECK-fail when the attribute is absent or of another kind: after the builder has checked a
/// node against its operator's specification that would be our bug.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<const std::string, AttrValue>> values) : values_(values) {}

  bool Has(std::string_view name) const { return values_.find(name) != values_.end(); }
  void Set(std::string name, AttrValue value) { values_.insert_or_assign(std::move(name), std::move(value)); }
  void Erase(std::string_view name);

  const AttrValue& Get(std::string_view name) const;
  int64_t Int(std::string_view name) const { return std::get<int64_t>(Get(name)); }
  double Float(std::string_view name) const { return std::get<double>(Get(name)); }
  const std::string& Str(std::string_view name) const { return std::get<std::string>(Get(name)); }
  const Ints& IntList(std::string_view name) const { return std::get<Ints>(Get(name)); }
  const std::vector<double>& FloatList(std::string_view name) const { return std::get<std::vector<double>>(Get(name)); }
  const Tensor& TensorValue(std::string_view name) const { return std::get<Tensor>(Get(name)); }
  const Boxes& BoxList(std::string_view name) const { return std::get<Boxes>(Get(name)); }

  const std::map<std::string, AttrValue, std::less<>>& values() const { return values_; }
  bool operator==(const Attributes&) const = default;

 private:
  std::map<std::string, AttrValue, std::less<>> values_;
};

}  // namespace mendel

#endif  // MENDEL_GRAPH_ATTRIBUTES_H_
