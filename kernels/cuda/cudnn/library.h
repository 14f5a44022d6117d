// cuDNN's engines as algorithms of convolutions.
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
#include "kernels/cuda/cudnn/convolution.h"
#include "kernels/cuda/cudnn/match.h"
#include "kernels/cuda/cudnn/table.h"

namespace mendel::cuda {

/// "cudnn" is the engine that cuDNN's heuristics rank first for a convolution with its epilogue, "cudnn:1" the second, and so on,
/// among those that the numerics class allows: for f32 no tensor cores nor, under `strict`, Winograd and Fourier transforms; under
/// `strict` no epilogue of cuDNN's has Relu (match.h). "cudnn-tf32", "cudnn-tf32:1" and so on are the engines that multiply f32 as
/// TF32, where the class allows that; none of them transforms its operands, since what it rounded would be others. "cudnn-nhwc",
/// "cudnn-tf32-nhwc" and so on are planned for values with the channels last (StoredForm), for convolutions whose weights are
/// constant.
///
/// Under `f16` and `bf16` convolutions of f32 have "cudnn-f16", "cudnn-f16-nhwc" or those of bf16 besides: all that such a call
/// reads and what it yields is rounded to the format, since cuDNN has compiled engines for one dtype of all tensors only; sums are
/// f32, and no engine transforms its operands. A transposed convolution's epilogue is a kernel of ours (finish_kernel.h).
///
/// What a name stands for depends on the version of cuDNN, the device and the limits, which Identity tells. Where no engine has the
/// whole epilogue, or cuDNN answers with an error other than for memory, a shorter one is taken.
class CudnnLibrary final : public CallLibrary {
 public:
  /// Plans for the device with these properties (convolution.h), with so much workspace a call. `cudnn` outlives this and its
  /// calls. `offered`: algorithms of a node and kind ("cudnn", "cudnn-nhwc"), at most kMostOffered, or kEveryEngine: those that
  /// cuDNN's heuristics list come first, then all others that cuDNN has.
  CudnnLibrary(const Cudnn& cudnn, std::string device_json, int64_t workspace_bytes, size_t offered = kOffered)
      : cudnn_(cudnn), device_json_(std::move(device_json)), workspace_bytes_(workspace_bytes), offered_(offered) {}

  std::string_view name() const override { return "cudnn"; }
  std::string Identity() const override;
  bool Multiplies(Numerics numerics) const override { return OperandRounding(numerics) > 0 && numerics != Numerics::kHigh; }
  StoredForm FormRead(std::string_view algorithm) const override;
  std::vector<std::string> Algorithms(const GroupingScope& scope, int32_t node, Numerics numerics) const override;
  absl::StatusOr<LibraryGroup> Group(const GroupingScope& scope, int32_t node, const std::string& algorithm,
                                     Numerics numerics) const override;
  /// An engine is of a version of cuDNN; what is stored of it are its number, its knobs (engine_json.h) and how many nodes the call
  /// takes along. Graph, device and limits are those that are here, and it must be one that `numerics` allows.
  absl::StatusOr<LibraryGroup> GroupAgain(const GroupingScope& scope, int32_t node, const std::string& algorithm, Numerics numerics,
                                          const StoredEngine& engine) const override;

  /// What needs no cuDNN: names of the kinds whose form the node has, and what a call of such a name takes along at most. Whether
  /// there is an engine is another question. InvalidArgument for a name that is none of them.
  static std::vector<std::string> FormNames(const GroupingScope& scope, int32_t node, Numerics numerics);
  static absl::StatusOr<LibraryGroup> FormOf(const GroupingScope& scope, int32_t node, const std::string& algorithm,
                                             Numerics numerics);

 private:
  using Engines = std::vector<CudnnEngine>;
  struct Planned {
    ConvolutionMatch match;
    Engines engines;  ///< none: cuDNN cannot compute the node
  };
  struct Kind;
  static std::span<const Kind> Kinds();
  /// Null where `numerics` does not allow it, or there is none of this name.
  static const Kind* KindOf(std::string_view algorithm, Numerics numerics);
  /// With `count` engines, or as many as there are.
  absl::StatusOr<Planned> Plan(const GroupingScope& scope, int32_t node, const Kind& kind, Numerics numerics, size_t count) const;
  static CudnnNumerics NumbersOf(const Kind& kind, Numerics numerics);
  std::string Version() const;
  LibraryGroup Called(const Kind& kind, ConvolutionMatch match, CudnnEngine engine) const;
  /// As algorithms of the kind compute it; empty where none does.
  static std::vector<ConvolutionMatch> MatchesOf(const GroupingScope& scope, int32_t node, const Kind& kind, Numerics numerics);
  absl::StatusOr<Engines> EnginesOf(const CudnnConvolution& convolution, const CudnnNumerics& numerics, size_t count) const;

  const Cudnn& cudnn_;
  const std::string device_json_;
  const int64_t workspace_bytes_;
  const size_t offered_;
  mutable std::mutex mutex_;
  // By convolution, numbers and count: a search asks for the same ones again and again.
  mutable std::map<std::string, Engines> planned_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUDNN_LIBRARY_H_
