#include "verifier/axioms/terms.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <utility>

#include "base/status.h"
#include "graph/text.h"
#include "verifier/axioms/rules.h"
#include "verifier/axioms/signs.h"

namespace mendel {
namespace {

/// Rewriting stops here: it ends on every graph. An unfinished form is as true as the canonical
/// one.
constexpr int kMaxDepth = 400;
constexpr int64_t kStepsPerNode = 400;
/// Weights are ordered by a sample of their bytes, which costs nothing for large ones.
constexpr size_t kSampledBytes = 256;

void AddHash(KeyedHash& hash, const Hash128& value) {
  hash.Add(value.high);
  hash.Add(value.low);
}

}  // namespace

Terms::Terms(std::string name, WeightMode weights, std::map<std::string, int>* used)
    : builder_(std::move(name)), weights_(weights), used_(used) {}

ValueId Terms::Input(const std::string& name, const TensorType& type) {
  const ValueId value = builder_.Input(name, type);
  Describe(value.node);
  return value;
}

ValueId Terms::Constant(const Tensor& value, const std::string& symbol) {
  const ValueId constant = builder_.Constant(value, symbol);
  Describe(constant.node);
  return constant;
}

ValueId Terms::Literal(DType dtype, double value) {
  return Constant(Tensor::Scalar(dtype, value == 0 ? 0 : value), "");
}

std::optional<ValueId> Terms::RoundedLiteral(DType dtype, double value, const std::string& what) {
  if (RoundTo(dtype, value) == value) return Literal(dtype, value);
  if ((dtype != DType::kF32 && dtype != DType::kF64) || !may_round_) return std::nullopt;
  Use(Cat("literal ", what));
  return Literal(dtype, RoundTo(dtype, value));
}

std::optional<ValueId> Terms::Attribute(ValueId value, const std::string& name) {
  const double number = node(value).attrs.Float(name);
  std::array<char, 32> digits{};
  std::snprintf(digits.data(), digits.size(), "%.7g", number);
  if (RoundTo(dtype(value), number) != number && std::strtod(digits.data(), nullptr) != number)
    return std::nullopt;
  return RoundedLiteral(dtype(value), number, Cat("of attribute ", name));
}

ValueId Terms::Power(ValueId x, int n) {
  if (n == 1) return x;
  const ValueId half = Power(x, n / 2);
  const ValueId square = Mul(half, half);
  return n % 2 == 0 ? square : Mul(square, x);
}

ValueId Terms::Reduce(std::string_view op, ValueId x, Ints axes, bool keepdims) {
  return Op(op, {x}, {{"axes", std::move(axes)}, {"keepdims", int64_t{keepdims}}});
}

ValueId Terms::Reshape(ValueId x, const Shape& shape) {
  return this->shape(x) == shape ? x : Op("Reshape", {x}, {{"shape", shape}});
}

ValueId Terms::Fit(ValueId x, const Shape& shape) {
  return this->shape(x) == shape ? x : Op("Expand", {x}, {{"shape", shape}});
}

std::vector<TensorType> Terms::InputTypes(ValueId value) const {
  std::vector<TensorType> types;
  for (ValueId input : node(value).inputs) types.push_back(type(input));
  return types;
}

std::optional<double> Terms::Number(ValueId value) const {
  const Node& constant = node(value);
  if (!IsConstant(constant) || !IsKnown(constant, weights_)) return std::nullopt;
  const Tensor& tensor = ConstantValue(constant);
  if (tensor.size() == 0) return std::nullopt;
  const double first = tensor.DoubleAt(0);
  if (IsIntegral(tensor.dtype())) {
    const std::optional<int64_t> integer = Integer(value);
    constexpr int64_t kLargest = int64_t{1} << 52;  // a double distinguishes it from its neighbors
    const bool small = integer.has_value() && -kLargest <= *integer && *integer <= kLargest;
    return small ? std::optional(static_cast<double>(*integer)) : std::nullopt;
  }
  if (!KnownAll(constant, weights_, [first](double v) { return v == first; })) return std::nullopt;
  return first;
}

std::optional<int64_t> Terms::Integer(ValueId value) const {
  const Node& constant = node(value);
  if (!IsConstant(constant) || !IsIntegral(dtype(value))) return std::nullopt;
  const Tensor& tensor = ConstantValue(constant);
  if (tensor.size() == 0) return std::nullopt;
  for (int64_t i = 1; i < tensor.size(); ++i) {
    if (tensor.IntAt(i) != tensor.IntAt(0)) return std::nullopt;
  }
  return tensor.IntAt(0);
}

std::optional<double> Terms::Scalar(ValueId value) const {
  return shape(value).empty() && IsFloat(dtype(value)) ? Number(value) : std::nullopt;
}

void Terms::Use(const std::string& axiom) {
  if (used_ != nullptr) ++(*used_)[axiom];
}

ValueId Terms::Op(std::string_view op, std::vector<ValueId> inputs, Attributes attrs,
                  const std::string& name) {
  const ValueId raw = Raw(op, std::move(inputs), std::move(attrs), name);
  if (!status_.ok()) return raw;
  const auto known = rewritten_.find({raw.node, may_round_});
  if (known != rewritten_.end()) return known->second;
  if (depth_ >= kMaxDepth || steps_ > kStepsPerNode * static_cast<int64_t>(rewritten_.size() + 64))
    return raw;
  ++depth_;
  const ValueId result = Rewrite(raw);
  --depth_;
  rewritten_[{raw.node, may_round_}] = result;
  return result;
}

ValueId Terms::CanonicalOp(std::string_view op, std::vector<ValueId> inputs) {
  const ValueId raw = Raw(op, std::move(inputs), {}, "");
  for (const bool may_round : {false, true}) rewritten_[{raw.node, may_round}] = raw;
  return raw;
}

ValueId Terms::Rewrite(ValueId value) {
  // Axioms build operators that storage types do not have. Moves of them need no axiom.
  const auto is_stored = [&](ValueId input) { return IsStorageOnly(dtype(input)); };
  const std::vector<ValueId>& inputs = node(value).inputs;
  const bool stored = is_stored(value) || std::any_of(inputs.begin(), inputs.end(), is_stored);
  if (stored && !Is(value, "Cast")) return value;
  const bool floats =
      IsFloat(dtype(value)) && !node(value).inputs.empty() && IsFloat(dtype(in(value, 0)));
  for (const AxiomRule* rule : RulesFor(node(value).op->name)) {
    if (rule->elements == Elements::kFloats && !floats) continue;
    if (keep_domain_ && rule->domain != Domain::kAll) continue;
    const std::optional<ValueId> result = rule->rewrite(*this, value);
    if (!status_.ok()) return value;
    if (!result.has_value() || *result == value) continue;
    if (type(*result) != type(value)) {
      status_ = InternalError("axiom '", rule->axiom, "' turns ", TypeString(type(value)), " into ",
                              TypeString(type(*result)));
      return value;
    }
    ++steps_;
    Use(std::string(rule->axiom));
    return *result;
  }
  return value;
}

int32_t Terms::Copy(const Node& node, std::vector<ValueId> inputs) {
  const auto copy = builder_.CopyNode(node, std::move(inputs));
  if (!copy.ok()) {
    if (status_.ok()) status_ = copy.status();
    return Literal(DType::kF32, 0).node;
  }
  Describe(*copy);
  return *copy;
}

ValueId Terms::Raw(std::string_view op, std::vector<ValueId> inputs, Attributes attrs,
                   const std::string& name) {
  std::string key = Cat(op, PrintAttributes(attrs));
  for (ValueId input : inputs) key += Cat(" ", input.node, ".", input.output);
  const auto known = known_.find(key);
  if (known != known_.end()) return {known->second, 0};
  const auto value = builder_.Add(op, std::move(inputs), std::move(attrs), name);
  if (!value.ok()) {
    if (status_.ok()) status_ = value.status();
    return Literal(DType::kF32, 0);
  }
  Describe(value->node);
  known_[key] = value->node;
  return *value;
}

/// A sum of positive numbers, of which a mask of no negative ones keeps at least one.
bool Terms::IsKeptSum(ValueId value) const {
  const Node& sum = node(value);
  if (sum.op->name != "ReduceSum" || !Is(sum.inputs[0], "Mul")) return false;
  const Shape& shape = this->shape(sum.inputs[0]);
  for (const size_t k : {0, 1}) {
    const ValueId terms = in(sum.inputs[0], k), mask = in(sum.inputs[0], 1 - k);
    if (!IsPositive(terms) || !IsNonNegative(mask) || !IsConstant(node(mask))) continue;
    const Tensor& kept = ConstantValue(node(mask));
    const size_t skip = shape.size() - kept.shape().size();
    Shape strides = RowMajorStrides(kept.shape());
    for (const int64_t axis : sum.attrs.IntList("axes")) {
      if (static_cast<size_t>(axis) >= skip) strides[static_cast<size_t>(axis) - skip] = 0;
    }
    std::set<int64_t> rows, kept_rows;
    for (int64_t flat = 0; flat < kept.size(); ++flat) {
      int64_t row = 0, rest = flat;
      for (size_t d = strides.size(); d-- > 0; rest /= kept.shape()[d])
        row += rest % kept.shape()[d] * strides[d];
      rows.insert(row);
      if (kept.DoubleAt(flat) > 0) kept_rows.insert(row);
    }
    if (!rows.empty() && rows == kept_rows && NumElements(shape) > 0) return true;
  }
  return false;
}

Sign Terms::StructuralSign(ValueId value) const {
  if (IsKeptSum(value)) return Sign::kPositive;
  // x - min(x, 0) and min(x, 0) have no sign rule of their own: Relu(x) - x is never negative.
  const Node& difference = node(value);
  if (difference.op->name != "Sub" || !IsFloat(difference.outputs[0].dtype)) return Sign::kUnknown;
  const Node& minuend = node(difference.inputs[0]);
  return minuend.op->name == "Relu" && minuend.inputs[0] == difference.inputs[1]
             ? Sign::kNonNegative
             : Sign::kUnknown;
}

bool Terms::DefinedHere(const Node& node, std::span<const TensorType> types,
                        std::span<const Sign> signs) const {
  if (IsConstant(node)) return KnownAll(node, WeightMode::kExact, [](double) { return true; });
  if (!std::all_of(node.inputs.begin(), node.inputs.end(),
                   [&](ValueId input) { return IsDefined(input); }))
    return false;
  const auto operand = [&](size_t k) -> const Node& { return this->node(node.inputs[k]); };
  return IsDefinedEverywhere({types, node.attrs, node.outputs}, node, signs, operand, weights_);
}

void Terms::Describe(int32_t id) {
  if (static_cast<size_t>(id) < signs_.size()) return;  // a literal met before
  const Node& node = builder_.node(id);
  const std::vector<TensorType> types = InputTypes({id, 0});
  std::vector<Sign> signs;
  for (ValueId input : node.inputs) signs.push_back(sign(input));
  const bool one_operand =
      !node.inputs.empty() && std::all_of(node.inputs.begin(), node.inputs.end(),
                                          [&](ValueId v) { return v == node.inputs[0]; });
  const Sign sign = SignOfNode(node, types, signs, one_operand, weights_);
  signs_.push_back(std::max(sign, StructuralSign({id, 0})));
  defined_.push_back(DefinedHere(node, types, signs));
  KeyedHash hash({0, 0});
  hash.Add(node.op->name);
  if (IsConstant(node)) {
    const Tensor& value = ConstantValue(node);
    hash.Add(TypeString(value.type()));
    if (weights_ == WeightMode::kSymbolic && !SymbolName(node).empty()) {
      hash.Add(SymbolName(node));
    } else {
      const auto bytes = value.bytes().first(std::min(kSampledBytes, value.bytes().size()));
      hash.Add(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    }
  } else {
    hash.Add(PrintAttributes(node.attrs));
  }
  for (ValueId input : node.inputs) {
    AddHash(hash, this->hash(input));
    hash.Add(static_cast<uint64_t>(input.output));
  }
  hashes_.push_back(hash.Finish());
}

absl::StatusOr<Graph> Terms::Finish() {
  MENDEL_RETURN_IF_ERROR(status_);
  return builder_.Build();
}

}  // namespace mendel
