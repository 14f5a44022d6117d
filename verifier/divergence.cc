#include "verifier/divergence.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "verifier/field_evaluator.h"

namespace mendel {
namespace {

/// What is compared of a value: its elements in order, whatever its shape.
using Content = std::pair<Hash128, DType>;

/// Contents and outputs of one program under one draw.
class Recorder {
 public:
  Recorder(const Graph& graph, const PrimeField& field) : graph_(graph), field_(field), outputs_(graph.outputs().size()) {
    for (const Node& node : graph.nodes()) contents_.emplace_back(node.outputs.size());
  }

  void Visit(ValueId id, const FieldValue& value) {
    const FieldScope scope(field_);
    KeyedHash hash({0, static_cast<uint64_t>(value.size())});
    for (int64_t i = 0; i < value.size(); ++i) hash.Add(value.At(i).value);
    contents_[static_cast<size_t>(id.node)][static_cast<size_t>(id.output)] = {hash.Finish(), graph_.type(id).dtype};
    for (size_t k = 0; k < outputs_.size(); ++k) {
      if (graph_.outputs()[k].value != id) continue;
      for (int64_t i = 0; i < value.size(); ++i) outputs_[k].push_back(value.At(i));
    }
  }

  const Content& Of(ValueId id) const { return contents_[static_cast<size_t>(id.node)][static_cast<size_t>(id.output)]; }
  const std::vector<std::vector<Content>>& contents() const { return contents_; }
  const std::vector<std::vector<Fp>>& outputs() const { return outputs_; }

 private:
  const Graph& graph_;
  const PrimeField& field_;
  std::vector<std::vector<Content>> contents_;
  std::vector<std::vector<Fp>> outputs_;
};

DivergentTensor Describe(const Graph& graph, ValueId id) {
  const Node& node = graph.node(id.node);
  std::string name = IsConstant(node) ? SymbolName(node) : (IsInput(node) ? InputName(node) : node.name);
  for (const GraphOutput& output : graph.outputs()) {
    if (name.empty() && output.value == id) name = output.name;
  }
  if (name.empty()) name = Cat("#", id.node);
  return {name, std::string(node.op->name), graph.type(id).shape};
}

/// Goes back from the outputs that differ through values without an equal in B.
std::vector<DivergentTensor> EarliestOf(const Graph& graph, const Recorder& values, const std::set<Content>& others,
                                        const std::vector<int64_t>& differing) {
  const auto has_equal = [&](ValueId id) { return others.contains(values.Of(id)); };
  std::set<ValueId> seen;
  std::vector<ValueId> open;
  const auto reach = [&](ValueId id) {
    if (!has_equal(id) && seen.insert(id).second) open.push_back(id);
  };
  for (size_t k = 0; k < differing.size(); ++k) {
    if (differing[k] > 0) reach(graph.outputs()[k].value);
  }
  std::set<ValueId> earliest;
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    const std::vector<ValueId>& inputs = graph.node(id.node).inputs;
    if (std::all_of(inputs.begin(), inputs.end(), has_equal)) earliest.insert(id);
    for (ValueId input : inputs) reach(input);
  }
  std::vector<DivergentTensor> tensors;
  for (ValueId id : earliest) tensors.push_back(Describe(graph, id));
  return tensors;
}

}  // namespace

absl::StatusOr<Divergence> FindDivergence(const Graph& a, const Graph& b, const Draw& draw, WeightMode weights,
                                          const Deadline& deadline) {
  const PrimeField field(draw.prime);
  Recorder of_a(a, field);
  Recorder of_b(b, field);
  MENDEL_RETURN_IF_ERROR(EvaluateValues(a, draw, weights, InputNaming::kByName, deadline,
                                        [&](ValueId id, const FieldValue& value) { of_a.Visit(id, value); }));
  MENDEL_RETURN_IF_ERROR(EvaluateValues(b, draw, weights, InputNaming::kByName, deadline,
                                        [&](ValueId id, const FieldValue& value) { of_b.Visit(id, value); }));
  Divergence divergence;
  for (size_t k = 0; k < a.outputs().size(); ++k) {
    const std::vector<Fp>& x = of_a.outputs()[k];
    const std::vector<Fp>& y = of_b.outputs()[k];
    int64_t count = 0;
    for (size_t i = 0; i < x.size(); ++i) count += x[i] == y[i] ? 0 : 1;
    divergence.differing.push_back(count);
  }
  std::set<Content> others;
  for (const auto& contents : of_b.contents()) others.insert(contents.begin(), contents.end());
  divergence.earliest = EarliestOf(a, of_a, others, divergence.differing);
  return divergence;
}

}  // namespace mendel
