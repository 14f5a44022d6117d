// The state of one import: the graph being built, named values in nested scopes, and the walk over
// nodes.
#ifndef MENDEL_ONNX_IMPORTER_H_
#define MENDEL_ONNX_IMPORTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "onnx/import.h"
#include "onnx/interface.h"
#include "onnx/mapped_file.h"
#include "onnx/model_reader.h"

namespace mendel {

/// The meaning of a name: a value, a tensor that nothing has read yet, an optional input that the
/// caller of a function left out, or something that does not exist.
struct NamedValue {
  std::optional<ValueId> value;
  /// Not decoded before it is read, so that unused ones may be of any dtype.
  const onnx::TensorProto* initializer = nullptr;
  std::string missing;  ///< why the value does not exist, when something reads it
  bool absent = false;
  /// The elements in bytes, if an initializer has 2 or 4 bits an element.
  std::optional<ValueId> unpacked = {};
};

/// Names of one graph or function body; a subgraph sees the names of the graph around it.
struct Scope {
  Scope* outer = nullptr;
  std::map<std::string, NamedValue, std::less<>> values;
};

/// The body that nodes are imported from: the main graph or one call of a model-local function.
struct Frame {
  int64_t opset = 0;
  /// The calling node's attributes and the function's defaults, for attributes that refer to them;
  /// null in the main graph.
  const std::map<std::string, const onnx::AttributeProto*>* arguments = nullptr;
  std::string prefix;  ///< before node and symbol names, ends in '/' when not empty
  /// The same for all steps of a loop: a prefix of keys of size relations.
  std::string relation_prefix;
  bool in_step = false;  ///< of a loop that is written step by step
  int depth = 0;         ///< depth of nested calls and branches
};

/// The body of a loop, and the values around it that its last inputs stand for.
struct ImportedBody {
  Graph body;
  std::vector<ValueId> invariants;
};

class Importer {
 public:
  /// All arguments must outlive the importer.
  Importer(const ModelFile& file, const ImportOptions& options, std::string directory);

  absl::StatusOr<ImportResult> Run();

  // For operators (op_context.h):

  GraphBuilder& builder() { return builder_; }
  /// Decodes a tensor of the model; messages do not name it.
  absl::StatusOr<Tensor> Decode(const onnx::TensorProto& proto);
  /// A literal for integral tensors and single elements, else a symbol with a unique form of
  /// `name`.
  absl::StatusOr<ValueId> AddConstant(Tensor value, const std::string& name);
  /// A branch of `If`: its outputs, computed in a scope within `scope`.
  /// `relation_prefix`: Frame's, of this branch alone.
  absl::StatusOr<std::vector<ValueId>> ImportBranch(const onnx::GraphProto& graph, Scope& scope,
                                                    const Frame& frame,
                                                    std::string relation_prefix);
  /// Imports one step of a loop: the body's outputs for these inputs.
  using Step = std::function<absl::StatusOr<std::vector<ValueId>>(std::vector<ValueId>)>;
  /// Steps of a body that are imported one after the other. They share the body's initializers.
  /// `scope` and `frame` must outlive the result.
  absl::StatusOr<Step> ImportSteps(const onnx::GraphProto& graph, Scope& scope, const Frame& frame,
                                   const std::string& name, const std::string& relation_name);
  /// The body of a loop over formal inputs of these types; what it reads from `scope`, and what
  /// depends on that alone, is computed around the loop.
  absl::StatusOr<ImportedBody> ImportBody(const onnx::GraphProto& graph,
                                          const std::vector<TensorType>& inputs, Scope& scope,
                                          const Frame& frame);
  /// The value where it depends on constants alone, evaluated in doubles and rounded into its dtype
  /// node by node; null where it does not, or is too much work. Valid until the import ends.
  const Tensor* Evaluated(ValueId value);
  bool folds_only_exactly() const { return options_.keep_inexact_constants; }
  /// Null unless ImportOptions::size_relations is set.
  SizeRelations* size_relations() {
    return options_.size_relations ? &result_.size_relations : nullptr;
  }
  TableReads& table_reads() { return result_.table_reads; }
  /// Counts the nodes; an error at ImportOptions::failing_node.
  absl::Status CountNode();
  void Notice(std::string sentence) { result_.notices.push_back(std::move(sentence)); }

