#include "client/onnxruntime/settings.h"

#include <cmath>
#include <cstdlib>

namespace mendel::ort {
namespace {

/// The entry `key`; empty if there is none.
absl::StatusOr<std::string> Entry(const RuntimeApi& api, const SessionOptions* options,
                                  const std::string& key) {
  MENDEL_ASSIGN_OR_RETURN(const int present, api.Get<int>(kHasConfigEntry, options, key.c_str()));
  if (present == 0) return "";
  size_t size = 0;
  MENDEL_RETURN_IF_ERROR(
      api.Take(kGetConfigEntry(api.main(), options, key.c_str(), nullptr, &size)));
  std::string value(size, '\0');
  MENDEL_RETURN_IF_ERROR(
      api.Take(kGetConfigEntry(api.main(), options, key.c_str(), value.data(), &size)));
  while (value.ends_with('\0')) value.pop_back();
  return value;
}

absl::StatusOr<std::string> Option(const RuntimeApi& api, const SessionOptions* options,
                                   const std::string& name) {
  return Entry(api, options, "ep.mendelexecutionprovider." + name);
}

absl::StatusOr<double> Number(const std::string& name, const std::string& text, double most) {
  if (text.empty()) return 0.0;
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (*end != '\0' || !std::isfinite(number) || number < 0 || number > most) {
    return InvalidInput("the option '", name, "' is '", text, "'; it takes a number from 0 to ",
                        most);
  }
  return number;
}

absl::StatusOr<bool> Switch(const std::string& name, const std::string& text) {
  if (text.empty() || text == "0") return false;
  if (text == "1") return true;
  return InvalidInput("the option '", name, "' is '", text, "'; it takes 0 or 1");
}

}  // namespace

absl::StatusOr<Settings> ReadSettings(const RuntimeApi& api, const SessionOptions* options) {
  Settings settings;
  MENDEL_ASSIGN_OR_RETURN(const std::string budget, Option(api, options, "budget_s"));
  MENDEL_ASSIGN_OR_RETURN(settings.budget_s, Number("budget_s", budget, 1e6));
  MENDEL_ASSIGN_OR_RETURN(const std::string background, Option(api, options, "background"));
  MENDEL_ASSIGN_OR_RETURN(settings.background, Switch("background", background));
  MENDEL_ASSIGN_OR_RETURN(settings.cache_dir, Option(api, options, "cache_dir"));
  MENDEL_ASSIGN_OR_RETURN(const std::string compare, Option(api, options, "compare"));
  if (!compare.empty()) {
    MENDEL_ASSIGN_OR_RETURN(settings.compare, Switch("compare", compare));
  }
  MENDEL_ASSIGN_OR_RETURN(const std::string spinning,
                          Entry(api, options, "session.intra_op.allow_spinning"));
  settings.pool_spins = spinning != "0";
  MENDEL_ASSIGN_OR_RETURN(const std::string threads, Option(api, options, "threads"));
  MENDEL_ASSIGN_OR_RETURN(const double count, Number("threads", threads, 1024));
  settings.threads = static_cast<int>(count);
  MENDEL_ASSIGN_OR_RETURN(const std::string write, Entry(api, options, "ep.context_enable"));
  settings.write_context = write == "1";
  MENDEL_ASSIGN_OR_RETURN(const std::string embed, Entry(api, options, "ep.context_embed_mode"));
  settings.embed_context = embed == "1";
  MENDEL_ASSIGN_OR_RETURN(settings.context_path, Entry(api, options, "ep.context_file_path"));
  return settings;
}

}  // namespace mendel::ort
