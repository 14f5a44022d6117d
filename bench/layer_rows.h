// Rows of the table of layers and their mutants: their text, their summary, and a file that keeps
// them.
#ifndef MENDEL_BENCH_LAYER_ROWS_H_
#define MENDEL_BENCH_LAYER_ROWS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace mendel {

struct MutantRow {
  double direct = 0, mutant = 0;    ///< milliseconds
  std::optional<double> corrected;  ///< likewise; none where the mutant needs no correction
  double share = 0;                 ///< the correction's arithmetic, of the layer's
  std::string text;                 ///< a line of the table
};

/// Totals of the whole table.
class TableSummary {
 public:
  void Add(const MutantRow& row);
  /// `skipped`: combinations for which no time was left.
  void Print(size_t skipped);

 private:
  int rows_ = 0, corrections_ = 0, within_ = 0;
  double logs_ = 0;
  std::vector<double> over_;
};

/// Finished combinations in a file, one row per line, so that another run reuses them. Not
/// thread-safe.
class RowFile {
 public:
  /// Without a path, nothing is kept. An incomplete last line of an interrupted run is removed with
  /// the other rows of its combination, which is then measured again. InvalidArgument names the
  /// first line that is no row.
  absl::Status Open(const std::string& path);
  /// The rows of `key`; null where it has not been finished.
  const std::vector<MutantRow>* Find(const std::string& key) const;
  /// Unavailable when the file cannot be written.
  absl::Status Keep(const std::string& key, const std::vector<MutantRow>& rows);

 private:
  std::string path_;
  std::map<std::string, std::vector<MutantRow>> rows_;
};

}  // namespace mendel

#endif  // MENDEL_BENCH_LAYER_ROWS_H_
