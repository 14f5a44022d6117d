// ReduceProd(x): the product over `axes`; 1 over nothing.

#include "graph/elementwise.h"
#include "graph/reduction.h"

namespace mendel::ops::reduce_prod {
namespace {

struct ReduceProdMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    FillReduction(in, node.attrs.IntList("axes"), out, [&](std::span<const S> x) {
      S product = in.FromInteger(1);
      for (const S& v : x) product = Times(product, v);
      return product;
    });
  }
};

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int, const Arithmetic<Bound>&) {
  const double count = ReducedCount(node);
  const Bound& x = inputs[0];
  return {count * x.num_degree, count * x.den_degree, count * x.log2_num, count * x.log2_den};
}

OpDefinition Make() {
  OpDefinition op = ReduceOp("ReduceProd", &SampleReduceNumeric);
  op.meaning = MeaningOf<ReduceProdMeaning>();
  op.bound = &BoundOf;
  op.sign = &SignLeast;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::reduce_prod
