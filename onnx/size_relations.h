// Relations of the numbers that a program computes of its shapes: a dimension of 5,000 is cut at
// 4,000, a count is larger than 1,000.
//
// They hold for the sizes of one import. Where other sizes give other relations, the program may be
// another one.
#ifndef MENDEL_ONNX_SIZE_RELATIONS_H_
#define MENDEL_ONNX_SIZE_RELATIONS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/tensor.h"

namespace mendel {

/// By a key that is the same in every import of the model: the relations that two lists of numbers
/// have, one bit each (smaller, equal, larger, overflows in a cast).
using SizeRelations = std::map<std::string, uint8_t>;

/// Adds the relations that decide what `node` computes: of its constant operands, and of its
/// attributes to its shapes. `constant`: a value's tensor, or null. Every node has a `name`
/// of its own, the same in every import; steps of a loop may share it.
void AddSizeRelations(const GraphBuilder& builder, int32_t node, const std::string& name,
                      const std::function<const Tensor*(ValueId)>& constant,
                      SizeRelations& relations);

/// Adds that the ONNX node `name` became the operator `op`: other sizes may become other ones.
void AddEmitted(const std::string& name, std::string_view op, SizeRelations& relations);

/// Adds the relation of two numbers.
void AddSizeRelation(const std::string& key, int64_t a, int64_t b, SizeRelations& relations);

/// The rows of a stored tensor that a Gather or Slice with constant positions reads.
struct TableRead {
  Tensor table;
  std::vector<bool> rows;  ///< along the axis of the key
};
using TableReads = std::map<std::string, TableRead>;

/// Adds the rows that `node` reads of a stored tensor at these sizes.
void AddTableReads(const GraphBuilder& builder, int32_t node, const std::string& name,
                   const std::function<const Tensor*(ValueId)>& constant, TableReads& reads);

/// No key of both has another relation.
bool SameSizeRelations(const SizeRelations& a, const SizeRelations& b);

}  // namespace mendel

#endif  // MENDEL_ONNX_SIZE_RELATIONS_H_
