#include "kernels/cuda/fusion/kernel_code.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "kernels/cuda/fusion/operator_text.h"

namespace mendel::cuda {

KernelCode::KernelCode(const Graph& graph, const std::set<int32_t>& fused, std::string index_type)
    : graph_(graph), fused_(fused), index_type_(std::move(index_type)) {}

void KernelCode::Line(const std::string& text) { text_ += std::string(static_cast<size_t>(2 * depth_), ' ') + text + "\n"; }

void KernelCode::Open(const std::string& header) {
  Line(header + " {");
  ++depth_;
}

void KernelCode::Close() {
  --depth_;
  Line("}");
}

std::string KernelCode::Let(std::string_view type, const std::string& expression) {
  const std::string name = Fresh();
  Line(Cat("const ", type, " ", name, " = ", expression, ";"));
  return name;
}

std::string KernelCode::Variable(std::string_view type, const std::string& expression) {
  const std::string name = Fresh();
  Line(Cat(type, " ", name, " = ", expression, ";"));
  return name;
}

std::string KernelCode::Loop(int64_t extent) {
  if (extent == 1) {
    Open("");
    return "0";
  }
  const std::string name = Fresh();
  Open(Cat("for (", index_type_, " ", name, " = 0; ", name, " < ", extent, "; ++", name, ")"));
  return name;
}

Position KernelCode::Decode(const std::string& flat, const Shape& shape, bool is_root) {
  Position position;
  position.flat = flat;
  const Shape strides = RowMajorStrides(shape);
  size_t first = 0;  // dimension that exceeds 1: its quotient needs no remainder
  while (first < shape.size() && shape[first] == 1) ++first;
  for (size_t d = 0; d < shape.size(); ++d) {
    std::string at = "0";
    if (shape[d] != 1) {
      at = Divided(flat, strides[d]);
      if (d > first) at = Modulo(at, shape[d]);
      if (at != flat) at = LetIndex(at);
    }
    position.at.push_back(at);
    position.root.push_back(is_root ? static_cast<int>(d) : -1);
  }
  return position;
}

std::string KernelCode::Element(ValueId value, const Position& position) {
  if (const auto bound = bound_.find(value); bound != bound_.end()) return bound->second(position);
  if (fused_.count(value.node) == 0) return Load(value, position);
  const OperatorText* text = FindOperatorText(graph_.node(value.node).op->name);
  return WithView(graph_, value.node, [&](const NodeView& view) {
    const std::string result = text->element({*this, value.node, view, value.output, position});
    const std::string_view real = RealName(view.outputs[static_cast<size_t>(value.output)].dtype);
    return Let(real, result);
  });
}

std::string KernelCode::Operand(KernelOperand operand, const std::string& key) {
  const auto [place, is_new] = pointers_.try_emplace(key, Cat("p", operands_.size()));
  if (is_new) operands_.push_back(std::move(operand));
  return place->second;
}

std::string KernelCode::Table(const Tensor& tensor) {
  return Operand({ValueId{-1, 0}, tensor, tensor.dtype()}, Cat("table ", tensor.ContentHash()));
}

std::string KernelCode::Load(ValueId value, const Position& position) {
  const Node& node = graph_.node(value.node);
  const TensorType& type = graph_.type(value);
  if (IsConstant(node) && NumElements(type) == 1 && SymbolName(node).empty()) {
    const Tensor& tensor = ConstantValue(node);
    return IsFloat(type.dtype) ? LiteralOf(type.dtype, tensor.DoubleAt(0)) : LiteralOf(type.dtype, tensor.IntAt(0));
  }
  const std::string pointer = Operand({value, {}, type.dtype}, Cat(value.node, " ", value.output));
  const std::string load = Cat(StorageName(type.dtype), "::Load(");
  if (lanes_ > 1) {
    const std::string pack = VectorLoad(pointer, type, position);
    if (!pack.empty()) return Let(RealName(type.dtype), Cat(load, pack, ".v[lane])"));
  }
  const std::string offset = NumElements(type) == 1 ? "0" : FlatOf(type.shape, position);
  return Let(RealName(type.dtype), Cat(load, pointer, "[", offset, "])"));
}

std::string KernelCode::VectorLoad(const std::string& pointer, const TensorType& type, const Position& position) {
  const Shape& shape = type.shape;
  std::string offset;
  if (position.flat == "f" && NumElements(shape) == NumElements(root_shape_)) {
    offset = first_;
  } else {
    const int last = static_cast<int>(root_shape_.size()) - 1;
    if (shape.empty() || last < 0 || position.RootOf(shape.size() - 1) != last) return "";
    if (shape.back() % lanes_ != 0 || root_shape_.back() % lanes_ != 0) return "";
    Position first;
    for (size_t d = 0; d < shape.size(); ++d) {
      const int root = position.RootOf(d);
      if ((root < 0 && position.at[d] != "0") || (root == last && d + 1 < shape.size())) return "";
      first.at.push_back(root < 0 ? "0" : root_.at[static_cast<size_t>(root)]);
    }
    offset = FlatOf(shape, first);
  }
  const auto [pack, is_new] = packs_.try_emplace(Cat(pointer, "[", offset, "]"), "");
  if (is_new) {
    pack->second = Fresh();
    const std::string pack_type = Cat("Pack<", StoredName(type.dtype), ", ", lanes_, ">");
    std::swap(text_, outside_);
    Line(
        Cat("const ", pack_type, " ", pack->second, " = *reinterpret_cast<const ", pack_type, "*>(", pointer, " + ", offset, ");"));
    std::swap(text_, outside_);
    ++vector_loads_;
  }
  return pack->second;
}

void KernelCode::BeginLanes(int lanes, const std::string& first, const Shape& root_shape) {
  root_ = Decode(first, root_shape);
  root_shape_ = root_shape;
  first_ = first;
  lanes_ = lanes;
  vector_loads_ = 0;
  packs_.clear();
  outside_.clear();
  std::swap(text_, outside_);
  ++depth_;  // of the loop's body; what is hoisted is indented like it
}

int KernelCode::EndLanes(const std::string& loop_header) {
  const std::string body = std::exchange(text_, std::exchange(outside_, ""));
  --depth_;
  Line("#pragma unroll");
  Open(loop_header);
  text_ += body;
  Close();
  lanes_ = 1;
  has_scalar_lanes_ = has_scalar_lanes_ || vector_loads_ == 0;
  return vector_loads_;
}

}  // namespace mendel::cuda
