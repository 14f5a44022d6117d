#include "kernels/cuda/cudnn/engine_json.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>
#include <system_error>

#include "base/status.h"

namespace mendel::cuda {
namespace {

constexpr std::string_view kMember = ",\"engine\":", kBegin = "{\"engineId\":";
constexpr std::string_view kNumber = "\"engineId\"";
constexpr size_t kMostBytes = 1 << 16;

/// The position of the engine's object in a plan's JSON; npos: none.
size_t PlaceIn(const std::string& plan_json) {
  const size_t at = plan_json.rfind(kMember);
  return at == std::string::npos || !plan_json.ends_with("}}") ? std::string::npos
                                                               : at + kMember.size();
}

/// True for one object that ends with its last brace. Strings are letters, digits and '_' alone.
bool IsOneObject(const std::string& json) {
  bool is_text = false;
  int depth = 0;
  for (size_t k = 0; k < json.size(); ++k) {
    const char c = json[k];
    if (c == '"') is_text = !is_text;
    const bool is_word = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    const bool is_mark = c == ':' || c == ',' || c == '-' || c == '.' || c == '{' || c == '}';
    if (c != '"' && !is_word && (is_text || !is_mark)) return false;
    depth += c == '{' ? 1 : (c == '}' ? -1 : 0);
    if (depth <= 0 && k + 1 < json.size()) return false;
  }
  return depth == 0 && !is_text && !json.empty();
}

}  // namespace

std::optional<std::string> EngineJsonOf(const std::string& plan_json) {
  const size_t at = PlaceIn(plan_json);
  if (at == std::string::npos) return std::nullopt;
  std::string engine = plan_json.substr(at, plan_json.size() - 1 - at);
  return EngineIndexOf(engine).ok() ? std::optional(std::move(engine)) : std::nullopt;
}

absl::StatusOr<int64_t> EngineIndexOf(const std::string& engine_json) {
  int64_t index = -1;
  const bool is_one =
      engine_json.starts_with(kBegin) && engine_json.find(kNumber) == engine_json.rfind(kNumber);
  if (engine_json.size() <= kMostBytes && is_one && IsOneObject(engine_json)) {
    const char* const digits = engine_json.data() + kBegin.size();
    const auto [end, error] =
        std::from_chars(digits, engine_json.data() + engine_json.size(), index);
    if (error == std::errc() && index >= 0 && (*end == ',' || *end == '}')) return index;
  }
  return InvalidInput("not the description of an engine of cuDNN's: '", engine_json.substr(0, 80),
                      "'");
}

absl::StatusOr<std::string> WithEngine(const std::string& plan_json,
                                       const std::string& engine_json) {
  const size_t at = PlaceIn(plan_json);
  if (at == std::string::npos)
    return Unsupported("this version of cuDNN describes plans in another way");
  MENDEL_RETURN_IF_ERROR(EngineIndexOf(engine_json).status());
  return Cat(plan_json.substr(0, at), engine_json, "}");
}

}  // namespace mendel::cuda
