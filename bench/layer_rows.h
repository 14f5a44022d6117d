// Rows of the table of layers and their mutants: what they say, what all of them show, and a file that keeps them.
#ifndef MENDEL_BENCH_LAYER_ROWS_H_
#define MENDEL_BENCH_LAYER_ROWS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace mendel {

struct MutantRow {
  double direct = 0, mutant = 0;  ///< milliseconds
  std::optional<double> mended;   ///< likewise; none where the mutant needs no mending
  double share = 0;               ///< the correction's arithmetic, of the layer's
  std::string text;               ///< a line of the table
};

/// What the whole table shows.
class TableSummary {
 public:
  void Add(const MutantRow& row);
  /// `skipped`: combinations that the time was over for.
  void Print(size_t skipped);

 private:
  int rows_ = 0, corrections_ = 0, within_ = 0;
  double logs_ = 0;
  std::vector<double> over_;
};

/// Finished combinations in a file, a line a row, so that another run takes them as they are. Not thread-safe.
class RowFile {
 public:
  /// No path: nothing is kept. A last line without its end, of a run that was stopped while it wrote, is removed with the other
  /// rows of its combination, which is then measured again. InvalidArgument names the first line that is no row.
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
