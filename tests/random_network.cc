#include "tests/random_network.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "graph/random_graph.h"
#include "graph/sample_node.h"
#include "mutator/rule.h"
#include "tests/graph_edit.h"
#include "tests/op_graphs.h"

namespace mendel {
namespace {

constexpr int64_t kMaxElements = 20000;  // of a value

class NetworkGrower {
 public:
  NetworkGrower(Rng& rng, int operators, const OpDefinition* favored)
      : rng_(rng), operators_(operators), favored_(favored), builder_("random") {}

  Graph Grow() {
    for (int attempt = 0; attempt < 4 * operators_ && count_ < operators_; ++attempt) {
      if (favored_ != nullptr && rng_.Flip(1.0 / 3)) {
        AddSampled(*favored_);
        continue;
      }
      const uint64_t kind = rng_.Below(10);
      if (kind < 3) {
        const Rule* rule = AllRules()[PickIndex(rng_, AllRules().size())];
        const auto sample = rule->sample(rng_);
        if (sample.ok()) Embed(*sample);
      } else if (kind == 3) {
        Embed(RandomGraph(rng_, static_cast<int>(rng_.Between(1, 6))));
      } else {
        AddSampled(*SampledOps()[PickIndex(rng_, SampledOps().size())]);
      }
    }
    if (values_.empty()) Note(Fresh({DType::kF32, {2, 3}}));
    int number = 0;
    for (ValueId value : values_) {
      if (read_.count(value) == 0) builder_.Output(Cat("y", number++), value);
    }
    auto graph = builder_.Build();
    MENDEL_CHECK(graph.ok());
    return *std::move(graph);
  }

 private:
  std::optional<ValueId> Counted(std::optional<ValueId> value) {
    if (value.has_value()) ++count_;
    return value;
  }

  void Note(ValueId value) {
    if (NumElements(builder_.type(value)) <= kMaxElements) values_.push_back(value);
  }

  /// An input or, sometimes, a constant of this type.
  ValueId Fresh(const TensorType& type) {
    if (IsFloat(type.dtype) && rng_.Flip(0.4)) return Constant(type, std::nullopt);
    if (!IsFloat(type.dtype) && rng_.Flip(0.8)) return Constant(type, std::nullopt);
    return builder_.Input(Cat("x", inputs_++), type);
  }

  ValueId Constant(const TensorType& type, std::optional<std::pair<double, double>> range) {
    SampledNode node;
    node.inputs = {type};
    if (range.has_value()) node.ranges = {{0, *range}};
    const bool weight = IsFloat(type.dtype) && !range.has_value() && rng_.Flip(0.6);
    return builder_.Constant(SampleInputs(node, rng_)[0].ToTensor(),
                             weight ? Cat("w", constants_++) : "");
  }

  /// `value` cut and reshaped to `type`, or nullopt if that cannot be.
  std::optional<ValueId> Adapted(ValueId value, const TensorType& type) {
    const TensorType have = builder_.type(value);
    if (have == type) return value;
    const int64_t want = NumElements(type), count = NumElements(have);
    if (have.dtype != type.dtype || want == 0 || count < want || count_ + 4 > operators_)
      return std::nullopt;
    std::optional<ValueId> flat = value;
    if (count != want) {
      if (have.shape.size() != 1)
        flat = Counted(TryAdd(builder_, "Reshape", {value}, {{"shape", Shape{count}}}));
      const int64_t begin = rng_.Between(0, count - want);
      if (flat.has_value()) flat = Counted(SliceOf(builder_, *flat, 0, begin, begin + want));
      if (!flat.has_value() || type.shape.size() == 1) return flat;
    }
    return Counted(TryAdd(builder_, "Reshape", {*flat}, {{"shape", type.shape}}));
  }

  /// Something of `type` that was computed before, where there is such a thing and chance wants it.
  ValueId Operand(const TensorType& type) {
    if (!values_.empty() && rng_.Flip(0.85)) {
      for (int attempt = 0; attempt < 6; ++attempt) {
        // The latest values more often: deep programs.
        const size_t last = values_.size() - 1;
        const size_t at = rng_.Flip() ? PickIndex(rng_, values_.size())
                                      : last - PickIndex(rng_, std::min<size_t>(4, last + 1));
        const ValueId value = values_[at];
        const auto adapted = Adapted(value, type);
        if (!adapted.has_value()) continue;
        read_.insert(value);
        return *adapted;
      }
    }
    return Fresh(type);
  }

