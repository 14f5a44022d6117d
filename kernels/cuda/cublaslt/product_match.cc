#include "kernels/cuda/cublaslt/product_match.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "kernels/cuda/backend/format_range.h"
#include "kernels/cuda/cublaslt/strided_value.h"

namespace mendel::cuda {
namespace {

constexpr int64_t kLargestExtent = std::numeric_limits<int32_t>::max();

Shape BatchOf(const Shape& shape) { return Shape(shape.begin(), shape.end() - 2); }

/// The one stride that leads from matrix to matrix of `batch`; nullopt where there is none.
std::optional<int64_t> BatchStride(const StridedValue& value, const Shape& batch) {
  const size_t skip = batch.size() + 2 - value.shape.size();
  std::optional<int64_t> innermost;
  int64_t expected = 0;
  for (size_t d = batch.size(); d-- > 0;) {
    if (batch[d] == 1) continue;
    const bool repeats = d < skip || value.shape[d - skip] == 1;
    const int64_t stride = repeats ? 0 : value.strides[d - skip];
    if (innermost.has_value() && stride != expected) return std::nullopt;
    if (!innermost.has_value()) innermost = stride;
    expected = stride * batch[d];
  }
  return innermost.value_or(0);
}

std::optional<LtMatrix> MatrixOf(const StridedValue& value, const Shape& batch) {
  const std::optional<int64_t> batch_stride = BatchStride(value, batch);
  if (!batch_stride.has_value()) return std::nullopt;
  const size_t row = value.shape.size() - 2;
  const int64_t rows = value.shape[row], columns = value.shape[row + 1];
  const int64_t down = value.strides[row], across = value.strides[row + 1];
  if ((columns == 1 || across == 1) && (rows == 1 || down >= columns)) {
    return LtMatrix{false, rows == 1 ? columns : down, *batch_stride};
  }
  if ((rows == 1 || down == 1) && (columns == 1 || across >= rows)) {
    return LtMatrix{true, columns == 1 ? rows : across, *batch_stride};
  }
  return std::nullopt;
}

class ProductMatcher {
 public:
  ProductMatcher(const GroupingScope& scope, int32_t node, Numerics numerics,
                 std::optional<ProductRounding> rounding)
      : scope_(scope), graph_(scope.graph), node_(node), numerics_(numerics), rounding_(rounding) {}

  std::vector<ProductMatch> Run() {
    if (!MatchAlone()) return {};
    std::vector<ProductMatch> matches = {match_};
    while (Extend()) matches.push_back(match_);
    std::reverse(matches.begin(), matches.end());
    return matches;
  }

 private:
  bool MatchAlone() {
    const Node& node = graph_.node(node_);
    if (node.op->name != "MatMul" || !scope_.IsFree(node_)) return false;
    const TensorType& type = node.outputs[0];
    LtProduct& product = match_.product;
    product.dtype = product.operands = type.dtype;
    if (rounding_.has_value()) {
      if (type.dtype != DType::kF32) return false;
      product.operands = rounding_->operands;
      if (rounding_->kept) product.dtype = rounding_->operands;
    }
    if (type.dtype != DType::kF32 && type.dtype != DType::kF16 && type.dtype != DType::kBF16)
      return false;
    const Shape batch = BatchOf(type.shape);
    product.batch = NumElements(batch);
    product.m = type.shape[batch.size()];
    product.n = type.shape.back();
    product.k = graph_.type(node.inputs[0]).shape.back();
    if (std::min({product.batch, product.m, product.n, product.k}) == 0) return false;
    match_.result = {node_, 0};
    match_.nodes = {node_};
    if (!Read(node.inputs[0], batch, product.left, match_.left)) return false;
    if (!Read(node.inputs[1], batch, product.right, match_.right)) return false;
    FoldBatch();
    const std::array extents = {
        product.batch,        product.m, product.n, product.k, product.left.leading,
        product.right.leading};
    return std::all_of(extents.begin(), extents.end(),
                       [](int64_t extent) { return extent <= kLargestExtent; });
  }

  bool Read(ValueId value, const Shape& batch, LtMatrix& matrix, ValueId& source) {
    for (const StridedValue& way : WaysToRead(scope_, value)) {
      // Rounded operands are the call's own: a view that others read in f32, too, is rounded as it
      // is.
      if (rounding_.has_value() && !AreOnlyFor(scope_, way.through, node_)) continue;
      const std::optional<LtMatrix> fits = MatrixOf(way, batch);
      if (!fits.has_value()) continue;
      matrix = *fits;
      source = way.source;
      AddOwn(scope_, way.through, match_.nodes);
      return true;
    }
    return false;
  }

  /// Rows of several matrices with the same right side become rows of one matrix.
  void FoldBatch() {
    LtProduct& product = match_.product;
    LtMatrix& left = product.left;
    if (product.batch == 1 || product.right.batch_stride != 0 || left.transposed) return;
    const bool follow = product.m == 1 ? left.batch_stride >= product.k
                                       : left.batch_stride == product.m * left.leading;
    if (!follow) return;
    left = {false, left.batch_stride / product.m, 0};
    product.m *= std::exchange(product.batch, 1);
  }

  /// Extends the match by one more node of the epilogue; false where there is none.
  bool Extend() {
    if (match_.product.activation != LtActivation::kNone) return false;
    const int32_t user = scope_.OnlyUser(match_.result.node);
    if (user < 0 || !scope_.IsFree(user)) return false;
    const Node& node = graph_.node(user);
    const bool is_half = match_.product.dtype != DType::kF32;
    if (node.op->name == "Relu" && numerics_ != Numerics::kStrict) {
      match_.product.activation = LtActivation::kRelu;
    } else if (node.op->name == "Gelu" && is_half && node.attrs.Str("approximate") == "tanh") {
      match_.product.activation = LtActivation::kGeluTanh;
    } else if (node.op->name != "Add" || !ExtendByAddition(node)) {
      return false;
    }
    match_.result = {user, 0};
    match_.nodes.insert(user);
    return true;
  }

  bool ExtendByAddition(const Node& node) {
    const Shape& shape = graph_.type(match_.result).shape;
    const ValueId other = node.inputs[node.inputs[0] == match_.result ? 1 : 0];
    const Shape& added = graph_.type(other).shape;
    if (node.outputs[0].shape != shape || !scope_.IsThereBefore(other, match_.result.node))
      return false;
    // Addends without a finite number in the format are added in f32.
    if (rounding_.has_value() && rounding_->kept &&
        ExceedsByConstants(graph_, other, rounding_->operands))
      return false;
    LtProduct& product = match_.product;
    const bool is_vector =
        !added.empty() && added.back() == product.n && NumElements(added) == product.n;
    if (is_vector && !product.bias) {
      product.bias = true;
      match_.bias = other;
      return true;
    }
    if (added != shape || product.residual) return false;
    product.residual = true;
    match_.residual = other;
    return true;
  }

  const GroupingScope& scope_;
  const Graph& graph_;
  const int32_t node_;
  const Numerics numerics_;
  const std::optional<ProductRounding> rounding_;
  ProductMatch match_;
};

}  // namespace

std::vector<ProductMatch> MatchProduct(const GroupingScope& scope, int32_t node, Numerics numerics,
                                       std::optional<ProductRounding> rounding) {
  return ProductMatcher(scope, node, numerics, rounding).Run();
}

}  // namespace mendel::cuda
