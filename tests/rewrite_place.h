// A rewrite place is where one rewrite of legal_rewrites.h works. Rewrites that move are here, too.
#ifndef MENDEL_TESTS_REWRITE_PLACE_H_
#define MENDEL_TESTS_REWRITE_PLACE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "graph/graph.h"
#include "tests/graph_edit.h"
#include "verifier/verifier.h"

namespace mendel {

/// Another value that equals the node's output; nullopt where the rewrite does not apply.
using RewrittenValue = std::optional<ValueId>;

/// One rewrite works here: at the output of a node of one output.
struct RewritePlace {
  Rng& rng;
  GraphBuilder& builder;
  const NodeSite& site;
  WeightMode weights;

  ValueId value() const { return site.outputs[0]; }
  const TensorType& type() const { return builder.type(value()); }
  const Shape& shape() const { return type().shape; }
  bool Is(std::string_view op) const { return site.node.op->name == op; }
  RewrittenValue Add(std::string_view op, std::vector<ValueId> inputs,
                     Attributes attrs = {}) const {
    return TryAdd(builder, op, std::move(inputs), std::move(attrs));
  }
  /// The node again with other operands.
  RewrittenValue Again(std::vector<ValueId> inputs) const {
    return Add(site.node.op->name, std::move(inputs), site.node.attrs);
  }
  /// True where the verifier evaluates arithmetic. Sums of integers, which wrap, are unknown
  /// functions to it unless all operands are constants.
  bool IsArithmetic() const {
    const auto constant = [&](ValueId value) { return IsConstant(builder.node(value.node)); };
    return !IsIntegral(type().dtype) || type().dtype == DType::kBool ||
           std::all_of(site.inputs.begin(), site.inputs.end(), constant);
  }
  RewrittenValue Slice(ValueId x, size_t axis, int64_t begin, int64_t end) const {
    return SliceOf(builder, x, axis, begin, end);
  }
  RewrittenValue Concat(RewrittenValue a, RewrittenValue b, size_t axis) const {
    return a && b ? Add("Concat", {*a, *b}, {{"axis", static_cast<int64_t>(axis)}}) : std::nullopt;
  }
};

/// Operators followed by their inverses.
RewrittenValue TransposePair(const RewritePlace& at);
RewrittenValue ReshapePair(const RewritePlace& at);
RewrittenValue SliceAndConcat(const RewritePlace& at);
RewrittenValue PadAndSlice(const RewritePlace& at);
/// A transpose moved through an elementwise operator of one operand.
RewrittenValue TransposeThrough(const RewritePlace& at);
/// A B = (B^T A^T)^T.
RewrittenValue TransposeProduct(const RewritePlace& at);

}  // namespace mendel

#endif  // MENDEL_TESTS_REWRITE_PLACE_H_
