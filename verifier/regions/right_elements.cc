#include "verifier/regions/right_elements.h"

#include <optional>
#include <utility>

#include "base/status.h"
#include "graph/emitter.h"

namespace mendel {
namespace {

constexpr size_t kMostBoxes = 1024;

/// Adds the parts of `box` outside `removed`: for each dimension what lies before and behind it.
void AddOutside(Box box, const Box& removed, std::vector<Box>& parts) {
  const std::optional<Box> common = Intersect(box, removed);
  if (!common.has_value() || common->Volume() == 0) {
    parts.push_back(std::move(box));
    return;
  }
  for (size_t d = 0; d < box.begin.size(); ++d) {
    Box before = box, behind = box;
    before.end[d] = common->begin[d];
    behind.begin[d] = common->end[d];
    if (before.Volume() > 0) parts.push_back(std::move(before));
    if (behind.Volume() > 0) parts.push_back(std::move(behind));
    box.begin[d] = common->begin[d];
    box.end[d] = common->end[d];
  }
}

}  // namespace

std::vector<Box> BoxesOutside(const Box& whole, const std::vector<Box>& removed) {
  std::vector<Box> boxes;
  if (whole.Volume() > 0) boxes.push_back(whole);
  for (const Box& gone : removed) {
    std::vector<Box> parts;
    for (Box& box : boxes) AddOutside(std::move(box), gone, parts);
    boxes = std::move(parts);
    if (boxes.size() > kMostBoxes) break;
  }
  return boxes;
}

absl::StatusOr<Graph> WithoutElements(const Graph& graph,
                                      const std::vector<std::vector<Box>>& removed) {
  Emitter e(graph.name());
  const std::vector<ValueId> outputs = e.Inline(graph, e.InputsOf(graph));
  size_t count = 0;
  for (size_t k = 0; k < outputs.size(); ++k) {
    const Shape& shape = graph.type(graph.outputs()[k].value).shape;
    for (const Box& box : BoxesOutside(Box::Whole(shape), removed[k])) {
      if (++count > kMostBoxes)
        return Unsupported("the elements that agree are more than ", kMostBoxes, " boxes");
      e.Output(Cat("elements ", count), e.Cut(outputs[k], box));
    }
  }
  return e.Finish();
}

}  // namespace mendel
