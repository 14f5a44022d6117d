#include "optimizer/egraph/egraph.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "graph/text.h"

namespace mendel {

const char* EGraphLimitName(EGraphLimit limit) {
  switch (limit) {
    case EGraphLimit::kNodes:
      return "node limit";
    case EGraphLimit::kClasses:
      return "class limit";
    case EGraphLimit::kBytes:
      return "byte limit";
  }
  return "";
}

int32_t EGraph::Kind(const Node& node) {
  std::string text;
  if (IsConstant(node) && !SymbolName(node).empty()) {
    text = Cat("symbol ", SymbolName(node), " ",
               TypeString(node.outputs[0]));  // hashing a network's weights would take seconds
  } else {
    text = Cat(node.op->name, PrintAttributes(node.attrs));
  }
  const auto [it, fresh] = kinds_.emplace(std::move(text), static_cast<int32_t>(kinds_.size()));
  if (fresh) bytes_ += static_cast<int64_t>(it->first.size()) + 64;
  return it->second;
}

EGraph::Key EGraph::MakeKey(int32_t kind, const std::vector<ClassId>& operands) const {
  Key key = {kind};
  for (ClassId operand : operands) key.push_back(Find(operand));
  return key;
}

ENodeId EGraph::Canonical(ENodeId id) const {
  while (forward_[static_cast<size_t>(id)] != id) id = forward_[static_cast<size_t>(id)];
  return id;
}

absl::StatusOr<ENodeId> EGraph::Add(const Node& node, const std::vector<ClassId>& operands,
                                    int32_t origin) {
  const int32_t kind = Kind(node);
  Key key = MakeKey(kind, operands);
  if (const auto known = table_.find(key); known != table_.end()) {
    if (nodes_[static_cast<size_t>(known->second)].node.outputs != node.outputs) {
      return InvalidInput("an e-node of operator ", node.op->name,
                          " exists with outputs of other types");
    }
    return known->second;
  }
  const ENodeId id = static_cast<ENodeId>(nodes_.size());
  ENode made{node, std::vector<ClassId>(key.begin() + 1, key.end()), {}, origin};
  made.node.inputs.clear();
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    const ClassId output = classes_.Add();
    data_.push_back({node.outputs[k], {{id, static_cast<int32_t>(k)}}, {}, false});
    made.outputs.push_back(output);
    ++live_classes_;
  }
  for (ClassId operand : made.operands) data_[static_cast<size_t>(operand)].parents.push_back(id);
  // Records, key and table node, list entries: what an allocator hands out for them, roughly.
  bytes_ += static_cast<int64_t>(sizeof(ENode) + 200 + made.operands.size() * 12 +
                                 made.outputs.size() * (sizeof(ClassData) + 16));
  nodes_.push_back(std::move(made));
  kinds_of_.push_back(kind);
  forward_.push_back(id);
  table_.emplace(std::move(key), id);
  ++live_nodes_;
  MarkConstant(id);
  return id;
}

/// Spreads upwards: a node whose operands are all constant is constant.
void EGraph::MarkConstant(ENodeId start) {
  std::vector<ENodeId> work = {start};
  while (!work.empty()) {
    const ENode& node = nodes_[static_cast<size_t>(work.back())];
    work.pop_back();
    if (IsInput(node.node)) continue;
    if (!std::all_of(node.operands.begin(), node.operands.end(),
                     [&](ClassId c) { return IsConstantClass(c); }))
      continue;
    for (ClassId output : node.outputs) {
      ClassData& data = data_[static_cast<size_t>(Find(output))];
      if (data.constant) continue;
      data.constant = true;
      work.insert(work.end(), data.parents.begin(), data.parents.end());
    }
  }
}

absl::StatusOr<std::vector<std::vector<ClassId>>> EGraph::AddGraph(
    const Graph& graph, const std::vector<ClassId>& inputs, int32_t origin,
    std::vector<ENodeId>* enodes) {
  if (!inputs.empty() && inputs.size() != graph.inputs().size()) {
    return InvalidInput("graph has ", graph.inputs().size(), " inputs, not ", inputs.size());
  }
  std::vector<std::vector<ClassId>> where(graph.nodes().size());
  if (enodes != nullptr) enodes->assign(graph.nodes().size(), -1);
  for (size_t k = 0; k < inputs.size(); ++k) {
    const int32_t input = graph.inputs()[k];
    if (graph.type({input, 0}) != type(inputs[k]))
      return InvalidInput("input ", k, " is of another type than its class");
    where[static_cast<size_t>(input)] = {Find(inputs[k])};
  }
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    if (!where[i].empty()) continue;
    const Node& node = graph.nodes()[i];
    std::vector<ClassId> operands;
    for (ValueId value : node.inputs)
      operands.push_back(where[static_cast<size_t>(value.node)][static_cast<size_t>(value.output)]);
    MENDEL_ASSIGN_OR_RETURN(const ENodeId id, Add(node, operands, origin));
    where[i] = nodes_[static_cast<size_t>(id)].outputs;
    if (enodes != nullptr) (*enodes)[i] = id;
  }
  return where;
}

