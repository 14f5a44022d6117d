#include "client/onnxruntime/part_inputs.h"

#include "base/status.h"
#include "client/onnxruntime/tensor_facts.h"

namespace mendel::ort {

size_t BytesOfInput(const PartInputs& inputs, size_t k) {
  size_t bytes = ElementBytes(inputs.types[k]);
  for (int d = 0; d < inputs.ranks[k]; ++d) bytes *= static_cast<size_t>(inputs.shapes[k][d]);
  return bytes;
}

std::string ShapesText(const PartInputs& inputs) {
  std::string text;
  for (size_t k = 0; k < inputs.ranks.size(); ++k) {
    text += Cat(k == 0 ? "" : ",", "in", k, ":");
    for (int d = 0; d < inputs.ranks[k]; ++d) text += Cat(d == 0 ? "" : "x", inputs.shapes[k][d]);
    if (inputs.ranks[k] == 0) text += "scalar";
  }
  return text;
}

KeptInputs::KeptInputs(const PartInputs& inputs) : types_(inputs.types) {
  for (size_t k = 0; k < inputs.ranks.size(); ++k) {
    shapes_.emplace_back(inputs.shapes[k], inputs.shapes[k] + inputs.ranks[k]);
    const auto* const data = static_cast<const std::byte*>(inputs.data[k]);
    data_.emplace_back(data, data + BytesOfInput(inputs, k));
  }
}

PartInputs KeptInputs::inputs() const {
  PartInputs inputs;
  inputs.types = types_;
  for (size_t k = 0; k < shapes_.size(); ++k) {
    inputs.ranks.push_back(static_cast<int>(shapes_[k].size()));
    inputs.shapes.push_back(shapes_[k].data());
    inputs.data.push_back(data_[k].data());
  }
  return inputs;
}

}  // namespace mendel::ort
