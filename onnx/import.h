// ONNX models to graphs of the language.
//
// Every opset up to kNewestOpset (op_versions.h), every IR version: a model is refused by what it
// uses, never by a number. Model-local functions are inlined,
// `If` with a constant condition takes its branch, another one selects between both, shape
// computations are folded, operator inputs that the language wants as attributes (shapes, axes,
// pads) must come out constant. Everything else is refused with one sentence that names the node:
// InvalidArgument for malformed models, Unimplemented for well-formed ones outside the language.
//
// Weights are never copied into one message. Raw and external tensor data stay in the memory-mapped
// file (where aligned), so the files must not change while the graph lives.
#ifndef MENDEL_ONNX_IMPORT_H_
#define MENDEL_ONNX_IMPORT_H_

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/tensor.h"
#include "onnx/size_relations.h"

namespace mendel {

struct ImportOptions {
  /// Shapes of inputs, which fix symbolic dimensions; an input named here must exist and its fixed
  /// dimensions must agree.
  std::vector<std::pair<std::string, Shape>> shapes;
  /// Inputs that become constants of the graph, by name.
  std::map<std::string, Tensor> bindings;
  /// Sizes of symbolic dimensions that no shape fixes, by name; one without a name is
  /// "INPUT:DIMENSION". Those that are not here are taken as 1.
  std::map<std::string, int64_t> symbol_sizes;
  /// Expressions of float constants whose value their dtype cannot hold stay nodes: programs are
  /// compared by what they mean, not by what one order of rounding makes of it.
  bool keep_inexact_constants = false;
  /// The result's size_relations are filled.
  bool size_relations = false;
  /// Values of the main graph that depend on inputs become outputs, too, under their own names, in
  /// the order of their nodes and after the model's outputs.
  bool every_value = false;
  /// If only one branch of an If suits the shapes, the input that decides is bound to the one
  /// integer of the model's own comparisons with which it imports. A notice names it, and the graph
  /// lacks the input. Programs that are compared must not be narrowed so.
  bool choose_deciding = false;
  /// For tests: this many operators of graph/ops are emitted, and the next one is an error.
  std::optional<int64_t> failing_node;
  /// The import ends with Cancelled soon after it becomes true.
  const std::atomic<bool>* interrupted = nullptr;
};

/// A dimension of an input that neither the model nor a shape fixes.
struct OpenDimension {
  std::string input;
  size_t dimension = 0;
  std::string name;  ///< as in ImportOptions::symbol_sizes
};

struct ImportResult {
  Graph graph;
  /// Decisions of the importer in the user's place, one sentence each.
  std::vector<std::string> notices;
  /// Symbolic dimensions that no shape fixes, as in ImportOptions::symbol_sizes.
  std::set<std::string> open_dimensions;
  /// Dimensions that were taken as 1. The error of a failed import names them and proposes shapes
  /// that import.
  std::vector<OpenDimension> taken_as_one;
  /// Relations of sizes that the import found (ImportOptions::size_relations).
  SizeRelations size_relations;
  TableReads table_reads;  ///< likewise
  /// SHA-256 of the model file (external data not included), 64 hexadecimal digits.
  std::string model_hash;
};

/// A model that is parsed once and imported for any number of shapes. Threads may share it; copies
/// refer to one parsed model. Graphs keep what they need of it.
class OnnxModel {
 public:
  /// Parses the file at `path`, which must not change while the model or a graph of it lives.
  static absl::StatusOr<OnnxModel> Read(const std::string& path);
  /// `bytes` are copied. `external_data_directory` empty: external data is refused.
  static absl::StatusOr<OnnxModel> Parse(std::string_view bytes,
                                         const std::string& external_data_directory);

  absl::StatusOr<ImportResult> Import(const ImportOptions& options) const;
  /// The names of the declared inputs, in order, without those that initializers set.
  std::vector<std::string> inputs() const;
  /// Inputs of one element that alone decide which branches are taken (deciding_inputs.h).
  std::map<std::string, TensorType> deciding_inputs() const;
  /// The import with `deciding`, values of deciding inputs, as ImportOptions::bindings if the model
  /// does not import without: one of its branches does not suit the shapes. `bound` receives the
  /// names of the inputs that the graph then lacks. Without all values, the error of Import.
  absl::StatusOr<ImportResult> ImportDecided(ImportOptions options,
                                             const std::map<std::string, Tensor>& deciding,
                                             std::set<std::string>& bound) const;
  /// ImportResult::model_hash.
  const std::string& hash() const;

 private:
  struct Parsed;
  absl::StatusOr<ImportResult> ImportAsGiven(const ImportOptions& options) const;
  absl::StatusOr<ImportResult> ImportChosen(const ImportOptions& options) const;
  explicit OnnxModel(std::shared_ptr<const Parsed> parsed) : parsed_(std::move(parsed)) {}

  std::shared_ptr<const Parsed> parsed_;
};

/// OnnxModel, imported once.
absl::StatusOr<ImportResult> ImportOnnxFile(const std::string& path,
                                            const ImportOptions& options = {});

absl::StatusOr<ImportResult> ImportOnnxBytes(std::string_view bytes,
                                             const std::string& external_data_directory,
                                             const ImportOptions& options = {});

/// trtexec's grammar: "input:8x3x224x224,mask:1x5"; "x:scalar" or "x:" is rank 0. Names may contain
/// colons.
absl::StatusOr<std::vector<std::pair<std::string, Shape>>> ParseShapes(std::string_view text);

}  // namespace mendel

#endif  // MENDEL_ONNX_IMPORT_H_
