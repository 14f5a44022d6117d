#include "verifier/regions/explain_regions.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "verifier/regions/probe.h"
#include "verifier/regions/region_grid.h"
#include "verifier/weights/shared_weights.h"

namespace mendel {
namespace {

/// Breaks and classes of one dimension that are listed; more make a report that nobody reads.
constexpr size_t kMaxListed = 24;

std::string NodeName(const Graph& graph, int32_t id) {
  if (id < 0) return "";
  const Node& node = graph.node(id);
  if (IsInput(node)) return InputName(node);
  if (IsConstant(node) && !SymbolName(node).empty())
    return SymbolName(node).substr(0, SymbolName(node).rfind(' '));
  return node.name.empty() ? Cat("#", id) : node.name;
}

std::string OpName(const Graph& graph, int32_t id) {
  return id < 0 ? "" : std::string(graph.node(id).op->name);
}

/// "x +1 along 2, w still".
std::string DescribeGroup(const Graph& graph, const std::map<int32_t, Step>& group) {
  std::string text;
  for (const auto& [source, step] : group) {
    text += Cat(text.empty() ? "" : ", ", NodeName(graph, source));
    if (step.empty()) text += " still";
    for (size_t d = 0; d < step.size(); ++d) {
      if (step[d] != 0) text += Cat(step[d] > 0 ? " +" : " ", step[d], " along ", d);
    }
  }
  return text.empty() ? "constant" : text;
}

class Explainer {
 public:
  Explainer(const Graph& joint, WeightMode weights)
      : joint_(joint), structures_(AnalyzeStructure(joint, weights)) {}

  void Explain(ValueId a, ValueId b, ExplainedOutput& output) const {
    const ValueStructure& f = At(a);
    const ValueStructure& g = At(b);
    const RegionGrid grid = CompareStructures(f, g);
    const double volume = static_cast<double>(NumElements(output.shape));
    output.by_regions = PaysOff(grid, volume);
    output.regions = grid.Boxes();
    output.probes = output.by_regions ? grid.Probes() : volume;
    output.reasons.assign(grid.unknown.begin(), grid.unknown.end());
    for (size_t d = 0; d < output.shape.size(); ++d)
      output.dims.push_back(Dimension(f, g, grid.dims[d], d));
  }

 private:
  const ValueStructure& At(ValueId value) const {
    return structures_[static_cast<size_t>(value.node)][static_cast<size_t>(value.output)];
  }

  ExplainedDimension Dimension(const ValueStructure& f, const ValueStructure& g,
                               const RegionDim& grid, size_t d) const {
    ExplainedDimension dim;
    dim.extent = f.shape[d];
    dim.period = grid.period;
    dim.probed = grid.Probed();
    for (const ValueStructure* side : {&f, &g}) {
      for (const Break& one : side->breaks[d]) {
        dim.breaks.push_back({one.at, NodeName(joint_, one.cause.node),
                              OpName(joint_, one.cause.node), std::string(one.cause.what)});
      }
    }
    const auto key = [](const ExplainedBreak& one) {
      return std::tie(one.at, one.node, one.op, one.what);
    };
    std::sort(dim.breaks.begin(), dim.breaks.end(),
              [&](const ExplainedBreak& a, const ExplainedBreak& b) { return key(a) < key(b); });
    dim.breaks.erase(std::unique(dim.breaks.begin(), dim.breaks.end(),
                                 [&](const ExplainedBreak& a, const ExplainedBreak& b) {
                                   return key(a) == key(b);
                                 }),
                     dim.breaks.end());
    const Cause& cause = f.periods[d] >= g.periods[d] ? f.period_causes[d] : g.period_causes[d];
    if (grid.period > 1) {
      dim.period_node = NodeName(joint_, cause.node);
      dim.period_op = OpName(joint_, cause.node);
      dim.period_what = cause.what;
    }
    for (const auto& group : grid.groups) dim.displacements.push_back(DescribeGroup(joint_, group));
    return dim;
  }

  const Graph& joint_;
  const std::vector<std::vector<ValueStructure>> structures_;
};

void PrintDimension(const ExplainedDimension& dim, size_t d, std::string& text) {
  text += Cat("  dimension ", d, ", extent ", dim.extent, ": ", dim.probed,
              dim.probed == 1 ? " position" : " positions", " probed\n");
  if (dim.period >= dim.extent && dim.extent > 1) {
    text += Cat("    every position on its own: ", dim.period_what, " (", dim.period_op, " ",
                dim.period_node, ")\n");
  } else if (dim.period > 1) {
    text += Cat("    residue classes modulo ", dim.period, ": ", dim.period_what, " (",
                dim.period_op, " ", dim.period_node, ")\n");
  }
  for (size_t k = 0; k < std::min(dim.breaks.size(), kMaxListed); ++k) {
    const ExplainedBreak& one = dim.breaks[k];
    text += Cat("    break at ", one.at, ": ", one.what, " (", one.op, " ", one.node, ")\n");
  }
  if (dim.breaks.size() > kMaxListed)
    text += Cat("    and ", dim.breaks.size() - kMaxListed, " more breaks\n");
  for (size_t k = 0; k < std::min(dim.displacements.size(), kMaxListed); ++k) {
    text += Cat("    class ", k + 1, ": ", dim.displacements[k], "\n");
  }
  if (dim.displacements.size() > kMaxListed)
    text += Cat("    and ", dim.displacements.size() - kMaxListed, " more classes\n");
}

}  // namespace

absl::StatusOr<std::vector<ExplainedOutput>> ExplainRegions(const Graph& f, const Graph& g,
                                                            const VerifierOptions& options) {
  MENDEL_ASSIGN_OR_RETURN(const Graph joint, JoinPrograms(f, g, options.weights));
  MENDEL_ASSIGN_OR_RETURN(const RegionProgram program, MakeRegionProgram(joint, options.weights));
  const Explainer explainer(program.graph, program.weights);
  std::vector<ExplainedOutput> outputs;
  const size_t count = f.outputs().size();
  for (size_t k = 0; k < count; ++k) {
    ExplainedOutput& output = outputs.emplace_back();
    output.name = f.outputs()[k].name;
    output.shape = f.type(f.outputs()[k].value).shape;
    const ValueId a = program.graph.outputs()[k].value;
    const ValueId b = program.graph.outputs()[count + k].value;
    output.congruent = a == b;
    output.by_regions = output.congruent;
    if (!output.congruent && NumElements(output.shape) > 0) explainer.Explain(a, b, output);
  }
  return outputs;
}

std::string PrintRegions(const std::vector<ExplainedOutput>& outputs) {
  std::string text;
  for (const ExplainedOutput& output : outputs) {
    text += Cat("output ", output.name, " ", ShapeString(output.shape), ": ");
    if (output.congruent) {
      text += "the same nodes in both programs, nothing to probe\n";
      continue;
    }
    const double volume = static_cast<double>(NumElements(output.shape));
    text +=
        output.by_regions
            ? Cat(output.regions, " regions, ", output.probes, " of ", volume, " elements probed\n")
            : Cat("every element compared, ", output.regions, " regions do not pay off\n");
    for (size_t d = 0; d < output.dims.size(); ++d) PrintDimension(output.dims[d], d, text);
    for (const std::string& reason : output.reasons)
      text += Cat("  not understood: ", reason, "\n");
  }
  return text;
}

}  // namespace mendel