  /// An operand within a range: a literal, or something computed that is squeezed into it.
  ValueId Ranged(const TensorType& type, std::pair<double, double> range) {
    if (!IsFloat(type.dtype) || rng_.Flip() || count_ + 8 > operators_)
      return Constant(type, range);
    const ValueId value = Operand(type);
    const double width = (range.second - range.first) / 2;
    auto squeezed = Counted(TryAdd(builder_, "Sigmoid", {value}));
    if (squeezed)
      squeezed = Counted(TryAdd(builder_, "Mul", {*squeezed, ScalarLike(builder_, value, width)}));
    if (squeezed)
      squeezed = Counted(TryAdd(builder_, "Add",
                                {*squeezed, ScalarLike(builder_, value, range.first + width / 2)}));
    return squeezed.value_or(Constant(type, range));
  }

  /// One operator as its sampler draws it; now and then its attributes on whatever operands are
  /// there.
  void AddSampled(const OpDefinition& op) {
    const auto node = SampleNode(op, rng_);
    MENDEL_CHECK(node.ok());
    if (!values_.empty() && node->ranges.empty() && op.index_inputs == 0 && rng_.Flip() &&
        AddLoose(*node))
      return;
    std::vector<ValueId> operands;
    for (size_t k = 0; k < node->inputs.size(); ++k) {
      std::optional<std::pair<double, double>> range;
      for (const auto& [input, within] : node->ranges) {
        if (static_cast<size_t>(input) == k) range = within;
      }
      const bool index =
          k < 32 && ((op.index_inputs >> k) & 1) != 0 && !IsFloat(node->inputs[k].dtype);
      operands.push_back(range.has_value() ? Ranged(node->inputs[k], *range)
                         : index           ? Constant(node->inputs[k], std::nullopt)
                                           : Operand(node->inputs[k]));
    }
    if (count_ >= operators_) return;
    const auto id = builder_.AddNode(op.name, operands, node->attrs);
    MENDEL_CHECK(id.ok());
    ++count_;
    for (size_t k = 0; k < node->outputs.size(); ++k) Note({*id, static_cast<int32_t>(k)});
  }

  bool AddLoose(const SampledNode& node) {
    std::vector<ValueId> operands;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const ValueId value =
          k > 0 && rng_.Flip() ? operands[0] : values_[PickIndex(rng_, values_.size())];
      operands.push_back(
          builder_.type(value).dtype == node.inputs[k].dtype ? value : Fresh(node.inputs[k]));
    }
    const auto id = builder_.AddNode(node.op->name, operands, node.attrs);
    if (!id.ok()) return false;
    ++count_;
    for (ValueId value : operands) read_.insert(value);
    for (size_t k = 0; k < builder_.node(*id).outputs.size(); ++k)
      Note({*id, static_cast<int32_t>(k)});
    return true;
  }

  /// A whole program, its inputs wired to what is there.
  void Embed(const Graph& piece) {
    if (count_ + OperatorCount(piece) > operators_) return;
    const int number = pieces_++;
    std::vector<ValueId> inputs;
    for (int32_t id : piece.inputs()) inputs.push_back(Operand(piece.node(id).outputs[0]));
    if (count_ + OperatorCount(piece) > operators_) return;
    std::vector<int32_t> where;
    for (const Node& node : piece.nodes()) {
      const size_t at = where.size();
      if (IsInput(node)) {
        const auto begin = piece.inputs().begin();
        const auto position =
            std::find(begin, piece.inputs().end(), static_cast<int32_t>(at)) - begin;
        where.push_back(inputs[static_cast<size_t>(position)].node);
        moved_[{number, static_cast<int32_t>(at)}] = inputs[static_cast<size_t>(position)];
        continue;
      }
      if (IsConstant(node)) {
        const std::string symbol =
            SymbolName(node).empty() ? "" : Cat("p", number, SymbolName(node));
        where.push_back(builder_.Constant(ConstantValue(node), symbol).node);
        continue;
      }
      std::vector<ValueId> operands;
      for (ValueId value : node.inputs) {
        const auto input = moved_.find({number, value.node});
        operands.push_back(input != moved_.end()
                               ? input->second
                               : ValueId{where[static_cast<size_t>(value.node)], value.output});
      }
      const auto id = builder_.CopyNode(node, operands);
      MENDEL_CHECK(id.ok());
      ++count_;
      where.push_back(*id);
    }
    for (const GraphOutput& output : piece.outputs()) {
      if (!IsInput(piece.node(output.value.node)))
        Note({where[static_cast<size_t>(output.value.node)], output.value.output});
    }
  }

