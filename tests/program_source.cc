#include "tests/program_source.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/check.h"
#include "graph/random_graph.h"
#include "graph/restrict.h"
#include "graph/rewrite.h"
#include "onnx/import.h"
#include "tests/graph_edit.h"
#include "tests/op_graphs.h"

namespace mendel {
namespace {

constexpr int64_t kMaxStoredElements = 700000;

/// Elements of all inputs and constants, which every evaluation draws anew.
int64_t StoredElements(const Graph& graph) {
  int64_t elements = 0;
  for (const Node& node : graph.nodes()) {
    if (IsInput(node) || IsConstant(node)) elements += NumElements(node.outputs[0]);
  }
  return elements;
}

/// `graph` cut down to small random boxes of some of its outputs.
std::optional<Graph> SmallPart(Rng& rng, const Graph& graph) {
  std::vector<OutputBox> boxes;
  for (size_t k = 0; k < graph.outputs().size() && boxes.size() < 2; ++k) {
    const Shape& shape = graph.type(graph.outputs()[k].value).shape;
    Box box = Box::Whole(shape);
    for (size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == 0) return std::nullopt;
      box.begin[d] = rng.Between(0, shape[d] - 1);
      box.end[d] = std::min(shape[d], box.begin[d] + rng.Between(1, 4));
    }
    boxes.push_back({static_cast<int>(k), box});
  }
  auto part = RestrictToBoxes(graph, boxes);
  if (!part.ok()) return std::nullopt;
  return *std::move(part);
}

}  // namespace

uint64_t NumberFromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::vector<std::string> ModelPaths() {
  std::vector<std::string> paths;
  const char* folder = std::getenv("MENDEL_MODELS");
  if (folder == nullptr || !std::filesystem::is_directory(folder)) return paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".onnx") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

Graph LoadModel(const std::string& path) {
  auto imported = ImportOnnxFile(path);
  MENDEL_CHECK(imported.ok());
  return std::move(imported->graph);
}

std::optional<Graph> RandomPart(Rng& rng, const Graph& model, double max_flops) {
  const std::vector<bool> constant = ConstantExpressions(model);
  const int32_t start = static_cast<int32_t>(PickIndex(rng, model.nodes().size()));
  if (constant[static_cast<size_t>(start)] || IsInput(model.node(start))) return std::nullopt;
  std::set<int32_t> nodes = {start};
  for (int64_t more = rng.Between(0, 7); more > 0; --more) {
    const int32_t last = *nodes.rbegin();
    const std::vector<int32_t>& users = model.users(last);
    if (!users.empty()) nodes.insert(users[PickIndex(rng, users.size())]);
  }
  auto subprogram = MakeSubprogram(model, {nodes.begin(), nodes.end()});
  if (!subprogram.ok()) return std::nullopt;
  auto part = Extract(model, *subprogram);
  MENDEL_CHECK(part.ok());
  if (StoredElements(*part) > kMaxStoredElements) return std::nullopt;
  if (RunTimeFlops(*part) <= max_flops) return *std::move(part);
  auto small = SmallPart(rng, *part);
  if (!small.has_value() || RunTimeFlops(*small) > max_flops) return std::nullopt;
  return small;
}

Graph RandomProgram(Rng& rng) {
  if (rng.Flip()) return RandomGraph(rng, static_cast<int>(rng.Between(1, 6)));
  return RandomOpGraph(rng, *SampledOps()[PickIndex(rng, SampledOps().size())]);
}

}  // namespace mendel
