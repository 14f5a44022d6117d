#include "kernels/cuda/cudnn/attention_match.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "graph/evaluate.h"
#include "kernels/cuda/cublaslt/strided_value.h"

namespace mendel::cuda {
namespace {

/// The value's one number; nullopt where it is not stored, or several.
std::optional<double> StoredNumber(const Graph& graph, ValueId value) {
  const Node& node = graph.node(value.node);
  if (!IsConstant(node) || NumElements(node.outputs[0]) != 1) return std::nullopt;
  return HostValue::FromTensor(ConstantValue(node)).scalars[0];
}

class AttentionMatcher {
 public:
  AttentionMatcher(const GroupingScope& scope, int32_t node, std::optional<DType> rounded)
      : scope_(scope), graph_(scope.graph), node_(node), rounded_(rounded) {}

  std::vector<AttentionMatch> Run() {
    if (!MatchProducts()) return {};
    std::vector<AttentionMatch> matches;
    if (AttentionMatch turned = match_; TakeTranspose(turned)) matches.push_back(std::move(turned));
    matches.push_back(std::move(match_));
    return matches;
  }

 private:
  bool MatchProducts() {
    if (!IsProduct(node_)) return false;
    const DType dtype = graph_.node(node_).outputs[0].dtype;
    if (rounded_.has_value() ? dtype != DType::kF32 : dtype != DType::kF16 && dtype != DType::kBF16)
      return false;
    match_.attention.dtype = rounded_.value_or(dtype);
    match_.group.nodes = {node_};
    int32_t next = scope_.OnlyUser(node_);
    int32_t scores_end = node_;
    if (next >= 0 && TakeScale(next)) next = scope_.OnlyUser(scores_end = next);
    std::optional<ValueId> mask;
    if (next >= 0 && (mask = MaskOf(next, scores_end)).has_value()) {
      match_.group.nodes.insert(next);
      next = scope_.OnlyUser(next);
    }
    if (next < 0 || !TakeSoftmax(next)) return false;
    const int32_t softmax = next;
    next = scope_.OnlyUser(softmax);
    if (next < 0 || !IsProduct(next) || graph_.node(next).inputs[0] != ValueId{softmax, 0})
      return false;
    match_.group.nodes.insert(next);
    match_.group.result = {next, 0};
    const Node &scores = graph_.node(node_), &product = graph_.node(next);
    CudnnAttention& attention = match_.attention;
    int32_t q_reader = node_, k_reader = node_;
    const ValueId q = Unscaled(scores.inputs[0], q_reader),
                  k = Unscaled(scores.inputs[1], k_reader);
    if (!Read(q, q_reader, false, attention.q) || !Read(k, k_reader, true, attention.k))
      return false;
    if (mask.has_value()) AddMask(*mask);
    if (!Read(product.inputs[1], next, false, attention.v)) return false;
    // Engines may take the largest number of a row before they scale it.
    if (!(attention.scale > 0) || std::isinf(attention.scale)) return false;
    const Shape& y = product.outputs[0].shape;
    attention.y = Heads(y, RowMajorStrides(y));
    if (rounded_.has_value()) {
      match_.group.forms.assign(3, {.rounded = rounded_});
      if (mask.has_value())
        match_.group.forms.insert(match_.group.forms.begin() + 2, MemoryFormat());
      match_.group.result_form = {.rounded = rounded_};
    }
    const Shape& batch = attention.q.shape;
    const auto shares = [&](const HeadMatrices& it) {
      return it.shape[0] == batch[0] && it.shape[1] == batch[1];
    };
    return shares(attention.k) && shares(attention.v) && shares(attention.y);
  }

  bool IsProduct(int32_t id) const {
    const Node& node = graph_.node(id);
    const size_t rank = node.outputs[0].shape.size();
    return node.op->name == "MatMul" && scope_.IsFree(id) && rank >= 2 && rank <= 4 &&
           NumElements(node.outputs[0]) > 0;
  }

  /// The factor by which the node multiplies the one of its inputs that is not stored, of the same
  /// shape; nullopt where it is no such node.
  std::optional<double> FactorOf(int32_t id) const {
    const Node& node = graph_.node(id);
    const bool divides = node.op->name == "Div";
    if ((!divides && node.op->name != "Mul") || !scope_.IsFree(id)) return std::nullopt;
    for (const size_t k : {1, 0}) {
      const std::optional<double> number = StoredNumber(graph_, node.inputs[k]);
      if (!number.has_value() || (divides && k == 0)) continue;
      if (graph_.type(node.inputs[1 - k]).shape != node.outputs[0].shape) continue;
      return divides ? 1 / *number : *number;
    }
    return std::nullopt;
  }

  bool TakeScale(int32_t id) {
    const std::optional<double> factor = FactorOf(id);
    if (factor.has_value()) Scale(id, *factor);
    return factor.has_value();
  }

  void Scale(int32_t id, double factor) {
    match_.attention.scale = static_cast<float>(match_.attention.scale * factor);
    match_.group.nodes.insert(id);
  }

  /// True where operands without the factor round like those with it. f16 has a small range.
  bool KeepsPrecision(double factor) const {
    constexpr double kMost = 16;
    return rounded_ != DType::kF16 || (factor <= kMost && factor >= 1 / kMost);
  }

