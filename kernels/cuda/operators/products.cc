#include "kernels/cuda/operators/products.h"

#include "base/status.h"
#include "graph/window.h"

namespace mendel::cuda {
namespace {

using Names = std::vector<std::string>;

Shape SpatialOf(const Shape& shape) { return Shape(shape.begin() + 2, shape.end()); }

Shape Under(int64_t first, const Shape& spatial) {
  Shape shape = {first};
  shape.insert(shape.end(), spatial.begin(), spatial.end());
  return shape;
}

Names Behind(Names first, const Names& decoded) {
  first.insert(first.end(), decoded.begin() + 1, decoded.end());
  return first;
}

ProductExtents MatMulExtents(const NodeView& view) {
  const Shape& result = view.outputs[0].shape;
  ProductExtents extents;
  extents.rows = result[result.size() - 2];
  extents.columns = result.back();
  extents.depth = view.inputs[0].shape.back();
  extents.batch = NumElements(Shape(result.begin(), result.end() - 2));
  extents.left_run = extents.depth;
  extents.right_run = extents.result_run = extents.columns;
  return extents;
}

ProductPlaces MatMulPlaces(KernelCode& code, const NodeView& view, const std::string& z) {
  const Shape& result = view.outputs[0].shape;
  const Names matrix = code.Decode(z, Shape(result.begin(), result.end() - 2)).at;
  const auto of = [matrix](const Shape& shape, const std::string& row, const std::string& column) {
    Position at;
    const size_t skip = matrix.size() + 2 - shape.size();
    for (size_t d = 0; d + 2 < shape.size(); ++d)
      at.at.push_back(shape[d] == 1 ? "0" : matrix[skip + d]);
    at.at.insert(at.at.end(), {row, column});
    return at;
  };
  ProductPlaces places;
  places.left = [of, &view](const std::string& r, const std::string& k) {
    return of(view.inputs[0].shape, r, k);
  };
  places.right = [of, &view](const std::string& k, const std::string& c, std::string&) {
    return of(view.inputs[1].shape, k, c);
  };
  places.result = [of, &view](const std::string& r, const std::string& c) {
    return of(view.outputs[0].shape, r, c);
  };
  return places;
}

/// `rows`: output channels a group; `channels`: input channels a group.
ProductExtents ImplicitGemm(const NodeView& view, int64_t rows, int64_t channels) {
  const Shape& y = view.outputs[0].shape;
  const int64_t plane = NumElements(SpatialOf(y));
  ProductExtents extents;
  extents.batch = view.attrs.Int("group");
  extents.rows = rows;
  extents.columns = y[0] * plane;
  extents.depth = channels * NumElements(SpatialOf(view.inputs[1].shape));
  extents.result_run = plane;
  return extents;
}

ProductExtents ConvExtents(const NodeView& view) {
  const Shape& w = view.inputs[1].shape;
  ProductExtents extents = ImplicitGemm(view, w[0] / view.attrs.Int("group"), w[1]);
  extents.left_run = extents.depth;  // a row of weights
  return extents;
}

ProductExtents ConvTransposeExtents(const NodeView& view) {
  const Shape& w = view.inputs[1].shape;
  return ImplicitGemm(view, w[1], w[0] / view.attrs.Int("group"));
}

/// Channel `number` of group `z`, of `many` a group.
std::string ChannelOf(KernelCode& code, const std::string& z, int64_t many,
                      const std::string& number) {
  return code.LetIndex(Added(Scaled(z, many), number));
}

/// Results and biases of both kinds of convolution, `rows` output channels a group.
ProductPlaces ChannelPlaces(KernelCode& code, const NodeView& view, const std::string& z,
                            int64_t rows) {
  ProductPlaces places;
  places.result = [&code, &view, z, rows](const std::string& r, const std::string& c) {
    const Shape& y = view.outputs[0].shape;
    const Names image = code.Decode(c, Under(y[0], SpatialOf(y))).at;
    return Position{Behind({image[0], ChannelOf(code, z, rows, r)}, image)};
  };
  places.bias = [&code, z, rows](const std::string& r) {
    return Position{{ChannelOf(code, z, rows, r)}};
  };
  return places;
}

ProductPlaces ConvPlaces(KernelCode& code, const NodeView& view, const std::string& z) {
  const Shape& w = view.inputs[1].shape;
  const int64_t rows = w[0] / view.attrs.Int("group");
  ProductPlaces places = ChannelPlaces(code, view, z, rows);
  const auto decode = [&code, &w](const std::string& k) {
    return code.Decode(k, Under(w[1], SpatialOf(w))).at;
  };
  places.left = [&code, z, rows, decode](const std::string& r, const std::string& k) {
    const Names tap = decode(k);
    return Position{Behind({ChannelOf(code, z, rows, r), tap[0]}, tap)};
  };
  places.right = [&code, &view, &w, z, decode](const std::string& k, const std::string& c,
                                               std::string& inside) {
    const Shape &x = view.inputs[0].shape, &y = view.outputs[0].shape;
    const Names tap = decode(k), image = code.Decode(c, Under(y[0], SpatialOf(y))).at;
    const std::vector<Window> windows = WindowsOf(SpatialOf(x), SpatialOf(w), view.attrs);
    Position at{{image[0], ChannelOf(code, z, w[1], tap[0])}};
    for (size_t d = 0; d < windows.size(); ++d) {
      const Window& window = windows[d];
      at.at.push_back(code.LetIndex(
          Added(Added(Scaled(image[d + 1], window.stride), Scaled(tap[d + 1], window.dilation)),
                -window.pad_begin)));
      inside +=
          Cat(d == 0 ? "" : " && ", at.at.back(), " >= 0 && ", at.at.back(), " < ", window.input);
    }
    return at;
  };
  return places;
}

/// Output position p meets input position i by tap t where i * stride + t * dilation = p + pad.
ProductPlaces ConvTransposePlaces(KernelCode& code, const NodeView& view, const std::string& z) {
  const Shape& w = view.inputs[1].shape;
  const int64_t channels = w[0] / view.attrs.Int("group");
  ProductPlaces places = ChannelPlaces(code, view, z, w[1]);
  const auto decode = [&code, &w, channels](const std::string& k) {
    return code.Decode(k, Under(channels, SpatialOf(w))).at;
  };
  places.left = [&code, z, channels, decode](const std::string& r, const std::string& k) {
    const Names tap = decode(k);
    return Position{Behind({ChannelOf(code, z, channels, tap[0]), r}, tap)};
  };
  places.right = [&code, &view, z, channels, decode](const std::string& k, const std::string& c,
                                                     std::string& inside) {
    const Shape &x = view.inputs[0].shape, &y = view.outputs[0].shape;
    const Names tap = decode(k), image = code.Decode(c, Under(y[0], SpatialOf(y))).at;
    Position at{{image[0], ChannelOf(code, z, channels, tap[0])}};
    for (size_t d = 0; d + 2 < x.size(); ++d) {
      const int64_t stride = view.attrs.IntList("strides")[d];
      const std::string scaled =
          code.LetIndex(Added(Added(image[d + 1], view.attrs.IntList("pads")[d]),
                              Scaled(tap[d + 1], -view.attrs.IntList("dilations")[d])));
      at.at.push_back(Divided(scaled, stride));
      inside += Cat(d == 0 ? "" : " && ", scaled, " >= 0 && ", Modulo(scaled, stride), " == 0 && ",
                    at.at.back(), " < ", x[d + 2]);
    }
    return at;
  };
  return places;
}

}  // namespace

ProductText MatMulProduct() {
  return {.left_has_rows = true, .extents = &MatMulExtents, .places = &MatMulPlaces};
}
ProductText ConvProduct() {
  return {.left = 1, .right = 0, .extents = &ConvExtents, .places = &ConvPlaces};
}
ProductText ConvTransposeProduct() {
  return {.left = 1, .right = 0, .extents = &ConvTransposeExtents, .places = &ConvTransposePlaces};
}

}  // namespace mendel::cuda
