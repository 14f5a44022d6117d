#include "kernels/cuda/cudnn/finish_kernel.h"

#include <cstdint>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/status.h"
#include "kernels/cuda/fusion/preamble.h"

namespace mendel::cuda {
namespace {

constexpr int64_t kThreads = 256;

}  // namespace

ConvolutionMatch FinishedByKernel(ConvolutionMatch match, const MemoryFormat& form) {
  MENDEL_CHECK(form.IsOwn() || !match.convolution.residual);
  MENDEL_CHECK(match.convolution.activation == CudnnActivation::kNone ||
               match.convolution.activation == CudnnActivation::kRelu);
  CudnnConvolution& conv = match.convolution;
  const int64_t count = NumElements(conv.y), channels = conv.y[1];
  const int64_t plane = count / (conv.y[0] * channels);
  const std::string storage(StorageName(conv.dtype)), stored(StoredName(conv.dtype));
  const DType left = form.rounded.value_or(conv.dtype);
  const std::string left_storage(StorageName(left)), left_stored(StoredName(left));
  const std::string channel =
      form.channels_last ? Cat("f % ", channels) : Cat("f / ", plane, " % ", channels);
  FusedKernel& kernel = match.group.finish;
  std::string parameters, sum = Cat(left_storage, "::Load(y[f])");
  for (size_t k = 2; k < match.group.operands.size(); ++k) {  // after x and w
    KernelOperand& operand = match.group.operands[k];
    if (operand.value.node < 0) continue;  // zeros
    const std::string pointer = Cat("p", kernel.operands.size());
    parameters += Cat("const ", stored, "* __restrict__ ", pointer, ", ");
    const std::string at = match.tensors[k] == kCudnnBias ? channel : "f";
    sum += Cat(" + ", storage, "::Load(", pointer, "[", at, "])");
    kernel.operands.push_back(std::move(operand));
  }
  const std::string rest =
      Cat("(", parameters, left_stored,
          "* __restrict__ y) {\n  using namespace mendel_text;\n  const long long f = ",
          "static_cast<long long>(blockIdx.x) * ", kThreads,
          " + static_cast<long long>(threadIdx.x);\n  if (f >= ", count, ") return;\n  const ",
          RealName(conv.dtype), " sum = ", sum, ";\n  y[f] = ", left_storage, "::Store(",
          conv.HasActivation() ? "Relu(sum)" : "sum", ");\n}\n");
  kernel.name = Cat("finish_", Sha256Hex(rest).substr(0, 24));
  kernel.text =
      Cat("extern \"C\" __global__ void __launch_bounds__(", kThreads, ") ", kernel.name, rest);
  kernel.launch = {static_cast<unsigned>((count + kThreads - 1) / kThreads),
                   static_cast<unsigned>(kThreads), 0};
  conv.bias = conv.residual = false;
  conv.activation = CudnnActivation::kNone;
  match.group.operands.resize(2);
  match.tensors = {kCudnnX, kCudnnW, kCudnnY};
  if (!form.IsOwn()) SetForm(match, form);
  return match;
}

}  // namespace mendel::cuda
