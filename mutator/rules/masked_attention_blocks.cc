// Attention under a stored mask is computed in blocks of queries, each with the keys that it sees.
//
//   before  Softmax(Q K + m) V,  m = -inf where a query does not see a key
//   after   Concat over blocks of rows of Softmax(Q[rows] K[keys] + m[rows, keys]) V[keys]
//
// Exact for literals and for masks of 0 and -inf: a score of -inf has weight exp(-inf) = 0. Large
// negative numbers in place of -inf do not.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/restrict.h"
#include "graph/rewrite.h"
#include "mutator/parallel.h"
#include "mutator/rule.h"
#include "mutator/sample.h"

namespace mendel::rules::masked_attention_blocks {
namespace {

constexpr std::array<int64_t, 6> kBlocks = {1, 2, 4, 8, 16, 32};
constexpr double kWorthwhile = 0.9;  // of the scores, and of those with fewer blocks
constexpr int64_t kLeastRows = 2;    // of a block
constexpr int64_t kMostElements = int64_t{1} << 24;
constexpr double kMasked = -std::numeric_limits<double>::infinity();

/// Scores of shape [.., rows, keys]: does no query of any leading index see the key?
struct Mask {
  int64_t rows = 0;
  int64_t keys = 0;
  std::vector<bool> hidden;

  bool At(int64_t row, int64_t key) const { return hidden[static_cast<size_t>(row * keys + key)]; }
  bool HidesAny() const { return std::find(hidden.begin(), hidden.end(), true) != hidden.end(); }
};

struct Block {
  int64_t first_row = 0, last_row = 0;  ///< half-open
  int64_t first_key = 0, last_key = 0;
};

/// Reads masks of scores of one shape.
class MaskReader {
 public:
  MaskReader(const Graph& graph, const Shape& scores)
      : graph_(graph), rows_(scores[scores.size() - 2]), keys_(scores.back()) {}

  Mask Read(ValueId value, int depth = 8) const {
    Mask mask{rows_, keys_, std::vector<bool>(static_cast<size_t>(rows_ * keys_), false)};
    const Node& node = graph_.node(value.node);
    if (const Tensor* literal = Literal(value); literal != nullptr && IsFloat(literal->dtype()))
      return Hidden([&](int64_t at) { return literal->DoubleAt(at) == kMasked; }, literal->shape());
    if (depth == 0) return mask;
    if (node.op->name == "Add") {
      mask = Read(node.inputs[0], depth - 1);
      const Mask other = Read(node.inputs[1], depth - 1);
      for (size_t i = 0; i < mask.hidden.size(); ++i)
        mask.hidden[i] = mask.hidden[i] || other.hidden[i];
    }
    if (node.op->name == "Where") {
      const Tensor* condition = Literal(node.inputs[0]);
      if (condition == nullptr) return mask;
      const Mask yes = Read(node.inputs[1], depth - 1), no = Read(node.inputs[2], depth - 1);
      const auto holds = [&](int64_t at) { return condition->IntAt(at) != 0; };
      const Mask always = Hidden(holds, condition->shape());
      const Mask never = Hidden([&](int64_t at) { return !holds(at); }, condition->shape());
      for (size_t i = 0; i < mask.hidden.size(); ++i)
        mask.hidden[i] = (yes.hidden[i] || never.hidden[i]) && (no.hidden[i] || always.hidden[i]);
    }
    return mask;
  }

 private:
  /// The numbers of a literal, or of a weight that is a mask and nothing else: another weight may
  /// not stand for it.
  const Tensor* Literal(ValueId value) const {
    const Node& node = graph_.node(value.node);
    if (!IsConstant(node)) return nullptr;
    const Tensor& tensor = ConstantValue(node);
    if (tensor.size() == 0 || tensor.size() > kMostElements) return nullptr;
    const bool known = SymbolName(node).empty() || !IsFloat(tensor.dtype());
    for (int64_t i = 0; !known && i < tensor.size(); ++i) {
      const double number = tensor.DoubleAt(i);
      if (number != 0 && number != kMasked) return nullptr;
    }
    return &tensor;
  }