  /// `value` without the factors of nodes that only `reader` reads, which becomes their first. They
  /// scale the scores.
  ValueId Unscaled(ValueId value, int32_t& reader) {
    for (double all = 1; scope_.OnlyUser(value.node) == reader;) {
      const std::optional<double> factor = FactorOf(value.node);
      if (!factor.has_value() || !KeepsPrecision(all *= *factor)) break;
      Scale(value.node, *factor);
      reader = value.node;
      const std::vector<ValueId>& inputs = graph_.node(reader).inputs;
      value = inputs[StoredNumber(graph_, inputs[1]).has_value() ? 0 : 1];
    }
    return value;
  }

  /// The stored value that the node adds to the scores; nullopt where it is no such node.
  std::optional<ValueId> MaskOf(int32_t id, int32_t scores) const {
    const Node& node = graph_.node(id);
    if (node.op->name != "Add" || !scope_.IsFree(id)) return std::nullopt;
    const ValueId mask = node.inputs[node.inputs[0].node == scores ? 1 : 0];
    const Shape &shape = graph_.type(mask).shape, &whole = graph_.type({scores, 0}).shape;
    const bool fits =
        node.outputs[0].shape == whole && !shape.empty() && shape.back() == whole.back();
    return fits && LeavesKeys(mask) ? std::optional(mask) : std::nullopt;
  }

  /// True for a stored mask that leaves each row at least one key: a row without one has a meaning
  /// where the mask is finite, and cuDNN may give NaN for it.
  bool LeavesKeys(ValueId mask) const {
    const Node& node = graph_.node(mask.node);
    constexpr int64_t kMost = int64_t{1} << 22;
    constexpr double kLeft = 1e30;
    if (!IsConstant(node) || NumElements(node.outputs[0]) > kMost) return false;
    const std::vector<double> numbers = HostValue::FromTensor(ConstantValue(node)).scalars;
    const auto row = static_cast<size_t>(node.outputs[0].shape.back());
    for (size_t begin = 0; begin < numbers.size(); begin += row) {
      double most = -std::numeric_limits<double>::infinity();
      for (size_t k = begin; k < begin + row; ++k) {
        if (std::isnan(numbers[k])) return false;
        most = std::max(most, numbers[k]);
      }
      if (std::abs(most) > kLeft) return false;
    }
    return true;
  }

  /// In its own dtype, row by row.
  void AddMask(ValueId mask) {
    const TensorType& type = graph_.type(mask);
    match_.attention.mask = Heads(type.shape, RowMajorStrides(type.shape));
    match_.attention.mask_dtype = type.dtype;
    match_.group.operands.push_back({mask, {}, type.dtype});
  }

  bool TakeSoftmax(int32_t id) {
    const Node& node = graph_.node(id);
    if (node.op->name != "Softmax" || !scope_.IsFree(id)) return false;
    const auto last = static_cast<int64_t>(node.outputs[0].shape.size()) - 1;
    if (node.attrs.Int("axis") != last) return false;
    match_.group.nodes.insert(id);
    return true;
  }

  /// Reads an operand in place. `turned`: the matrices of `heads` are its own transposed.
  bool Read(ValueId value, int32_t reader, bool turned, HeadMatrices& heads) {
    for (const StridedValue& way : WaysToRead(scope_, value)) {
      // A later call may write the result of a view that others read in place of its operand.
      const bool is_stored = !rounded_.has_value() && scope_.IsThereBefore(way.source, node_);
      if (!is_stored && !AreOnlyFor(scope_, way.through, reader)) continue;
      if (way.shape.size() < 2 || way.shape.size() > 4) continue;
      HeadMatrices read = Heads(way.shape, way.strides);
      if (turned) {
        std::swap(read.shape[2], read.shape[3]);
        std::swap(read.strides[2], read.strides[3]);
      }
      const bool repeats = std::count(read.strides.begin(), read.strides.end(), 0) > 0;
      if (read.strides[3] != 1 || repeats) continue;
      heads = std::move(read);
      AddOwn(scope_, way.through, match_.group.nodes);
      match_.group.operands.push_back({way.source, {}, graph_.type(way.source).dtype});
      return true;
    }
    return false;
  }

  /// In four dimensions: what precedes rows and columns are heads, then batches.
  static HeadMatrices Heads(const Shape& shape, const Ints& strides) {
    HeadMatrices heads{shape, strides};
    while (heads.shape.size() < 4) {
      const int64_t all = heads.strides.empty() ? 1 : heads.shape[0] * heads.strides[0];
      heads.shape.insert(heads.shape.begin(), 1);
      heads.strides.insert(heads.strides.begin(), all);
    }
    return heads;
  }

  /// Writes the result as a Transpose after it has it.
  bool TakeTranspose(AttentionMatch& match) const {
    const int32_t user = scope_.OnlyUser(match.group.result.node);
    if (user < 0 || !scope_.IsFree(user) || graph_.node(user).op->name != "Transpose") return false;
    const Node& node = graph_.node(user);
    const Ints& perm = node.attrs.IntList("perm");
    const Ints turned = RowMajorStrides(node.outputs[0].shape);
    Ints strides(perm.size());
    for (size_t d = 0; d < perm.size(); ++d) strides[static_cast<size_t>(perm[d])] = turned[d];
    if (strides.back() != 1) return false;
    match.attention.y = Heads(graph_.type(match.group.result).shape, strides);
    match.group.nodes.insert(user);
    match.group.result = {user, 0};
    return true;
  }

  const GroupingScope& scope_;
  const Graph& graph_;
  const int32_t node_;
  const std::optional<DType> rounded_;
  AttentionMatch match_;
};

}  // namespace

std::vector<AttentionMatch> MatchAttention(const GroupingScope& scope, int32_t node,
                                           std::optional<DType> rounded) {
  return AttentionMatcher(scope, node, rounded).Run();
}

}  // namespace mendel::cuda
