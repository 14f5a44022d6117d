// The attention library offers cuDNN's attention as an algorithm of the product of queries and
// keys.
#ifndef MENDEL_KERNELS_CUDA_CUDNN_ATTENTION_LIBRARY_H_
#define MENDEL_KERNELS_CUDA_CUDNN_ATTENTION_LIBRARY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/backend/library_groups.h"
#include "kernels/cuda/cudnn/attention_match.h"
#include "kernels/cuda/cudnn/compiled_engines.h"
#include "kernels/cuda/cudnn/table.h"

namespace mendel::cuda {

/// "attention" computes stored f16 and bf16 where the class is not `strict`. "attention-f16" and
/// "attention-bf16" compute f32, rounded to the format with the result (MemoryFormat), where the
/// class allows that. Each is the engine that cuDNN ranks first. cuDNN compiles all of them at run
/// time, so that they are offered while the time of `compiled` lasts, and never offline. A plan
/// that names one finds it there or compiles it.
class CudnnAttentionLibrary final : public CallLibrary {
 public:
  /// `cudnn` and `compiled` outlive this and its calls, each of which takes at most
  /// `workspace_bytes`.
  CudnnAttentionLibrary(const Cudnn& cudnn, std::string device_json, int64_t workspace_bytes,
                        CompiledEngines& compiled)
      : cudnn_(cudnn),
        device_json_(std::move(device_json)),
        workspace_bytes_(workspace_bytes),
        compiled_(compiled) {}

  std::string_view name() const override { return "attention"; }
  std::string Identity() const override;
  /// Other products need other libraries.
  bool Multiplies(Numerics) const override { return false; }
  MemoryFormat FormRead(std::string_view algorithm) const override;
  std::vector<std::string> Algorithms(const GroupingScope& scope, int32_t node,
                                      Numerics numerics) const override;
  absl::StatusOr<LibraryGroup> Group(const GroupingScope& scope, int32_t node,
                                     const std::string& algorithm,
                                     Numerics numerics) const override;

 private:
  struct Planned {
    AttentionMatch match;
    CudnnEngine engine;
  };
  /// The longest match that has an engine. Unimplemented where none has. `offer`:
  /// Unavailable where its engine is to be compiled and the time is spent.
  absl::StatusOr<Planned> Plan(std::vector<AttentionMatch> matches, bool offer) const;
  absl::StatusOr<CudnnEngine> EngineOf(const CudnnAttention& attention, bool offer) const;

  const Cudnn& cudnn_;
  const std::string device_json_;
  const int64_t workspace_bytes_;
  CompiledEngines& compiled_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUDNN_ATTENTION_LIBRARY_H_
