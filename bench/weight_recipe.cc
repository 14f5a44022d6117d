#include "bench/weight_recipe.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "graph/tensor.h"
#include "graph/types.h"
#include "onnx/tensor_decode.h"

namespace mendel {
namespace {

constexpr char kRecipe[] = "weights drawn: normal, mean %la deviation %la low %la high %la";

struct Recipe {
  double mean = 0, deviation = 0, low = 0, high = 0;
};

bool HasFewValues(std::span<const float> values) {
  std::set<float> seen;
  for (const float value : values) {
    if (seen.insert(value).second && seen.size() > 2) return false;
  }
  return true;
}

Recipe Measure(std::span<const float> values) {
  Recipe recipe{.low = values[0], .high = values[0]};
  for (const float value : values) {
    recipe.mean += static_cast<double>(value) / static_cast<double>(values.size());
    recipe.low = std::min(recipe.low, static_cast<double>(value));
    recipe.high = std::max(recipe.high, static_cast<double>(value));
  }
  double squares = 0;
  for (const float value : values) squares += (value - recipe.mean) * (value - recipe.mean);
  recipe.deviation = std::sqrt(squares / static_cast<double>(values.size()));
  return recipe;
}

int64_t Elements(const onnx::TensorProto& tensor) {
  int64_t count = 1;
  for (const int64_t extent : tensor.dims()) count *= extent;
  return count;
}

/// FNV-1a: the same on every machine.
uint64_t HashOf(const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return hash;
}

bool LacksData(const onnx::TensorProto& tensor) {
  return !tensor.has_raw_data() && tensor.float_data().empty();
}

}  // namespace

absl::Status StripWeights(onnx::ModelProto& model) {
  for (onnx::TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
      return absl::UnimplementedError(
          Cat("initializer '", tensor.name(), "' lies in another file"));
    }
    if (tensor.data_type() != onnx::TensorProto::FLOAT ||
        Elements(tensor) < kFewestStrippedElements)
      continue;
    const auto decoded = DecodeTensor(tensor);
    if (!decoded.ok()) return Annotate(decoded.status(), Cat("initializer '", tensor.name(), "'"));
    const auto values = decoded->As<float>();
    if (HasFewValues(values)) continue;
    const Recipe recipe = Measure(values);
    char text[200];
    std::snprintf(text, sizeof text, kRecipe, recipe.mean, recipe.deviation, recipe.low,
                  recipe.high);
    tensor.clear_raw_data();
    tensor.clear_float_data();
    tensor.set_doc_string(text);
  }
  return absl::OkStatus();
}

absl::Status FillWeights(onnx::ModelProto& model, uint64_t seed) {
  for (onnx::TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (!LacksData(tensor) || tensor.data_type() != onnx::TensorProto::FLOAT ||
        !tensor.has_doc_string())
      continue;
    Recipe recipe;
    if (std::sscanf(tensor.doc_string().c_str(), kRecipe, &recipe.mean, &recipe.deviation,
                    &recipe.low, &recipe.high) != 4 ||
        !(recipe.low <= recipe.high && recipe.deviation >= 0) ||
        Elements(tensor) < kFewestStrippedElements || Elements(tensor) > kMaxElements) {
      return InvalidInput("initializer '", tensor.name(), "' has neither data nor a recipe: '",
                          tensor.doc_string().substr(0, 100), "'");
    }
    Rng rng(seed ^ HashOf(tensor.name()));
    std::vector<float> values(static_cast<size_t>(Elements(tensor)));
    for (float& value : values) {
      value = static_cast<float>(
          std::clamp(recipe.mean + recipe.deviation * rng.Normal(), recipe.low, recipe.high));
    }
    tensor.set_raw_data(values.data(), values.size() * sizeof(float));
    tensor.clear_doc_string();
  }
  return absl::OkStatus();
}

}  // namespace mendel
