#include <charconv>

#include "base/status.h"
#include "onnx/import.h"
#include "onnx/tensor_decode.h"

namespace mendel {
namespace {

absl::StatusOr<Shape> ParseShape(std::string_view text) {
  Shape shape;
  if (text.empty() || text == "scalar") return shape;
  while (true) {
    const std::string_view part = text.substr(0, text.find('x'));
    int64_t extent = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), extent);
    if (error != std::errc() || end != part.data() + part.size() || extent < 0) {
      return InvalidInput("'", part,
                          "' is not an extent; shapes are written like input:8x3x224x224");
    }
    shape.push_back(extent);
    if (part.size() == text.size()) break;
    text.remove_prefix(part.size() + 1);
  }
  MENDEL_RETURN_IF_ERROR(CheckShape(shape));
  return shape;
}

}  // namespace

absl::StatusOr<std::vector<std::pair<std::string, Shape>>> ParseShapes(std::string_view text) {
  std::vector<std::pair<std::string, Shape>> shapes;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const size_t colon = item.rfind(':');  // names may hold colons
    if (colon == std::string_view::npos || colon == 0) {
      return InvalidInput("'", item, "' is not a shape; shapes are written like input:8x3x224x224");
    }
    std::string name(item.substr(0, colon));
    for (const auto& [other, shape] : shapes) {
      if (other == name) return InvalidInput("input '", name, "' is given two shapes");
    }
    MENDEL_ASSIGN_OR_RETURN(Shape shape, ParseShape(item.substr(colon + 1)));
    shapes.emplace_back(std::move(name), std::move(shape));
  }
  return shapes;
}

}  // namespace mendel
