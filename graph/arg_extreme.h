// ArgMax and ArgMin: the position of an extreme element along `axis`, as i64.
#ifndef MENDEL_GRAPH_ARG_EXTREME_H_
#define MENDEL_GRAPH_ARG_EXTREME_H_

#include <string_view>

#include "graph/reduction.h"

namespace mendel {

/// `Better(a, b)`: a wins over b. The first of equals is taken, the last with select_last_index.
/// Opaque to the verifier, which only ever sees known integers here.
template <class Better>
struct ArgExtremeMeaning {
  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    const bool last = node.attrs.Int("select_last_index") != 0;
    FillReduction(in, {node.attrs.Int("axis")}, out, [&](std::span<const S> x) {
      size_t best = 0;
      for (size_t k = 1; k < x.size(); ++k) {
        if (Better()(x[k], x[best]) || (last && x[k] == x[best])) best = k;
      }
      return in.FromInteger(static_cast<int64_t>(best));
    });
  }
};

/// Everything but the meaning.
OpDefinition ArgExtremeOp(std::string_view name);

}  // namespace mendel

#endif  // MENDEL_GRAPH_ARG_EXTREME_H_
