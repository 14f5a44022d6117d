// A size may index a stored table. A comparison does not see the rows that no compared size reads.
#ifndef MENDEL_CLIENT_PARTIAL_TABLES_H_
#define MENDEL_CLIENT_PARTIAL_TABLES_H_

#include <map>
#include <string>
#include <vector>

#include "onnx/size_relations.h"

namespace mendel {

/// The tables of one program over all sizes at which it was compared.
class PartialTables {
 public:
  /// The reads at one size. A table that is not indexed there is read whole: the importer drops a
  /// Slice of all rows.
  void Add(const TableReads& reads);

  /// Returns the tables whose read rows depend on the size, and of which no size reads all rows.
  std::vector<Tensor> Unread() const;

 private:
  struct Seen {
    TableRead first;
    std::vector<bool> all;  ///< rows that some size read
    bool varies = false;
  };
  std::map<std::string, Seen> seen_;
};

/// Every table of `a` stands in `b`, and the reverse.
bool SameTables(const std::vector<Tensor>& a, const std::vector<Tensor>& b);

}  // namespace mendel

#endif  // MENDEL_CLIENT_PARTIAL_TABLES_H_
