#include "kernels/cuda/cudnn/operation_graph.h"

#include <utility>
#include <vector>

namespace mendel::cuda {
namespace {

using Shared = std::shared_ptr<Descriptor>;

constexpr int64_t kAlignment = 16;
constexpr int64_t kFirstVirtual = 100;  // ids of what is never stored

int ModeOf(CudnnActivation activation) {
  switch (activation) {
    case CudnnActivation::kSigmoid:
      return cudnn::kSigmoid;
    case CudnnActivation::kSilu:
      return cudnn::kSwish;
    case CudnnActivation::kGelu:
      return cudnn::kGelu;
    case CudnnActivation::kGeluTanh:
      return cudnn::kGeluTanh;
    default:
      return cudnn::kRelu;
  }
}

class GraphMaker {
 public:
  GraphMaker(const Cudnn& cudnn, const CudnnConvolution& conv) : cudnn_(cudnn), conv_(conv) {
    left_ = 1 + (conv.residual ? 1 : 0) + (conv.bias ? 1 : 0) + (conv.HasActivation() ? 1 : 0);
  }

  absl::StatusOr<Shared> Make() {
    AddConvolution(Tensor("x", conv_.x, kCudnnX), Tensor("w", conv_.w, kCudnnW));
    if (conv_.residual) AddPointwise(cudnn::kAdd, Tensor("residual", conv_.y, kCudnnResidual));
    Shape channels(conv_.y.size(), 1);
    channels[1] = conv_.y[1];
    if (conv_.bias) AddPointwise(cudnn::kAdd, Tensor("bias", channels, kCudnnBias));
    if (conv_.HasActivation()) AddPointwise(ModeOf(conv_.activation), nullptr);
    const Shared graph = New(cudnn::kGraph, "the graph");
    graph->Refer(cudnn::kGraphOperations, operations_);
    MENDEL_RETURN_IF_ERROR(graph->Finalize());
    return graph;
  }

 private:
  Shared New(cudnn::Type type, const char* what) const {
    return std::make_shared<Descriptor>(cudnn_, type, what);
  }

  Ints StridesOf(const Shape& shape) const {
    Ints strides(shape.size());
    int64_t step = 1;
    const auto next = [&](size_t d) { strides[d] = std::exchange(step, step * shape[d]); };
    if (conv_.channels_last) next(1);
    for (size_t d = shape.size(); d-- > 2;) next(d);
    if (!conv_.channels_last) next(1);
    next(0);
    return strides;
  }

  Shared Tensor(const char* what, const Shape& shape, int64_t id) const {
    const bool is_virtual = id >= kFirstVirtual;
    const Shared tensor = New(cudnn::kTensor, what);
    tensor->Int(cudnn::kTensorId, id);
    // Tensors that are never stored keep the precision of the sums.
    tensor->Enum(cudnn::kTensorDataType, cudnn::kDataType,
                 is_virtual ? cudnn::kFloat32 : cudnn::DataType(conv_.dtype));
    tensor->Ints(cudnn::kTensorDimensions, shape);
    tensor->Ints(cudnn::kTensorStrides, StridesOf(shape));
    tensor->Int(cudnn::kTensorAlignment, kAlignment);
    tensor->Flag(cudnn::kTensorIsVirtual, is_virtual);
    (void)tensor->Finalize();  // sticks, and is reported by who refers to it
    return tensor;
  }
  Shared NextResult() {
    --left_;
    return result_ = Tensor("y", conv_.y, left_ > 0 ? kFirstVirtual + left_ : kCudnnY);
  }

  void AddConvolution(const Shared& x, const Shared& w) {
    const Shared convolution = New(cudnn::kConvolution, "the convolution");
    convolution->Enum(cudnn::kConvolutionPrecision, cudnn::kDataType, cudnn::kFloat32);
    convolution->Enum(cudnn::kConvolutionModeOf, cudnn::kConvolutionMode, cudnn::kCrossCorrelation);
    convolution->Ints(cudnn::kConvolutionDilations, conv_.dilations);
    convolution->Ints(cudnn::kConvolutionStrides, conv_.strides);
    convolution->Ints(cudnn::kConvolutionPrePads, conv_.pads_begin);
    convolution->Ints(cudnn::kConvolutionPostPads, conv_.pads_end);
    convolution->Int(cudnn::kConvolutionDimensions, static_cast<int64_t>(conv_.strides.size()));
    (void)convolution->Finalize();
    const bool transposed = conv_.transposed;
    const Shared operation = New(
        transposed ? cudnn::kConvolutionBackwardData : cudnn::kConvolutionForward, "the operation");
    operation->Refer(transposed ? cudnn::kBackwardConvolution : cudnn::kForwardConvolution,
                     {convolution});
    operation->Refer(transposed ? cudnn::kBackwardDy : cudnn::kForwardX, {x});
    operation->Refer(transposed ? cudnn::kBackwardW : cudnn::kForwardW, {w});
    operation->Refer(transposed ? cudnn::kBackwardDx : cudnn::kForwardY, {NextResult()});
    operation->Number(transposed ? cudnn::kBackwardAlpha : cudnn::kForwardAlpha, 1);
    operation->Number(transposed ? cudnn::kBackwardBeta : cudnn::kForwardBeta, 0);
    (void)operation->Finalize();
    operations_.push_back(operation);
  }

  void AddPointwise(int mode, const Shared& other) {
    const Shared pointwise = New(cudnn::kPointwise, "the pointwise function");
    pointwise->Enum(cudnn::kPointwiseModeOf, cudnn::kPointwiseMode, mode);
    pointwise->Enum(cudnn::kPointwisePrecision, cudnn::kDataType, cudnn::kFloat32);
    (void)pointwise->Finalize();
    const Shared operation = New(cudnn::kPointwiseOperation, "the pointwise operation");
    operation->Refer(cudnn::kOperationPointwise, {pointwise});
    operation->Refer(cudnn::kOperationX, {result_});
    if (other != nullptr) operation->Refer(cudnn::kOperationB, {other});
    operation->Refer(cudnn::kOperationY, {NextResult()});
    (void)operation->Finalize();
    operations_.push_back(operation);
  }

  const Cudnn& cudnn_;
  const CudnnConvolution& conv_;
  int left_ = 0;  // results to come
  Shared result_;
  std::vector<Shared> operations_;
};

}  // namespace

absl::StatusOr<Shared> MakeOperationGraph(const Cudnn& cudnn, const CudnnConvolution& convolution) {
  return GraphMaker(cudnn, convolution).Make();
}

}  // namespace mendel::cuda
