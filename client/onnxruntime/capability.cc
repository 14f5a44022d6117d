#include "client/onnxruntime/capability.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "client/onnxruntime/part_model.h"
#include "client/onnxruntime/tensor_facts.h"
#include "onnx/import.h"

namespace mendel::ort {
namespace {

/// Sizes that stand for symbolic dimensions, one attempt each: large enough for windows and
/// strides.
constexpr int64_t kTrialSizes[] = {64, 1};

/// Empty, or why no part can have the node.
std::string RefusedAtOnce(const GraphView& view, const ViewNode& node) {
  if (node.subgraphs) return "it has subgraphs";
  for (const auto* values : {&node.inputs, &node.outputs}) {
    for (const int number : *values) {
      if (number < 0) continue;
      const ViewValue& value = view.values[static_cast<size_t>(number)];
      if (!KnownType(value.type)) return Cat("the type of '", value.name, "' is not supported");
    }
  }
  return "";
}

/// Nodes of one kind are refused together.
std::string KindOf(const GraphView& view, const ViewNode& node) {
  onnx::NodeProto kind = node.proto;
  kind.clear_name();
  for (const int number : node.inputs) {
    if (number < 0) continue;
    const ViewValue& value = view.values[static_cast<size_t>(number)];
    kind.add_input(Cat(value.type, value.constant ? "c" : "", value.shape.size()));
  }
  return kind.SerializeAsString();
}

/// The number in "node '12' (Relu): ..." if it is one of `part`.
std::optional<int> NodeNamed(std::string_view message, const Part& part) {
  constexpr std::string_view kLabel = "node '";
  const size_t at = message.find(kLabel);
  if (at == std::string_view::npos) return std::nullopt;
  message.remove_prefix(at + kLabel.size());
  int number = -1;
  std::from_chars(message.data(), message.data() + message.size(), number);
  for (const int n : part)
    if (n == number) return number;
  return std::nullopt;
}

absl::Status Import(const GraphView& view, const Part& part) {
  const Boundary boundary = BoundaryOf(view, part);
  for (const int n : part) {
    for (const int input : view.nodes[static_cast<size_t>(n)].inputs) {
      if (std::find(boundary.inputs.begin(), boundary.inputs.end(), input) == boundary.inputs.end())
        continue;
      const ViewValue& value = view.values[static_cast<size_t>(input)];
      if (!value.has_shape)
        return Unsupported("node '", n, "': the rank of '", value.name, "' is not known");
    }
  }
  if (boundary.inputs.empty()) return Unsupported("it has no inputs");
  MENDEL_ASSIGN_OR_RETURN(const std::string bytes,
                          PartModel(view, part, boundary, Constants::kSmall));
  MENDEL_ASSIGN_OR_RETURN(const OnnxModel model, OnnxModel::Parse(bytes, ""));
  absl::Status first;
  for (const int64_t size : kTrialSizes) {
    ImportOptions options;
    for (size_t k = 0; k < boundary.inputs.size(); ++k) {
      const ViewValue& value = view.values[static_cast<size_t>(boundary.inputs[k])];
      Shape shape(value.shape.begin(), value.shape.end());
      for (int64_t& extent : shape) extent = extent < 0 ? size : extent;
      options.shapes.emplace_back(Cat("in", k), shape);
    }
    const absl::Status imported = model.Import(options).status();
    if (imported.ok()) return imported;
    if (first.ok()) first = imported;
  }
  return first;
}

class Finder {
 public:
  explicit Finder(const GraphView& view) : view_(view), taken_(view.nodes.size(), true) {
    for (size_t n = 0; n < view.nodes.size(); ++n) {
      kinds_.push_back(KindOf(view, view.nodes[n]));
      const std::string why = RefusedAtOnce(view, view.nodes[n]);
      if (!why.empty()) Refuse(static_cast<int>(n), why);
    }
  }

  Capability Find() {
    while (Round()) {
    }
    return std::move(found_);
  }

 private:
  /// True when nodes were refused, so that parts must be made anew.
  bool Round() {
    found_.parts.clear();
    bool refused = false;
    for (const Part& part : Partition(view_, taken_)) {
      if (!WorthACall(view_, part)) continue;
      if (!passed_.contains(part)) {
        const absl::Status imported = Import(view_, part);
        if (!imported.ok()) {
          RefuseFrom(part, std::string(imported.message()));
          refused = true;
          continue;
        }
        passed_.insert(part);
      }
      found_.parts.push_back(part);
    }
    return refused;
  }

  void RefuseFrom(const Part& part, const std::string& why) {
    const std::optional<int> named = NodeNamed(why, part);
    for (const int n : part) {
      const bool alike = !named.has_value() ||
                         kinds_[static_cast<size_t>(n)] == kinds_[static_cast<size_t>(*named)];
      if (alike) Refuse(n, why);
    }
  }

  void Refuse(int n, const std::string& why) {
    taken_[static_cast<size_t>(n)] = false;
    found_.refused.emplace(n, why);
  }

  const GraphView& view_;
  std::vector<bool> taken_;
  std::vector<std::string> kinds_;
  std::set<Part> passed_;
  Capability found_;
};

}  // namespace

Capability FindParts(const GraphView& view) { return Finder(view).Find(); }

}  // namespace mendel::ort
