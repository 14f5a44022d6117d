// CenterCropPad, Col2Im, TensorScatter, CumProd in slices, pads and convolutions.

#include <algorithm>

#include "onnx/formula.h"

namespace mendel::lowerings::shaping {
namespace {

/// The center of each dimension, cut or filled with zeros.
absl::Status ImportCenterCropPad(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(const Ints wanted, op.ConstantInts(1, "shape"));
  const Shape shape = op.shape(op.In(0));
  Ints axes = op.IntList("axes").value_or(Ints());
  for (size_t d = 0; !op.HasAttribute("axes") && d < shape.size(); ++d)
    axes.push_back(static_cast<int64_t>(d));
  if (axes.size() != wanted.size())
    return InvalidInput("has ", wanted.size(), " extents for ", axes.size(), " dimensions");
  Formula f(op);
  ValueId x = op.In(0);
  Ints pads(2 * shape.size(), 0);
  for (size_t k = 0; k < axes.size(); ++k) {
    MENDEL_ASSIGN_OR_RETURN(const int64_t axis, op.Axis(axes[k], op.rank(op.In(0))));
    const size_t d = static_cast<size_t>(axis);
    const int64_t extent = shape[d], to = wanted[k];
    if (to < 0 || to > kMaxElements) return InvalidInput("cannot make an extent of ", to);
    const int64_t begin = (std::max(extent, to) - std::min(extent, to)) / 2;
    if (to < extent) x = f.Slice(x, axis, begin, begin + to);
    if (to > extent) {
      pads[d] = begin;
      pads[shape.size() + d] = to - extent - begin;
    }
  }
  f.SetOutput(0, f.Pad(x, pads));
  return f.status();
}

/// Kernel with one 1 for each of its positions: [positions, 1, kernel..].
Tensor Positions(DType dtype, const Shape& kernel) {
  const int64_t count = NumElements(kernel);
  Shape shape = {count, 1};
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  std::vector<double> values(static_cast<size_t>(count * count), 0.0);
  for (int64_t k = 0; k < count; ++k) values[static_cast<size_t>(k * count + k)] = 1;
  return Tensor::FromDoubles({dtype, shape}, values);
}

/// Sums blocks back into an image: a transposed convolution with the identity.
absl::Status ImportCol2Im(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(const Ints image, op.ConstantInts(1, "image_shape"));
  MENDEL_ASSIGN_OR_RETURN(const Ints kernel, op.ConstantInts(2, "block_shape"));
  const size_t rank = image.size();
  const Ints strides = op.IntList("strides").value_or(Ints(rank, 1));
  const Ints dilations = op.IntList("dilations").value_or(Ints(rank, 1));
  const Ints pads = op.IntList("pads").value_or(Ints(2 * rank, 0));
  const Shape shape = op.shape(op.In(0));
  if (rank == 0 || kernel.size() != rank || strides.size() != rank || dilations.size() != rank ||
      pads.size() != 2 * rank || shape.size() != 3)
    return InvalidInput("expects columns of rank 3 and lists of one length");
  Shape blocks;
  Ints output_padding;
  for (size_t d = 0; d < rank; ++d) {
    if (kernel[d] < 1 || strides[d] < 1 || dilations[d] < 1 || image[d] < 1 || pads[d] < 0 ||
        pads[rank + d] < 0 ||
        std::max({kernel[d], strides[d], dilations[d], image[d], pads[d]}) > (1 << 24))
      return InvalidInput("a list has an entry outside its range");
    const int64_t room = image[d] + pads[d] + pads[rank + d] - dilations[d] * (kernel[d] - 1) - 1;
    if (room < 0) return InvalidInput("a block does not fit the image");
    blocks.push_back(room / strides[d] + 1);
    output_padding.push_back(room % strides[d]);
  }
  const int64_t positions = NumElements(kernel);
  if (positions > (1 << 11)) return Unsupported("blocks of more than 2^11 positions");
  if (shape[1] % positions != 0 || shape[2] != NumElements(blocks))
    return InvalidInput("columns ", ShapeString(shape), " do not fit blocks ", ShapeString(blocks));
  Formula f(op);
  const int64_t channels = shape[1] / positions;
  Shape columns = {shape[0] * channels, positions};
  columns.insert(columns.end(), blocks.begin(), blocks.end());
  const ValueId x = f.Reshape(op.In(0), columns);
  const ValueId y = f.Op("ConvTranspose", {x, f.Literal(Positions(f.dtype(x), kernel))},
                         {{"strides", strides},
                          {"dilations", dilations},
                          {"pads", pads},
                          {"output_padding", output_padding},
                          {"group", int64_t{1}}});
  Shape result = {shape[0], channels};
  result.insert(result.end(), image.begin(), image.end());
  f.SetOutput(0, f.Reshape(y, result));
  return f.status();
}

/// Channels of one block: column-row-depth, where the operator of the language has depth first.
absl::Status ImportSpaceToDepth(OpContext& op) {
  const std::string mode = op.Str("mode", "DCR");
  const int64_t b = op.Int("blocksize", 0);
  if (mode == "DCR")
    return op.SetOutput(0, op.Emit("SpaceToDepth", {op.In(0)}, {{"blocksize", b}}));
  if (mode != "CRD") return InvalidInput("mode '", mode, "' does not exist");
  const Shape x = op.shape(op.In(0));
  if (x.size() != 4 || b < 1 || b > (1 << 20) || x[2] % b != 0 || x[3] % b != 0)
    return InvalidInput("blocksize ", b, " does not divide ", ShapeString(x));
  Formula f(op);
  const ValueId split = f.Reshape(op.In(0), {x[0], x[1], x[2] / b, b, x[3] / b, b});
  const ValueId moved = f.Transpose(split, {0, 1, 3, 5, 2, 4});
  f.SetOutput(0, f.Reshape(moved, {x[0], x[1] * b * b, x[2] / b, x[3] / b}));
  return f.status();
}

constexpr int64_t kMaxSteps = 256;

/// Products of the elements before, one step a position.
absl::Status ImportCumProd(OpContext& op) {
  MENDEL_ASSIGN_OR_RETURN(const int64_t given, op.ConstantInt(1, "axis"));
  const ValueId x = op.In(0);
  MENDEL_ASSIGN_OR_RETURN(const int64_t axis, op.Axis(given, op.rank(x)));
  const bool exclusive = op.Int("exclusive", 0) != 0, reverse = op.Int("reverse", 0) != 0;
  const int64_t extent = op.shape(x)[static_cast<size_t>(axis)];
  if (extent > kMaxSteps)
    return Unsupported("products along more than ", kMaxSteps, " positions are not supported");
  if (extent == 0) return op.SetOutput(0, x);
  Formula f(op);
  Shape slice = op.shape(x);
  slice[static_cast<size_t>(axis)] = 1;
  std::vector<ValueId> parts;
  ValueId product = f.Filled(x, 1, slice);
  for (int64_t k = 0; k < extent; ++k) {
    const int64_t at = reverse ? extent - 1 - k : k;
    if (exclusive) parts.push_back(product);
    const ValueId element = f.Slice(x, axis, at, at + 1);
    product = k == 0 ? element : f.Mul(product, element);
    if (!exclusive) parts.push_back(product);
  }
  if (reverse) std::reverse(parts.begin(), parts.end());
  f.SetOutput(0, f.Concat(parts, axis));
  return f.status();
}

/// Writes `update` into the cache along `axis`, from a position of each image on: the position that
/// a place of the cache gets its element from is computed, then gathered.
absl::Status ImportTensorScatter(OpContext& op) {
  const ValueId cache = op.In(0), update = op.In(1);
  const Shape shape = op.shape(cache);
  const int64_t rank = op.rank(cache);
  MENDEL_ASSIGN_OR_RETURN(const int64_t axis, op.Axis(op.Int("axis", -2), rank));
  const std::string mode = op.Str("mode", "linear");
  if (mode != "linear" && mode != "circular")
    return InvalidInput("mode '", mode, "' does not exist");
  if (axis == 0) return InvalidInput("cannot write along the dimension of images");
  const size_t d = static_cast<size_t>(axis);
  Shape fitting = op.shape(update);
  if (op.rank(update) != rank || fitting[d] > shape[d])
    return InvalidInput("update ", ShapeString(fitting), " does not fit ", ShapeString(shape));
  const int64_t count = fitting[d], extent = shape[d];
  fitting[d] = extent;
  if (fitting != shape) return InvalidInput("update does not fit ", ShapeString(shape));
  if (count == 0) return op.SetOutput(0, cache);
  Formula f(op);
  std::vector<int64_t> places;
  for (int64_t k = 0; k < extent; ++k) places.push_back(k);
  Shape along(shape.size(), 1), images(shape.size(), 1);
  along[d] = extent;
  images[0] = shape[0];
  ValueId from = f.Literal(Tensor::FromInts({DType::kI64, along}, places));
  if (op.Has(2)) from = f.Sub(from, f.Reshape(f.Cast(op.In(2), DType::kI64), images));
  if (mode == "circular") from = f.Op("Mod", {from, f.Scalar(from, static_cast<double>(extent))});
  const ValueId written =
      f.Op("And", {f.Op("GreaterOrEqual", {from, f.Scalar(from, 0)}),
                   f.Op("Less", {from, f.Scalar(from, static_cast<double>(count))})});
  const ValueId safe = f.Op(
      "Max",
      {f.Op("Min", {from, f.Scalar(from, static_cast<double>(count - 1))}), f.Scalar(from, 0)});
  const ValueId picked = f.Op("GatherElements", {update, f.Expand(safe, shape)}, {{"axis", axis}});
  f.SetOutput(0, f.Where(written, picked, cache));
  return f.status();
}

const OpImportRegistrar registrar({
    {"CenterCropPad", 2, 2, &ImportCenterCropPad},
    {"Col2Im", 3, 3, &ImportCol2Im},
    {"CumProd", 2, 2, &ImportCumProd},
    {"SpaceToDepth", 1, 1, &ImportSpaceToDepth},
    {"TensorScatter", 2, 3, &ImportTensorScatter},
});

}  // namespace
}  // namespace mendel::lowerings::shaping
