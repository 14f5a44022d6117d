#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/status.h"
#include "graph/rewrite.h"
#include "verifier/compare.h"
#include "verifier/constants.h"

namespace mendel {
namespace {

struct Port {
  std::string name;
  TensorType type;
};

std::vector<Port> InputPorts(const Graph& graph) {
  std::vector<Port> ports;
  for (int32_t id : graph.inputs())
    ports.push_back({InputName(graph.node(id)), graph.node(id).outputs[0]});
  return ports;
}

std::vector<Port> OutputPorts(const Graph& graph) {
  std::vector<Port> ports;
  for (const GraphOutput& output : graph.outputs())
    ports.push_back({output.name, graph.type(output.value)});
  return ports;
}

const Node* FindSymbol(const Graph& graph, const std::string& name) {
  for (const Node& node : graph.nodes()) {
    if (IsConstant(node) && SymbolName(node) == name) return &node;
  }
  return nullptr;
}

std::string PortText(const Port& port) { return Cat("'", port.name, "' ", TypeString(port.type)); }

/// Pairs the inputs, or the outputs, of two programs.
class Pairing {
 public:
  Pairing(std::string_view kind, std::vector<Port> a, std::vector<Port> b)
      : kind_(kind),
        a_(std::move(a)),
        b_(std::move(b)),
        partner_(a_.size()),
        taken_(b_.size(), false) {}

  /// For every port of A the position of B's.
  absl::StatusOr<std::vector<size_t>> Run(const std::map<std::string, std::string>& names,
                                          std::set<std::string>& used,
                                          std::vector<std::string>& notes) {
    MENDEL_RETURN_IF_ERROR(PairMapped(names, used));
    for (size_t i = 0; i < a_.size(); ++i) {
      if (!partner_[i].has_value()) Take(i, FindFree(a_[i].name));
    }
    MENDEL_RETURN_IF_ERROR(PairByPosition(notes));
    std::vector<size_t> pairs;
    for (size_t i = 0; i < a_.size(); ++i) {
      const Port& twin = b_[*partner_[i]];
      if (a_[i].type != twin.type) return Mismatch(a_[i], twin);
      pairs.push_back(*partner_[i]);
    }
    return pairs;
  }

 private:
  std::optional<size_t> FindFree(const std::string& name) const {
    for (size_t k = 0; k < b_.size(); ++k) {
      if (!taken_[k] && b_[k].name == name) return k;
    }
    return std::nullopt;
  }

  void Take(size_t i, std::optional<size_t> k) {
    partner_[i] = k;
    if (k.has_value()) taken_[*k] = true;
  }

  absl::Status PairMapped(const std::map<std::string, std::string>& names,
                          std::set<std::string>& used) {
    for (size_t i = 0; i < a_.size(); ++i) {
      const auto mapped = names.find(a_[i].name);
      if (mapped == names.end()) continue;
      const std::optional<size_t> twin = FindFree(mapped->second);
      if (!twin.has_value()) {
        return InvalidInput(kind_, " '", a_[i].name, "' of A is to be paired with '",
                            mapped->second, "', which is no ", kind_,
                            " of B or is paired already; B has ", List(b_));
      }
      Take(i, twin);
      used.insert(mapped->first);
    }
    return absl::OkStatus();
  }

  /// All that is left, when it is alike on both sides.
  absl::Status PairByPosition(std::vector<std::string>& notes) {
    std::vector<Port> left_a;
    std::vector<Port> left_b;
    for (size_t i = 0; i < a_.size(); ++i) {
      if (!partner_[i].has_value()) left_a.push_back(a_[i]);
    }
    for (size_t k = 0; k < b_.size(); ++k) {
      if (!taken_[k]) left_b.push_back(b_[k]);
    }
    const auto same_type = [](const Port& x, const Port& y) { return x.type == y.type; };
    if (!std::equal(left_a.begin(), left_a.end(), left_b.begin(), left_b.end(), same_type)) {
      return InvalidInput("the ", kind_, "s cannot be matched: only A has ", List(left_a),
                          "; only B has ", List(left_b));
    }
    for (size_t i = 0; i < a_.size(); ++i) {
      if (partner_[i].has_value()) continue;
      Take(i, static_cast<size_t>(std::find(taken_.begin(), taken_.end(), false) - taken_.begin()));
      notes.push_back(Cat(kind_, " '", a_[i].name, "' of A is matched with '",
                          b_[*partner_[i]].name, "' of B by position"));
    }
    return absl::OkStatus();
  }

  static std::string List(const std::vector<Port>& ports) {
    std::string text;
    for (const Port& port : ports) text += (text.empty() ? "" : ", ") + PortText(port);
    return text.empty() ? "none" : text;
  }

