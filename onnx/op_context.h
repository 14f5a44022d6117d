// One ONNX node while its operator is imported, and the registry of operators (plug-in folder
// onnx/ops).
//
// An import function reads inputs and attributes from the context, emits nodes of the language and
// sets the outputs. Attributes that it does not request are refused afterwards, so that nothing is
// silently ignored. Operators without an entry are taken one to one: same name, same inputs, same
// attributes.
#ifndef MENDEL_ONNX_OP_CONTEXT_H_
#define MENDEL_ONNX_OP_CONTEXT_H_

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status.h"
#include "graph/graph.h"
#include "onnx/importer.h"

namespace mendel {

class OpContext {
 public:
  OpContext(Importer& importer, const onnx::NodeProto& node,
            std::vector<std::optional<ValueId>> inputs, Scope& scope, const Frame& frame,
            int64_t version);

  const std::string& op() const { return node_.op_type(); }
  /// The opset that last changed the operator, at most the model's; 1 outside the standard domain.
  int64_t version() const { return version_; }
  const onnx::NodeProto& node() const { return node_; }

  // Inputs. Trailing absent inputs do not count.
  int input_count() const { return static_cast<int>(inputs_.size()); }
  bool Has(int k) const { return k < input_count() && inputs_[static_cast<size_t>(k)].has_value(); }
  /// CHECK-fails when absent; the registry's minimum counts as present.
  ValueId In(int k) const;
  /// All inputs; Unimplemented when one in the middle is absent.
  absl::StatusOr<std::vector<ValueId>> AllInputs() const;

  // Values. A value that a failed Formula returned (formula.h) is an f32 of rank 0; nodes that read
  // it are errors.
  const TensorType& type(ValueId value) const;
  const Shape& shape(ValueId value) const { return type(value).shape; }
  int64_t rank(ValueId value) const { return static_cast<int64_t>(shape(value).size()); }
  /// The elements where `value` depends on constants alone, else null.
  const Tensor* ConstantOf(ValueId value) const;
  /// Integers of input `k`; Unimplemented with a hint when it is not a constant.
  absl::StatusOr<Ints> ConstantInts(int k, std::string_view what) const;
  absl::StatusOr<int64_t> ConstantInt(int k, std::string_view what) const;
  /// ConstantInts for a float or integral input.
  absl::StatusOr<std::vector<double>> ConstantDoubles(int k, std::string_view what) const;
  /// The attribute `name` when present, else constant input `k` when present (opsets moved many
  /// from one to the other).
  absl::StatusOr<std::optional<Ints>> AttributeOrInput(std::string_view name, int k);
  absl::StatusOr<int64_t> Axis(int64_t axis, int64_t rank) const;

  // Attributes. A query marks them as known. A wrong kind is reported when the import ends.
  bool HasAttribute(std::string_view name) const { return Find(name) != nullptr; }
  int64_t Int(std::string_view name, int64_t fallback);
  double Float(std::string_view name, double fallback);
  std::string Str(std::string_view name, std::string_view fallback);
  std::optional<Ints> IntList(std::string_view name);
  std::optional<std::vector<double>> FloatList(std::string_view name);
  absl::StatusOr<std::optional<Tensor>> TensorAttribute(std::string_view name);
  const onnx::GraphProto* GraphAttribute(std::string_view name);
  /// Accepts and ignores an attribute without meaning for inference.
  void Ignore(std::string_view name) { known_.insert(std::string(name)); }
  /// OK when all attributes of the node were requested and had the right kinds.
  absl::Status CheckAttributes() const;

  /// Notes how a number of the program and a size are related (size_relations.h).
  void NoteRelation(std::string_view what, int64_t number, int64_t size) {
    SizeRelations* relations = importer_.size_relations();
    if (relations == nullptr) return;
    AddSizeRelation(Cat(relation_name_, " ", what), number, size, *relations);
    if (frame_.in_step) AddSizeRelation(Cat("step ", name_, " ", what), number, size, *relations);
  }

