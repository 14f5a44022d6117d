#include "kernels/cuda/emit/correction.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "kernels/cuda/emit/box_table.h"

namespace mendel::cuda {
namespace {

constexpr int64_t kMaxInt =
    std::numeric_limits<int32_t>::max() / 4;  // sums of a few stay within 32 bits

std::string StepText(const EpilogueStep& step) {
  switch (step.kind) {
    case EpilogueStep::Kind::kBias:
      return "bias";
    case EpilogueStep::Kind::kAdd:
      return "add";
    case EpilogueStep::Kind::kRelu:
      return "relu";
    case EpilogueStep::Kind::kLeakyRelu:
      return Cat("leaky relu ", step.low);
    case EpilogueStep::Kind::kClip:
      return Cat("clip to [", step.low, ", ", step.high, "]");
    case EpilogueStep::Kind::kSigmoid:
      return "sigmoid";
    case EpilogueStep::Kind::kTanh:
      return "tanh";
  }
  return "";
}

absl::Status CheckView(const View& view, size_t rank, std::string_view what) {
  if (view.strides.size() != rank || view.base < 0)
    return InvalidInput(what, ": a view has rank ", view.strides.size());
  for (int64_t stride : view.strides) {
    if (stride < 0 || stride > kMaxElements) return InvalidInput(what, ": stride ", stride);
  }
  for (size_t d = 2; d < rank; ++d) {
    if (view.strides[d] > kMaxInt)
      return Unsupported(what, ": stride ", view.strides[d], " is too large");
  }
  return absl::OkStatus();
}

absl::Status CheckBox(const Correction& correction, const CorrectionBox& box) {
  const size_t rank = correction.kernel.size() + 2;
  const size_t adds = static_cast<size_t>(std::count_if(
      correction.epilogue.begin(), correction.epilogue.end(),
      [](const EpilogueStep& step) { return step.kind == EpilogueStep::Kind::kAdd; }));
  if (box.extents.size() != rank || box.x_extents.size() + 2 != rank ||
      box.x_origin.size() + 2 != rank || box.operands.size() != adds) {
    return InvalidInput(correction.name, ": a box does not have the kernel's rank or operands");
  }
  MENDEL_RETURN_IF_ERROR(CheckView(box.x, rank, correction.name));
  MENDEL_RETURN_IF_ERROR(CheckView(box.y, rank, correction.name));
  for (const View& view : box.operands)
    MENDEL_RETURN_IF_ERROR(CheckView(view, rank, correction.name));
  for (int64_t extent : box.extents) {
    if (extent < 1 || extent > kMaxInt)
      return InvalidInput(correction.name, ": a box has extent ", extent);
  }
  if (box.extents[0] * (NumElements(box.extents) / box.extents[1]) / box.extents[0] > kMaxInt) {
    return Unsupported(correction.name, ": a box of ", NumElements(box.extents), " elements");
  }
  if (box.groups < 1 || box.extents[1] % box.groups != 0)
    return InvalidInput(correction.name, ": ", box.groups, " groups");
  if (box.w_begin < 0 || box.w_begin + box.extents[1] > correction.out_channels ||
      box.bias_begin < 0) {
    return InvalidInput(correction.name, ": a box reads weights outside their ",
                        correction.out_channels, " channels");
  }
  const Box taps = TapsOf(correction, box);
  if (taps.begin.size() != correction.kernel.size() || taps.Volume() == 0 ||
      Intersect(taps, Box::Whole(correction.kernel)) != taps) {
    return InvalidInput(correction.name, ": a box sums over taps ", BoxString(taps));
  }
  for (size_t d = 0; d + 2 < rank; ++d) {
    const int64_t reach = std::max(std::abs(box.x_origin[d]), box.x_extents[d]) +
                          box.extents[d + 2] * correction.strides[d] +
                          correction.kernel[d] * correction.dilations[d];
    if (box.x_extents[d] < 1 || reach > kMaxInt)
      return Unsupported(correction.name, ": positions do not fit 32 bits");
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view LayoutName(Layout layout) { return layout == Layout::kNchw ? "NCHW" : "NHWC"; }

Shape StridesOf(const Shape& shape, Layout layout) {
  if (layout == Layout::kNchw) return RowMajorStrides(shape);
  Shape strides(shape.size());
  int64_t stride = shape[1];
  strides[1] = 1;
  for (size_t d = shape.size(); d-- > 2; stride *= shape[d]) strides[d] = stride;
  strides[0] = stride;
  return strides;
}

View ViewAt(const Shape& shape, Layout layout, const Shape& begin) {
  View view{0, StridesOf(shape, layout)};
  for (size_t d = 0; d < shape.size(); ++d) view.base += begin[d] * view.strides[d];
  return view;
}

std::string EpilogueText(const std::vector<EpilogueStep>& steps) {
  std::string text;
  for (const EpilogueStep& step : steps) text += (text.empty() ? "" : ", ") + StepText(step);
  return text.empty() ? "none" : text;
}

Box TapsOf(const Correction& correction, const CorrectionBox& box) {
  return box.taps.begin.empty() ? Box::Whole(correction.kernel) : box.taps;
}

bool HasPartialSums(const Correction& correction) {
  const Box whole = Box::Whole(correction.kernel);
  return std::any_of(correction.boxes.begin(), correction.boxes.end(),
                     [&](const CorrectionBox& box) { return TapsOf(correction, box) != whole; });
}

int64_t SumOf(const Correction& correction, const CorrectionBox& box) {
  return TapsOf(correction, box).Volume() * correction.channels;
}

int64_t PackedRow(const Correction& correction) { return (correction.out_channels + 3) / 4 * 4; }

std::vector<int64_t> PackedOrder(const Correction& correction) {
  const int64_t taps = NumElements(correction.kernel);
  const int64_t row = PackedRow(correction);
  std::vector<int64_t> order(static_cast<size_t>(taps * correction.channels * row), -1);
  for (int64_t o = 0; o < correction.out_channels; ++o) {
    for (int64_t c = 0; c < correction.channels; ++c) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        order[static_cast<size_t>((tap * correction.channels + c) * row + o)] =
            (o * correction.channels + c) * taps + tap;
      }
    }
  }
  return order;
}

std::vector<double> PackWeights(const Correction& correction, const std::vector<double>& weights) {
  std::vector<double> packed;
  for (int64_t at : PackedOrder(correction))
    packed.push_back(at < 0 ? 0 : weights[static_cast<size_t>(at)]);
  return packed;
}

Tensor PackWeights(const Correction& correction, const Tensor& weights) {
  const std::vector<int64_t> order = PackedOrder(correction);
  const size_t element = static_cast<size_t>(DTypeSize(weights.dtype()));
  MENDEL_CHECK(weights.dtype() == correction.dtype &&
               weights.size() ==
                   correction.out_channels * correction.channels * NumElements(correction.kernel));
  std::vector<std::byte> packed(order.size() * element);
  for (size_t k = 0; k < order.size(); ++k) {
    if (order[k] >= 0)
      std::memcpy(&packed[k * element], &weights.bytes()[static_cast<size_t>(order[k]) * element],
                  element);
  }
  const int64_t row = PackedRow(correction);
  return Tensor({correction.dtype, {static_cast<int64_t>(order.size()) / row, row}},
                std::move(packed));
}

absl::Status CheckCorrection(const Correction& correction) {
  const size_t spatial = correction.kernel.size();
  if (spatial < 1 || spatial > 3)
    return Unsupported(correction.name, ": a convolution in ", spatial, " dimensions");
  if (correction.strides.size() != spatial || correction.dilations.size() != spatial) {
    return InvalidInput(correction.name, ": kernel, strides and dilations differ in rank");
  }
  if (correction.dtype != DType::kF32 && correction.dtype != DType::kF16 &&
      correction.dtype != DType::kBF16) {
    return Unsupported(correction.name, ": elements of type ", DTypeName(correction.dtype));
  }
  if (correction.channels < 1 || correction.out_channels < 1 || correction.boxes.empty()) {
    return InvalidInput(correction.name, ": nothing to compute");
  }
  if (NumElements(correction.kernel) > kMaxInt / correction.channels)
    return Unsupported(correction.name, ": the sum is too deep");
  for (const CorrectionBox& box : correction.boxes)
    MENDEL_RETURN_IF_ERROR(CheckBox(correction, box));
  if (const DividedSum& divided = correction.divided;
      divided.parts < 1 || divided.base < 0 || divided.base % 8 != 0) {
    return InvalidInput(correction.name, ": sums in ", divided.parts, " parts at ", divided.base);
  }
  return absl::OkStatus();
}

int64_t PartialElements(const Correction& correction) {
  const DividedSum& divided = correction.divided;
  const int64_t sums =
      TilesOf(correction, divided.tile) * divided.tile.rows * divided.tile.columns * divided.parts;
  return sums * (DTypeSize(DType::kF32) / DTypeSize(correction.dtype));
}

double FlopsOf(const Correction& correction) {
  double flops = 0;
  if (correction.divided.stage == DividedSum::Stage::kTotal) return flops;
  for (const CorrectionBox& box : correction.boxes) {
    flops += 2.0 * static_cast<double>(NumElements(box.extents)) *
             static_cast<double>(SumOf(correction, box));
  }
  return flops;
}

double BytesOf(const Correction& correction) {
  using Stage = DividedSum::Stage;
  std::set<Shape> taps;  // that any box reads weights of
  const Stage stage = correction.divided.stage;
  double elements = stage == Stage::kNone ? 0 : static_cast<double>(PartialElements(correction));
  for (const CorrectionBox& box : correction.boxes) {
    if (stage != Stage::kParts) {
      elements += static_cast<double>(NumElements(box.extents)) *
                  static_cast<double>(1 + box.operands.size());
    }
    if (stage == Stage::kTotal) continue;
    const Box own = TapsOf(correction, box);
    const Shape extents = own.Extents();
    Shape tap(extents.size(), 0);
    do {
      Shape at = tap;
      for (size_t d = 0; d < at.size(); ++d) at[d] += own.begin[d];
      taps.insert(std::move(at));
    } while (NextIndex(extents, tap));
    double read = static_cast<double>(box.extents[0] * box.groups * correction.channels);
    for (size_t d = 0; d < extents.size(); ++d) {
      const int64_t reach = (box.extents[d + 2] - 1) * correction.strides[d] +
                            (extents[d] - 1) * correction.dilations[d] + 1;
      read *= static_cast<double>(std::min(box.x_extents[d], reach));
    }
    elements += read;
  }
  elements += static_cast<double>(static_cast<int64_t>(taps.size()) * correction.channels) *
              static_cast<double>(correction.out_channels);
  return elements * static_cast<double>(DTypeSize(correction.dtype));
}

}  // namespace mendel::cuda
