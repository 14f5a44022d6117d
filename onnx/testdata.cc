#include "onnx/testdata.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "base/status.h"
#include "onnx/import.h"
#include "onnx/tensor_decode.h"

namespace mendel {
namespace {

namespace fs = std::filesystem;

std::string ReadWhole(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Reads prefix_0.pb, prefix_1.pb, ... until a file is missing.
absl::StatusOr<std::vector<Tensor>> ReadTensors(const fs::path& folder, const std::string& prefix) {
  std::vector<Tensor> tensors;
  for (int k = 0;; ++k) {
    const fs::path path = folder / Cat(prefix, "_", k, ".pb");
    if (!fs::exists(path)) return tensors;
    onnx::TensorProto proto;
    if (!proto.ParseFromString(ReadWhole(path))) return Unsupported("data that is not a tensor");
    MENDEL_ASSIGN_OR_RETURN(Tensor tensor, DecodeTensor(std::move(proto)));
    tensors.push_back(std::move(tensor));
  }
}

/// The bytes of a sequence may parse as a meaningless tensor, so the declared types decide.
absl::Status CheckAreTensors(const onnx::ModelProto& model) {
  for (const auto* values : {&model.graph().input(), &model.graph().output()}) {
    for (const auto& value : *values) {
      if (value.type().value_case() == onnx::TypeProto::VALUE_NOT_SET ||
          value.type().has_tensor_type())
        continue;
      return Unsupported("data that is not a tensor");
    }
  }
  return absl::OkStatus();
}

/// Names of the inputs that the data files stand for.
std::vector<std::string> InputNames(const onnx::ModelProto& model, size_t count) {
  std::vector<std::string> names;
  for (const auto& input : model.graph().input()) names.push_back(input.name());
  if (names.size() == count) return names;
  for (const auto& tensor : model.graph().initializer()) std::erase(names, tensor.name());
  return names;
}

/// The inputs that become constants, from none to all. The first attempt that imports counts.
enum class Binding { kNone, kIntegersButFirst, kAllButFirst, kAll };

bool Binds(Binding binding, size_t k, const Tensor& tensor) {
  switch (binding) {
    case Binding::kNone:
      return false;
    case Binding::kIntegersButFirst:
      return k > 0 && IsIntegral(tensor.dtype());
    case Binding::kAllButFirst:
      return k > 0;
    case Binding::kAll:
      return true;
  }
  return false;
}

absl::StatusOr<Graph> Import(const std::string& bytes, const std::vector<std::string>& names,
                             const std::vector<Tensor>& values) {
  absl::Status last;
  for (Binding binding :
       {Binding::kNone, Binding::kIntegersButFirst, Binding::kAllButFirst, Binding::kAll}) {
    ImportOptions options;
    for (size_t k = 0; k < names.size(); ++k) {
      if (Binds(binding, k, values[k])) {
        options.bindings.emplace(names[k], values[k]);
      } else {
        options.shapes.emplace_back(names[k], values[k].shape());
      }
    }
    auto result = ImportOnnxBytes(bytes, "", options);
    if (result.ok()) return result->graph;
    last = result.status();
  }
  return last;
}

/// Older data files call the bits of bf16 numbers u16.
void SetDType(DType dtype, Tensor& tensor) {
  if (dtype != DType::kBF16 || tensor.dtype() != DType::kU16) return;
  const auto owner = std::make_shared<const Tensor>(tensor);
  tensor = Tensor({dtype, owner->shape()}, owner->bytes(), owner);
}

/// Largest accepted error, from the rounding of the expected values themselves.
CaseTolerance Tolerance(DType dtype) {
  const double relative = dtype == DType::kF16    ? 2e-3
                          : dtype == DType::kBF16 ? 2e-2
                          : dtype == DType::kF64  ? 1e-7
                                                  : 1e-4;
  return {relative, 1e-2 * relative};
}

/// Both tolerances are zero if the folder has no file `tolerance`.
CaseTolerance ReadTolerance(const fs::path& folder) {
  std::ifstream file(folder / "tolerance");
  CaseTolerance tolerance;
  if (!(file >> tolerance.relative >> tolerance.absolute)) return {};
  return tolerance;
}

}  // namespace

std::vector<std::string> ListOnnxTestCases(const std::string& root) {
  std::vector<std::string> folders;
  if (!fs::is_directory(root)) return folders;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().filename() == "model.onnx")
      folders.push_back(entry.path().parent_path().string());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

absl::StatusOr<std::vector<OnnxTestCase>> LoadOnnxTestCases(const std::string& folder) {
  const std::string bytes = ReadWhole(fs::path(folder) / "model.onnx");
  onnx::ModelProto model;
  if (!model.ParseFromString(bytes)) return InvalidInput("a model that cannot be read");
  MENDEL_RETURN_IF_ERROR(CheckAreTensors(model));
  std::vector<OnnxTestCase> cases;
  for (int set = 0;; ++set) {
    const fs::path data = fs::path(folder) / Cat("test_data_set_", set);
    if (!fs::is_directory(data)) break;
    OnnxTestCase test;
    test.tolerance = ReadTolerance(folder);
    test.name = Cat(fs::path(folder).filename().string(), "/", set);
    MENDEL_ASSIGN_OR_RETURN(const std::vector<Tensor> values, ReadTensors(data, "input"));
    MENDEL_ASSIGN_OR_RETURN(test.outputs, ReadTensors(data, "output"));
    const std::vector<std::string> names = InputNames(model, values.size());
    if (names.size() != values.size())
      return InvalidInput("has ", values.size(), " data files for ", names.size(), " inputs");
    MENDEL_ASSIGN_OR_RETURN(test.graph, Import(bytes, names, values));
    for (int32_t input : test.graph.inputs()) {
      const auto name = std::find(names.begin(), names.end(), InputName(test.graph.node(input)));
      test.inputs.push_back(values[static_cast<size_t>(name - names.begin())]);
      SetDType(test.graph.type({input, 0}).dtype, test.inputs.back());
    }
    const std::vector<GraphOutput>& outputs = test.graph.outputs();
    for (size_t k = 0; k < std::min(outputs.size(), test.outputs.size()); ++k)
      SetDType(test.graph.type(outputs[k].value).dtype, test.outputs[k]);
    cases.push_back(std::move(test));
  }
  if (cases.empty()) return Unsupported("a case without data");
  return cases;
}

std::string CompareWithExpected(const Tensor& actual, const Tensor& expected, double slack,
                                const CaseTolerance& given) {
  if (actual.type() != expected.type())
    return Cat("type ", TypeString(actual.type()), ", expected ", TypeString(expected.type()));
  const CaseTolerance rounding = Tolerance(actual.dtype());
  for (int64_t k = 0; k < actual.size(); ++k) {
    if (IsIntegral(actual.dtype())) {
      if (actual.IntAt(k) != expected.IntAt(k))
        return Cat("element ", k, " is ", actual.IntAt(k), ", expected ", expected.IntAt(k));
      continue;
    }
    const double a = actual.DoubleAt(k);
    const double e = expected.DoubleAt(k);
    if (a == e || (std::isnan(a) && std::isnan(e))) continue;
    const double error = std::fabs(a - e);
    const auto explains = [&](const CaseTolerance& allowed, double factor) {
      return error <= factor * (allowed.absolute + allowed.relative * std::fabs(e));
    };
    if (!explains(rounding, slack) && !explains(given, 1))
      return Cat("element ", k, " is ", a, ", expected ", e);
  }
  return "";
}

}  // namespace mendel
