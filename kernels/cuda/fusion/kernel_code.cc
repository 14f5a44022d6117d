#include "kernels/cuda/fusion/kernel_code.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "kernels/cuda/fusion/operator_text.h"

namespace mendel::cuda {

KernelCode::KernelCode(const Graph& graph, const std::set<int32_t>& fused, std::string index_type)
    : graph_(graph), fused_(fused), index_type_(std::move(index_type)) {}

void KernelCode::Line(const std::string& text) {
  text_ += std::string(static_cast<size_t>(2 * depth_), ' ') + text + "\n";
}

void KernelCode::Open(const std::string& header) {
  Line(header + " {");
  ++depth_;
}

void KernelCode::OpenWithin(const Shape& shape, const Position& position,
                            const std::vector<Extent>& extents, const std::string& alternatives) {
  std::string all;
  bool agree = lanes_ > 1;
  for (const Extent& extent : extents) {
    const bool agree_here = lanes_ > 1 && LanesAgree(position, extent);
    const std::string at = agree_here ? FirstOf(position, extent.dim) : position.at[extent.dim];
    const bool from_below = extent.begin > 0, to_above = extent.end < shape[extent.dim];
    agree = agree && (agree_here || !(from_below || to_above));
    if (from_below) all += Cat(all.empty() ? "" : " && ", at, " >= ", extent.begin);
    if (to_above) all += Cat(all.empty() ? "" : " && ", at, " < ", extent.end);
  }
  Open(all.empty() ? "" : Cat("if (", all, ")"));
  if (lanes_ > 1 && !all.empty()) guards_.push_back({depth_, agree ? all : "", alternatives, 0});
}

void KernelCode::Close() {
  --depth_;
  while (!guards_.empty() && guards_.back().depth > depth_) guards_.pop_back();
  Line("}");
}

std::string_view KernelCode::RealOf(DType dtype) const {
  return keeps_bits_ ? StoredName(dtype) : RealName(dtype);
}

std::string KernelCode::Literal(DType dtype, double value) const {
  const std::string literal = LiteralOf(dtype, value);
  return keeps_bits_ ? Cat(StorageName(dtype), "::Store(", literal, ")") : literal;
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
    position.root.push_back({is_root ? static_cast<int>(d) : -1});
  }
  return position;
}

std::string KernelCode::Element(ValueId value, const Position& position) {
  if (const auto bound = bound_.find(value); bound != bound_.end()) return bound->second(position);
  if (fused_.count(value.node) == 0) return Load(value, position);
  const OperatorText* text = FindOperatorText(graph_.node(value.node).op->name);
  return WithView(graph_, value.node, [&](const NodeView& view) {
    const std::string result = text->element({*this, value.node, view, value.output, position});
    return Let(RealOf(view.outputs[static_cast<size_t>(value.output)].dtype), result);
  });
}

std::string KernelCode::Operand(KernelOperand operand, const std::string& key) {
  const auto [place, is_new] = pointers_.try_emplace(key, Cat("p", operands_.size()));
  if (is_new) operands_.push_back(std::move(operand));
  return place->second;
}

std::string KernelCode::Pointer(ValueId value) {
  return Operand({value, {}, graph_.type(value).dtype}, Cat(value.node, " ", value.output));
}

std::string KernelCode::Table(const Tensor& tensor) {
  return Operand({ValueId{-1, 0}, tensor, tensor.dtype()}, Cat("table ", tensor.ContentHash()));
}

std::string KernelCode::Load(ValueId value, const Position& position) {
  const Node& node = graph_.node(value.node);
  const TensorType& type = graph_.type(value);
  if (IsConstant(node) && NumElements(type) == 1 && SymbolName(node).empty()) {
    const Tensor& tensor = ConstantValue(node);
    return IsFloat(type.dtype) ? Literal(type.dtype, tensor.DoubleAt(0))
                               : LiteralOf(type.dtype, tensor.IntAt(0));
  }
  const std::string pointer = Pointer(value);
  const std::string pack = lanes_ > 1 ? VectorLoad(pointer, type, position) : "";
  const std::string offset = NumElements(type) == 1 ? "0" : FlatOf(type.shape, position);
  const std::string stored = pack.empty() ? Cat(pointer, "[", offset, "]") : Cat(pack, ".v[lane]");
  return Let(RealOf(type.dtype),
             keeps_bits_ ? stored : Cat(StorageName(type.dtype), "::Load(", stored, ")"));
}

