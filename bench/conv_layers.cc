#include "bench/conv_layers.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "graph/op_definition.h"
#include "graph/rewrite.h"
#include "graph/tensor.h"
#include "onnx/import.h"

namespace mendel {
namespace {

void AddTo(std::vector<ConvLayer>& layers, ConvLayer layer) {
  const auto same = std::find_if(layers.begin(), layers.end(), [&](const ConvLayer& other) {
    return other.x == layer.x && other.w == layer.w && other.attrs == layer.attrs;
  });
  if (same == layers.end()) return layers.push_back(std::move(layer));
  ++same->places;
  if (same->models.find(layer.models) == std::string::npos) same->models += Cat(", ", layer.models);
}

std::string Extents(const Shape& shape) {
  std::string text;
  for (size_t d = 2; d < shape.size(); ++d) text += Cat(d > 2 ? "x" : "", shape[d]);
  return text;
}

/// " stride 2" or " stride 2x1"; "" where all are `usual`.
std::string Unusual(const char* name, const Ints& values, int64_t usual) {
  if (std::all_of(values.begin(), values.end(), [&](int64_t value) { return value == usual; }))
    return "";
  std::string text = Cat(" ", name, " ", values[0]);
  if (std::all_of(values.begin(), values.end(), [&](int64_t value) { return value == values[0]; }))
    return text;
  for (size_t k = 1; k < values.size(); ++k) text += Cat("x", values[k]);
  return text;
}

}  // namespace

absl::StatusOr<std::vector<ConvLayer>> ConvLayersOf(const std::vector<std::string>& paths) {
  std::vector<ConvLayer> layers;
  for (const std::string& path : paths) {
    const auto model = ImportOnnxFile(path);
    if (!model.ok()) return Annotate(model.status(), path);
    const Graph& graph = model->graph;
    const std::vector<bool> constant = ConstantExpressions(graph);
    for (int32_t id = 0; id < static_cast<int32_t>(graph.nodes().size()); ++id) {
      const Node& node = graph.node(id);
      if (node.op->name != "Conv" || node.outputs[0].dtype != DType::kF32) continue;
      if (!constant[static_cast<size_t>(node.inputs[1].node)]) continue;
      const double flops =
          WithView(graph, id, [&](const NodeView& view) { return CostOf(*node.op, view).flops; });
      ConvLayer layer{graph.type(node.inputs[0]).shape,
                      graph.type(node.inputs[1]).shape,
                      node.attrs,
                      std::filesystem::path(path).stem().string(),
                      1,
                      0};
      layer.flops = flops / static_cast<double>(std::max<int64_t>(1, layer.x[0]));
      layer.x[0] = 1;
      AddTo(layers, std::move(layer));
    }
  }
  std::stable_sort(layers.begin(), layers.end(), [](const ConvLayer& a, const ConvLayer& b) {
    return a.flops * a.places > b.flops * b.places;
  });
  return layers;
}

ValueId RandomWeights(Emitter& e, const Shape& shape, const std::string& symbol) {
  Rng rng(5);
  std::vector<double> values(static_cast<size_t>(NumElements(shape)));
  for (double& value : values) value = rng.Normal() * 0.02;
  return e.Constant(Tensor::FromDoubles({DType::kF32, shape}, values), symbol);
}

absl::StatusOr<Graph> LayerGraph(const ConvLayer& layer, int64_t batch) {
  Emitter e("layer");
  Shape x = layer.x;
  x[0] = batch;
  const ValueId input = e.Input("in0", {DType::kF32, x});
  e.Output(
      "out0",
      e.Op("Conv", {input, RandomWeights(e, layer.w, "w"), RandomWeights(e, {layer.w[0]}, "b")},
           layer.attrs));
  return e.Finish();
}

std::string LayerText(const ConvLayer& layer) {
  std::string text =
      Cat(layer.x[1], "->", layer.w[0], " ", Extents(layer.w), " over ", Extents(layer.x));
  text += Unusual("stride", layer.attrs.IntList("strides"), 1) +
          Unusual("dilation", layer.attrs.IntList("dilations"), 1);
  if (layer.w[1] != layer.x[1]) text += Cat(" groups ", layer.x[1] / layer.w[1]);
  return text;
}

}  // namespace mendel