  Rng& rng_;
  int operators_;
  const OpDefinition* const favored_;
  GraphBuilder builder_;
  std::vector<ValueId> values_;  // that may be read
  std::set<ValueId> read_;
  std::map<std::pair<int, int32_t>, ValueId> moved_;  // (piece, its input node)
  int count_ = 0, inputs_ = 0, constants_ = 0, pieces_ = 0;
};

/// `graph` with only the outputs of these numbers.
std::optional<Graph> WithOutputs(const Graph& graph, const std::vector<size_t>& numbers) {
  GraphBuilder builder(graph.name());
  for (const Node& node : graph.nodes()) {
    if (!builder.CopyNode(node, node.inputs).ok()) return std::nullopt;
  }
  for (size_t k : numbers) builder.Output(graph.outputs()[k].name, graph.outputs()[k].value);
  auto built = builder.Build();
  if (!built.ok()) return std::nullopt;
  return *std::move(built);
}

/// `graph` with inputs instead of the outputs of one node.
std::optional<Graph> CutAt(const Graph& graph, int32_t node) {
  auto cut = EditGraph(graph, [&](GraphBuilder& builder, const NodeSite& site) {
    std::vector<ValueId> values;
    if (site.id != node) return values;
    for (size_t k = 0; k < site.node.outputs.size(); ++k) {
      values.push_back(builder.Input(Cat("cut", node, "_", k), site.node.outputs[k]));
    }
    return values;
  });
  if (!cut.ok()) return std::nullopt;
  return *std::move(cut);
}

/// Without inputs that nothing reads, which Build keeps.
size_t Size(const Graph& graph) {
  return static_cast<size_t>(OperatorCount(graph)) * 100 + graph.outputs().size();
}

}  // namespace

int OperatorCount(const Graph& graph) {
  return static_cast<int>(
      std::count_if(graph.nodes().begin(), graph.nodes().end(),
                    [](const Node& node) { return !IsInput(node) && !IsConstant(node); }));
}

Graph RandomNetwork(Rng& rng, int operators, const OpDefinition* favored) {
  return NetworkGrower(rng, operators, favored).Grow();
}

Graph Shrunk(const Graph& graph, const std::function<bool(const Graph&)>& fails, int attempts) {
  Graph current = graph;
  const auto accept = [&](const std::optional<Graph>& smaller) {
    if (!smaller.has_value() || Size(*smaller) >= Size(current) || attempts-- <= 0 ||
        !fails(*smaller))
      return false;
    current = *smaller;
    return true;
  };
  for (bool smaller = true; smaller && attempts > 0;) {
    smaller = false;
    for (size_t k = 0; k < current.outputs().size() && current.outputs().size() > 1; ++k) {
      std::vector<size_t> others;
      for (size_t other = 0; other < current.outputs().size(); ++other) {
        if (other != k) others.push_back(other);
      }
      smaller = accept(WithOutputs(current, others)) || smaller;
    }
    for (int32_t id = static_cast<int32_t>(current.nodes().size()) - 1; id >= 0; --id) {
      if (id >= static_cast<int32_t>(current.nodes().size())) continue;
      const Node& node = current.node(id);
      if (!IsInput(node) && !IsConstant(node)) smaller = accept(CutAt(current, id)) || smaller;
    }
  }
  return current;
}

}  // namespace mendel
