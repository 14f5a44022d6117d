#include "client/progress_pipe.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <nlohmann/json.hpp>

namespace mendel {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kPeriod = 0.25;
constexpr size_t kLongestText = 1000;  // of one member, before characters are escaped
constexpr size_t kLongestLine = 4000;

/// Names come from models and need not be UTF-8.
std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

void AddProgressOption(CLI::App& app, int& descriptor) {
  app.add_option("--progress-fd", descriptor,
                 "Write progress to this open descriptor, one JSON object a line")
      ->check(CLI::Range(0, 1 << 20));
}

void ProgressPipe::Show(const ProgressEvent& event) {
  if (descriptor_ < 0) return;
  if (!event.last && event.phase == last_phase_ && clock_.Seconds() - last_shown_ < kPeriod) return;
  last_shown_ = clock_.Seconds();
  last_phase_ = event.phase;
  Json json = {{"phase", event.phase}};
  if (!event.detail.empty()) json["detail"] = event.detail.substr(0, kLongestText);
  if (event.phase == "search") {
    json["candidates"] = event.candidates;
    json["candidates_per_second"] = event.candidates_per_second;
    json["best_speedup"] = event.best_speedup;
  }
  if (event.seconds_left >= 0) json["seconds_left"] = event.seconds_left;
  Write(Dump(json));
}

void ProgressPipe::Warn(const std::string& text) {
  if (descriptor_ < 0) return;
  Write(Dump({{"phase", last_phase_}, {"warnings", Json::array({text.substr(0, kLongestText)})}}));
}

void ProgressPipe::Write(std::string line) {
  if (line.size() >= kLongestLine) return;
  line += '\n';
  for (size_t done = 0; done < line.size();) {
    const ssize_t written = ::write(descriptor_, line.data() + done, line.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      descriptor_ = -1;
      return;
    }
    done += static_cast<size_t>(written);
  }
}

}  // namespace mendel