  /// Notes whether a number of things is none, one, two or more.
  void NoteCount(std::string_view what, int64_t count) {
    for (const int64_t first : {1, 2}) NoteRelation(Cat(what, " to ", first), count, first);
  }

  // Emitting. Nodes over known small constants are evaluated at once.
  absl::StatusOr<std::vector<ValueId>> EmitAll(std::string_view op, std::vector<ValueId> inputs,
                                               Attributes attrs = {});
  absl::StatusOr<ValueId> Emit(std::string_view op, std::vector<ValueId> inputs,
                               Attributes attrs = {});
  /// Shape-preserving conveniences that emit nothing when there is nothing to do.
  absl::StatusOr<ValueId> Reshape(ValueId value, Shape shape);
  absl::StatusOr<ValueId> Transpose(ValueId value, Ints perm);
  absl::StatusOr<ValueId> Cast(ValueId value, DType dtype);
  /// A literal.
  ValueId Literal(Tensor value) { return importer_.builder().Constant(std::move(value)); }
  ValueId ScalarLike(ValueId value, double element) {
    return Literal(Tensor::Scalar(type(value).dtype, element));
  }
  /// `element` repeated: a literal when small, else an Expand.
  absl::StatusOr<ValueId> Filled(Tensor element, Shape shape);

  // Outputs.
  bool Wants(int k) const { return k < node_.output_size() && !node_.output(k).empty(); }
  absl::Status SetOutput(int k, absl::StatusOr<ValueId> value);
  absl::Status SetOutputs(absl::StatusOr<std::vector<ValueId>> values);
  const std::vector<std::optional<ValueId>>& outputs() const { return outputs_; }

  /// A tensor of an attribute as a value named after output 0.
  absl::StatusOr<ValueId> NamedConstant(Tensor value) {
    return importer_.AddConstant(std::move(value), name_);
  }
  absl::StatusOr<std::vector<ValueId>> Branch(const onnx::GraphProto& graph) {
    const std::string branch = Cat(relation_name_, "/branch ", branches_++, "/");
    return importer_.ImportBranch(graph, scope_, frame_, branch);
  }
  /// See Importer::ImportSteps. Valid while this context lives.
  absl::StatusOr<Importer::Step> Steps(const onnx::GraphProto& graph) {
    return importer_.ImportSteps(graph, scope_, frame_, name_, relation_name_);
  }
  absl::StatusOr<ImportedBody> Body(const onnx::GraphProto& graph,
                                    const std::vector<TensorType>& inputs) {
    return importer_.ImportBody(graph, inputs, scope_, frame_);
  }

 private:
  const onnx::AttributeProto* Find(std::string_view name) const;
  const onnx::AttributeProto* Take(std::string_view name, onnx::AttributeProto::AttributeType kind);

  Importer& importer_;
  const onnx::NodeProto& node_;
  std::vector<std::optional<ValueId>> inputs_;
  Scope& scope_;
  const Frame& frame_;
  int64_t version_;
  std::string name_;           // prefix and name, for nodes and symbols
  std::string relation_name_;  // unique but for the steps of a loop
  int branches_ = 0;
  std::vector<std::optional<ValueId>> outputs_;
  std::set<std::string, std::less<>> known_;
  absl::Status kind_error_;
};

struct OpImport {
  std::string_view name;  ///< name of the operator; "DOMAIN.NAME" outside the standard domain
  int min_inputs = 0;
  int max_inputs = 0;  ///< kVariadic when unlimited
  absl::Status (*import)(OpContext& op) = nullptr;
};

/// Null when the operator has no entry of its own.
const OpImport* FindOpImport(std::string_view name);
/// All entries, sorted by name.
std::vector<const OpImport*> AllOpImports();
/// The default: the operator of the same name in the language, one to one.
absl::Status ImportDirect(OpContext& op);

/// Registers entries before main(); CHECK-fails on duplicates.
struct OpImportRegistrar {
  OpImportRegistrar(std::initializer_list<OpImport> entries);
};

}  // namespace mendel

#endif  // MENDEL_ONNX_OP_CONTEXT_H_
