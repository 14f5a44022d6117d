#include "optimizer/profile/node_seconds.h"

#include <cstdint>
#include <vector>

namespace mendel {

std::vector<double> SecondsByNode(std::span<const Step> steps, std::span<const double> seconds,
                                  size_t nodes) {
  std::vector<int32_t> first(nodes, -1);  // of the node's step
  for (const Step& step : steps) {
    for (const int32_t node : step.nodes) first[static_cast<size_t>(node)] = step.nodes[0];
  }
  std::vector<double> sums(nodes, 0);
  std::vector<int32_t> next;  // the first node of the next step that computes some
  for (size_t k = steps.size(); k-- > 0;) {
    const Step& step = steps[k];
    if (!step.nodes.empty()) next = {step.nodes[0]};
    const std::vector<int32_t>& charged =
        step.nodes.empty() && !step.requested_by.empty() ? step.requested_by : next;
    for (const int32_t node : charged) {
      const int32_t counted = first[static_cast<size_t>(node)];
      sums[static_cast<size_t>(counted < 0 ? node : counted)] +=
          seconds[k] / static_cast<double>(charged.size());
    }
  }
  return sums;
}

}  // namespace mendel