  absl::Status Mismatch(const Port& a, const Port& b) const {
    const bool dtype = a.type.dtype != b.type.dtype;
    const bool shape = a.type.shape != b.type.shape;
    return InvalidInput(kind_, " '", a.name, "' differs in ", dtype ? "dtype" : "",
                        dtype && shape ? " and " : "", shape ? "shape" : "", ": ",
                        TypeString(a.type), " in A, ", TypeString(b.type), " in B",
                        a.name == b.name ? "" : Cat(" ('", b.name, "')"));
  }

  std::string kind_;
  std::vector<Port> a_;
  std::vector<Port> b_;
  std::vector<std::optional<size_t>> partner_;
  std::vector<bool> taken_;
};

/// Names of inputs, outputs and weights, for errors.
std::string AllNames(const Graph& graph) {
  std::string names;
  const auto add = [&](const std::string& name) {
    names += Cat(names.empty() ? "'" : ", '", name, "'");
  };
  for (const int32_t id : graph.inputs()) add(InputName(graph.node(id)));
  for (const GraphOutput& output : graph.outputs()) add(output.name);
  for (const Node& node : graph.nodes()) {
    if (IsConstant(node) && !SymbolName(node).empty()) add(SymbolName(node));
  }
  return names;
}

/// Names of B's weights after `names`, which may pair weights too.
absl::StatusOr<std::map<std::string, std::string>> RenamedWeights(
    const Graph& a, const Graph& b, const std::map<std::string, std::string>& names,
    const std::set<std::string>& used) {
  std::map<std::string, std::string> renamed;
  for (const auto& [name_a, name_b] : names) {
    const Node* of_a = FindSymbol(a, name_a);
    const Node* of_b = FindSymbol(b, name_b);
    if (of_a == nullptr || of_b == nullptr) {
      if (used.contains(name_a)) continue;
      return InvalidInput(
          "'", name_a, "' and '", name_b,
          "' are to be paired and are no inputs, outputs or weights of A and B; A has ",
          AllNames(a), "; B has ", AllNames(b));
    }
    if (of_a->outputs[0] != of_b->outputs[0]) {
      return InvalidInput("weight '", name_a, "' is ", TypeString(of_a->outputs[0]), " in A, '",
                          name_b, "' is ", TypeString(of_b->outputs[0]), " in B");
    }
    if (!renamed.emplace(name_b, name_a).second)
      return InvalidInput("weight '", name_b, "' of B is paired twice");
  }
  // A weight of B that has a name now taken is another one.
  for (const auto& [name_a, name_b] : names) {
    if (renamed.contains(name_b) && !renamed.contains(name_a))
      renamed.emplace(name_a, name_a + " (of B)");
  }
  return renamed;
}

/// `b` with these ports: `inputs[i]` of A is its input number `pairs[i]`, and the same of outputs.
absl::StatusOr<Graph> Renamed(const Graph& a, const Graph& b, const std::vector<size_t>& inputs,
                              const std::vector<size_t>& outputs) {
  GraphBuilder builder(b.name());
  std::vector<ValueId> arguments(inputs.size());
  const std::vector<Port> ports = InputPorts(a);
  for (size_t i = 0; i < ports.size(); ++i)
    arguments[inputs[i]] = builder.Input(ports[i].name, ports[i].type);
  MENDEL_ASSIGN_OR_RETURN(const std::vector<ValueId> results, Inline(b, arguments, builder));
  for (size_t i = 0; i < outputs.size(); ++i)
    builder.Output(a.outputs()[i].name, results[outputs[i]]);
  return builder.Build();
}

}  // namespace

absl::StatusOr<MatchedModel> MatchInterfaces(const Graph& a, const Graph& b,
                                             const std::map<std::string, std::string>& names) {
  MatchedModel matched;
  std::set<std::string> used;
  Pairing inputs("input", InputPorts(a), InputPorts(b));
  MENDEL_ASSIGN_OR_RETURN(const std::vector<size_t> input_pairs,
                          inputs.Run(names, used, matched.notes));
  for (size_t i = 0; i < input_pairs.size(); ++i) {
    matched.inputs[InputName(a.node(a.inputs()[i]))] =
        InputName(b.node(b.inputs()[input_pairs[i]]));
  }
  Pairing outputs("output", OutputPorts(a), OutputPorts(b));
  MENDEL_ASSIGN_OR_RETURN(const std::vector<size_t> output_pairs,
                          outputs.Run(names, used, matched.notes));
  MENDEL_ASSIGN_OR_RETURN(const auto weights, RenamedWeights(a, b, names, used));
  MENDEL_ASSIGN_OR_RETURN(matched.graph, Renamed(a, b, input_pairs, output_pairs));
  if (weights.empty()) return matched;
  MENDEL_ASSIGN_OR_RETURN(
      matched.graph, RecastConstants(matched.graph, [&](const Node& node) {
        const auto renamed = weights.find(SymbolName(node));
        const bool keep = SymbolName(node).empty() || renamed == weights.end();
        return RecastConstant{ConstantValue(node), keep ? SymbolName(node) : renamed->second};
      }));
  return matched;
}

}  // namespace mendel