  /// The decisions up to here, for the error of a failed import.
  const ImportResult& result() const { return result_; }

 private:
  using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

  absl::Status ImportInputs(Scope& scope);
  /// ImportOptions::every_value.
  void AddEveryValue(const Nodes& nodes, const std::set<std::string>& outputs, const Scope& scope);
  absl::Status DeclareInitializers(const onnx::GraphProto& graph, Scope& scope);
  /// Imports the nodes of a branch or body; returns its outputs.
  absl::StatusOr<std::vector<ValueId>> ImportOutputs(const onnx::GraphProto& graph, Scope& inner,
                                                     const Frame& frame);
  absl::Status ImportNodes(const Nodes& nodes, const std::vector<bool>& needed, Scope& scope,
                           const Frame& frame);
  absl::Status ImportNode(const onnx::NodeProto& node, Scope& scope, const Frame& frame);
  absl::Status ImportOperator(const onnx::NodeProto& node, const std::string& label,
                              const std::vector<std::optional<ValueId>>& inputs, Scope& scope,
                              const Frame& frame);
  absl::Status CallFunction(const onnx::NodeProto& node, const onnx::FunctionProto& function,
                            const std::vector<std::optional<ValueId>>& inputs, Scope& scope,
                            const Frame& frame);
  const onnx::FunctionProto* FindFunction(const onnx::NodeProto& node) const;
  /// The value, or nothing for an absent one.
  absl::StatusOr<std::optional<ValueId>> ReadOptional(const std::string& name, Scope& scope,
                                                      const Frame& frame);
  /// The value of an initializer of 2 or 4 bits (tensor_decode.h); nothing where it is none.
  absl::StatusOr<std::optional<ValueId>> ReadPacked(const std::string& name, Scope& scope,
                                                    const Frame& frame);
  absl::StatusOr<ValueId> Read(const std::string& name, Scope& scope, const Frame& frame);
  absl::Status Define(const std::string& name, NamedValue value, Scope& scope);
  /// Makes names of `scope`, and the initializers of `graph`, inputs of the body that is being
  /// built in `body`; `outer` receives their values around it.
  absl::Status CaptureNames(const onnx::GraphProto& graph, Scope& scope, const Frame& frame,
                            GraphBuilder& body, Scope& inner, std::map<ValueId, ValueId>& outer);

  const ModelFile& file_;
  const ImportOptions& options_;
  ExternalFiles external_;
  GraphBuilder builder_;
  std::map<std::string, const onnx::FunctionProto*> functions_;  // by domain, name and overload
  std::set<std::string> symbols_;
  std::map<int32_t, std::vector<Tensor>> evaluated_;  // by node; empty: not of constants alone
  ImportResult result_;
  int64_t added_nodes_ = 0;
  int64_t imported_nodes_ = 0;
};

/// Declares the graph's inputs in `builder` (or constants for bound ones) in `scope`. See
/// ImportOptions for shapes and bindings.
struct ResolvedInput {
  std::string name;
  TensorType type;
};
/// Types of the inputs that `graph` declares and that are neither initializers nor bound, with
/// symbolic dimensions fixed. Adds notices and open dimensions to `imported`.
absl::StatusOr<std::vector<ResolvedInput>> ResolveInputs(const onnx::GraphProto& graph,
                                                         const ImportOptions& options,
                                                         ImportResult& imported);

/// The declaration of an input or output (`kind`, for errors).
absl::StatusOr<DeclaredValue> ReadDeclaration(const onnx::ValueInfoProto& info,
                                              std::string_view kind);
/// The names that `graph` reads from the graphs around it.
std::set<std::string> FreeNames(const onnx::GraphProto& graph);

/// The nodes that the outputs of `graph` need.
std::vector<bool> NeededNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                              std::set<std::string> wanted);

/// Returns the outputs of node `id` if all its inputs are known and the result is small or
/// integral; empty when it stays a node. `only_exact`: also where a float result had to be rounded.
std::vector<Tensor> FoldNode(const GraphBuilder& builder, int32_t id, bool only_exact);

}  // namespace mendel

#endif  // MENDEL_ONNX_IMPORTER_H_
