// cuDNN 9's backend interface behind dlopen: the few entry points and numbers that convolutions
// and attention need, declared here so that neither its headers nor a toolkit is needed to build.
#ifndef MENDEL_KERNELS_CUDA_CUDNN_TABLE_H_
#define MENDEL_KERNELS_CUDA_CUDNN_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/driver_table/driver.h"

namespace mendel::cuda {

/// The entry points as in cudnn_graph_v9.h; results are 0 or an error.
struct Cudnn {
  size_t (*GetVersion)() = nullptr;
  void (*GetLastErrorString)(char* text, size_t size) = nullptr;
  int (*CreateDescriptor)(int type, void** descriptor) = nullptr;
  int (*DestroyDescriptor)(void* descriptor) = nullptr;
  int (*Finalize)(void* descriptor) = nullptr;
  int (*SetAttribute)(void* descriptor, int name, int type, int64_t count,
                      const void* values) = nullptr;
  int (*GetAttribute)(void* descriptor, int name, int type, int64_t room, int64_t* count,
                      void* values) = nullptr;
  int (*CreateHandle)(void** handle) = nullptr;
  int (*DestroyHandle)(void* handle) = nullptr;
  int (*SetStream)(void* handle, DriverStream* stream) = nullptr;
  int (*Execute)(void* handle, void* plan, void* variant_pack) = nullptr;

  std::string path;
  int version = 0;  ///< 91900: 9.19.0

  /// The table of this process. NotFound where there is no cuDNN, FailedPrecondition when it is
  /// older than 9.8, which planning without a device needs.
  static absl::StatusOr<const Cudnn*> Get();
  /// OK; Unimplemented where cuDNN does not support the request (its codes 3000 to 3999),
  /// ResourceExhausted where it found no memory; else Internal. All name `what`, with the first
  /// line of cuDNN's text.
  absl::Status Check(int result, const std::string& what) const;
  /// "9.19.0".
  std::string VersionText() const;
};

/// Descriptor types, attribute types and attributes.
namespace cudnn {

enum Type {
  kPointwise = 0,
  kConvolution = 1,
  kEngine = 2,
  kEngineConfig = 3,
  kHeuristics = 4,
  kPlan = 5,
  kConvolutionForward = 10,
  kConvolutionBackwardData = 12,
  kPointwiseOperation = 13,
  kGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
  kMatmul = 18,
  kMatmulOperation = 19,
  kReduction = 21,
  kReductionOperation = 22,
  kDevice = 38,
};

enum ValueType {
  kDataType = 1,
  kBoolean = 2,
  kInt64 = 3,
  kFloat = 4,
  kPointer = 6,
  kConvolutionMode = 7,
  kHeuristicMode = 8,
  kNumericalNote = 11,
  kPointwiseMode = 14,
  kDescriptor = 15,
  kReductionOperator = 18,
  kBehaviorNote = 19,
  kInt32 = 23,
  kChar = 24,
};

enum Attribute {
  kPointwiseModeOf = 0,
  kPointwisePrecision = 1,
  kConvolutionPrecision = 100,
  kConvolutionModeOf = 101,
  kConvolutionDilations = 102,
  kConvolutionStrides = 103,
  kConvolutionPostPads = 104,
  kConvolutionPrePads = 105,
  kConvolutionDimensions = 106,
  kHeuristicModeOf = 200,
  kHeuristicGraph = 201,
  kHeuristicResults = 202,
  kHeuristicDevice = 204,
  kConfigEngine = 300,
  kPlanConfig = 401,
  kPlanWorkspace = 402,
  kPlanJson = 405,
  kPlanDevice = 407,
  kForwardAlpha = 700,
  kForwardBeta = 701,
  kForwardConvolution = 702,
  kForwardW = 703,
  kForwardX = 704,
  kForwardY = 705,
  kBackwardAlpha = 706,
  kBackwardBeta = 707,
  kBackwardConvolution = 708,
  kBackwardW = 709,
  kBackwardDx = 710,
  kBackwardDy = 711,
  kOperationPointwise = 750,
  kOperationX = 751,
  kOperationB = 752,
  kOperationY = 753,
  kGraphOperations = 801,
  kGraphEngineCount = 802,
  kTensorAlignment = 900,
  kTensorDataType = 901,
  kTensorDimensions = 902,
  kTensorStrides = 903,
  kTensorId = 906,
  kTensorIsVirtual = 907,
  kTensorIsByValue = 908,
  kPackIds = 1000,
  kPackPointers = 1001,
  kPackWorkspace = 1003,
  kEngineGraph = 1300,
  kEngineIndex = 1301,
  kEngineNotes = 1303,
  kEngineBehavior = 1305,
  kEngineDevice = 1307,
  kMatmulPrecision = 1500,
  kMatmulA = 1520,
  kMatmulB = 1521,
  kMatmulC = 1522,
  kMatmulOf = 1523,
  kReductionOperatorOf = 1600,
  kReductionPrecision = 1601,
  kReductionX = 1610,
  kReductionY = 1611,
  kReductionOf = 1612,
  kDeviceId = 2700,
  kDeviceJson = 2702,
};

inline constexpr int kFloat32 = 0, kFloat16 = 2, kBFloat16 = 9;  // data types
inline constexpr int kCrossCorrelation = 1;                      // convolution modes
inline constexpr int kAdd = 0, kRelu = 100, kSigmoid = 102;      // pointwise modes
inline constexpr int kGelu = 104, kSwish = 106, kGeluTanh = 107;
inline constexpr int kMultiply = 1, kDivide = 6, kSubtract = 9, kExp = 13, kLog = 15;
inline constexpr int kSumOver = 0, kMaximumOver = 3;                         // reductions
inline constexpr int kModeA = 3, kModeFallback = 2;                          // heuristics
inline constexpr int kTensorCores = 0, kDownConverts = 1, kReducedSums = 2;  // numerical notes
inline constexpr int kFourier = 3, kVaries = 4, kWinograd = 5, kNoteCount = 10;
inline constexpr int kCompiledAtRunTime = 0, kBehaviorCount = 5;  // behavior notes

}  // namespace cudnn
}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_CUDNN_TABLE_H_
