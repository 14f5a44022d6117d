// The nodes of a report's pictures that belong to mutants.
#ifndef MENDEL_CLIENT_HTML_MUTANT_NODES_H_
#define MENDEL_CLIENT_HTML_MUTANT_NODES_H_

#include <cstdint>
#include <map>
#include <string>

#include "runtime/plan.h"

namespace mendel {

/// The name of a node, or of the input that it is; may be empty.
std::string NameOf(const Node& node);

/// Nodes that mutants replaced or brought, by number, and the numbers of their groups.
struct MutantNodes {
  std::map<int32_t, int> before;  ///< nodes of the model
  /// Nodes of the plan that the model lacks, or that have a replaced node's name; -1 where the
  /// group is not known. Connected nodes without a name are of the mutants whose surroundings in
  /// the model share most names with theirs.
  std::map<int32_t, int> after;
};
MutantNodes FindMutantNodes(const Plan& plan);

}  // namespace mendel

#endif  // MENDEL_CLIENT_HTML_MUTANT_NODES_H_
