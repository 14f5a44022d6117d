#include "mutator/index/sites.h"

#include <algorithm>
#include <set>

#include "base/status.h"
#include "mutator/index/translate.h"

namespace mendel {
namespace {

std::string ReasonOf(const Graph& graph, ValueId value, const IndexSite& site) {
  const Node& node = graph.node(value.node);
  const std::string op(node.op->name);
  if (IsInput(node)) return "an input";
  if (!IsFloat(graph.type(value).dtype)) return "no float tensor";
  if (!HasTranslation(op)) return Cat(op, " has no translation");
  const std::vector<int32_t>& users = graph.users(value.node);
  const bool inside = std::all_of(users.begin(), users.end(), [&](int32_t user) {
    return std::binary_search(site.nodes.begin(), site.nodes.end(), user);
  });
  if (!inside || graph.IsOutput(value.node)) return "others read it, too";
  if (static_cast<int>(site.nodes.size()) >= kMostSiteNodes) return "the site is at its limit";
  return Cat(op, " is no sum of products at these positions, or too large as one");
}

}  // namespace

std::vector<SiteReport> DescribeSites(const Graph& graph) {
  std::vector<SiteReport> reports;
  std::set<int32_t> covered;
  for (int32_t id = static_cast<int32_t>(graph.nodes().size()); id-- > 0;) {
    if (covered.count(id) > 0) continue;
    const auto site = TranslateSite(graph, id, kMostSiteNodes, Expansion::kOneTerm);
    if (!site.has_value()) continue;
    covered.insert(site->nodes.begin(), site->nodes.end());
    SiteReport report{site->nodes, {}};
    std::set<ValueId> seen;
    for (const IndexLeaf& leaf : site->leaves) {
      const bool weight =
          leaf.kind != LeafKind::kValue || graph.constant()[static_cast<size_t>(leaf.value.node)];
      if (!weight && seen.insert(leaf.value).second)
        report.ends.push_back({leaf.value, ReasonOf(graph, leaf.value, *site)});
    }
    reports.push_back(std::move(report));
  }
  std::reverse(reports.begin(), reports.end());
  return reports;
}

}  // namespace mendel
