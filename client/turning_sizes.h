// Sizes at which a program with symbolic dimensions becomes another one: it cuts, indexes or
// compares there.
#ifndef MENDEL_CLIENT_TURNING_SIZES_H_
#define MENDEL_CLIENT_TURNING_SIZES_H_

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/types.h"
#include "onnx/size_relations.h"

namespace mendel {

/// The relations of two programs at some sizes, and which of them exist there.
struct PairRelations {
  bool valid_a = true;
  bool valid_b = true;
  SizeRelations relations;
  TableReads tables_a = {}, tables_b = {};
  std::vector<Shape> outputs_a = {}, outputs_b = {};

  /// Both exist, and their outputs have the same shapes, in some order.
  bool SameOutputs() const;

  bool Alike(const PairRelations& other) const {
    return valid_a == other.valid_a && valid_b == other.valid_b &&
           SameSizeRelations(relations, other.relations);
  }
};

struct TurningSearch {
  std::set<int64_t> sizes;
  bool complete = true;  ///< false: time or the number of imports ended the search
};

/// Sizes from 4 to 65,536 whose neighbor has other relations, with those neighbors and the next
/// size. Changes that are taken back between two powers of four may stay unseen. DeadlineExceeded
/// of `relations_at` ends the search; another error means that there are no programs of this size.
TurningSearch TurningSizes(
    const std::function<absl::StatusOr<PairRelations>(int64_t size)>& relations_at);

}  // namespace mendel

#endif  // MENDEL_CLIENT_TURNING_SIZES_H_
