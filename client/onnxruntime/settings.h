// Options of the execution provider for one session.
#ifndef MENDEL_CLIENT_ONNXRUNTIME_SETTINGS_H_
#define MENDEL_CLIENT_ONNXRUNTIME_SETTINGS_H_

#include <string>

#include "absl/status/statusor.h"
#include "client/onnxruntime/runtime_api.h"

namespace mendel::ort {

inline constexpr char kProviderName[] = "MendelExecutionProvider";

struct Settings {
  double budget_s = 0;  ///< seconds of search for each part and combination of shapes; 0: none
  bool background =
      false;               ///< searches run beside the session, which uses baseline plans meanwhile
  std::string cache_dir;   ///< folder of the plans that searches found; empty: none
  bool compare = true;     ///< after a search, the faster of plan and ONNX Runtime's nodes runs
  bool pool_spins = true;  ///< idle threads of the session's pool spin for a while
  int threads = 0;         ///< 0: as many as the session's pool has
  /// The session is to write an EPContext model.
  bool write_context = false;
  bool embed_context = false;  ///< compiled parts go into the model, not into files beside it
  std::string context_path;    ///< of the model to write; empty: derived from the model's own
};

/// Reads the options "ep.mendelexecutionprovider.*" and those of EPContext models. InvalidArgument
/// names the option, what it has and what it takes.
absl::StatusOr<Settings> ReadSettings(const RuntimeApi& api, const SessionOptions* options);

}  // namespace mendel::ort

#endif  // MENDEL_CLIENT_ONNXRUNTIME_SETTINGS_H_
