// The steps of loops, written one after the other.

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "graph/loop.h"
#include "graph/rewrite.h"

namespace mendel {
namespace {

using Values = std::vector<ValueId>;

class Unroller {
 public:
  explicit Unroller(int64_t most_steps) : most_steps_(most_steps) {}

  absl::StatusOr<Graph> Run(const Graph& graph, std::vector<int32_t>* origins) {
    std::vector<Values> copies(graph.nodes().size());
    const auto copy = [&](ValueId value) {
      return copies[static_cast<size_t>(value.node)][static_cast<size_t>(value.output)];
    };
    for (size_t i = 0; i < graph.nodes().size(); ++i) {
      const Node& node = graph.nodes()[i];
      origin_ = static_cast<int32_t>(i);
      Values inputs;
      for (const ValueId value : node.inputs) inputs.push_back(copy(value));
      if (node.op->name == "Loop") {
        MENDEL_ASSIGN_OR_RETURN(copies[i], Unroll(node, std::move(inputs)));
        continue;
      }
      MENDEL_ASSIGN_OR_RETURN(copies[i], Copy(node, std::move(inputs)));
    }
    for (const GraphOutput& output : graph.outputs())
      builder_.Output(output.name, copy(output.value));
    if (origins != nullptr) *origins = KeptOrigins(graph, copy);
    return builder_.Build();
  }

 private:
  /// Origins of the nodes that the built graph has: those that an output needs, and inputs.
  template <class Copy>
  std::vector<int32_t> KeptOrigins(const Graph& graph, const Copy& copy) const {
    std::vector<bool> needed(origins_.size(), false);
    for (const GraphOutput& output : graph.outputs())
      needed[static_cast<size_t>(copy(output.value).node)] = true;
    for (size_t i = needed.size(); i-- > 0;) {
      if (!needed[i]) continue;
      for (const ValueId value : builder_.node(static_cast<int32_t>(i)).inputs)
        needed[static_cast<size_t>(value.node)] = true;
    }
    std::vector<int32_t> kept;
    for (size_t i = 0; i < needed.size(); ++i) {
      if (needed[i] || IsInput(builder_.node(static_cast<int32_t>(i)))) kept.push_back(origins_[i]);
    }
    return kept;
  }

  /// Records where the newest node comes from.
  void Note(int32_t id) {
    if (static_cast<size_t>(id) >= origins_.size())
      origins_.resize(static_cast<size_t>(id) + 1, origin_);
  }

  absl::StatusOr<ValueId> Add(std::string_view op, Values inputs, Attributes attrs) {
    MENDEL_ASSIGN_OR_RETURN(const ValueId value,
                            builder_.Add(op, std::move(inputs), std::move(attrs)));
    Note(value.node);
    return value;
  }

  absl::StatusOr<Values> Copy(const Node& node, Values inputs) {
    MENDEL_ASSIGN_OR_RETURN(const int32_t id, builder_.CopyNode(node, std::move(inputs)));
    Note(id);
    Values values;
    for (size_t k = 0; k < node.outputs.size(); ++k)
      values.push_back({id, static_cast<int32_t>(k)});
    return values;
  }

  absl::StatusOr<ValueId> Reshaped(ValueId value, Shape shape) {
    return Add("Reshape", {value}, {{"shape", std::move(shape)}});
  }

  /// The slices of a scanned input.
  absl::StatusOr<Values> Slices(ValueId value, int64_t steps) {
    Shape shape = builder_.type(value).shape;
    shape.erase(shape.begin());
    Values slices = {value};
    if (steps > 1) {
      MENDEL_ASSIGN_OR_RETURN(
          const int32_t id,
          builder_.AddNode("Split", {value},
                           {{"axis", int64_t{0}}, {"sizes", Ints(static_cast<size_t>(steps), 1)}}));
      Note(id);
      slices.clear();
      for (int64_t k = 0; k < steps; ++k) slices.push_back({id, static_cast<int32_t>(k)});
    }
    for (ValueId& slice : slices) {
      MENDEL_ASSIGN_OR_RETURN(slice, Reshaped(slice, shape));
    }
    return slices;
  }

  absl::StatusOr<ValueId> Stacked(Values slices) {
    for (ValueId& slice : slices) {
      Shape shape = builder_.type(slice).shape;
      shape.insert(shape.begin(), 1);
      MENDEL_ASSIGN_OR_RETURN(slice, Reshaped(slice, std::move(shape)));
    }
    if (slices.size() == 1) return slices[0];
    return Add("Concat", std::move(slices), {{"axis", int64_t{0}}});
  }

  absl::StatusOr<Values> Unroll(const Node& node, Values inputs) {
    const std::shared_ptr<const Graph> body = LoopBodyOf(node.attrs);
    const size_t carried = static_cast<size_t>(node.attrs.Int("carried"));
    const size_t scanned = static_cast<size_t>(node.attrs.Int("scanned"));
    const int64_t steps = node.attrs.Int("steps");
    const bool reverse = node.attrs.Int("reverse") != 0;
    if (steps > most_steps_) {
      return Unsupported("a loop of ", steps, " steps; at most ", most_steps_, " are unrolled");
    }
    std::vector<Values> slices;
    for (size_t k = 0; k < scanned; ++k) {
      MENDEL_ASSIGN_OR_RETURN(slices.emplace_back(), Slices(inputs[carried + k], steps));
    }
    std::vector<Values> results(node.outputs.size() - carried, Values(static_cast<size_t>(steps)));
    for (int64_t k = 0; k < steps; ++k) {
      const size_t time = static_cast<size_t>(LoopTime(steps, reverse, k));
      for (size_t s = 0; s < scanned; ++s) inputs[carried + s] = slices[s][time];
      MENDEL_ASSIGN_OR_RETURN(const Values outputs, Inline(*body, inputs, builder_));
      for (const ValueId value : outputs) Note(value.node);  // the last new node is an output
      for (size_t c = 0; c < carried; ++c) inputs[c] = outputs[c];
      for (size_t r = 0; r < results.size(); ++r) results[r][time] = outputs[carried + r];
    }
    Values values(inputs.begin(), inputs.begin() + static_cast<int64_t>(carried));
    for (Values& result : results) {
      MENDEL_ASSIGN_OR_RETURN(values.emplace_back(), Stacked(std::move(result)));
    }
    return values;
  }

  const int64_t most_steps_;
  GraphBuilder builder_;
  std::vector<int32_t> origins_;  ///< origins of the builder's nodes
  int32_t origin_ = 0;            ///< of the next ones
};

}  // namespace

bool HasLoop(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const Node& node) { return node.op->name == "Loop"; });
}

absl::StatusOr<Graph> UnrollLoops(const Graph& graph, std::vector<int32_t>* origins,
                                  int64_t most_steps) {
  return Unroller(most_steps).Run(graph, origins);
}

}  // namespace mendel
