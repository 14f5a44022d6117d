#include "bench/layer_rows.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/status.h"

namespace mendel {

void TableSummary::Add(const MutantRow& row) {
  logs_ += std::log(std::max(1.0, row.direct / row.corrected.value_or(row.mutant)));
  ++rows_;
  if (!row.corrected.has_value()) return;
  ++corrections_;
  const double correction = *row.corrected - row.mutant;
  within_ += correction <= row.share * row.direct + 0.01 * row.mutant ? 1 : 0;
  over_.push_back(100 * correction / row.mutant);
}

void TableSummary::Print(size_t skipped) {
  std::printf("\n%d rows, geometric mean of the speed-ups where there is one (else 1) %.3f", rows_,
              rows_ > 0 ? std::exp(logs_ / rows_) : 1);
  if (!over_.empty()) {
    std::sort(over_.begin(), over_.end());
    std::printf(
        "; %d of %d corrections take at most their arithmetic share of the layer's time plus 1 %% "
        "of the mutant's; median %.2f %% "
        "of "
        "the mutant, largest %.2f %%",
        within_, corrections_, over_[over_.size() / 2], over_.back());
  }
  std::printf("%s\n",
              skipped > 0 ? Cat("; ", skipped, " not measured: the time was over").c_str() : "");
}

absl::Status RowFile::Open(const std::string& path) {
  path_ = path;
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::OkStatus();  // there is none yet
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  size_t whole = text.rfind('\n') + 1;  // 0 where no line ends
  // A run that was stopped while it wrote leaves a part of a line, and maybe not all rows of that
  // combination.
  if (whole < text.size()) {
    const std::string cut = text.substr(whole, text.find('\t', whole) - whole);
    while (whole > 0) {
      const size_t begin = whole < 2 ? 0 : text.rfind('\n', whole - 2) + 1;
      if (text.compare(begin, cut.size(), cut) != 0) break;
      whole = begin;
    }
    std::error_code failed;
    std::filesystem::resize_file(path, whole, failed);
    if (failed) return absl::UnavailableError(Cat("cannot write ", path, ": ", failed.message()));
  }
  std::istringstream lines(text.substr(0, whole));
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream parts(line);
    std::string key, corrected;
    MutantRow row;
    std::getline(parts, key, '\t');
    parts >> row.direct >> row.mutant >> corrected >> row.share;
    if (!parts || parts.get() != '\t')
      return InvalidInput(path, ", line ", number, ": no row of a table of layers");
    if (corrected != "-") row.corrected = std::atof(corrected.c_str());
    std::getline(parts, row.text);
    rows_[key].push_back(std::move(row));
  }
  return absl::OkStatus();
}

const std::vector<MutantRow>* RowFile::Find(const std::string& key) const {
  const auto found = rows_.find(key);
  return found == rows_.end() ? nullptr : &found->second;
}

absl::Status RowFile::Keep(const std::string& key, const std::vector<MutantRow>& rows) {
  rows_[key] = rows;
  if (path_.empty()) return absl::OkStatus();
  std::ofstream file(path_, std::ios::app);
  for (const MutantRow& row : rows) {
    file << key << '\t' << row.direct << ' ' << row.mutant << ' '
         << (row.corrected.has_value() ? Cat(*row.corrected) : "-") << ' ' << row.share << '\t'
         << row.text << '\n';
  }
  return file.flush() ? absl::OkStatus() : absl::UnavailableError(Cat("cannot write ", path_));
}

}  // namespace mendel
