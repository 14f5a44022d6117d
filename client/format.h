// Small conversions shared by commands.
#ifndef MENDEL_CLIENT_FORMAT_H_
#define MENDEL_CLIENT_FORMAT_H_

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/types.h"

namespace mendel {

struct DeviceConditions;
struct Timing;

/// Seconds of "3s", "500ms", "2m" or a plain number of seconds; InvalidArgument otherwise, and when
/// not positive (or zero, where that is allowed).
absl::StatusOr<double> ParseDuration(std::string_view text, bool zero_allowed = false);

/// "NAME=value" at the first '='; InvalidArgument when there is none or the name is empty.
absl::StatusOr<std::pair<std::string, std::string>> ParseAssignment(std::string_view text);

/// A file name for a value's name: characters other than letters, digits, '.', '_' and '-' become
/// '_'; never "" or hidden.
std::string FileNameOf(std::string_view name);

/// Fixed decimals, e.g. Decimals(1.234, 2) is "1.23".
std::string Decimals(double value, int digits);

/// "12.3 MB" (decimal units).
std::string ByteText(double bytes);

/// "[0, 3, 1]": the indices of one element.
std::string IndexText(const Shape& index, const char* separator = ", ");

/// Lines of a table: columns are aligned and two spaces apart. All rows have the cells of the first
/// one, its heading. Columns `numbers` are aligned to the right, others to the left.
std::vector<std::string> TableLines(const std::vector<std::vector<std::string>>& rows,
                                    const std::set<size_t>& numbers);

/// Axioms that a certificate uses, for the end of its line: ", by masked softmax"; "" for none.
std::string AxiomsText(const std::vector<std::string>& axioms);

/// median_ms, min_ms, p90_ms, spread, runs.
nlohmann::ordered_json TimingJson(const Timing& timing);

/// clock_mhz, max_clock_mhz, memory_mhz, watts, limit_watts, celsius, held_by: what is known of
/// them.
nlohmann::ordered_json ConditionsJson(const DeviceConditions& conditions);

}  // namespace mendel

#endif  // MENDEL_CLIENT_FORMAT_H_