std::string KernelCode::FirstOf(const Position& position, size_t d) const {
  const FromRoot from = position.RootOf(d);
  if (from.dim >= 0)
    return Added(Scaled(root_.at[static_cast<size_t>(from.dim)], from.step), from.shift);
  const std::string& at = position.at[d];
  return at.find_first_not_of("0123456789") == std::string::npos ? at : "";
}

bool KernelCode::LanesAgree(const Position& position, const Extent& extent) const {
  if (root_shape_.empty() || root_shape_.back() % lanes_ != 0 ||
      FirstOf(position, extent.dim).empty())
    return false;
  const FromRoot from = position.RootOf(extent.dim);
  if (from.dim + 1 != static_cast<int>(root_shape_.size())) return true;
  return from.step == 1 && (extent.begin - from.shift) % lanes_ == 0 &&
         (extent.end - from.shift) % lanes_ == 0;
}

std::string KernelCode::VectorLoad(const std::string& pointer, const TensorType& type,
                                   const Position& position) {
  const Shape& shape = type.shape;
  std::string offset, condition;
  for (const Guard& guard : guards_) {
    if (guard.condition.empty()) return "";
    condition += Cat(condition.empty() ? "" : " && ", guard.condition);
  }
  if (position.flat == "f" && NumElements(shape) == NumElements(root_shape_)) {
    offset = first_;
  } else {
    const int last = static_cast<int>(root_shape_.size()) - 1;
    if (shape.empty() || last < 0) return "";
    const FromRoot along = position.RootOf(shape.size() - 1);
    if (along.dim != last || along.step != 1 || along.shift % lanes_ != 0) return "";
    if (shape.back() % lanes_ != 0 || root_shape_.back() % lanes_ != 0) return "";
    Position first;
    for (size_t d = 0; d < shape.size(); ++d) {
      first.at.push_back(FirstOf(position, d));
      if (first.at.back().empty() || (position.RootOf(d).dim == last && d + 1 < shape.size()))
        return "";
    }
    offset = FlatOf(shape, first);
  }
  const auto [pack, is_new] = packs_.try_emplace(Cat(pointer, "[", offset, "] ", condition), "");
  if (is_new) {
    const std::string pack_type = Cat("Pack<", StoredName(type.dtype), ", ", lanes_, ">");
    const std::string from =
        Cat("*reinterpret_cast<const ", pack_type, "*>(", pointer, " + ", offset, ");");
    std::swap(text_, outside_);
    if (condition.empty()) {
      pack->second = Fresh();
      Line(Cat("const ", pack_type, " ", pack->second, " = ", from));
    } else {
      pack->second = ConditionalPack(pack_type);
      Line(Cat("if (", condition, ") ", pack->second, " = ", from));
    }
    std::swap(text_, outside_);
    ++vector_loads_;
  }
  return pack->second;
}

std::string KernelCode::ConditionalPack(const std::string& pack_type) {
  Guard& block = guards_.back();
  std::string own;
  std::string& pack =
      block.alternatives.empty()
          ? own
          : shared_packs_[Cat(pack_type, " ", block.alternatives, " ", block.loads++)];
  if (pack.empty()) {
    pack = Fresh();
    Line(Cat(pack_type, " ", pack, " = {};"));
  }
  return pack;
}

void KernelCode::BeginLanes(int lanes, const std::string& first, const Shape& root_shape) {
  root_ = Decode(first, root_shape);
  root_shape_ = root_shape;
  first_ = first;
  lanes_ = lanes;
  vector_loads_ = 0;
  packs_.clear();
  shared_packs_.clear();
  outside_.clear();
  std::swap(text_, outside_);
  ++depth_;  // of the loop's body; what is hoisted is indented like it
}

int KernelCode::EndLanes(const std::string& loop_header, bool from_registers) {
  const std::string body = std::exchange(text_, std::exchange(outside_, ""));
  --depth_;
  Line("#pragma unroll");
  Open(loop_header);
  text_ += body;
  Close();
  lanes_ = 1;
  has_scalar_lanes_ = has_scalar_lanes_ || (vector_loads_ == 0 && !from_registers);
  return vector_loads_;
}

}  // namespace mendel::cuda
