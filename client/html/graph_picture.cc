#include "client/html/graph_picture.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/status.h"
#include "client/html/html.h"
#include "graph/text.h"

namespace mendel {
namespace {

constexpr int kWidth = 170;  // of a node, in pixels
constexpr int kHeight = 36;
constexpr int kColumn = 190;  // from node to node
constexpr int kRow = 64;
constexpr size_t kMostColumns = 6;  // wider layers take several rows
constexpr size_t kLabel = 24;       // bytes of a label
constexpr size_t kTitle = 300;      // bytes of attributes in a title

struct Drawn {
  int layer = 0;
  int row = 0;
  double x = 0;  // the middle, in columns
};

/// The nodes to draw, by number, with their layers: one below the lowest of their inputs.
std::map<int32_t, Drawn> Layers(const Graph& graph) {
  std::map<int32_t, Drawn> drawn;
  for (size_t k = 0; k < graph.nodes().size(); ++k) {
    const auto id = static_cast<int32_t>(k);
    int layer = IsInput(graph.node(id)) ? 0 : -1;
    for (const ValueId& input : graph.node(id).inputs) {
      const auto found = drawn.find(input.node);
      if (found != drawn.end()) layer = std::max(layer, found->second.layer + 1);
    }
    if (layer >= 0) drawn[id].layer = layer;
  }
  return drawn;
}

/// Places the nodes of each layer in the order of the mean of what they read; returns the size of
/// the widest row.
size_t Place(const Graph& graph, std::map<int32_t, Drawn>& drawn) {
  std::map<int, std::vector<int32_t>> layers;
  for (const auto& [id, node] : drawn) layers[node.layer].push_back(id);
  size_t widest = 1;
  int rows = 0;
  for (auto& [layer, ids] : layers) {
    std::map<int32_t, double> wanted;
    for (const int32_t id : ids) {
      double sum = 0;
      int count = 0;
      for (const ValueId& input : graph.node(id).inputs) {
        const auto found = drawn.find(input.node);
        if (found == drawn.end()) continue;
        sum += found->second.x;
        ++count;
      }
      wanted[id] = count == 0 ? 0 : sum / count;
    }
    std::stable_sort(ids.begin(), ids.end(),
                     [&](int32_t a, int32_t b) { return wanted[a] < wanted[b]; });
    for (size_t k = 0; k < ids.size(); ++k) {
      const size_t in_row = std::min(kMostColumns, ids.size() - k / kMostColumns * kMostColumns);
      Drawn& node = drawn[ids[k]];
      node.row = rows + static_cast<int>(k / kMostColumns);
      node.x = static_cast<double>(k % kMostColumns) - static_cast<double>(in_row - 1) / 2;
    }
    rows += static_cast<int>((ids.size() + kMostColumns - 1) / kMostColumns);
    widest = std::max(widest, std::min(kMostColumns, ids.size()));
  }
  return widest;
}

std::string Title(const Node& node) {
  std::string text(node.op->name);
  const std::string name = IsInput(node) ? InputName(node) : node.name;
  if (!name.empty()) text += Cat("  ", name);
  for (const TensorType& type : node.outputs) text += Cat("\n", TypeString(type));
  if (!IsInput(node)) text += Cat("\n", Shortened(PrintAttributes(node.attrs), kTitle));
  return text;
}

std::string NodeSvg(const Node& node, const std::string& note, const std::string& link, double x,
                    double y) {
  const std::string name = IsInput(node) ? InputName(node) : node.name;
  const std::string kind = node.op->name == "Patch" ? "patch"
                           : !link.empty()          ? "new"
                           : IsInput(node)          ? "port"
                                                    : "plain";
  const std::string top = name.empty() ? std::string(node.op->name) : Cat(node.op->name, " ", name);
  const std::string under = note.empty() ? TypeString(node.outputs[0]) : note;
  const std::string open = link.empty() ? "" : Cat("<a href=\"", link, "\">");
  return Cat(open, "<g class=\"node ", kind, "\"><title>", Escaped(Title(node)),
             "</title><rect x=\"", x - kWidth / 2.0, "\" y=\"", y, "\" width=\"", kWidth,
             "\" height=\"", kHeight, "\" rx=\"5\"/><text x=\"", x, "\" y=\"", y + 15, "\">",
             Escaped(Shortened(top, kLabel)), "</text><text class=\"small\" x=\"", x, "\" y=\"",
             y + 29, "\">", Escaped(Shortened(under, kLabel)), "</text></g>",
             link.empty() ? "" : "</a>", "\n");
}

/// A curve down from a node to one that reads it; past nodes that stand between, it bends aside.
std::string EdgeSvg(double x, double y, double to_x, double to_y, bool skips) {
  const bool aside = skips && std::abs(x - to_x) < kWidth / 2.0;
  const double bend = aside ? kWidth / 2.0 + 24 : 0;
  if (!aside) {
    const double middle = (y + to_y) / 2;
    return Cat("<path class=\"edge\" d=\"M", x, " ", y, " C", x, " ", middle, " ", to_x, " ",
               middle, " ", to_x, " ", to_y, "\"/>\n");
  }
  const double out = x + bend;
  return Cat("<path class=\"edge\" d=\"M", x + kWidth / 4.0, " ", y, " C", out, " ", y, " ", out,
             " ", y + 12, " ", out, " ", y + 24, " L", out, " ", to_y - 24, " C", out, " ",
             to_y - 12, " ", out, " ", to_y, " ", to_x + kWidth / 4.0, " ", to_y, "\"/>\n");
}

}  // namespace

std::string GraphPicture(const Graph& graph, const PictureOptions& options) {
  std::map<int32_t, Drawn> drawn = Layers(graph);
  const double width = static_cast<double>(Place(graph, drawn)) * kColumn + 60;
  int rows = 0;
  for (const auto& [id, node] : drawn) rows = std::max(rows, node.row + 1);
  const auto x = [&](const Drawn& node) { return width / 2 + node.x * kColumn; };
  const auto y = [&](const Drawn& node) { return 8.0 + node.row * kRow; };
  std::string edges, nodes;
  for (const auto& [id, node] : drawn) {
    std::set<int32_t> seen;
    for (const ValueId& input : graph.node(id).inputs) {
      const auto found = drawn.find(input.node);
      if (found == drawn.end() || !seen.insert(input.node).second) continue;
      edges += EdgeSvg(x(found->second), y(found->second) + kHeight, x(node), y(node),
                       node.row > found->second.row + 1);
    }
    nodes += NodeSvg(graph.node(id), options.note == nullptr ? "" : options.note(id),
                     options.link == nullptr ? "" : options.link(id), x(node), y(node));
  }
  // It shrinks to a narrow page, down to a size that can be read.
  return Cat("<div class=\"scroll middle\"><svg viewBox=\"0 0 ", width, " ", rows * kRow,
             "\" style=\"width:100%;max-width:", width, "px;min-width:", width * 0.6, "px\">\n",
             edges, nodes, "</svg></div>\n");
}

}  // namespace mendel
