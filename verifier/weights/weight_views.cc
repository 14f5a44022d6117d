#include "verifier/weights/weight_views.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace mendel {
namespace {

/// More cells than this are no help.
constexpr int64_t kMostCells = 4096;

/// `view` narrowed to [begin, begin + extent) of the value's dimension `dim`.
WeightView Narrowed(WeightView view, size_t dim, int64_t begin, int64_t extent) {
  const size_t at = static_cast<size_t>(view.perm[dim]);
  view.box.begin[at] += begin;
  view.box.end[at] = view.box.begin[at] + extent;
  return view;
}

std::vector<WeightView> SplitViews(const Node& node, const WeightView& whole) {
  std::vector<WeightView> views;
  int64_t begin = 0;
  for (int64_t extent : node.attrs.IntList("sizes")) {
    views.push_back(Narrowed(whole, static_cast<size_t>(node.attrs.Int("axis")), begin, extent));
    begin += extent;
  }
  return views;
}

std::vector<WeightView> SliceViews(const Node& node, WeightView view) {
  const Ints& starts = node.attrs.IntList("starts");
  const Ints& steps = node.attrs.IntList("steps");
  if (std::any_of(steps.begin(), steps.end(), [](int64_t step) { return step != 1; })) return {};
  for (size_t d = 0; d < starts.size(); ++d)
    view = Narrowed(std::move(view), d, starts[d], node.outputs[0].shape[d]);
  return {std::move(view)};
}

std::vector<WeightView> TransposedViews(const Node& node, const WeightView& view) {
  WeightView turned = view;
  const Ints& perm = node.attrs.IntList("perm");
  for (size_t d = 0; d < perm.size(); ++d) turned.perm[d] = view.perm[static_cast<size_t>(perm[d])];
  return {std::move(turned)};
}

bool CanReadCells(const Graph& graph, ValueId value, const Node* reader) {
  return reader != nullptr && reader->op->name == "MatMul" && reader->inputs[1] == value &&
         reader->inputs[0] != value && graph.type(value).shape.size() == 2;
}

/// One graph's part of CutsOf.
class Cutter {
 public:
  Cutter(const Graph& graph, const WeightViews& views) : graph_(graph), views_(views) {}

  void AddPositions(std::map<std::string, CutPositions>& cuts) const {
    views_.ForEachRead([&](ValueId, const WeightView& view, const Node*) {
      CutPositions& positions = cuts[TypeOf(view)];
      positions.resize(view.box.begin.size());
      const Shape& shape = graph_.node(view.constant).outputs[0].shape;
      for (size_t d = 0; d < positions.size(); ++d)
        positions[d].insert({0, view.box.begin[d], view.box.end[d], shape[d]});
    });
  }

  /// Types whose readers, or whose number of cells, do not allow it.
  void AddWhole(const std::map<std::string, CutPositions>& cuts,
                std::set<std::string>& whole) const {
    views_.ForEachRead([&](ValueId value, const WeightView& view, const Node* reader) {
      const CutPositions& positions = cuts.at(TypeOf(view));
      int64_t cells = 1;
      for (size_t d = 0; d < positions.size() && cells <= kMostCells; ++d) {
        cells *= static_cast<int64_t>(
            IntervalsOf(positions[d], view.box.begin[d], view.box.end[d]).size());
      }
      if (view.box.Volume() == 0 || cells > kMostCells ||
          (cells > 1 && !CanReadCells(graph_, value, reader))) {
        whole.insert(TypeOf(view));
      }
    });
  }

 private:
  std::string TypeOf(const WeightView& view) const {
    return TypeString(graph_.node(view.constant).outputs[0]);
  }

  const Graph& graph_;
  const WeightViews& views_;
};

bool CutsAnything(const CutPositions& positions) {
  return std::any_of(positions.begin(), positions.end(),
                     [](const auto& at) { return at.size() > 2; });
}

}  // namespace

WeightViews::WeightViews(const Graph& graph, int64_t least_elements)
    : graph_(graph), views_(graph.nodes().size()) {
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    if (!IsConstant(node)) {
      Follow(static_cast<int32_t>(i));
    } else if (IsFloat(node.outputs[0].dtype) && NumElements(node.outputs[0]) > least_elements) {
      Ints perm(node.outputs[0].shape.size());
      std::iota(perm.begin(), perm.end(), 0);
      views_[i] = {{static_cast<int32_t>(i), Box::Whole(node.outputs[0].shape), std::move(perm)}};
    }
  }
}

void WeightViews::Follow(int32_t id) {
  const Node& node = graph_.node(id);
  const WeightView* view = node.inputs.empty() ? nullptr : Find(node.inputs[0]);
  if (view == nullptr) return;
  std::vector<WeightView>& made = views_[static_cast<size_t>(id)];
  if (node.op->name == "Split") made = SplitViews(node, *view);
  if (node.op->name == "Slice") made = SliceViews(node, *view);
  if (node.op->name == "Transpose") made = TransposedViews(node, *view);
}

const WeightView* WeightViews::Find(ValueId value) const {
  const std::vector<WeightView>& views = views_[static_cast<size_t>(value.node)];
  return views.empty() ? nullptr : &views[static_cast<size_t>(value.output)];
}

std::map<std::string, CutPositions> CutsOf(const Graph& a, const WeightViews& of_a, const Graph& b,
                                           const WeightViews& of_b) {
  std::map<std::string, CutPositions> cuts;
  std::set<std::string> whole;
  for (const Cutter& cutter : {Cutter(a, of_a), Cutter(b, of_b)}) cutter.AddPositions(cuts);
  for (const Cutter& cutter : {Cutter(a, of_a), Cutter(b, of_b)}) cutter.AddWhole(cuts, whole);
  std::erase_if(cuts, [&](const auto& cut) {
    return whole.contains(cut.first) || !CutsAnything(cut.second);
  });
  return cuts;
}

std::vector<std::pair<int64_t, int64_t>> IntervalsOf(const std::set<int64_t>& positions,
                                                     int64_t begin, int64_t end) {
  std::vector<std::pair<int64_t, int64_t>> intervals;
  for (auto at = positions.find(begin); *at != end; ++at)
    intervals.emplace_back(*at, *std::next(at));
  return intervals;
}

}  // namespace mendel
