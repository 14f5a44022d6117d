// make_verify_pairs FOLDER: small ONNX models for verify_cli_test.sh.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "onnx/model_builder.h"

namespace mendel {
namespace {

struct Names {
  std::string x = "x";
  std::string y = "y";
  std::string w = "w";
};

Tensor Weight(double changed) {
  return Tensor::FromDoubles({DType::kF32, {3, 4}},
                             std::vector<double>{1, -2, 3, 4, 5, -6, 7, 8, 9, 10, changed, -12});
}

Tensor Bias() {
  return Tensor::FromDoubles({DType::kF32, {4}}, std::vector<double>{1, 2, 3, 0.25});
}

/// y = x w + b; `rows` of x.
ModelBuilder Net(const std::string& rows = "2", double changed = 11, const Names& names = {}) {
  ModelBuilder model;
  model.Input(names.x, {rows, "3"}).Initializer(names.w, Weight(changed)).Initializer("b", Bias());
  model.Node("MatMul", {names.x, names.w}, {"product"});
  model.Node("Add", {"product", "b"}, {names.y});
  model.Output(names.y);
  return model;
}

/// The same by other means.
ModelBuilder Rewritten() {
  ModelBuilder model;
  model.Input("x", {"2", "3"}).Initializer("w", Weight(11)).Initializer("b", Bias());
  ModelBuilder::Set(model.Node("Transpose", {"x"}, {"xt"}), "perm", std::vector<int64_t>{1, 0});
  ModelBuilder::Set(model.Node("Transpose", {"w"}, {"wt"}), "perm", std::vector<int64_t>{1, 0});
  model.Node("MatMul", {"wt", "xt"}, {"product"});
  ModelBuilder::Set(model.Node("Transpose", {"product"}, {"back"}), "perm",
                    std::vector<int64_t>{1, 0});
  model.Node("Add", {"b", "back"}, {"y"});
  model.Output("y");
  return model;
}

ModelBuilder NoBias() {
  ModelBuilder model;
  model.Input("x", {"2", "3"}).Initializer("w", Weight(11));
  model.Node("MatMul", {"x", "w"}, {"y"});
  model.Output("y");
  return model;
}

ModelBuilder Two() {
  ModelBuilder model = Net();
  model.Node("Sigmoid", {"product"}, {"s"});
  model.Output("s");
  return model;
}

/// sin^2 + cos^2, and 1: no axiom of the verifier, and no witness.
ModelBuilder Waves() {
  ModelBuilder model;
  model.Input("x", {"4"});
  model.Node("Sin", {"x"}, {"sin"});
  model.Node("Cos", {"x"}, {"cos"});
  model.Node("Mul", {"sin", "sin"}, {"sin2"});
  model.Node("Mul", {"cos", "cos"}, {"cos2"});
  model.Node("Add", {"sin2", "cos2"}, {"y"});
  model.Output("y");
  return model;
}

ModelBuilder Ones() {
  ModelBuilder model;
  model.Input("x", {"4"}).Initializer("one", Tensor::Scalar(DType::kF32, 1));
  model.Node("Sub", {"x", "x"}, {"zero"});
  model.Node("Add", {"zero", "one"}, {"y"});
  model.Output("y");
  return model;
}

ModelBuilder Unsupported() {
  ModelBuilder model = Net();
  model.Node("NotAnOperator", {"product"}, {"other"});
  model.Output("other");
  return model;
}

ModelBuilder Double() {
  ModelBuilder model;
  model.Input("x", {"2", "3"}, DType::kF64);
  ModelBuilder::Set(model.Node("Cast", {"x"}, {"y"}), "to", int64_t{1});
  model.Output("y");
  return model;
}

/// x - mean(x) over a symbolic dimension, and x - x: equal for one row only.
ModelBuilder Centered() {
  ModelBuilder model;
  model.Input("x", {"N", "3"});
  ModelBuilder::Set(model.Node("ReduceMean", {"x"}, {"mean"}), "axes", std::vector<int64_t>{0});
  model.Node("Sub", {"x", "mean"}, {"y"});
  model.Output("y");
  return model;
}

ModelBuilder Zero() {
  ModelBuilder model;
  model.Input("x", {"N", "3"});
  model.Node("Sub", {"x", "x"}, {"y"});
  model.Output("y");
  return model;
}

/// The sum of x or of its first 1,000 rows, which are all rows for N <= 1000.
ModelBuilder Cut(bool cut) {
  ModelBuilder model;
  model.Input("x", {"N", "3"}).Ints("zero", {0}).Ints("limit", {1000});
  model.Node("Slice", {"x", "zero", "limit"}, {"first"});
  model.Node("ReduceSum", {cut ? "first" : "x"}, {"y"});
  model.Output("y");
  return model;
}

/// factor times the sum of 2^26 elements, one after the other.
ModelBuilder Wide(double factor) {
  ModelBuilder model;
  const std::vector<int64_t> extent = {int64_t{1} << 26};
  model.Input("x", {"1"}).Initializer("extent", Tensor::FromInts({DType::kI64, {1}}, extent));
  model.Initializer("factor", Tensor::Scalar(DType::kF32, factor));
  model.Node("Expand", {"x", "extent"}, {"wide"});
  model.Node("Relu", {"wide"}, {"positive"});
  model.Node("Mul", {"positive", "factor"}, {"scaled"});
  ModelBuilder::Set(model.Node("ReduceMax", {"scaled"}, {"y"}), "axes", std::vector<int64_t>{0});
  model.Output("y");
  return model;
}

bool Write(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  file.close();
  if (!file) std::fprintf(stderr, "cannot write %s\n", path.c_str());
  return static_cast<bool>(file);
}

int Main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_verify_pairs FOLDER\n");
    return 2;
  }
  const std::vector<std::pair<std::string, std::string>> files = {
      {"net.onnx", Net().Bytes()},
      {"rewritten.onnx", Rewritten().Bytes()},
      {"no_bias.onnx", NoBias().Bytes()},
      {"one_weight.onnx", Net("2", 11.000001).Bytes()},
      {"renamed.onnx", Net("2", 11, {"u", "v", "other"}).Bytes()},
      {"two.onnx", Two().Bytes()},
      {"waves.onnx", Waves().Bytes()},
      {"ones.onnx", Ones().Bytes()},
      {"centered.onnx", Centered().Bytes()},
      {"zero.onnx", Zero().Bytes()},
      {"cut.onnx", Cut(true).Bytes()},
      {"uncut.onnx", Cut(false).Bytes()},
      {"wide.onnx", Wide(2).Bytes()},
      {"wider.onnx", Wide(3).Bytes()},
      {"taller.onnx", Net("5").Bytes()},
      {"double.onnx", Double().Bytes()},
      {"unsupported.onnx", Unsupported().Bytes()},
      {"garbage.onnx", "this is no model"},
  };
  for (const auto& [name, bytes] : files) {
    if (!Write(std::string(argv[1]) + "/" + name, bytes)) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace mendel

int main(int argc, char** argv) { return mendel::Main(argc, argv); }
