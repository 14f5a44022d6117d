// ONNX forms of the operators whose attributes are inputs there, and of Patch.

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/status.h"
#include "graph/loop.h"
#include "onnx/exporter.h"
#include "onnx/tensor_decode.h"

namespace mendel {
namespace {

bool AllOnes(const Ints& values) {
  return std::all_of(values.begin(), values.end(), [](int64_t value) { return value == 1; });
}

using ExportFunction = absl::Status (*)(const ExportedNode&, Exporter&);

absl::Status CopyAttributes(const ExportedNode& node, onnx::NodeProto& proto,
                            const std::set<std::string_view>& except = {}) {
  for (const auto& [name, value] : node.node.attrs.values()) {
    if (except.count(name) == 0) MENDEL_RETURN_IF_ERROR(SetAttribute(proto, name, value));
  }
  return absl::OkStatus();
}

absl::Status OneToOne(const ExportedNode& node, Exporter& exporter) {
  return CopyAttributes(node, exporter.AddNode(node.node.op->name, node.inputs, node.outputs));
}

/// Attribute `attribute` is ONNX's second input; the others stay.
absl::Status WithIntsInput(const ExportedNode& node, Exporter& exporter, const char* attribute) {
  const std::string ints = exporter.AddInts(node.node.attrs.IntList(attribute));
  return CopyAttributes(node,
                        exporter.AddNode(node.node.op->name, {node.inputs[0], ints}, node.outputs),
                        {attribute});
}

absl::Status WithShape(const ExportedNode& node, Exporter& exporter) {
  const std::string ints = exporter.AddInts(node.node.attrs.IntList("shape"));
  onnx::NodeProto& proto =
      exporter.AddNode(node.node.op->name, {node.inputs[0], ints}, node.outputs);
  // Without it an extent of zero would copy the input's.
  if (node.node.op->name == "Reshape" && NumElements(node.node.outputs[0]) == 0)
    SetAttribute(proto, "allowzero", int64_t{1});
  return absl::OkStatus();
}

absl::Status WithSizes(const ExportedNode& node, Exporter& exporter) {
  return WithIntsInput(node, exporter, "sizes");
}
absl::Status WithRepeats(const ExportedNode& node, Exporter& exporter) {
  return WithIntsInput(node, exporter, "repeats");
}

void AddSlice(const std::string& from, const std::string& to, const Ints& starts, const Ints& ends,
              const Ints& steps, Exporter& exporter) {
  Ints axes;
  for (size_t d = 0; d < starts.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  exporter.AddNode("Slice",
                   {from, exporter.AddInts(starts), exporter.AddInts(ends), exporter.AddInts(axes),
                    exporter.AddInts(steps)},
                   {to});
}

absl::Status ExportSlice(const ExportedNode& node, Exporter& exporter) {
  Ints ends = node.node.attrs.IntList("ends");
  for (int64_t& end : ends) {
    if (end < 0)
      end = std::numeric_limits<int64_t>::min();  // "before the first": -1 would count from the end
  }
  AddSlice(node.inputs[0], node.outputs[0], node.node.attrs.IntList("starts"), ends,
           node.node.attrs.IntList("steps"), exporter);
  return absl::OkStatus();
}

absl::Status ExportPad(const ExportedNode& node, Exporter& exporter) {
  const Attributes& attrs = node.node.attrs;
  const std::string value =
      exporter.AddTensor(Tensor::Scalar(node.InputType(0).dtype, attrs.Float("value")), "value");
  onnx::NodeProto& proto = exporter.AddNode(
      "Pad", {node.inputs[0], exporter.AddInts(attrs.IntList("pads")), value}, node.outputs);
  return CopyAttributes(node, proto, {"pads", "value"});
}

absl::Status ExportClip(const ExportedNode& node, Exporter& exporter) {
  std::vector<std::string> inputs = {node.inputs[0]};
  for (const char* bound : {"min", "max"}) {
    const double value = node.node.attrs.Float(bound);
    inputs.push_back(
        std::isinf(value)
            ? ""
            : exporter.AddTensor(Tensor::Scalar(node.InputType(0).dtype, value), bound));
  }
  exporter.AddNode("Clip", inputs, node.outputs);
  return absl::OkStatus();
}

absl::Status ExportBitShift(const ExportedNode& node, Exporter& exporter) {
  if (!IsUnsigned(node.node.outputs[0].dtype))
    return Unsupported("BitShift of ", DTypeName(node.node.outputs[0].dtype), " needs opset 28");
  return OneToOne(node, exporter);
}

absl::Status ExportCast(const ExportedNode& node, Exporter& exporter) {
  const DType dtype = node.node.outputs[0].dtype;
  onnx::NodeProto& cast = exporter.AddNode("Cast", node.inputs, node.outputs);
  SetAttribute(cast, "to", int64_t{DTypeToOnnx(dtype)});
  if (IsFloat8(dtype)) SetAttribute(cast, "saturate", int64_t{0});  // Clip does where it is wanted
  return absl::OkStatus();
}

/// Axes are an attribute up to opset 17, but for ReduceSum, and an input later.
absl::Status ExportReduction(const ExportedNode& node, Exporter& exporter) {
  const Ints& axes = node.node.attrs.IntList("axes");
  if (axes.empty() && !node.InputType(0).shape.empty())
    return Unsupported("a reduction over no axes has no ONNX form");
  const bool as_input = exporter.opset() >= 18 || node.node.op->name == "ReduceSum";
  if (axes.empty())
    return CopyAttributes(node, exporter.AddNode(node.node.op->name, node.inputs, node.outputs),
                          {"axes"});
  return as_input ? WithIntsInput(node, exporter, "axes") : OneToOne(node, exporter);
}

absl::Status ExportCumSum(const ExportedNode& node, Exporter& exporter) {
  const std::string axis = exporter.AddTensor(
      Tensor::Scalar(DType::kI64, static_cast<double>(node.node.attrs.Int("axis"))), "axis");
  return CopyAttributes(node, exporter.AddNode("CumSum", {node.inputs[0], axis}, node.outputs),
                        {"axis"});
}

absl::Status ExportOneHot(const ExportedNode& node, Exporter& exporter) {
  const std::string depth = exporter.AddTensor(
      Tensor::Scalar(DType::kI64, static_cast<double>(node.node.attrs.Int("depth"))), "depth");
  return CopyAttributes(
      node, exporter.AddNode("OneHot", {node.inputs[0], depth, node.inputs[1]}, node.outputs),
      {"depth"});
}

absl::Status ExportTopK(const ExportedNode& node, Exporter& exporter) {
  const std::string k = exporter.AddInts({node.node.attrs.Int("k")});
  return CopyAttributes(node, exporter.AddNode("TopK", {node.inputs[0], k}, node.outputs), {"k"});
}

absl::Status ExportTrilu(const ExportedNode& node, Exporter& exporter) {
  const std::string k = exporter.AddTensor(
      Tensor::Scalar(DType::kI64, static_cast<double>(node.node.attrs.Int("k"))), "k");
  return CopyAttributes(node, exporter.AddNode("Trilu", {node.inputs[0], k}, node.outputs), {"k"});
}

/// dilations and ceil_mode are younger than the pools themselves: left out at their defaults.
absl::Status ExportPool(const ExportedNode& node, Exporter& exporter) {
  std::set<std::string_view> except;
  const Ints& dilations = node.node.attrs.IntList("dilations");
  if (node.node.op->name != "MaxPool" && AllOnes(dilations)) except.insert("dilations");
  if (node.node.attrs.Int("ceil_mode") == 0) except.insert("ceil_mode");
  return CopyAttributes(node, exporter.AddNode(node.node.op->name, node.inputs, node.outputs),
                        except);
}

/// Scales where they give the extents, because sampled positions follow from them; else the
/// extents.
absl::Status ExportResize(const ExportedNode& node, Exporter& exporter) {
  const Attributes& attrs = node.node.attrs;
  const Ints& sizes = attrs.IntList("output_sizes");
  const std::vector<double>& scales = attrs.FloatList("scales");
  bool by_scale = true;
  for (size_t d = 0; d < sizes.size(); ++d) {
    const double extent = static_cast<double>(node.InputType(0).shape[d]);
    by_scale = by_scale &&
               static_cast<int64_t>(std::floor(static_cast<double>(static_cast<float>(scales[d])) *
                                               extent)) == sizes[d];
  }
  const auto floats = [&](const std::vector<double>& values, const char* name) {
    return exporter.AddTensor(
        Tensor::FromDoubles({DType::kF32, {static_cast<int64_t>(values.size())}}, values), name);
  };
  const bool crops = attrs.Str("coordinate_transformation_mode") == "tf_crop_and_resize";
  std::vector<std::string> inputs = {node.inputs[0],
                                     crops ? floats(attrs.FloatList("roi"), "roi") : std::string()};
  if (by_scale) {
    inputs.push_back(floats(scales, "scales"));
  } else {
    inputs.insert(inputs.end(), {std::string(), exporter.AddInts(sizes)});
  }
  std::set<std::string_view> except = {"output_sizes", "scales", "roi"};
  if (attrs.Int("antialias") == 0) except.insert("antialias");
  return CopyAttributes(node, exporter.AddNode("Resize", inputs, node.outputs), except);
}

/// Writes `patch` over `box` of `base` (shape `shape`): along the first cut dimension at or behind
/// `dim` the base is sliced in three, the middle is patched recursively, and the parts are
/// concatenated.
std::string PatchBox(const std::string& base, Shape shape, const std::string& patch, const Box& box,
                     size_t dim, const std::string& result, Exporter& exporter) {
  while (dim < shape.size() && box.begin[dim] == 0 && box.end[dim] == shape[dim]) ++dim;
  if (dim == shape.size()) return patch;
  const auto part = [&](int64_t begin, int64_t end) {
    Ints starts(shape.size(), 0), ends(shape.begin(), shape.end());
    starts[dim] = begin;
    ends[dim] = end;
    const std::string name = exporter.UniqueName("part");
    AddSlice(base, name, starts, ends, Ints(shape.size(), 1), exporter);
    return name;
  };
  std::vector<std::string> parts;
  if (box.begin[dim] > 0) parts.push_back(part(0, box.begin[dim]));
  bool whole_behind = true;
  for (size_t d = dim + 1; d < shape.size(); ++d)
    whole_behind = whole_behind && box.begin[d] == 0 && box.end[d] == shape[d];
  if (whole_behind) {
    parts.push_back(patch);
  } else {
    const std::string middle = part(box.begin[dim], box.end[dim]);
    Shape inner = shape;
    inner[dim] = box.end[dim] - box.begin[dim];
    parts.push_back(
        PatchBox(middle, inner, patch, box, dim + 1, exporter.UniqueName("patched"), exporter));
  }
  if (box.end[dim] < shape[dim]) parts.push_back(part(box.end[dim], shape[dim]));
  SetAttribute(exporter.AddNode("Concat", parts, {result}), "axis", static_cast<int64_t>(dim));
  return result;
}

absl::Status ExportPatch(const ExportedNode& node, Exporter& exporter) {
  const Boxes& boxes = node.node.attrs.BoxList("boxes");
  std::string base = node.inputs[0];
  for (size_t k = 0; k < boxes.size(); ++k) {
    base = PatchBox(base, node.InputType(0).shape, node.inputs[k + 1], boxes[k], 0,
                    exporter.UniqueName("patched"), exporter);
  }
  exporter.AddNode("Identity", {base}, node.outputs);
  return absl::OkStatus();
}

const std::map<std::string_view, ExportFunction>& Table() {
  static const auto& table = *new std::map<std::string_view, ExportFunction>{
      {"AveragePool", &ExportPool},
      {"BitShift", &ExportBitShift},
      {"Cast", &ExportCast},
      {"Clip", &ExportClip},
      {"CumSum", &ExportCumSum},
      {"Expand", &WithShape},
      {"Loop", &ExportLoop},
      {"LpPool", &ExportPool},
      {"MaxPool", &ExportPool},
      {"OneHot", &ExportOneHot},
      {"Pad", &ExportPad},
      {"Patch", &ExportPatch},
      {"ReduceL1", &ExportReduction},
      {"ReduceL2", &ExportReduction},
      {"ReduceLogSum", &ExportReduction},
      {"ReduceLogSumExp", &ExportReduction},
      {"ReduceMax", &ExportReduction},
      {"ReduceMean", &ExportReduction},
      {"ReduceMin", &ExportReduction},
      {"ReduceProd", &ExportReduction},
      {"ReduceSum", &ExportReduction},
      {"ReduceSumSquare", &ExportReduction},
      {"Reshape", &WithShape},
      {"Resize", &ExportResize},
      {"Slice", &ExportSlice},
      {"Split", &WithSizes},
      {"Tile", &WithRepeats},
      {"TopK", &ExportTopK},
      {"Trilu", &ExportTrilu},
  };
  return table;
}

}  // namespace

absl::Status ExportNode(const ExportedNode& node, Exporter& exporter) {
  const auto found = Table().find(node.node.op->name);
  return found == Table().end() ? OneToOne(node, exporter) : found->second(node, exporter);
}

bool NeedsNewestOpset(const Graph& graph, const Node& node) {
  const std::string_view op = node.op->name;
  const Attributes& attrs = node.attrs;
  // Operators on bits, bfloat16 and 8-bit floats came late.
  const auto is_late = [](DType dtype) { return dtype == DType::kBF16 || IsFloat8(dtype); };
  if (op.starts_with("Bitwise") || is_late(node.outputs[0].dtype) ||
      std::any_of(node.inputs.begin(), node.inputs.end(),
                  [&](ValueId input) { return is_late(graph.type(input).dtype); }))
    return true;
  if (op == "Loop") {
    const std::shared_ptr<const Graph> body = LoopBodyOf(attrs);
    return std::any_of(body->nodes().begin(), body->nodes().end(),
                       [&](const Node& inner) { return NeedsNewestOpset(*body, inner); });
  }
  if (op == "Gelu" || op == "GroupNormalization") return true;
  if (op == "AveragePool" || op == "LpPool") {
    const Ints& dilations = attrs.IntList("dilations");
    return !AllOnes(dilations) || (op == "LpPool" && attrs.Int("ceil_mode") != 0);
  }
  if (op == "Resize")
    return attrs.Int("antialias") != 0 ||
           attrs.Str("coordinate_transformation_mode") == "half_pixel_symmetric";
  if (op == "ScatterND" || op == "ScatterElements")
    return attrs.Str("reduction") == "min" || attrs.Str("reduction") == "max";
  return op == "Pad" && attrs.Str("mode") == "wrap";
}

}  // namespace mendel
