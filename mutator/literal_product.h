// Products of a value and a stored matrix that is part of the program: what rules that read its
// rows share.
#ifndef MENDEL_MUTATOR_LITERAL_PRODUCT_H_
#define MENDEL_MUTATOR_LITERAL_PRODUCT_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/emitter.h"

namespace mendel {

/// A MatMul whose result along `axis` are the matrix's rows times the operand along `axis`.
struct LiteralProduct {
  const Tensor* matrix = nullptr;
  bool transposed = false;  ///< the rows are the stored matrix's columns
  size_t operand = 0;       ///< the input that is no matrix
  size_t axis = 0;          ///< of the operand
};

/// Node `id` as such a product, one for each operand that is a literal; none of other nodes.
std::vector<LiteralProduct> LiteralProductsOf(const Graph& graph, int32_t id);

/// `scale` times y in the shape of `type`, as the mutant's output.
absl::StatusOr<Graph> FinishScaled(Emitter& e, ValueId y, double scale, const TensorType& type);

/// A product with the matrix of the numbers number(row, column), which is the second operand where
/// `right` is true.
absl::StatusOr<Graph> SampleLiteralProduct(
    Rng& rng, bool right, int64_t rows, int64_t columns,
    const std::function<double(int64_t row, int64_t column)>& number);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_LITERAL_PRODUCT_H_
