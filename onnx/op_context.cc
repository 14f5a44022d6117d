#include "onnx/op_context.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "graph/op_helpers.h"
#include "onnx/tensor_decode.h"

namespace mendel {
namespace {

/// Larger attribute values have no use and would overflow the geometry of windows (slices clamp
/// theirs first).
constexpr int64_t kMaxAttribute = int64_t{1} << 40;

std::map<std::string_view, OpImport>& Registry() {
  static auto& registry = *new std::map<std::string_view, OpImport>();
  return registry;
}

bool TooLarge(int64_t value) { return value > kMaxAttribute || value < -kMaxAttribute; }

/// Attributes that ONNX specifies as 0 or 1. Evaluators disagree about other numbers: some take
/// them for true, some for false.
bool IsFlag(std::string_view name) {
  static constexpr std::string_view kFlags =
      " align_corners allowzero antialias ceil_mode count_include_pad detect_negative "
      "detect_positive exclude_outside exclusive fmod input_forget interleaved inverse is_causal "
      "is_packed_batching keepdims largest layout linear_before_reset noop_with_empty_axes "
      "onesided periodic reverse saturate select_last_index sorted storage_order training_mode "
      "upper ";
  return kFlags.find(Cat(" ", name, " ")) != std::string_view::npos;
}

}  // namespace

OpImportRegistrar::OpImportRegistrar(std::initializer_list<OpImport> entries) {
  for (const OpImport& entry : entries) MENDEL_CHECK(Registry().emplace(entry.name, entry).second);
}

const OpImport* FindOpImport(std::string_view name) {
  const auto found = Registry().find(name);
  return found == Registry().end() ? nullptr : &found->second;
}

std::vector<const OpImport*> AllOpImports() {
  std::vector<const OpImport*> all;
  for (const auto& [name, entry] : Registry()) all.push_back(&entry);
  return all;
}

OpContext::OpContext(Importer& importer, const onnx::NodeProto& node,
                     std::vector<std::optional<ValueId>> inputs, Scope& scope, const Frame& frame,
                     int64_t version)
    : importer_(importer),
      node_(node),
      inputs_(std::move(inputs)),
      scope_(scope),
      frame_(frame),
      version_(version) {
  while (!inputs_.empty() && !inputs_.back().has_value()) inputs_.pop_back();
  const std::string& fallback = node.output_size() > 0 ? node.output(0) : node.name();
  const std::string& name = node.name().empty() ? fallback : node.name();
  name_ = frame.prefix + name;
  relation_name_ = frame.relation_prefix + fallback;
}

ValueId OpContext::In(int k) const {
  MENDEL_CHECK(Has(k));
  return *inputs_[static_cast<size_t>(k)];
}

absl::StatusOr<std::vector<ValueId>> OpContext::AllInputs() const {
  std::vector<ValueId> values;
  for (size_t k = 0; k < inputs_.size(); ++k) {
    if (!inputs_[k].has_value()) return Unsupported("input ", k, " is left out");
    values.push_back(*inputs_[k]);
  }
  return values;
}

const TensorType& OpContext::type(ValueId value) const {
  static const auto& none = *new TensorType{DType::kF32, {}};
  return value.node < 0 ? none : importer_.builder().type(value);
}

const Tensor* OpContext::ConstantOf(ValueId value) const {
  return value.node < 0 ? nullptr : importer_.Evaluated(value);
}

absl::StatusOr<Ints> OpContext::ConstantInts(int k, std::string_view what) const {
  if (!Has(k)) return InvalidInput("needs ", what, " as input ", k);
  const Tensor* tensor = ConstantOf(In(k));
  if (tensor == nullptr) {
    return Unsupported("the ", what, " depend", what.back() == 's' ? "" : "s",
                       " on run-time values; --bind NAME=file.npy can fix an input");
  }
  if (!IsIntegral(tensor->dtype()))
    return InvalidInput("the ", what, " must be integers, not ", DTypeName(tensor->dtype()));
  if (tensor->size() > (int64_t{1} << 22))
    return Unsupported("the ", what, " have more than 2^22 elements");
  return tensor->ToInts();
}

absl::StatusOr<int64_t> OpContext::ConstantInt(int k, std::string_view what) const {
  MENDEL_ASSIGN_OR_RETURN(const Ints values, ConstantInts(k, what));
  if (values.size() != 1)
    return InvalidInput("the ", what, " must be one integer, not ", values.size());
  return values[0];
}

absl::StatusOr<std::vector<double>> OpContext::ConstantDoubles(int k, std::string_view what) const {
  if (!Has(k)) return InvalidInput("needs ", what, " as input ", k);
  const Tensor* tensor = ConstantOf(In(k));
  if (tensor == nullptr) {
    return Unsupported("the ", what, " depend", what.back() == 's' ? "" : "s",
                       " on run-time values; --bind NAME=file.npy can fix an input");
  }
  if (tensor->size() > (int64_t{1} << 22))
    return Unsupported("the ", what, " have more than 2^22 elements");
  return tensor->ToDoubles();
}

absl::StatusOr<std::optional<Ints>> OpContext::AttributeOrInput(std::string_view name, int k) {
  if (HasAttribute(name)) return IntList(name);
  if (!Has(k)) return std::optional<Ints>();
  MENDEL_ASSIGN_OR_RETURN(Ints values, ConstantInts(k, name));
  return std::optional<Ints>(std::move(values));
}

absl::StatusOr<int64_t> OpContext::Axis(int64_t axis, int64_t rank) const {
  return NormalizeAxis(axis, static_cast<size_t>(rank));
}

const onnx::AttributeProto* OpContext::Find(std::string_view name) const {
  for (const onnx::AttributeProto& attribute : node_.attribute()) {
    if (attribute.name() == name) return &attribute;
  }
  return nullptr;
}

const onnx::AttributeProto* OpContext::Take(std::string_view name,
                                            onnx::AttributeProto::AttributeType kind) {
  known_.insert(std::string(name));
  const onnx::AttributeProto* attribute = Find(name);
  if (attribute == nullptr) return nullptr;
  if (attribute->type() == kind) return attribute;
  if (kind_error_.ok()) kind_error_ = InvalidInput("attribute '", name, "' is of the wrong kind");
  return nullptr;
}

int64_t OpContext::Int(std::string_view name, int64_t fallback) {
  const onnx::AttributeProto* attribute = Take(name, onnx::AttributeProto::INT);
  if (attribute == nullptr) return fallback;
  if (IsFlag(name) && attribute->i() != 0 && attribute->i() != 1 && kind_error_.ok()) {
    kind_error_ = InvalidInput("attribute '", name, "' must be 0 or 1, not ", attribute->i());
    return fallback;
  }
  if (!TooLarge(attribute->i())) return attribute->i();
  if (kind_error_.ok())
    kind_error_ = InvalidInput("attribute '", name, "' is ", attribute->i(), ", beyond 2^40");
  return fallback;
}

double OpContext::Float(std::string_view name, double fallback) {
  const onnx::AttributeProto* attribute = Take(name, onnx::AttributeProto::FLOAT);
  return attribute == nullptr ? fallback : static_cast<double>(attribute->f());
}

std::string OpContext::Str(std::string_view name, std::string_view fallback) {
  const onnx::AttributeProto* attribute = Take(name, onnx::AttributeProto::STRING);
  return attribute == nullptr ? std::string(fallback) : attribute->s();
}

std::optional<Ints> OpContext::IntList(std::string_view name) {
  const onnx::AttributeProto* attribute = Take(name, onnx::AttributeProto::INTS);
  if (attribute == nullptr) return std::nullopt;
  return Ints(attribute->ints().begin(), attribute->ints().end());
}

std::optional<std::vector<double>> OpContext::FloatList(std::string_view name) {
  const onnx::AttributeProto* attribute = Take(name, onnx::AttributeProto::FLOATS);
  if (attribute == nullptr) return std::nullopt;
  return std::vector<double>(attribute->floats().begin(), attribute->floats().end());
}

absl::StatusOr<std::optional<Tensor>> OpContext::TensorAttribute(std::string_view name) {
  const onnx::AttributeProto* attribute = Take(name, onnx::AttributeProto::TENSOR);
  if (attribute == nullptr) return std::optional<Tensor>();
  auto tensor = importer_.Decode(attribute->t());
  if (!tensor.ok()) return Annotate(tensor.status(), Cat("attribute '", name, "'"));
  return std::optional<Tensor>(*std::move(tensor));
}

const onnx::GraphProto* OpContext::GraphAttribute(std::string_view name) {
  const onnx::AttributeProto* attribute = Take(name, onnx::AttributeProto::GRAPH);
  return attribute == nullptr ? nullptr : &attribute->g();
}

absl::Status OpContext::CheckAttributes() const {
  std::set<std::string_view> seen;
  for (const onnx::AttributeProto& attribute : node_.attribute()) {
    if (!seen.insert(attribute.name()).second)
      return InvalidInput("attribute '", attribute.name(), "' is given twice");
    if (known_.count(attribute.name()) == 0)
      return Unsupported("attribute '", attribute.name(), "' is not supported");
  }
  return kind_error_;
}

absl::StatusOr<std::vector<ValueId>> OpContext::EmitAll(std::string_view op,
                                                        std::vector<ValueId> inputs,
                                                        Attributes attrs) {
  MENDEL_RETURN_IF_ERROR(kind_error_);
  MENDEL_RETURN_IF_ERROR(importer_.CountNode());
  GraphBuilder& builder = importer_.builder();
  MENDEL_ASSIGN_OR_RETURN(const int32_t id,
                          builder.AddNode(op, std::move(inputs), std::move(attrs), name_));
  if (SizeRelations* relations = importer_.size_relations(); relations != nullptr) {
    const auto constant = [&](ValueId value) { return importer_.Evaluated(value); };
    AddSizeRelations(builder, id, relation_name_, constant, *relations);
    AddEmitted(relation_name_, op, *relations);
    AddTableReads(builder, id, relation_name_, constant, importer_.table_reads());
    // A step alone: what one step compares hides no change of another.
    if (frame_.in_step) AddSizeRelations(builder, id, Cat("step ", name_), constant, *relations);
  }
  std::vector<ValueId> values;
  for (Tensor& tensor : FoldNode(builder, id, importer_.folds_only_exactly()))
    values.push_back(builder.Constant(std::move(tensor)));
  if (!values.empty()) return values;
  for (size_t k = 0; k < builder.node(id).outputs.size(); ++k)
    values.push_back({id, static_cast<int32_t>(k)});
  return values;
}

absl::StatusOr<ValueId> OpContext::Emit(std::string_view op, std::vector<ValueId> inputs,
                                        Attributes attrs) {
  MENDEL_ASSIGN_OR_RETURN(const std::vector<ValueId> values,
                          EmitAll(op, std::move(inputs), std::move(attrs)));
  if (values.size() != 1)
    return InternalError("operator ", op, " has ", values.size(), " outputs, not one");
  return values[0];
}

absl::StatusOr<ValueId> OpContext::Reshape(ValueId value, Shape shape) {
  if (this->shape(value) == shape) return value;
  return Emit("Reshape", {value}, {{"shape", std::move(shape)}});
}

absl::StatusOr<ValueId> OpContext::Transpose(ValueId value, Ints perm) {
  if (std::is_sorted(perm.begin(), perm.end()) && perm.size() == shape(value).size()) {
    bool identity = true;
    for (size_t d = 0; d < perm.size(); ++d)
      identity = identity && perm[d] == static_cast<int64_t>(d);
    if (identity) return value;
  }
  return Emit("Transpose", {value}, {{"perm", std::move(perm)}});
}

absl::StatusOr<ValueId> OpContext::Cast(ValueId value, DType dtype) {
  if (type(value).dtype == dtype) return value;
  return Emit("Cast", {value}, {{"to", std::string(DTypeName(dtype))}});
}

absl::StatusOr<ValueId> OpContext::Filled(Tensor element, Shape shape) {
  MENDEL_RETURN_IF_ERROR(CheckShape(shape));
  const ValueId scalar = Literal(element.Reshaped({}));
  if (shape.empty()) return scalar;
  return Emit("Expand", {scalar}, {{"shape", std::move(shape)}});
}

absl::Status OpContext::SetOutput(int k, absl::StatusOr<ValueId> value) {
  if (!value.ok()) return value.status();
  if (value->node < 0) return InternalError("output ", k, " of ", op(), " was not computed");
  if (outputs_.size() <= static_cast<size_t>(k)) outputs_.resize(static_cast<size_t>(k) + 1);
  outputs_[static_cast<size_t>(k)] = *value;
  return absl::OkStatus();
}

absl::Status OpContext::SetOutputs(absl::StatusOr<std::vector<ValueId>> values) {
  if (!values.ok()) return values.status();
  outputs_.assign(values->begin(), values->end());
  return absl::OkStatus();
}

absl::Status ImportDirect(OpContext& op) {
  const OpDefinition* definition = FindOp(op.op());
  // These stand for things that have no ONNX operator of their name.
  const bool internal = op.op() == "Patch" || op.op() == "Input" || op.op() == "Loop";
  if (definition == nullptr || internal)
    return Unsupported("operator '", op.op(), "' is not supported");
  MENDEL_ASSIGN_OR_RETURN(std::vector<ValueId> inputs, op.AllInputs());
  Attributes attrs;
  for (const AttributeSpec& spec : definition->attributes) {
    if (!op.HasAttribute(spec.name)) continue;
    if (std::holds_alternative<int64_t>(spec.default_value)) {
      attrs.Set(spec.name, op.Int(spec.name, 0));
    } else if (std::holds_alternative<double>(spec.default_value)) {
      attrs.Set(spec.name, op.Float(spec.name, 0));
    } else if (std::holds_alternative<std::string>(spec.default_value)) {
      attrs.Set(spec.name, op.Str(spec.name, ""));
    } else if (std::holds_alternative<Ints>(spec.default_value)) {
      attrs.Set(spec.name, op.IntList(spec.name).value_or(Ints()));
    } else if (std::holds_alternative<std::vector<double>>(spec.default_value)) {
      attrs.Set(spec.name, op.FloatList(spec.name).value_or(std::vector<double>()));
    }
  }
  return op.SetOutputs(op.EmitAll(op.op(), std::move(inputs), std::move(attrs)));
}

}  // namespace mendel
