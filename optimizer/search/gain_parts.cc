#include "optimizer/search/gain_parts.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/status.h"

namespace mendel {
namespace {

bool IsLayout(const std::string& algorithm) { return algorithm.starts_with(kLayoutAlgorithm); }

Variant WithoutMutants(const Backend& backend, Numerics numerics, const Variant& baseline,
                       const Variant& best) {
  std::map<std::string, int32_t> by_name;
  for (int32_t id = 0; id < static_cast<int32_t>(baseline.graph.nodes().size()); ++id)
    by_name[baseline.graph.node(id).name] = id;
  Variant variant{baseline.graph, {}, "the plan without its mutants"};
  for (const auto& [node, name] : best.algorithms) {
    const Node& chosen = best.graph.node(node);
    const auto found = by_name.find(chosen.name);
    if (chosen.name.empty() || found == by_name.end() ||
        baseline.graph.node(found->second).op != chosen.op)
      continue;
    const std::vector<std::string> offered =
        backend.Algorithms(baseline.graph, found->second, numerics);
    if (std::find(offered.begin(), offered.end(), name) != offered.end())
      variant.algorithms[found->second] = name;
  }
  return variant;
}

LeftOut Make(const std::string& kind, int64_t count, Variant variant) {
  LeftOut result{{}, std::move(variant)};
  result.part.set_kind(kind);
  result.part.set_count(count);
  return result;
}

/// The plan without its layouts, or without its other algorithms.
LeftOut WithoutAlgorithms(const Variant& best, bool layouts) {
  const std::string kind = layouts ? "layouts" : "algorithms";
  Variant variant{best.graph, {}, Cat("the plan without its ", kind)};
  for (const auto& [node, name] : best.algorithms) {
    if (IsLayout(name) != layouts) variant.algorithms[node] = name;
  }
  const size_t count = best.algorithms.size() - variant.algorithms.size();
  return Make(kind, static_cast<int64_t>(count), std::move(variant));
}

}  // namespace

int CountParts(const Variant& best, int64_t mutants) {
  const int64_t all = static_cast<int64_t>(best.algorithms.size());
  const int64_t layouts = std::count_if(best.algorithms.begin(), best.algorithms.end(),
                                        [](const auto& choice) { return IsLayout(choice.second); });
  return (mutants > 0 ? 1 : 0) + (layouts < all ? 1 : 0) + (layouts > 0 ? 1 : 0);
}

std::vector<LeftOut> LeaveOut(const Backend& backend, Numerics numerics, const Variant& baseline,
                              const Variant& best, int64_t mutants) {
  std::vector<LeftOut> parts;
  if (mutants > 0)
    parts.push_back(Make("mutants", mutants, WithoutMutants(backend, numerics, baseline, best)));
  for (const bool layouts : {false, true}) {
    LeftOut left_out = WithoutAlgorithms(best, layouts);
    if (left_out.part.count() > 0) parts.push_back(std::move(left_out));
  }
  return parts;
}

}  // namespace mendel
