// Helpers of the tests of import and export.
#ifndef MENDEL_ONNX_IMPORT_CASE_H_
#define MENDEL_ONNX_IMPORT_CASE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/tensor.h"
#include "graph/text.h"
#include "onnx/import.h"
#include "onnx/model_builder.h"

namespace mendel {

inline Tensor Floats(Shape shape, std::vector<double> values) {
  return Tensor::FromDoubles({DType::kF32, std::move(shape)}, values);
}

inline absl::StatusOr<ImportResult> Import(const ModelBuilder& model,
                                           const ImportOptions& options = {}) {
  return ImportOnnxBytes(model.Bytes(), "", options);
}

inline std::string Message(const absl::Status& status) {
  return std::string(status.message().data(), status.message().size());
}

/// The graph's text without names; fails the test when the import does.
inline std::string Text(const ModelBuilder& model, const ImportOptions& options = {}) {
  const auto result = Import(model, options);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.ok() ? PrintGraph(result->graph, {.node_names = false}) : "";
}

inline void ExpectRefused(const ModelBuilder& model, absl::StatusCode code,
                          const std::string& sentence) {
  const auto result = Import(model);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), code) << result.status();
  EXPECT_THAT(Message(result.status()), testing::HasSubstr(sentence));
}

/// A folder of its own that disappears with the test.
class Folder {
 public:
  Folder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "mendel_import_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  std::string string() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

inline void Write(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// A model with many kinds of field.
inline ModelBuilder Varied() {
  ModelBuilder model;
  model.Input("x", {"N", "3", "8", "8"})
      .Initializer("w", Floats({2, 3, 3, 3}, std::vector<double>(54, 0.5)))
      .Output("y");
  auto& conv = model.Node("Conv", {"x", "w"}, {"c"});
  ModelBuilder::Set(conv, "pads", std::vector<int64_t>{1, 1, 1, 1});
  ModelBuilder::Set(conv, "auto_pad", std::string("NOTSET"));
  model.Ints("starts", {1}).Ints("ends", {100}).Ints("axes", {-1});
  model.Node("Slice", {"c", "starts", "ends", "axes"}, {"s"});
  model.Node("Shape", {"s"}, {"shape"});
  model.Node("ConstantOfShape", {"shape"}, {"zeros"});
  model.Node("Add", {"s", "zeros"}, {"a"});
  ModelBuilder::Set(model.Node("Softmax", {"a"}, {"y"}), "axis", int64_t{1});
  return model;
}

}  // namespace mendel

#endif  // MENDEL_ONNX_IMPORT_CASE_H_
