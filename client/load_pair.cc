#include "client/load_pair.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "client/facts_context.h"
#include "client/format.h"
#include "graph/rewrite.h"
#include "runtime/plan.h"
#include "runtime/plan_file.h"
#include "verifier/compare.h"
#include "verifier/constants.h"

namespace mendel {
namespace {

using Names = std::map<std::string, std::string>;

bool IsPlanSide(const std::string& path, const ModelOptions& import) {
  return !import.bytes.has_value() && IsPlanFile(path);
}

/// Loads a program and adds dimensions that no shape fixes to `open`.
absl::StatusOr<Graph> LoadProgram(const std::string& path, ModelOptions import, Context& context,
                                  std::set<std::string>& open) {
  if (IsPlanSide(path, import)) {
    context.Input(path);
    MENDEL_ASSIGN_OR_RETURN(const Plan plan, ReadPlan(path));
    return plan.graph;
  }
  import.keep_inexact_constants = true;
  absl::StatusOr<ImportResult> model = ImportModel(path, import, context);
  if (!model.ok()) return Annotate(model.status(), path);
  open.merge(model->open_dimensions);
  return std::move(model->graph);
}

absl::StatusOr<Names> ParseNames(const std::vector<std::string>& texts) {
  Names names;
  for (const std::string& text : texts) {
    MENDEL_ASSIGN_OR_RETURN(const auto pair, ParseAssignment(text));
    if (!names.insert(pair).second) return InvalidInput("--map pairs '", pair.first, "' twice");
  }
  return names;
}

/// Options of B's importer: --shapes and --bind name inputs of A.
absl::StatusOr<ModelOptions> OptionsOfB(const ModelOptions& options, const Names& names) {
  const auto renamed = [&](const std::string& name) {
    const auto pair = names.find(name);
    return pair == names.end() ? name : pair->second;
  };
  ModelOptions result;
  for (const std::string& text : options.shapes) {
    MENDEL_ASSIGN_OR_RETURN(const auto shapes, ParseShapes(text));
    for (const auto& [name, shape] : shapes) {
      std::string extents;
      for (int64_t extent : shape) extents += Cat(extents.empty() ? "" : "x", extent);
      result.shapes.push_back(Cat(renamed(name), ":", extents.empty() ? "scalar" : extents));
    }
  }
  for (const std::string& text : options.bindings) {
    MENDEL_ASSIGN_OR_RETURN(const auto assignment, ParseAssignment(text));
    result.bindings.push_back(Cat(renamed(assignment.first), "=", assignment.second));
  }
  return result;
}

/// Options of both importers, and the names that B has for those of A.
struct SideOptions {
  Names names;
  ModelOptions a, b;
};

absl::StatusOr<SideOptions> OptionsOfSides(const PairOptions& options) {
  SideOptions sides;
  MENDEL_ASSIGN_OR_RETURN(sides.names, ParseNames(options.names));
  sides.a = options.import;
  sides.a.bytes = options.a_bytes;
  MENDEL_ASSIGN_OR_RETURN(sides.b, OptionsOfB(options.import, sides.names));
  sides.b.symbol_sizes = options.b_sizes;
  sides.b.bytes = options.b_bytes;
  return sides;
}

/// `graph` with only the outputs at these positions.
absl::StatusOr<Graph> WithOutputs(const Graph& graph, const std::vector<size_t>& positions) {
  GraphBuilder builder(graph.name());
  std::vector<ValueId> inputs;
  for (int32_t id : graph.inputs())
    inputs.push_back(builder.Input(InputName(graph.node(id)), graph.node(id).outputs[0]));
  MENDEL_ASSIGN_OR_RETURN(const std::vector<ValueId> outputs, Inline(graph, inputs, builder));
  for (size_t k : positions) builder.Output(graph.outputs()[k].name, outputs[k]);
  return builder.Build();
}

std::vector<size_t>::difference_type PositionOf(const Graph& graph, const std::string& name) {
  const auto found = std::find_if(graph.outputs().begin(), graph.outputs().end(),
                                  [&](const auto& output) { return output.name == name; });
  return found == graph.outputs().end() ? -1 : found - graph.outputs().begin();
}

absl::Status NoOutput(const char* side, const Graph& graph, const std::string& name) {
  std::string names;
  for (const GraphOutput& output : graph.outputs())
    names += Cat(names.empty() ? "'" : ", '", output.name, "'");
  return InvalidInput(side, " has no output '", name, "'; its outputs are ", names);
}

/// Leaves the wanted outputs of A and, in B, those of the same name (after --map), else of the same
/// position.
absl::Status SelectOutputs(const std::vector<std::string>& wanted, const Names& names, Graph& a,
                           Graph& b) {
  std::vector<size_t> of_a;
  std::vector<size_t> of_b;
  for (const std::string& name : wanted) {
    const auto position = PositionOf(a, name);
    if (position < 0) return NoOutput("A", a, name);
    const auto pair = names.find(name);
    auto twin = PositionOf(b, pair == names.end() ? name : pair->second);
    if (twin < 0 && pair == names.end() && a.outputs().size() == b.outputs().size())
      twin = position;
    if (twin < 0) return NoOutput("B", b, pair == names.end() ? name : pair->second);
    of_a.push_back(static_cast<size_t>(position));
    of_b.push_back(static_cast<size_t>(twin));
  }
  MENDEL_ASSIGN_OR_RETURN(a, WithOutputs(a, of_a));
  MENDEL_ASSIGN_OR_RETURN(b, WithOutputs(b, of_b));
  return absl::OkStatus();
}

/// Declared inputs of a model. None of a plan, and of a model with outputs of no declared type:
/// its dimensions are paired by name alone.
absl::StatusOr<ModelInterface> InterfaceOf(const std::string& path, const ModelOptions& import) {
  if (IsPlanSide(path, import)) return ModelInterface();
  absl::StatusOr<ModelInterface> interface =
      import.bytes.has_value() ? ParseInterface(*import.bytes) : ReadInterface(path);
  return absl::IsUnimplemented(interface.status()) ? ModelInterface() : interface;
}

/// Groups the open dimensions of a pair.
absl::Status GroupDimensions(const PairOptions& options, const SideOptions& sides,
                             const std::map<std::string, std::string>& inputs,
                             const std::set<std::string>& open_a,
                             const std::set<std::string>& open_b, Pair& pair) {
  if (open_a.empty() && open_b.empty()) return absl::OkStatus();
  MENDEL_ASSIGN_OR_RETURN(const ModelInterface a, InterfaceOf(options.a, sides.a));
  MENDEL_ASSIGN_OR_RETURN(const ModelInterface b, InterfaceOf(options.b, sides.b));
  pair.groups = PairDimensions(a, b, inputs, open_a, open_b);
  for (const auto& [first, group] : pair.groups) pair.open.insert(first);
  for (std::string& note : NotesOnGroups(pair.groups)) pair.notes.push_back(std::move(note));
  return absl::OkStatus();
}

/// Adds the relations of one program, whose keys begin with `side`. A plan has one set of sizes.
absl::Status AddRelations(std::string_view side, const std::string& path, ModelOptions import,
                          Context& context, bool& valid, SizeRelations& relations,
                          TableReads& tables, std::vector<Shape>& outputs) {
  valid = true;
  if (IsPlanSide(path, import)) return absl::OkStatus();
  import.keep_inexact_constants = true;
  import.size_relations = true;
  absl::StatusOr<ImportResult> model = ImportModel(path, import, context);
  valid = !absl::IsInvalidArgument(model.status());
  if (!valid) return absl::OkStatus();
  MENDEL_RETURN_IF_ERROR(model.status());
  for (const auto& [key, relation] : model->size_relations) relations[Cat(side, key)] = relation;
  tables = std::move(model->table_reads);
  for (const GraphOutput& output : model->graph.outputs())
    outputs.push_back(model->graph.type(output.value).shape);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Pair> LoadPair(const PairOptions& options, Context& context) {
  std::set<std::string> open_a, open_b;
  MENDEL_ASSIGN_OR_RETURN(SideOptions sides, OptionsOfSides(options));
  MENDEL_ASSIGN_OR_RETURN(Graph a, LoadProgram(options.a, sides.a, context, open_a));
  MENDEL_ASSIGN_OR_RETURN(Graph b, LoadProgram(options.b, sides.b, context, open_b));
  if (!options.outputs.empty())
    MENDEL_RETURN_IF_ERROR(SelectOutputs(options.outputs, sides.names, a, b));
  MENDEL_ASSIGN_OR_RETURN(MatchedModel matched, MatchInterfaces(a, b, sides.names));
  MENDEL_ASSIGN_OR_RETURN(b, HoldEqualWeightsOnce(a, matched.graph));
  Pair pair{std::move(a), std::move(b), std::move(matched.notes), {}, {}};
  MENDEL_RETURN_IF_ERROR(GroupDimensions(options, sides, matched.inputs, open_a, open_b, pair));
  return pair;
}

absl::StatusOr<PairRelations> RelationsOfPair(const PairOptions& options) {
  PairRelations pair;
  FactsContext context;  // nobody hears of the imports that only look for relations
  MENDEL_ASSIGN_OR_RETURN(SideOptions sides, OptionsOfSides(options));
  MENDEL_RETURN_IF_ERROR(AddRelations("A ", options.a, std::move(sides.a), context, pair.valid_a,
                                      pair.relations, pair.tables_a, pair.outputs_a));
  MENDEL_RETURN_IF_ERROR(AddRelations("B ", options.b, std::move(sides.b), context, pair.valid_b,
                                      pair.relations, pair.tables_b, pair.outputs_b));
  return pair;
}

}  // namespace mendel
