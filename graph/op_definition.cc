#include "graph/op_definition.h"

#include <algorithm>
#include <map>
#include <variant>

#include "base/check.h"

namespace mendel {

AttributeSpec::AttributeSpec(std::string name, AttrValue value, bool required)
    : name(std::move(name)), default_value(std::move(value)), required(required) {
  if (double* number = std::get_if<double>(&default_value))
    *number = static_cast<double>(static_cast<float>(*number));
}
AttributeSpec::AttributeSpec(const AttributeSpec& other) = default;
AttributeSpec& AttributeSpec::operator=(const AttributeSpec& other) = default;
AttributeSpec::~AttributeSpec() = default;
namespace {

std::vector<OpDefinition (*)()>& Makers() {
  static auto* makers = new std::vector<OpDefinition (*)()>();
  return *makers;
}

const std::vector<const OpDefinition*>& SortedOps() {
  static const auto* ops = [] {
    auto* sorted = new std::vector<const OpDefinition*>();
    for (OpDefinition (*make)() : Makers()) sorted->push_back(new OpDefinition(make()));
    std::sort(sorted->begin(), sorted->end(),
              [](const auto* a, const auto* b) { return a->name < b->name; });
    for (size_t i = 0; i + 1 < sorted->size(); ++i)
      MENDEL_CHECK((*sorted)[i]->name != (*sorted)[i + 1]->name);
    return sorted;
  }();
  return *ops;
}

}  // namespace

std::span<const OpDefinition* const> AllOps() { return SortedOps(); }

const OpDefinition* FindOp(std::string_view name) {
  const auto& ops = SortedOps();
  const auto it = std::lower_bound(ops.begin(), ops.end(), name,
                                   [](const auto* op, std::string_view n) { return op->name < n; });
  return it != ops.end() && (*it)->name == name ? *it : nullptr;
}

const OpDefinition& GetOp(std::string_view name) {
  const OpDefinition* op = FindOp(name);
  MENDEL_CHECK(op != nullptr);
  return *op;
}

Cost CostOf(const OpDefinition& op, const NodeView& node) {
  if (op.cost != nullptr) return op.cost(node);
  Cost cost;
  for (const TensorType& type : node.inputs) cost.bytes += static_cast<double>(ByteSize(type));
  for (const TensorType& type : node.outputs) {
    cost.bytes += static_cast<double>(ByteSize(type));
    cost.flops += static_cast<double>(NumElements(type));
  }
  return cost;
}

OpRegistrar::OpRegistrar(OpDefinition (*make)()) { Makers().push_back(make); }

}  // namespace mendel
