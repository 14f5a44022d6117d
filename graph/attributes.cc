#include "graph/attributes.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace mendel {

Attributes::Attributes() = default;
Attributes::Attributes(std::initializer_list<std::pair<const std::string, AttrValue>> values)
    : values_(values) {}
Attributes::Attributes(const Attributes& other) = default;
Attributes::Attributes(Attributes&& other) noexcept = default;
Attributes& Attributes::operator=(const Attributes& other) = default;
Attributes& Attributes::operator=(Attributes&& other) noexcept = default;
Attributes::~Attributes() = default;
namespace {

/// NaN is a value like another.
bool IsSameValue(const AttrValue& a, const AttrValue& b) {
  const double* x = std::get_if<double>(&a);
  const double* y = std::get_if<double>(&b);
  if (x != nullptr && y != nullptr && std::isnan(*x) && std::isnan(*y)) return true;
  return a == b;
}

}  // namespace

bool Attributes::operator==(const Attributes& other) const {
  return std::equal(values_.begin(), values_.end(), other.values_.begin(), other.values_.end(),
                    [](const auto& a, const auto& b) {
                      return a.first == b.first && IsSameValue(a.second, b.second);
                    });
}

bool Attributes::Has(std::string_view name) const { return values_.find(name) != values_.end(); }
void Attributes::Set(std::string name, AttrValue value) {
  values_.insert_or_assign(std::move(name), std::move(value));
}

void Attributes::Erase(std::string_view name) {
  const auto it = values_.find(name);
  if (it != values_.end()) values_.erase(it);
}

const AttrValue& Attributes::Get(std::string_view name) const {
  const auto it = values_.find(name);
  MENDEL_CHECK(it != values_.end());
  return it->second;
}

int64_t Attributes::Int(std::string_view name) const { return std::get<int64_t>(Get(name)); }
double Attributes::Float(std::string_view name) const { return std::get<double>(Get(name)); }
const std::string& Attributes::Str(std::string_view name) const {
  return std::get<std::string>(Get(name));
}
const Ints& Attributes::IntList(std::string_view name) const { return std::get<Ints>(Get(name)); }
const std::vector<double>& Attributes::FloatList(std::string_view name) const {
  return std::get<std::vector<double>>(Get(name));
}
const Tensor& Attributes::TensorValue(std::string_view name) const {
  return std::get<Tensor>(Get(name));
}
const Boxes& Attributes::BoxList(std::string_view name) const { return std::get<Boxes>(Get(name)); }

}  // namespace mendel
