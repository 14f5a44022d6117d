#include "kernels/cuda/fusion/operator_text.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace mendel::cuda {
namespace {

std::map<std::string, OperatorText, std::less<>>& Registry() {
  static auto* registry = new std::map<std::string, OperatorText, std::less<>>();
  return *registry;
}

}  // namespace

std::string ElementAt::In(size_t k) const {
  const Shape& extents = shape(k);
  if (extents == shape()) return In(k, position);
  const size_t skip = position.at.size() - extents.size();
  Position at;
  for (size_t d = 0; d < extents.size(); ++d) {
    at.at.push_back(extents[d] == 1 ? "0" : position.at[skip + d]);
    at.root.push_back(extents[d] == 1 ? FromRoot{} : position.RootOf(skip + d));
  }
  return In(k, at);
}

int64_t RowAt::Count() const {
  int64_t count = 1;
  for (int64_t axis : axes) count *= shape[static_cast<size_t>(axis)];
  return count;
}

bool RowAt::IsContiguous() const {
  for (size_t k = 0; k < axes.size(); ++k) {
    if (axes[k] != static_cast<int64_t>(shape.size() - axes.size() + k)) return false;
  }
  return !axes.empty();
}

void RowAt::OpenSteps() const {
  const std::string& index = code.index_type();
  const int step = threads * lanes;
  const std::string first =
      Cat("static_cast<", index, ">(", thread, ")", lanes > 1 ? Cat(" * ", lanes) : "");
  if (kept_steps == 0)
    return code.Open(Cat("for (", index, " k = ", first, "; k < ", Count(), "; k += ", step, ")"));
  code.Line("#pragma unroll");
  code.Open(Cat("for (int step = 0; step < ", kept_steps, "; ++step)"));
  code.Line(Cat("const ", index, " k = ", first, " + step * ", step, ";"));
  if (HasPartialStep()) code.Open(Cat("if (k < ", Count(), ")"));
}

void RowAt::CloseSteps() const {
  if (kept_steps > 0 && HasPartialStep()) code.Close();
  code.Close();
}

void RowAt::ForElements(const std::function<void(const std::string& x, const Position& at)>& body,
                        const std::string& before, const std::string& after) const {
  const ValueId input = code.graph().node(node).inputs[0];
  const Shape& stored = view.inputs[0].shape;
  const std::string& index = code.index_type();
  const auto element = [&](const Position& at) {
    if (!is_kept) return code.Element(input, at);
    return lanes > 1 ? Cat("kept[step * ", lanes, " + lane]") : std::string("kept[step]");
  };
  OpenSteps();
  if (lanes > 1) {
    code.Line(Cat("const ", index, " first = ", number, " * ", Count(), " + k;"));
    if (!before.empty()) code.Line(before);
    code.BeginLanes(lanes, "first", stored);
    code.Line(Cat("const ", index, " f = first + lane;"));
    const Position at = code.Decode("f", stored, true);
    body(element(at), at);
    code.EndLanes(Cat("for (int lane = 0; lane < ", lanes, "; ++lane)"), is_kept);
    if (!after.empty()) code.Line(after);
    return CloseSteps();
  }
  Shape extents;
  for (int64_t axis : axes) extents.push_back(shape[static_cast<size_t>(axis)]);
  const Position inner = code.Decode("k", extents);
  Position at{position};
  for (size_t k = 0; k < axes.size(); ++k) at.at[static_cast<size_t>(axes[k])] = inner.at[k];
  if (shape != stored) at = code.Decode(code.LetIndex(FlatOf(shape, at)), stored);
  body(element(at), at);
  CloseSteps();
}

void RowAt::Keep() {
  constexpr int64_t kMostBytes = 64;  // of 255 registers of four bytes
  const int64_t steps = (Count() + int64_t{threads} * lanes - 1) / (int64_t{threads} * lanes);
  const std::string_view real = RealName(dtype());
  if (steps * lanes * (real == "float" ? 4 : 8) > kMostBytes) return;
  kept_steps = steps;
  code.Line(Cat(real, " kept[", steps * lanes, "];"));
  ForElements([&](const std::string& x, const Position&) {
    code.Line(Cat("kept[", lanes > 1 ? Cat("step * ", lanes, " + lane") : "step", "] = ", x, ";"));
  });
  is_kept = true;
}

std::string RowAt::Over(std::string_view combine, const std::string& initial,
                        const std::function<std::string(const std::string&)>& term) const {
  const std::string_view real = RealName(dtype());
  const std::string own = code.Variable(real, initial);
  ForElements([&](const std::string& x, const Position&) {
    code.Line(Cat(own, " = ", combine, "::Of(", own, ", ", term(x), ");"));
  });
  return code.Let(real, Cat("OverThreads<", combine, ", ", threads, ">(", own, ")"));
}

const OperatorText* FindOperatorText(std::string_view op) {
  const auto found = Registry().find(op);
  return found == Registry().end() ? nullptr : &found->second;
}

absl::StatusOr<const OperatorText*> OperatorTextOf(const Graph& graph, int32_t id) {
  const Node& node = graph.node(id);
  const std::string name = node.name.empty() ? Cat("node ", id) : Cat("node '", node.name, "'");
  const OperatorText* text = FindOperatorText(node.op->name);
  if (text == nullptr) return Unsupported(name, ": no CUDA kernel computes ", node.op->name);
  if (text->check != nullptr) {
    MENDEL_RETURN_IF_ERROR(Annotate(
        WithView(graph, id, [&](const NodeView& view) { return text->check(view); }), name));
  }
  return text;
}

OperatorTextRegistrar::OperatorTextRegistrar(std::vector<OperatorText> texts) {
  for (OperatorText& text : texts) {
    std::string op = text.op;
    MENDEL_CHECK(Registry().emplace(std::move(op), std::move(text)).second);
  }
}

}  // namespace mendel::cuda
