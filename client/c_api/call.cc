#include "client/c_api/call.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/parallel.h"
#include "base/status.h"

namespace mendel {

std::string CompactJson(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

absl::Status CheckModel(const mendel_model* model) {
  if (model == nullptr || (model->path == nullptr && model->bytes == nullptr))
    return InvalidInput("the model is NULL");
  return absl::OkStatus();
}

std::string NameOf(const mendel_model& model) {
  return model.path == nullptr ? "model" : model.path;
}

std::optional<std::string_view> BytesOf(const mendel_model& model) {
  if (model.bytes == nullptr) return std::nullopt;
  return std::string_view(static_cast<const char*>(model.bytes), model.size);
}

absl::StatusOr<mendel_call> CallOf(const mendel_call* call) {
  if (call == nullptr) return mendel_call{sizeof(mendel_call), nullptr, nullptr, nullptr, nullptr};
  if (call->size != sizeof(mendel_call)) {
    return InvalidInput("the call has ", call->size, " bytes where this library has ",
                        sizeof(mendel_call));
  }
  return *call;
}

absl::Status ParseWords(CLI::App& app, const char* const* options) {
  std::vector<std::string> words;
  for (; options != nullptr && *options != nullptr; ++options) words.emplace_back(*options);
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  app.set_help_flag();
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    return InvalidInput(error.what());
  }
  return absl::OkStatus();
}

const std::atomic<bool>* StopOf(const mendel_call& call) {
  return call.stop == nullptr ? nullptr : &call.stop->requested;
}

absl::StatusOr<std::unique_ptr<Turn>> Turn::Take(const mendel_stop* stop) {
  static auto* mutex = new std::timed_mutex();
  while (!mutex->try_lock_for(std::chrono::milliseconds(50))) {
    if (stop != nullptr && stop->requested) return absl::CancelledError("stopped before it began");
  }
  std::unique_ptr<Turn> turn(new Turn(*mutex));
  if (stop != nullptr && stop->requested) return absl::CancelledError("stopped before it began");
  return turn;
}

Turn::~Turn() {
  SetParallelism(parallelism_);
  mutex_.unlock();
}

Turn::Turn(std::timed_mutex& mutex) : mutex_(mutex), parallelism_(Parallelism()) {}

void Reporter::Show(const ProgressEvent& event) {
  if (call_.progress == nullptr || (call_.stop != nullptr && call_.stop->requested)) return;
  if (!event.last && event.phase == phase_ && clock_.Seconds() - shown_ < 0.25) return;
  shown_ = clock_.Seconds();
  phase_ = event.phase;
  const nlohmann::ordered_json json = {{"phase", event.phase},
                                       {"detail", event.detail},
                                       {"candidates", event.candidates},
                                       {"candidates_per_second", event.candidates_per_second},
                                       {"best_speedup", event.best_speedup},
                                       {"seconds_left", event.seconds_left}};
  call_.progress(call_.user, CompactJson(json).c_str());
}

}  // namespace mendel
