// The cuDNN library offers cuDNN's engines as algorithms of convolutions.
#ifndef MENDEL_KERNELS_CUDA_CUDNN_LIBRARY_H_
#define MENDEL_KERNELS_CUDA_CUDNN_LIBRARY_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/backend/library_groups.h"
#include "kernels/cuda/cudnn/compiled_engines.h"
#include "kernels/cuda/cudnn/convolution.h"
#include "kernels/cuda/cudnn/match.h"
#include "kernels/cuda/cudnn/table.h"

namespace mendel::cuda {

/// "cudnn" is the engine that cuDNN's heuristics rank first for a convolution with its epilogue,
/// "cudnn:1" the second, and so on. The numerics class must allow it: f32 uses no tensor cores and,
/// under `strict`, no Winograd and Fourier transforms. Under `strict`, no epilogue of cuDNN's has
/// Relu (match.h). "cudnn-tf32", "cudnn-tf32:1" and so on multiply f32 as TF32, where the class
/// allows that. None of them transforms its operands, since it would round other numbers.
/// "cudnn-nhwc", "cudnn-tf32-nhwc" and so on are planned for values with the channels last
/// (MemoryFormat), for convolutions whose weights are constant.
///
/// Under `f16` and `bf16`, convolutions of f32 also have "cudnn-f16", "cudnn-f16-nhwc" or those of
/// bf16. Such a call reads and yields rounded values only, since cuDNN's precompiled engines have
/// one dtype of all tensors. Sums are f32, and no engine transforms its operands. A native kernel
/// computes a transposed convolution's epilogue (finish_kernel.h).
///
/// "cudnn-tf32-fused", "cudnn-f16-fused" and "cudnn-bf16-fused" multiply in the same ways, and
/// "cudnn-fused" multiplies stored f16 and bf16 where the class is not `strict`. All have the
/// channels last and constant weights. They compute epilogues that only engines have which cuDNN
/// compiles at run time: Sigmoid, Silu and Gelu, and any epilogue of a transposed convolution. One
/// engine of a kind is offered, while the time of `compiled` lasts. A plan that names one finds it
/// there or compiles it. No plan stores such an engine, since cuDNN would make it of machine code
/// alone.
///
/// The engine of a name depends on the version of cuDNN, the device and the limits, which Identity
/// reports. A shorter epilogue is taken where no engine has the whole one, or cuDNN returns an
/// error other than for memory.
class CudnnLibrary final : public CallLibrary {
 public:
  /// Plans for the device with these properties (convolution.h), with at most
  /// `workspace_bytes` of workspace a call.
  /// `cudnn` outlives this and its calls. `offered`: algorithms of a node and kind ("cudnn",
  /// "cudnn-nhwc"), at most kMostOffered, or kEveryEngine: those that cuDNN's heuristics list come
  /// first, then all others that cuDNN has. `compiled` outlives this; null: no name of a kind that
  /// is compiled at run time is offered.
  CudnnLibrary(const Cudnn& cudnn, std::string device_json, int64_t workspace_bytes,
               size_t offered = kOffered, CompiledEngines* compiled = nullptr)
      : cudnn_(cudnn),
        device_json_(std::move(device_json)),
        workspace_bytes_(workspace_bytes),
        offered_(offered),
        compiled_(compiled) {}

  std::string_view name() const override { return "cudnn"; }
  std::string Identity() const override;
  bool Multiplies(Numerics numerics) const override {
    return OperandRounding(numerics) > 0 && numerics != Numerics::kHigh;
  }
  MemoryFormat FormRead(std::string_view algorithm) const override;
  std::vector<std::string> Algorithms(const GroupingScope& scope, int32_t node,
                                      Numerics numerics) const override;
  absl::StatusOr<LibraryGroup> Group(const GroupingScope& scope, int32_t node,
                                     const std::string& algorithm,
                                     Numerics numerics) const override;
  /// A stored engine belongs to one version of cuDNN. It consists of its number, its knobs
  /// (engine_json.h) and the number of nodes that the call computes. Graph, device and limits are
  /// the present ones. `numerics` must allow it.
  absl::StatusOr<LibraryGroup> GroupAgain(const GroupingScope& scope, int32_t node,
                                          const std::string& algorithm, Numerics numerics,
                                          const StoredEngine& engine) const override;

  /// These two need no cuDNN: the names of the kinds whose form the node has, without those that
  /// are compiled at run time, and the group that a call of such a name computes at most. An engine
  /// need not exist. InvalidArgument for a name that is none of them.
  static std::vector<std::string> FormNames(const GroupingScope& scope, int32_t node,
                                            Numerics numerics);
  static absl::StatusOr<LibraryGroup> FormOf(const GroupingScope& scope, int32_t node,
                                             const std::string& algorithm, Numerics numerics);

 private:
  using Engines = std::vector<CudnnEngine>;
  struct Planned {
    ConvolutionMatch match;
    Engines engines;  ///< none: cuDNN cannot compute the node
  };
  struct Kind;
  static std::span<const Kind> Kinds();
  /// Null where `numerics` does not allow the kind, or where no kind has this name.
  static const Kind* KindOf(std::string_view algorithm, Numerics numerics);
  /// The node's match with `count` engines, or as many as there are. `offer`: for Algorithms, which
  /// keeps to the time for compilations.
  absl::StatusOr<Planned> Plan(const GroupingScope& scope, int32_t node, const Kind& kind,
                               Numerics numerics, size_t count, bool offer = false) const;
  static CudnnNumerics NumbersOf(const Kind& kind, Numerics numerics);
  std::string Version() const;
  LibraryGroup Called(const Kind& kind, ConvolutionMatch match, CudnnEngine engine) const;
  /// The node's matches as algorithms of the kind compute them; empty where none does.
  static std::vector<ConvolutionMatch> MatchesOf(const GroupingScope& scope, int32_t node,
                                                 const Kind& kind, Numerics numerics);
  absl::StatusOr<Engines> EnginesOf(const CudnnConvolution& convolution, const Kind& kind,
                                    Numerics numerics, size_t count, bool offer) const;
  /// The engine of a fused kind, or none. Unavailable as CompiledEngines::Get.
  absl::StatusOr<Engines> CompiledEngineOf(const CudnnConvolution& convolution,
                                           const CudnnNumerics& numerics, bool offer) const;

  const Cudnn& cudnn_;
  const std::string device_json_;
  const int64_t workspace_bytes_;
  const size_t offered_;
  CompiledEngines* const compiled_;
  mutable std::mutex mutex_;
  // Engines by convolution, numbers and count: a search requests the same ones again and again.
  mutable std::map<std::string, Engines> planned_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUDNN_LIBRARY_H_
