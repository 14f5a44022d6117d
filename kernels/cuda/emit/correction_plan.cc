#include "kernels/cuda/emit/correction_plan.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "base/status.h"

namespace mendel::cuda {
namespace {

bool SamePlace(const View& a, const View& b) { return a.base == b.base && a.strides == b.strides; }

/// Does a kernel read elements of `base` that another thread, or a launch before it, overwrites? An
/// operand of the epilogue may be `base` itself: the thread that writes an element has read it.
bool ReadsWhatIsOverwritten(const PatchKernels& patch_kernels, ValueId base) {
  const Operand overwritten{false, base};
  bool written = false;
  for (const PatchKernel& kernel : patch_kernels.kernels) {
    const bool writes = kernel.y == overwritten;
    if (kernel.x == overwritten && (writes || written)) return true;
    for (size_t k = 0; k < kernel.operands.size(); ++k) {
      if (kernel.operands[k] != overwritten) continue;
      if (!writes && written) return true;
      const auto elsewhere = [&](const CorrectionBox& box) {
        return !SamePlace(box.operands[k], box.y);
      };
      if (writes &&
          std::any_of(kernel.correction.boxes.begin(), kernel.correction.boxes.end(), elsewhere))
        return true;
    }
    written = written || writes;
  }
  return false;
}

/// Values that the kernels read from memory.
std::set<ValueId> ReadBy(const PatchKernels& patch_kernels) {
  std::set<ValueId> read;
  for (const PatchKernel& kernel : patch_kernels.kernels) {
    if (!kernel.x.scratch) read.insert(kernel.x.value);
    if (kernel.bias.node >= 0) read.insert(kernel.bias);
    for (const Operand& operand : kernel.operands) {
      if (!operand.scratch) read.insert(operand.value);
    }
  }
  return read;
}

class Planner {
 public:
  Planner(const Graph& graph, const std::vector<bool>& constant)
      : graph_(graph), constant_(constant) {}

  CorrectionPlan Run() {
    for (int32_t id = 0; id < static_cast<int32_t>(graph_.nodes().size()); ++id) {
      if (graph_.node(id).op->name != "Patch" || constant_[static_cast<size_t>(id)]) continue;
      PlannedCorrection correction;
      if (const absl::Status planned = Plan(id, correction); !planned.ok()) {
        plan_.refused[id] = std::string(planned.message());
        continue;
      }
      places_[id] = plan_.corrections.size();
      plan_.corrections.push_back(std::move(correction));
    }
    FindUnused();
    for (PlannedCorrection& correction : plan_.corrections) {
      DecidePlace(correction);
      FindNodes(correction);
    }
    return std::move(plan_);
  }

 private:
  absl::Status Plan(int32_t id, PlannedCorrection& correction) {
    MENDEL_ASSIGN_OR_RETURN(correction.patch_kernels, PatchKernelsOf(graph_, id, Layout::kNchw));
    for (const PatchKernel& kernel : correction.patch_kernels.kernels) {
      MENDEL_ASSIGN_OR_RETURN(correction.shapes.emplace_back(), ShapeOf(kernel.correction));
    }
    correction.patch = id;
    correction.base = graph_.node(id).inputs[0];
    return absl::OkStatus();
  }

  /// Nodes that no output of the graph needs any more, and how often others read a value.
  void FindUnused() {
    std::vector<bool> needed(graph_.nodes().size());
    const auto read = [&](ValueId value) {
      needed[static_cast<size_t>(value.node)] = true;
      ++readers_[value];
    };
    for (const GraphOutput& output : graph_.outputs()) read(output.value);
    plan_.unused.resize(needed.size());
    for (int32_t id = static_cast<int32_t>(needed.size()); id-- > 0;) {
      const Node& node = graph_.node(id);
      if (!needed[static_cast<size_t>(id)]) {
        plan_.unused[static_cast<size_t>(id)] = !IsInput(node);
        continue;
      }
      const auto place = places_.find(id);
      if (place == places_.end()) {
        for (const ValueId input : node.inputs) read(input);
        continue;
      }
      const PlannedCorrection& correction = plan_.corrections[place->second];
      std::set<ValueId> values = ReadBy(correction.patch_kernels);
      values.insert(correction.base);
      for (const ValueId value : values) {
        read(value);
        if (!constant_[static_cast<size_t>(value.node)]) plan_.stored.insert(value);
      }
    }
  }

  void DecidePlace(PlannedCorrection& correction) const {
    const ValueId base = correction.base;
    correction.in_place = !IsInput(graph_.node(base.node)) &&
                          !constant_[static_cast<size_t>(base.node)] && readers_.at(base) == 1 &&
                          !ReadsWhatIsOverwritten(correction.patch_kernels, base);
  }

  void FindNodes(PlannedCorrection& correction) const {
    std::vector<int32_t> open = {correction.patch};
    while (!open.empty()) {
      const int32_t id = open.back();
      open.pop_back();
      if (!correction.nodes.insert(id).second) continue;
      for (const ValueId input : graph_.node(id).inputs) {
        const size_t at = static_cast<size_t>(input.node);
        if (plan_.unused[at] && !constant_[at]) open.push_back(input.node);
      }
    }
  }

  const Graph& graph_;
  const std::vector<bool>& constant_;
  CorrectionPlan plan_;
  std::map<int32_t, size_t> places_;  // places of a Patch in plan_.corrections
  std::map<ValueId, int> readers_;
};

}  // namespace

CorrectionPlan PlanCorrections(const Graph& graph, const std::vector<bool>& constant) {
  return Planner(graph, constant).Run();
}

}  // namespace mendel::cuda