absl::StatusOr<bool> EGraph::Merge(ClassId a, ClassId b) {
  a = Find(a);
  b = Find(b);
  if (a == b) return false;
  if (type(a) != type(b))
    return InvalidInput("values of types ", TypeString(type(a)), " and ", TypeString(type(b)),
                        " cannot be equal");
  const ClassId kept = classes_.Union(a, b);
  ClassData& from = data_[static_cast<size_t>(kept == a ? b : a)];
  ClassData& to = data_[static_cast<size_t>(kept)];
  const std::vector<ENodeId> newly_constant = from.constant == to.constant ? std::vector<ENodeId>()
                                              : from.constant              ? to.parents
                                                                           : from.parents;
  to.constant = to.constant || from.constant;
  to.members.insert(to.members.end(), from.members.begin(), from.members.end());
  to.parents.insert(to.parents.end(), from.parents.begin(), from.parents.end());
  from.members = {};
  from.parents = {};
  --live_classes_;
  for (ENodeId parent : newly_constant) MarkConstant(parent);
  dirty_.push_back(kept);
  return true;
}

absl::Status EGraph::Rebuild() {
  while (!dirty_.empty()) {
    std::vector<ClassId> work;
    std::swap(work, dirty_);
    for (ClassId& id : work) id = Find(id);
    std::sort(work.begin(), work.end());
    work.erase(std::unique(work.begin(), work.end()), work.end());
    for (ClassId id : work) MENDEL_RETURN_IF_ERROR(Repair(id));
  }
  return absl::OkStatus();
}

/// Gives the readers of a class that has grown their new keys; readers whose keys meet are one
/// e-node.
absl::Status EGraph::Repair(ClassId id) {
  ClassData& grown = data_[static_cast<size_t>(Find(id))];
  std::vector<ENodeId> parents;
  std::swap(parents, grown.parents);
  for (ENodeId& parent : parents) parent = Canonical(parent);
  std::sort(parents.begin(), parents.end());
  parents.erase(std::unique(parents.begin(), parents.end()), parents.end());
  std::vector<ENodeId> kept_parents;
  for (ENodeId parent : parents) {
    if (!alive(parent)) continue;  // dropped by an earlier one of this loop, which stands for it
    ENode& node = nodes_[static_cast<size_t>(parent)];
    Key stale = {
        kinds_of_[static_cast<size_t>(parent)]};  // operands as they were when the entry was made
    stale.insert(stale.end(), node.operands.begin(), node.operands.end());
    const auto entry = table_.find(stale);
    if (entry != table_.end() && entry->second == parent) table_.erase(entry);
    for (ClassId& operand : node.operands) operand = Find(operand);
    const auto [place, fresh] =
        table_.emplace(MakeKey(kinds_of_[static_cast<size_t>(parent)], node.operands), parent);
    if (fresh || place->second == parent) {
      kept_parents.push_back(parent);
      continue;
    }
    MENDEL_RETURN_IF_ERROR(Unite(place->second, parent));
    kept_parents.push_back(place->second);
  }
  // Unite may have merged this class with another one meanwhile.
  ClassData& now = data_[static_cast<size_t>(Find(id))];
  now.parents.insert(now.parents.end(), kept_parents.begin(), kept_parents.end());
  for (EValue& member : now.members) member.node = Canonical(member.node);
  std::sort(now.members.begin(), now.members.end());
  now.members.erase(std::unique(now.members.begin(), now.members.end()), now.members.end());
  return absl::OkStatus();
}

absl::Status EGraph::Unite(ENodeId kept, ENodeId dropped) {
  forward_[static_cast<size_t>(dropped)] = kept;
  --live_nodes_;
  for (size_t k = 0; k < nodes_[static_cast<size_t>(kept)].outputs.size(); ++k) {
    const ClassId a = nodes_[static_cast<size_t>(kept)].outputs[k],
                  b = nodes_[static_cast<size_t>(dropped)].outputs[k];
    MENDEL_RETURN_IF_ERROR(Merge(a, b).status());
    dirty_.push_back(Find(a));  // also when they were equal before: the dropped member must go
  }
  return absl::OkStatus();
}

std::optional<EGraphLimit> EGraph::Exceeded() const {
  if (node_count() > limits_.nodes) return EGraphLimit::kNodes;
  if (class_count() > limits_.classes) return EGraphLimit::kClasses;
  if (bytes() > limits_.bytes) return EGraphLimit::kBytes;
  return std::nullopt;
}

absl::Status EGraph::CheckInvariants() const {
  std::map<Key, ENodeId> seen;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const ENodeId id = static_cast<ENodeId>(i);
    if (!alive(id)) continue;
    const Key key = MakeKey(kinds_of_[i], nodes_[i].operands);
    if (!seen.emplace(key, id).second)
      return InternalError("two e-nodes of operator ", nodes_[i].node.op->name, " are congruent");
    const auto entry = table_.find(key);
    if (entry == table_.end() || entry->second != id)
      return InternalError("e-node ", id, " is not hash-consed");
    for (size_t k = 0; k < nodes_[i].outputs.size(); ++k) {
      const std::vector<EValue>& values = members(nodes_[i].outputs[k]);
      if (!std::binary_search(values.begin(), values.end(), EValue{id, static_cast<int32_t>(k)})) {
        return InternalError("e-node ", id, " is missing in the class of its output ", k);
      }
    }
  }
  if (static_cast<int64_t>(seen.size()) != live_nodes_)
    return InternalError("live e-nodes are miscounted");
  int64_t roots = 0;
  for (size_t c = 0; c < data_.size(); ++c) {
    if (Find(static_cast<ClassId>(c)) != static_cast<ClassId>(c)) continue;
    ++roots;
    for (EValue value : data_[c].members) {
      if (!alive(value.node)) return InternalError("class ", c, " contains a dead e-node");
      if (Find(node(value.node).outputs[static_cast<size_t>(value.output)]) !=
          static_cast<ClassId>(c)) {
        return InternalError("class ", c, " contains a value of another class");
      }
    }
  }
  return roots == live_classes_ ? absl::OkStatus() : InternalError("live classes are miscounted");
}

}  // namespace mendel
