#include "verifier/divergence.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "verifier/certify/numbering.h"
#include "verifier/certify/redraw.h"
#include "verifier/field_evaluator.h"
#include "verifier/regions/segments.h"

namespace mendel {
namespace {

/// The compared content of a value: its elements in order, whatever its shape.
using Content = std::pair<Hash128, DType>;

/// Contents of both programs' values under one draw, and the elements of outputs. What both compute
/// is computed once.
class Recorder {
 public:
  Recorder(const Numbering& numbering, const PrimeField& field)
      : numbering_(numbering), field_(field), contents_(numbering.values.size()) {
    for (const Claim& claim : numbering.claims) {
      outputs_[claim.representative];
      outputs_[claim.member];
    }
  }

  void Visit(int32_t number, const FieldValue& value) {
    const FieldScope scope(field_);
    KeyedHash hash({0, static_cast<uint64_t>(value.size())});
    for (int64_t i = 0; i < value.size(); ++i) hash.Add(value.At(i).value);
    contents_[static_cast<size_t>(number)] = {hash.Finish(), numbering_.TypeOf(number).dtype};
    const auto output = outputs_.find(number);
    if (output == outputs_.end()) return;
    for (int64_t i = 0; i < value.size(); ++i) output->second.push_back(value.At(i));
  }

  int64_t Differing(const Claim& claim) const {
    const std::vector<Fp>& x = outputs_.at(claim.representative);
    const std::vector<Fp>& y = outputs_.at(claim.member);
    int64_t count = 0;
    for (size_t i = 0; i < x.size(); ++i) count += x[i] == y[i] ? 0 : 1;
    return count;
  }

  /// Numbers of A that B has, or whose elements some tensor of B has.
  std::vector<bool> Equalled() const {
    std::set<Content> of_b;
    std::vector<bool> equalled(contents_.size());
    for (size_t k = 0; k < contents_.size(); ++k) {
      equalled[k] = numbering_.NodeOf(static_cast<int32_t>(k)).in_plan;
      if (equalled[k] && contents_[k].has_value()) of_b.insert(*contents_[k]);
    }
    for (size_t k = 0; k < contents_.size(); ++k) {
      equalled[k] = equalled[k] || (contents_[k].has_value() && of_b.contains(*contents_[k]));
    }
    return equalled;
  }

 private:
  const Numbering& numbering_;
  const PrimeField& field_;
  std::vector<std::optional<Content>>
      contents_;  // by number; nothing of values that no differing output is computed of
  std::map<int32_t, std::vector<Fp>> outputs_;
};

DivergentTensor Describe(const Graph& graph, ValueId id) {
  const Node& node = graph.node(id.node);
  std::string name =
      IsConstant(node) ? SymbolName(node) : (IsInput(node) ? InputName(node) : node.name);
  for (const GraphOutput& output : graph.outputs()) {
    if (name.empty() && output.value == id) name = output.name;
  }
  if (name.empty()) name = Cat("#", id.node);
  return {name, std::string(node.op->name), graph.type(id).shape};
}

/// Goes back from the outputs that differ through values without an equal in B.
std::vector<DivergentTensor> EarliestOf(const Graph& graph, const Numbering& numbering,
                                        const std::vector<bool>& equalled,
                                        const std::vector<int64_t>& differing) {
  const auto has_equal = [&](ValueId id) {
    return equalled[static_cast<size_t>(numbering.number_of.at({Side::kOriginal, id}))];
  };
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

absl::StatusOr<Divergence> FindDivergence(const Graph& a, const Graph& b, const Draw& draw,
                                          WeightMode weights, const Deadline& deadline) {
  const PrimeField field(draw.prime);
  ConstantKeys constants(weights);
  const Numbering numbering = NumberValues(a, b, {}, constants);
  const Partition everything = MakePartition(numbering, {}, /*no_cuts=*/true);
  Recorder recorder(numbering, field);
  MENDEL_RETURN_IF_ERROR(
      TestSegments(numbering, everything, draw, weights, deadline,
                   [&](int32_t number, const FieldValue& value) { recorder.Visit(number, value); })
          .status());
  Divergence divergence;
  divergence.differing.resize(a.outputs().size());
  for (const Claim& claim : numbering.claims) {
    for (size_t k = 0; k < a.outputs().size(); ++k) {
      if (a.outputs()[k].name == claim.output) divergence.differing[k] = recorder.Differing(claim);
    }
  }
  divergence.earliest = EarliestOf(a, numbering, recorder.Equalled(), divergence.differing);
  return divergence;
}

absl::StatusOr<Divergence> DivergenceSearch::Evaluate(const Graph& a, const Graph& b,
                                                      const Draw& draw) {
  ++evaluations_;
  return FindDivergence(a, b, draw, weights_, deadline_);
}

absl::StatusOr<Divergence> DivergenceSearch::UnderSmallPrime(const Graph& a, const Graph& b) {
  return Evaluate(a, b, SelectionDraw({seed_, 0}));
}

absl::StatusOr<Divergence> DivergenceSearch::UnderLargePrime(const Graph& a, const Graph& b) {
  Rng rng(seed_);
  return WithRedraws([&](int) { return Evaluate(a, b, SeededDraw(rng)); });
}

absl::StatusOr<Divergence> DivergenceSearch::Find(const Graph& a, const Graph& b) {
  int64_t elements = 0;
  for (const GraphOutput& output : a.outputs()) elements += NumElements(a.type(output.value));
  // Values that differ modulo a small prime differ, at a sixth of the cost.
  absl::StatusOr<Divergence> seen = UnderSmallPrime(a, b);
  return seen.ok() && TotalDiffering(*seen) == elements ? std::move(seen) : UnderLargePrime(a, b);
}

absl::StatusOr<std::optional<Divergence>> DivergenceSearch::FindFewer(const Graph& a,
                                                                      const Graph& b,
                                                                      int64_t limit) {
  if (limit <= 0) return std::nullopt;
  const absl::StatusOr<Divergence> seen = UnderSmallPrime(a, b);
  if (seen.ok() && TotalDiffering(*seen) >= limit) return std::nullopt;
  MENDEL_ASSIGN_OR_RETURN(Divergence found, UnderLargePrime(a, b));
  if (TotalDiffering(found) >= limit) return std::nullopt;
  return found;
}

int64_t TotalDiffering(const Divergence& divergence) {
  return std::reduce(divergence.differing.begin(), divergence.differing.end());
}

}  // namespace mendel
