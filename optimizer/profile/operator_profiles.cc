#include "optimizer/profile/operator_profiles.h"

#include <algorithm>
#include <limits>
#include <sstream>

#include "base/hash.h"
#include "base/status.h"
#include "graph/rewrite.h"
#include "graph/text.h"

namespace mendel {
namespace {

/// Everything that the time of an operator depends on besides its neighbors.
std::string SignatureOf(const OpDefinition& op, const NodeView& node,
                        const std::vector<bool>& constant) {
  std::string text = Cat(op.name, " ", PrintAttributes(node.attrs));
  for (size_t k = 0; k < node.inputs.size(); ++k)
    text += Cat(constant[k] ? " constant " : " ", TypeString(node.inputs[k]));
  return Sha256Hex(text).substr(0, 16);
}

/// Operator that produces the first operand that is not constant; "-" when there is none.
std::string ProducerOf(const Graph& graph, const Node& node, const std::vector<bool>& constant) {
  for (ValueId value : node.inputs) {
    if (!constant[static_cast<size_t>(value.node)])
      return std::string(graph.node(value.node).op->name);
  }
  return "-";
}

}  // namespace

std::string PrintOperatorProfiles(const Graph& graph, const std::vector<double>& seconds,
                                  const std::vector<Step>& steps, const std::string& device) {
  std::set<int32_t> leading;
  for (const Step& step : steps) {
    if (!step.nodes.empty()) leading.insert(step.nodes[0]);
  }
  const std::vector<bool> constants = ConstantExpressions(graph);
  std::ostringstream text;
  text.precision(9);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (constants[i] || IsInput(node) || node.op->is_view) continue;
    std::vector<bool> constant;
    for (ValueId value : node.inputs)
      constant.push_back(constants[static_cast<size_t>(value.node)]);
    WithView(graph, static_cast<int32_t>(i), [&](const NodeView& view) {
      text << device << ' ' << node.op->name << ' ' << ProducerOf(graph, node, constants) << ' '
           << SignatureOf(*node.op, view, constant) << ' '
           << (leading.count(static_cast<int32_t>(i)) > 0 ? seconds[i] : 0);
      for (double feature : FeaturesOf(*node.op, view, constant)) text << ' ' << feature;
      text << '\n';
    });
  }
  return text.str();
}

absl::StatusOr<OperatorProfiles> OperatorProfiles::Load(ProfileCache& cache,
                                                        const std::string& device) {
  OperatorProfiles result;
  MENDEL_ASSIGN_OR_RETURN(const std::vector<std::string> entries, cache.All("operators"));
  for (const std::string& entry : entries) {
    std::istringstream lines(entry);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string of, producer, signature;
      CostSample sample;
      words >> of >> sample.op >> producer >> signature >> sample.seconds;
      for (double& feature : sample.features) words >> feature;
      if (!words || (!device.empty() && of != device)) continue;
      auto& [free, all] = result.free_[{sample.op, producer}];
      free += sample.seconds <= 0 ? 1 : 0;
      ++all;
      for (const std::string& key : {Cat(signature, " ", producer), signature}) {
        if (sample.seconds <= 0 && key == signature) continue;  // free only where this producer is
        Mean& mean = result.measured_[key];
        mean.sum += sample.seconds;
        ++mean.count;
      }
      if (sample.seconds > 0) result.samples_.push_back(std::move(sample));
    }
  }
  result.predictor_ = CostPredictor::Train(result.samples_);
  return result;
}

double OperatorProfiles::Seconds(const OpDefinition& op, const NodeView& node,
                                 const std::vector<bool>& constant,
                                 const std::set<std::string>& producers) const {
  if (op.is_view || node.inputs.empty() ||
      std::find(constant.begin(), constant.end(), false) == constant.end())
    return 0;
  double least = std::numeric_limits<double>::infinity();
  for (const std::string& producer : producers)
    least = std::min(least, Alone(op, node, constant, producer));
  return producers.empty() ? Alone(op, node, constant, "-") : least;
}

std::vector<double> OperatorProfiles::NodeSeconds(const Graph& graph) const {
  const std::vector<bool> constants = ConstantExpressions(graph);
  std::vector<double> seconds(graph.nodes().size(), 0);
  for (size_t i = 0; i < seconds.size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (constants[i]) continue;
    std::vector<bool> constant;
    for (ValueId value : node.inputs)
      constant.push_back(constants[static_cast<size_t>(value.node)]);
    seconds[i] = WithView(graph, static_cast<int32_t>(i), [&](const NodeView& view) {
      return Seconds(*node.op, view, constant, {ProducerOf(graph, node, constants)});
    });
  }
  return seconds;
}

double OperatorProfiles::Alone(const OpDefinition& op, const NodeView& node,
                               const std::vector<bool>& constant,
                               const std::string& producer) const {
  const std::string signature = SignatureOf(op, node, constant);
  const auto exact = measured_.find(Cat(signature, " ", producer));
  if (exact != measured_.end()) return exact->second.sum / exact->second.count;
  const auto free = free_.find({std::string(op.name), producer});
  if (free != free_.end() && 2 * free->second.first > free->second.second) return 0;
  const auto elsewhere = measured_.find(signature);
  if (elsewhere != measured_.end()) return elsewhere->second.sum / elsewhere->second.count;
  return predictor_.Seconds(std::string(op.name), FeaturesOf(op, node, constant));
}

}  // namespace mendel
