// make_conv_net FILE.onnx [SEED]: a convolution net of few thousand elements, small enough for the
// CUDA emulator: a dilated convolution (whose mutants are partial), a strided one, a product, and
// the elementwise operators between them.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "graph/tensor.h"
#include "onnx/model_builder.h"

namespace mendel {
namespace {

Tensor Weights(Rng& rng, std::vector<int64_t> shape) {
  int64_t size = 1;
  for (const int64_t extent : shape) size *= extent;
  std::vector<double> values;
  for (int64_t k = 0; k < size; ++k)
    values.push_back(static_cast<double>(rng.Next() % 17) / 32 - 0.25);
  return Tensor::FromDoubles({DType::kF32, std::move(shape)}, values);
}

void Conv(ModelBuilder& model, const std::string& name, const std::string& x, int64_t stride,
          int64_t dilation) {
  onnx::NodeProto& node = model.Node("Conv", {x, name + "_w", name + "_b"}, {name});
  node.set_name(name);
  ModelBuilder::Set(node, "strides", std::vector<int64_t>{stride, stride});
  ModelBuilder::Set(node, "dilations", std::vector<int64_t>{dilation, dilation});
  ModelBuilder::Set(node, "pads", std::vector<int64_t>{dilation, dilation, dilation, dilation});
}

std::string Net(uint64_t seed) {
  Rng rng(seed);
  ModelBuilder model;
  model.Input("x", {"1", "4", "8", "8"});
  model.Initializer("first_w", Weights(rng, {8, 4, 3, 3}))
      .Initializer("first_b", Weights(rng, {8}));
  model.Initializer("second_w", Weights(rng, {8, 8, 3, 3}))
      .Initializer("second_b", Weights(rng, {8}));
  model.Initializer("head_w", Weights(rng, {8, 10}));
  Conv(model, "first", "x", 1, 2);
  model.Node("Relu", {"first"}, {"active"});
  Conv(model, "second", "active", 2, 1);
  model.Node("GlobalAveragePool", {"second"}, {"pooled"});
  ModelBuilder::Set(model.Node("Flatten", {"pooled"}, {"flat"}), "axis", int64_t{1});
  model.Node("MatMul", {"flat", "head_w"}, {"y"});
  model.Output("y");
  return model.Bytes();
}

}  // namespace
}  // namespace mendel

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "usage: make_conv_net FILE.onnx [SEED]\n");
    return 2;
  }
  std::ofstream file(argv[1], std::ios::binary);
  file << mendel::Net(argc == 3 ? std::strtoull(argv[2], nullptr, 10) : 1);
  file.close();
  return file ? 0 : 1;
}
