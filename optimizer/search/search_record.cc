#include "optimizer/search/search_record.h"

#include <array>
#include <cstdlib>
#include <sstream>
#include <string_view>

namespace mendel {
namespace {

constexpr std::string_view kPart = "part ";

std::optional<plan::GainPart> ParsePart(const std::string& text) {
  std::istringstream words(text);
  std::string kind;
  int64_t count = 0;
  double without = 0;
  words >> kind >> count >> without;
  if (!words) return std::nullopt;
  plan::GainPart part;
  part.set_kind(kind);
  part.set_count(count);
  part.set_without(without);
  return part;
}

std::optional<AcceptedCandidate> ParseAccepted(const std::string& line) {
  std::istringstream words(line);
  AcceptedCandidate candidate;
  words >> candidate.occurrences >> candidate.measurement >> candidate.original_ns >>
      candidate.mutant_ns >> candidate.early >> candidate.together >> candidate.rule;
  if (!words) return std::nullopt;
  candidate.key = candidate.rule;
  for (std::string word; words >> word;) {
    candidate.key += " " + word;
    const size_t equals = word.find('=');
    if (equals != std::string::npos)
      candidate.choices[word.substr(0, equals)] = std::atoll(word.c_str() + equals + 1);
  }
  return candidate;
}

}  // namespace

std::string PrintSearchRecord(const SearchRecord& record) {
  std::ostringstream text;
  text.precision(17);
  const plan::SearchCounters& counters = record.counters;
  text << record.stop_reason << ' ' << record.algorithm_trial << ' ' << counters.proposed() << ' '
       << counters.screened_out() << ' ' << counters.partial() << ' ' << counters.mended() << ' '
       << counters.measured() << ' ' << counters.rounds() << ' ' << counters.wrong_numbers() << ' '
       << counters.weight_growth() << '\n';
  for (const plan::GainPart& part : record.parts)
    text << kPart << part.kind() << ' ' << part.count() << ' ' << part.without() << '\n';
  for (const AcceptedCandidate& candidate : record.accepted) {
    text << candidate.occurrences << ' ' << candidate.measurement << ' ' << candidate.original_ns
         << ' ' << candidate.mutant_ns << ' ' << candidate.early << ' ' << candidate.together << ' '
         << candidate.key << '\n';
  }
  return text.str();
}

std::optional<SearchRecord> ParseSearchRecord(const std::string& text) {
  std::istringstream lines(text);
  SearchRecord record;
  std::array<int64_t, 8> counts{};
  lines >> record.stop_reason >> record.algorithm_trial;
  for (int64_t& count : counts) lines >> count;
  std::string line;
  if (!lines || !std::getline(lines, line)) return std::nullopt;
  record.counters.set_proposed(counts[0]);
  record.counters.set_screened_out(counts[1]);
  record.counters.set_partial(counts[2]);
  record.counters.set_mended(counts[3]);
  record.counters.set_measured(counts[4]);
  record.counters.set_rounds(counts[5]);
  record.counters.set_wrong_numbers(counts[6]);
  record.counters.set_weight_growth(counts[7]);
  while (std::getline(lines, line)) {
    if (line.starts_with(kPart)) {
      const auto part = ParsePart(line.substr(kPart.size()));
      if (!part.has_value()) return std::nullopt;
      record.parts.push_back(*part);
      continue;
    }
    const auto candidate = ParseAccepted(line);
    if (!candidate.has_value()) return std::nullopt;
    record.accepted.push_back(*candidate);
  }
  return record;
}

}  // namespace mendel
