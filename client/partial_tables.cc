#include "client/partial_tables.h"

#include <algorithm>

namespace mendel {
namespace {

bool SameTensor(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() &&
         std::equal(a.bytes().begin(), a.bytes().end(), b.bytes().begin(), b.bytes().end());
}

bool AllStandIn(const std::vector<Tensor>& tables, const std::vector<Tensor>& others) {
  return std::all_of(tables.begin(), tables.end(), [&](const Tensor& table) {
    return std::any_of(others.begin(), others.end(),
                       [&](const Tensor& other) { return SameTensor(table, other); });
  });
}

}  // namespace

void PartialTables::Add(const TableReads& reads) {
  for (auto& [key, seen] : seen_) {
    if (reads.find(key) == reads.end()) seen.all.assign(seen.all.size(), true);
  }
  for (const auto& [key, read] : reads) {
    const auto [found, is_new] = seen_.try_emplace(key, Seen{read, read.rows, false});
    Seen& seen = found->second;
    // A tensor that is another one at each size is no table.
    if (is_new || seen.all.size() != read.rows.size()) continue;
    seen.varies = seen.varies || seen.first.rows != read.rows;
    for (size_t i = 0; i < read.rows.size(); ++i) seen.all[i] = seen.all[i] || read.rows[i];
  }
}

std::vector<Tensor> PartialTables::Unread() const {
  std::vector<Tensor> tables;
  for (const auto& [key, seen] : seen_) {
    if (seen.varies && std::find(seen.all.begin(), seen.all.end(), false) != seen.all.end())
      tables.push_back(seen.first.table);
  }
  return tables;
}

bool SameTables(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return AllStandIn(a, b) && AllStandIn(b, a);
}

}  // namespace mendel