  /// Positions at which `hides` holds for every leading index of a tensor that is broadcast to the
  /// scores.
  template <class Hides>
  Mask Hidden(const Hides& hides, const Shape& shape) const {
    Mask mask{rows_, keys_, std::vector<bool>(static_cast<size_t>(rows_ * keys_), true)};
    const int64_t keys = shape.empty() ? 1 : shape.back();
    const int64_t rows = shape.size() < 2 ? 1 : shape[shape.size() - 2];
    const int64_t leading = NumElements(shape) / (rows * keys);
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t key = 0; key < keys_; ++key) {
        const int64_t at = (rows == 1 ? 0 : row) * keys + (keys == 1 ? 0 : key);
        bool all = true;
        for (int64_t k = 0; k < leading && all; ++k) all = hides(k * rows * keys + at);
        mask.hidden[static_cast<size_t>(row * keys_ + key)] = all;
      }
    }
    return mask;
  }

  const Graph& graph_;
  int64_t rows_, keys_;
};

/// Softmax of scores along the keys, times the values.
struct Attention {
  ValueId scores, values;
  Mask mask;
  std::vector<int32_t> nodes;  ///< ascending
};

/// Nodes from the scores back to the product that they come from.
std::vector<int32_t> ScoreNodes(const Graph& graph, ValueId scores) {
  constexpr std::array<std::string_view, 5> kPassed = {"Add", "Div", "Mul", "Sub", "Where"};
  std::vector<int32_t> nodes;
  for (ValueId at = scores; graph.OnlyUser(at.node) >= 0;) {
    const Node& node = graph.node(at.node);
    const bool product = node.op->name == "MatMul";
    if (!product && std::find(kPassed.begin(), kPassed.end(), node.op->name) == kPassed.end())
      break;
    nodes.push_back(at.node);
    std::vector<ValueId> run_time;
    for (const ValueId input : node.inputs) {
      if (!IsWeight(graph, input)) run_time.push_back(input);
    }
    if (product || run_time.size() != 1) break;
    at = run_time[0];
  }
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

std::optional<Attention> AttentionAt(const Graph& graph, int32_t id) {
  const Node& last = graph.node(id);
  if (last.op->name != "MatMul" || IsWeight(graph, last.inputs[0])) return std::nullopt;
  const Node& softmax = graph.node(last.inputs[0].node);
  if (softmax.op->name != "Softmax" || graph.OnlyUser(last.inputs[0].node) < 0) return std::nullopt;
  Attention attention{softmax.inputs[0], last.inputs[1], {}, {}};
  const Shape& scores = graph.type(attention.scores).shape;
  const Shape& values = graph.type(attention.values).shape;
  const int64_t rank = static_cast<int64_t>(scores.size());
  if (rank < 2 || values.size() < 2 || softmax.attrs.Int("axis") != rank - 1 ||
      NumElements(scores) == 0 || scores[scores.size() - 2] * scores.back() > kMostElements)
    return std::nullopt;
  attention.nodes = ScoreNodes(graph, attention.scores);
  if (attention.nodes.empty()) return std::nullopt;
  attention.nodes.push_back(last.inputs[0].node);
  attention.nodes.push_back(id);
  attention.mask = MaskReader(graph, scores).Read(attention.scores);
  return attention;
}

/// Rows in `count` blocks of about equal size; empty where a row sees no key.
std::vector<Block> BlocksOf(const Mask& mask, int64_t count) {
  std::vector<Block> blocks;
  for (int64_t k = 0; k < count; ++k) {
    Block block{mask.rows * k / count, mask.rows * (k + 1) / count, mask.keys, 0};
    for (int64_t row = block.first_row; row < block.last_row; ++row) {
      bool sees = false;
      for (int64_t key = 0; key < mask.keys; ++key) {
        if (mask.At(row, key)) continue;
        sees = true;
        block.first_key = std::min(block.first_key, key);
        block.last_key = std::max(block.last_key, key + 1);
      }
      if (!sees) return {};
    }
    blocks.push_back(block);
  }
  return blocks;
}

/// Share of the scores that blocks compute.
double ShareOf(const Mask& mask, const std::vector<Block>& blocks) {
  double scores = 0;
  for (const Block& block : blocks)
    scores += static_cast<double>((block.last_row - block.first_row) *
                                  (block.last_key - block.first_key));
  return scores / static_cast<double>(mask.rows * mask.keys);
}

std::vector<Match> FindMatches(const Graph& graph, int32_t node, const Predictor&) {
  const std::optional<Attention> attention = AttentionAt(graph, node);
  if (!attention.has_value() || !attention->mask.HidesAny()) return {};
  std::vector<Match> matches;
  double least = 1;
  for (const int64_t count : kBlocks) {
    if (count * kLeastRows > attention->mask.rows && count > 1) break;
    const std::vector<Block> blocks = BlocksOf(attention->mask, count);
    if (blocks.empty()) return {};
    const double share = ShareOf(attention->mask, blocks);
    if (share > kWorthwhile * least) continue;
    least = share;
    matches.push_back({attention->nodes, {{"blocks", count}}});
  }
  return matches;
}

/// The program up to the scores and the values, which are its outputs.
absl::StatusOr<Graph> OperandsOf(const Graph& graph, const Attention& attention) {
  GraphBuilder builder;
  std::vector<ValueId> copies;
  for (int32_t id = 0; id <= std::max(attention.scores.node, attention.values.node); ++id) {
    const Node& node = graph.node(id);
    std::vector<ValueId> operands = node.inputs;
    for (ValueId& operand : operands) operand.node = copies[static_cast<size_t>(operand.node)].node;
    if (IsInput(node)) {
      copies.push_back(builder.Input(InputName(node), node.outputs[0]));
    } else {
      MENDEL_ASSIGN_OR_RETURN(const int32_t copy, builder.CopyNode(node, std::move(operands)));
      copies.push_back({copy, 0});
    }
  }
  for (const ValueId value : {attention.scores, attention.values})
    builder.Output(value == attention.scores ? "scores" : "values",
                   {copies[static_cast<size_t>(value.node)].node, value.output});
  return builder.Build();
}

absl::StatusOr<Graph> Apply(const Graph& subprogram, const Match& match, const Predictor&) {
  const std::optional<Attention> attention =
      AttentionAt(subprogram, subprogram.outputs()[0].value.node);
  if (!attention.has_value() || !attention->mask.HidesAny())
    return absl::FailedPreconditionError("the mask is no literal");
  MENDEL_ASSIGN_OR_RETURN(const Graph whole, OperandsOf(subprogram, *attention));
  const Shape &scores = whole.type(whole.outputs()[0].value).shape,
              &values = whole.type(whole.outputs()[1].value).shape;
  GraphBuilder builder;
  std::vector<ValueId> inputs, parts;
  for (const int32_t id : whole.inputs())
    inputs.push_back(builder.Input(InputName(whole.node(id)), whole.node(id).outputs[0]));
  for (const Block& block : BlocksOf(attention->mask, match.choices.at("blocks"))) {
    Box seen = Box::Whole(scores), read = Box::Whole(values);
    seen.begin[scores.size() - 2] = block.first_row;
    seen.end[scores.size() - 2] = block.last_row;
    seen.begin.back() = read.begin[values.size() - 2] = block.first_key;
    seen.end.back() = read.end[values.size() - 2] = block.last_key;
    const std::array<OutputBox, 2> boxes = {{{0, seen}, {1, read}}};
    MENDEL_ASSIGN_OR_RETURN(const Graph part, RestrictToBoxes(whole, boxes));
    MENDEL_ASSIGN_OR_RETURN(const auto operands, Inline(part, inputs, builder));
    MENDEL_ASSIGN_OR_RETURN(
        const ValueId weights,
        builder.Add("Softmax", {operands[0]}, {{"axis", static_cast<int64_t>(scores.size()) - 1}}));
    MENDEL_ASSIGN_OR_RETURN(const ValueId product, builder.Add("MatMul", {weights, operands[1]}));
    parts.push_back(product);
  }
  ValueId y = parts[0];
  if (parts.size() > 1) {
    const int64_t axis = static_cast<int64_t>(builder.type(y).shape.size()) - 2;
    MENDEL_ASSIGN_OR_RETURN(y, builder.Add("Concat", parts, {{"axis", axis}}));
  }
  builder.Output(subprogram.outputs()[0].name, y);
  return builder.Build();
}

/// Causal, windowed or padded attention of one or two heads.
absl::StatusOr<Graph> Sample(Rng& rng) {
  Emitter e("sample");
  const int64_t rows = rng.Between(6, 9), keys = rows + rng.Between(0, 2);
  const int64_t depth = rng.Between(2, 3), window = rng.Between(1, 3), kind = rng.Between(0, 2);
  const auto hidden = [&](int64_t row, int64_t key) {
    if (kind == 0) return key > row;
    return kind == 1 ? std::abs(key - row) > window : key >= keys / 2;
  };
  std::vector<double> numbers;
  for (int64_t i = 0; i < rows * keys; ++i)
    numbers.push_back(hidden(i / keys, i % keys) && i / keys < keys ? kMasked : 0);
  const bool heads = rng.Flip();
  const auto shaped = [&](Shape shape) {
    if (heads) shape.insert(shape.begin(), {1, 2});
    return shape;
  };
  const ValueId q = e.Input("q", {DType::kF32, shaped({rows, depth})});
  const ValueId k = e.Input("k", {DType::kF32, shaped({depth, keys})});
  const ValueId v = e.Input("v", {DType::kF32, shaped({keys, depth})});
  ValueId s = e.MatMul(q, k);
  if (rng.Flip()) s = e.Mul(s, e.Constant(Tensor::Scalar(DType::kF32, 0.5)));
  if (rng.Flip()) {
    s = e.Add(s, e.Constant(Tensor::FromDoubles({DType::kF32, {rows, keys}}, numbers)));
  } else {
    std::vector<int64_t> holds;
    for (const double number : numbers) holds.push_back(number == 0 ? 1 : 0);
    s = e.Op("Where", {e.Constant(Tensor::FromInts({DType::kBool, {rows, keys}}, holds)), s,
                       e.Constant(Tensor::Scalar(DType::kF32, kMasked))});
  }
  const int64_t axis = static_cast<int64_t>(e.shape(s).size()) - 1;
  e.Output("y", e.MatMul(e.Op("Softmax", {s}, {{"axis", axis}}), v));
  return e.Finish();
}

Rule Make() {
  Rule rule;
  rule.name = "masked_attention_blocks";
  rule.family = "known numbers";
  rule.before = "MatMul(Softmax(MatMul(q, k) + m), v), m of -inf in parts";
  rule.after = "Concat of the same on blocks of rows, each with the keys that they see";
  rule.precondition =
      "m is a literal, or 0 and -inf only; every row sees a key; a tenth of the scores goes";
  rule.loses_when = "blocks are small, or a fused kernel computes the whole faster";
  rule.because = "masked keys have weight 0";
  rule.reads_values = true;
  rule.match = &FindMatches;
  rule.apply = &Apply;
  rule.sample = &Sample;
  return rule;
}

MENDEL_REGISTER_RULE(&Make);

}  // namespace
}  // namespace mendel::rules::masked_attention_blocks
