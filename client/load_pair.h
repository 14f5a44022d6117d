// Both programs of a comparison, with one set of names.
#ifndef MENDEL_CLIENT_LOAD_PAIR_H_
#define MENDEL_CLIENT_LOAD_PAIR_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/command.h"
#include "client/paired_dimensions.h"
#include "client/turning_sizes.h"
#include "client/verify_pair.h"
#include "graph/graph.h"

namespace mendel {

struct Pair {
  Graph a;
  Graph b;  ///< with the names of A
  std::vector<std::string> notes;
  std::set<std::string> open;  ///< symbolic dimensions that no shape fixes: the first of each group
  DimensionGroups groups;      ///< their names in both models
};

/// The programs at the sizes of PairOptions::import.
absl::StatusOr<Pair> LoadPair(const PairOptions& options, Context& context);

/// The relations of both programs at the sizes of PairOptions::import.
absl::StatusOr<PairRelations> RelationsOfPair(const PairOptions& options);

}  // namespace mendel

#endif  // MENDEL_CLIENT_LOAD_PAIR_H_
