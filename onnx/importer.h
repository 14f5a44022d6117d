// The state of one import: the graph being built, named values in nested scopes, and the walk over nodes.
#ifndef MENDEL_ONNX_IMPORTER_H_
#define MENDEL_ONNX_IMPORTER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "onnx/import.h"
#include "onnx/mapped_file.h"
#include "onnx/model_reader.h"

namespace mendel {

/// What a name stands for: a value, a tensor that nothing has read yet, an optional input that the caller of a function left
/// out, or something that does not exist.
struct NamedValue {
  std::optional<ValueId> value;
  const onnx::TensorProto* initializer = nullptr;  ///< not decoded before it is read, so that unused ones may be of any dtype
  std::string missing;                             ///< why the value does not exist, when something reads it
  bool absent = false;
};

/// Names of one graph or function body; a subgraph sees the names of the graph around it.
struct Scope {
  Scope* outer = nullptr;
  std::map<std::string, NamedValue, std::less<>> values;
};

/// The body that nodes are imported from: the main graph or one call of a model-local function.
struct Frame {
  int64_t opset = 0;
  /// The calling node's attributes and the function's defaults, for attributes that refer to them; null in the main graph.
  const std::map<std::string, const onnx::AttributeProto*>* arguments = nullptr;
  std::string prefix;  ///< before node and symbol names, ends in '/' when not empty
  int depth = 0;       ///< of nested calls and branches
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
  /// A literal for integral tensors and single elements, else a symbol with a unique form of `name`.
  absl::StatusOr<ValueId> AddConstant(Tensor value, const std::string& name);
  /// A branch of `If`: its outputs, computed in a scope within `scope`.
  absl::StatusOr<std::vector<ValueId>> ImportBranch(const onnx::GraphProto& graph, Scope& scope, const Frame& frame);
  void Notice(std::string sentence) { notices_.push_back(std::move(sentence)); }

 private:
  using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

  absl::Status ImportInputs(Scope& scope);
  absl::Status DeclareInitializers(const onnx::GraphProto& graph, Scope& scope);
  absl::Status ImportNodes(const Nodes& nodes, const std::vector<bool>& needed, Scope& scope, const Frame& frame);
  absl::Status ImportNode(const onnx::NodeProto& node, Scope& scope, const Frame& frame);
  absl::Status ImportOperator(const onnx::NodeProto& node, const std::string& label,
                              const std::vector<std::optional<ValueId>>& inputs, Scope& scope, const Frame& frame);
  absl::Status CallFunction(const onnx::NodeProto& node, const onnx::FunctionProto& function,
                            const std::vector<std::optional<ValueId>>& inputs, Scope& scope, const Frame& frame);
  const onnx::FunctionProto* FindFunction(const onnx::NodeProto& node) const;
  /// The value, or nothing for an absent one.
  absl::StatusOr<std::optional<ValueId>> ReadOptional(const std::string& name, Scope& scope, const Frame& frame);
  absl::StatusOr<ValueId> Read(const std::string& name, Scope& scope, const Frame& frame);
  absl::Status Define(const std::string& name, NamedValue value, Scope& scope);

  const ModelFile& file_;
  const ImportOptions& options_;
  ExternalFiles external_;
  GraphBuilder builder_;
  std::map<std::string, const onnx::FunctionProto*> functions_;  // by domain, name and overload
  std::set<std::string> symbols_;
  std::vector<std::string> notices_;
  int64_t imported_nodes_ = 0;
};

/// Declares the graph's inputs in `builder` (or constants for bound ones) in `scope`. See ImportOptions for shapes and bindings.
struct ResolvedInput {
  std::string name;
  TensorType type;
};
/// Types of the inputs that `graph` declares and that are neither initializers nor bound, with symbolic dimensions fixed.
absl::StatusOr<std::vector<ResolvedInput>> ResolveInputs(const onnx::GraphProto& graph, const ImportOptions& options,
                                                         std::vector<std::string>& notices);

/// Which nodes the outputs of `graph` need.
std::vector<bool> NeededNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, std::set<std::string> wanted);

/// The outputs of node `id` if all its inputs are known and the result is small or integral; empty when it stays a node.
std::vector<Tensor> FoldNode(const GraphBuilder& builder, int32_t id);

}  // namespace mendel

#endif  // MENDEL_ONNX_IMPORTER_H_
