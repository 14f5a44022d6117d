#include "server/store/sql.h"

#include <array>

namespace mendel::server {

int64_t SqlRow::Int(size_t column) const {
  const auto* value = column < values_.size() ? std::get_if<int64_t>(&values_[column]) : nullptr;
  return value != nullptr ? *value : 0;
}

const std::string& SqlRow::Bytes(size_t column) const {
  static const std::string* const empty = new std::string;
  const auto* value =
      column < values_.size() ? std::get_if<std::string>(&values_[column]) : nullptr;
  return value != nullptr ? *value : *empty;
}

std::string Translate(const std::string& sql, const SqlDialect& dialect) {
  const std::array<std::pair<std::string_view, std::string_view>, 5> marks = {
      {{"?", dialect.parameter},
       {"{blob}", dialect.blob},
       {"{id}", dialect.id},
       {"{lock}", dialect.lock},
       {"{skip}", dialect.skip}}};
  std::string result;
  for (size_t at = 0; at < sql.size();) {
    size_t length = 1;
    std::string_view text(&sql[at], 1);
    for (const auto& [mark, replacement] : marks) {
      if (sql.compare(at, mark.size(), mark) != 0) continue;
      length = mark.size();
      text = replacement;
    }
    result += text;
    at += length;
  }
  return result;
}

}  // namespace mendel::server
