// Filters of lists: terms joined by AND, the simple form of google.aip.dev/160.
//
//   state = succeeded AND client = ann AND model : resnet AND create_time > "2026-05-01T00:00:00Z"
//
// A term is FIELD OPERATOR VALUE with = != : < <= > >=, or a VALUE alone, which some text field
// must contain. ":" means contains. A value with blanks stands in double quotes. Texts are compared
// without regard to case; times are RFC 3339.
#ifndef MENDEL_SERVER_RPC_LIST_FILTER_H_
#define MENDEL_SERVER_RPC_LIST_FILTER_H_

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/job_store.h"

namespace mendel::server {

enum class FieldKind { kText, kNumber, kTime };

struct FilterField {
  std::string_view name;
  FieldKind kind = FieldKind::kText;
};

/// The values of one resource. A text field may have several values; a field without any matches
/// "!=" only.
struct FilterRecord {
  std::map<std::string_view, std::vector<std::string>> texts;
  std::map<std::string_view, double> numbers;  ///< times in seconds since 1970
};

class ListFilter {
 public:
  /// InvalidArgument, a violation of "filter", for anything but terms over these fields.
  static absl::StatusOr<ListFilter> Parse(std::string_view text,
                                          std::span<const FilterField> fields);
  bool empty() const { return terms_.empty(); }
  bool Matches(const FilterRecord& record) const;

 private:
  struct Term {
    std::string field;  ///< empty: any text field
    std::string comparison;
    std::string text;  ///< small letters
    double number = 0;
    bool is_number = false;
  };
  static bool Holds(const Term& term, const FilterRecord& record);
  static absl::StatusOr<Term> MakeTerm(const std::vector<std::string>& words,
                                       std::span<const FilterField> fields);

  std::vector<Term> terms_;
};

/// Rows that a query counts for at least, so that the number of queries is bounded, too.
inline constexpr int kLeastScanned = 50;

/// Rows that one filtered answer looks at. An answer that reaches it may hold fewer items than the
/// page, or none, and has a token to go on with.
inline constexpr int kMostScanned = 5000;

/// A page of the items that match, from `list`, which returns pages of all items.
template <class T>
absl::StatusOr<Page<T>> FilteredPage(
    const ListFilter& filter, int page_size, const std::string& token,
    const std::function<absl::StatusOr<Page<T>>(int page_size, const std::string& token)>& list,
    const std::function<FilterRecord(const T& item)>& record) {
  if (filter.empty()) return list(page_size, token);
  Page<T> result;
  result.next_token = token;
  for (int scanned = 0; scanned < kMostScanned;) {
    // No more than still fit: the token names the row after the last one that was looked at.
    const int left = page_size - static_cast<int>(result.items.size());
    absl::StatusOr<Page<T>> page = list(left, result.next_token);
    if (!page.ok()) return page.status();
    for (T& item : page->items) {
      if (filter.Matches(record(item))) result.items.push_back(std::move(item));
    }
    scanned += std::max(left, kLeastScanned);
    result.next_token = page->next_token;
    if (result.next_token.empty() || static_cast<int>(result.items.size()) == page_size) break;
  }
  return result;
}

}  // namespace mendel::server

#endif  // MENDEL_SERVER_RPC_LIST_FILTER_H_
