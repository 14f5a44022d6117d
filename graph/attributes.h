// Attributes of a node: named values, always complete (defaults filled in by the builder), so that
// equal nodes compare equal.
#ifndef MENDEL_GRAPH_ATTRIBUTES_H_
#define MENDEL_GRAPH_ATTRIBUTES_H_

#include <cstdint>
#include <initializer_list>
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
using AttrValue =
    std::variant<int64_t, double, std::string, Ints, std::vector<double>, Tensor, Boxes>;

/// Sorted by name. The getters CHECK-fail when the attribute is absent or of another kind: after
/// the builder has checked a node against its operator's specification that would be our bug.
class Attributes {
 public:
  // Not inline: nearly every file makes or copies attributes, and the code of a map of variants is
  // long.
  Attributes();
  Attributes(std::initializer_list<std::pair<const std::string, AttrValue>> values);
  Attributes(const Attributes& other);
  Attributes(Attributes&& other) noexcept;
  Attributes& operator=(const Attributes& other);
  Attributes& operator=(Attributes&& other) noexcept;
  ~Attributes();

  bool Has(std::string_view name) const;
  void Set(std::string name, AttrValue value);
  void Erase(std::string_view name);

  const AttrValue& Get(std::string_view name) const;
  int64_t Int(std::string_view name) const;
  double Float(std::string_view name) const;
  const std::string& Str(std::string_view name) const;
  const Ints& IntList(std::string_view name) const;
  const std::vector<double>& FloatList(std::string_view name) const;
  const Tensor& TensorValue(std::string_view name) const;
  const Boxes& BoxList(std::string_view name) const;

  const std::map<std::string, AttrValue, std::less<>>& values() const { return values_; }
  bool operator==(const Attributes& other) const;

 private:
  std::map<std::string, AttrValue, std::less<>> values_;
};

}  // namespace mendel

#endif  // MENDEL_GRAPH_ATTRIBUTES_H_
