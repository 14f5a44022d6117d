#include "server/rpc/list_filter.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "base/status.h"
#include "server/rpc/errors.h"
#include "server/rpc/names.h"

namespace mendel::server {
namespace {

constexpr size_t kLongestFilter = 4096;
constexpr size_t kMostTerms = 32;
constexpr std::string_view kSigns = "=!:<>";

std::string SmallLetters(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

absl::Status Bad(std::string_view why) { return FieldError("filter", why); }

/// A quoted value, without its quotes but with a first '"' that marks it.
absl::StatusOr<std::string> TakeQuoted(std::string_view& text) {
  std::string value = "\"";
  for (size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '"') {
      text.remove_prefix(i + 1);
      return value;
    }
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    value += text[i];
  }
  return Bad("has a quote that does not end");
}

/// Words, operators and quoted values, in order.
absl::StatusOr<std::vector<std::string>> WordsOf(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    if (std::isspace(static_cast<unsigned char>(text.front())) != 0) {
      text.remove_prefix(1);
      continue;
    }
    if (text.front() == '"') {
      MENDEL_ASSIGN_OR_RETURN(std::string value, TakeQuoted(text));
      words.push_back(std::move(value));
      continue;
    }
    const bool sign = kSigns.find(text.front()) != std::string_view::npos;
    size_t end = 1;
    while (end < text.size() && text[end] != '"' &&
           std::isspace(static_cast<unsigned char>(text[end])) == 0 &&
           (kSigns.find(text[end]) != std::string_view::npos) == sign)
      ++end;
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

bool IsComparison(std::string_view word) {
  for (const std::string_view known : {"=", "!=", ":", "<", "<=", ">", ">="}) {
    if (word == known) return true;
  }
  return false;
}

std::string ValueOf(const std::string& word) {
  return word.starts_with('"') ? word.substr(1) : word;
}

absl::StatusOr<double> NumberIn(const std::string& text, const FilterField& field) {
  if (field.kind == FieldKind::kTime) {
    google::protobuf::Timestamp time;
    if (!google::protobuf::util::TimeUtil::FromString(text, &time))
      return Bad(Cat(field.name, ": '", Quoted(text),
                     "' is not a time such as \"2026-05-01T00:00:00Z\" (in quotes)"));
    return static_cast<double>(google::protobuf::util::TimeUtil::TimestampToMicroseconds(time)) *
           1e-6;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return Bad(Cat(field.name, ": '", Quoted(text), "' is not a number"));
  return value;
}

bool Compare(double value, const std::string& comparison, double bound) {
  if (comparison == "=") return value == bound;
  if (comparison == "!=") return value != bound;
  if (comparison == "<") return value < bound;
  if (comparison == "<=") return value <= bound;
  if (comparison == ">") return value > bound;
  return value >= bound;
}

std::string NamesOf(std::span<const FilterField> fields) {
  std::string names;
  for (const FilterField& field : fields)
    names += Cat(names.empty() ? "" : ", ", std::string(field.name));
  return names;
}

}  // namespace

absl::StatusOr<ListFilter::Term> ListFilter::MakeTerm(const std::vector<std::string>& words,
                                                      std::span<const FilterField> fields) {
  if (words.size() == 1 && !IsComparison(words[0]))
    return Term{"", ":", SmallLetters(ValueOf(words[0]))};
  if (words.size() != 3 || !IsComparison(words[1]) || IsComparison(words[2]))
    return Bad(
        "is not a list of FIELD OPERATOR VALUE, joined by AND (values with blanks or signs in "
        "quotes)");
  const auto field = std::find_if(fields.begin(), fields.end(),
                                  [&](const FilterField& one) { return one.name == words[0]; });
  if (field == fields.end())
    return Bad(Cat("names '", Quoted(words[0]), "', which is none of ", NamesOf(fields)));
  Term term{words[0], words[1], SmallLetters(ValueOf(words[2]))};
  term.is_number = field->kind != FieldKind::kText;
  const bool fits = term.is_number ? term.comparison != ":"
                                   : term.comparison.find_first_of("<>") == std::string::npos;
  if (!fits) return Bad(Cat(words[0], ": '", words[1], "' does not apply to this field"));
  if (term.is_number) {
    MENDEL_ASSIGN_OR_RETURN(term.number, NumberIn(ValueOf(words[2]), *field));
  }
  return term;
}

absl::StatusOr<ListFilter> ListFilter::Parse(std::string_view text,
                                             std::span<const FilterField> fields) {
  if (text.size() > kLongestFilter) return Bad(Cat("is longer than ", kLongestFilter, " bytes"));
  MENDEL_ASSIGN_OR_RETURN(std::vector<std::string> words, WordsOf(text));
  ListFilter filter;
  if (words.empty()) return filter;
  words.emplace_back("AND");
  std::vector<std::string> term;
  for (const std::string& word : words) {
    if (word != "AND") {
      term.push_back(word);
      continue;
    }
    MENDEL_ASSIGN_OR_RETURN(Term made, MakeTerm(term, fields));
    filter.terms_.push_back(std::move(made));
    term.clear();
  }
  if (filter.terms_.size() > kMostTerms) return Bad(Cat("has more than ", kMostTerms, " terms"));
  return filter;
}

bool ListFilter::Holds(const Term& term, const FilterRecord& record) {
  if (term.is_number) {
    const auto found = record.numbers.find(term.field);
    return found == record.numbers.end() ? term.comparison == "!="
                                         : Compare(found->second, term.comparison, term.number);
  }
  const bool contains = term.comparison == ":";
  for (const auto& [field, values] : record.texts) {
    if (!term.field.empty() && field != term.field) continue;
    for (const std::string& value : values) {
      const std::string small = SmallLetters(value);
      if (contains ? small.find(term.text) != std::string::npos : small == term.text)
        return term.comparison != "!=";
    }
  }
  return term.comparison == "!=";
}

bool ListFilter::Matches(const FilterRecord& record) const {
  return std::all_of(terms_.begin(), terms_.end(),
                     [&](const Term& term) { return Holds(term, record); });
}

}  // namespace mendel::server
