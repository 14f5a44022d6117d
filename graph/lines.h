// Operators that work on lines along one attribute `axis` (Softmax, CumSum, Hardmax, ...) and leave
// the shape as it is.
#ifndef MENDEL_GRAPH_LINES_H_
#define MENDEL_GRAPH_LINES_H_

#include <string_view>
#include <vector>

#include "graph/fill.h"
#include "graph/op_helpers.h"

namespace mendel {

/// Calls body(values), which rewrites one line in place, for every line of input 0 along `axis`.
template <class S, class Body>
void FillLines(const Reader<S>& in, int64_t axis, std::span<S> out, const Body& body) {
  const Shape& shape = in.shape(0);
  const int64_t length = shape[static_cast<size_t>(axis)];
  const int64_t step = NumElements(Shape(shape.begin() + axis + 1, shape.end()));
  const int64_t lines = length == 0 ? 0 : NumElements(shape) / length;
  ForRanges<S>(lines, 4 * length, [&](int64_t begin, int64_t end) {
    std::vector<S> values(static_cast<size_t>(length));
    for (int64_t line = begin; line < end; ++line) {
      const int64_t base = line / step * length * step + line % step;
      for (int64_t k = 0; k < length; ++k)
        values[static_cast<size_t>(k)] = in.Flat(0, base + k * step);
      body(std::span<S>(values));
      for (int64_t k = 0; k < length; ++k)
        out[static_cast<size_t>(base + k * step)] = values[static_cast<size_t>(k)];
    }
  });
}

/// Length of a line.
double LineLength(const NodeView& node);

/// Name, `axis`, inference of floats, restriction to boxes whole along the axis, and a sampler.
OpDefinition LineOp(std::string_view name);
absl::Status CheckLineAxis(std::span<const TensorType> inputs, const Attributes& attrs);
OpSample SampleLines(Rng& rng);

}  // namespace mendel

#endif  // MENDEL_GRAPH_LINES_H_
