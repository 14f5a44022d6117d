// A picture of a graph: nodes in layers from the inputs down, as SVG.
#ifndef MENDEL_CLIENT_HTML_GRAPH_PICTURE_H_
#define MENDEL_CLIENT_HTML_GRAPH_PICTURE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "graph/graph.h"

namespace mendel {

struct PictureOptions {
  /// For a node that is drawn as part of a mutant: what a click opens ("#mutant-0"); "" for others.
  std::function<std::string(int32_t node)> link;
  /// A second line under the node's operator; may be empty.
  std::function<std::string(int32_t node)> note;
};

/// Draws the nodes that depend on an input; weights, and what is computed from them alone, are left
/// out. Patches have a color of their own. A node's title contains its name, types and attributes.
std::string GraphPicture(const Graph& graph, const PictureOptions& options);

}  // namespace mendel

#endif  // MENDEL_CLIENT_HTML_GRAPH_PICTURE_H_
