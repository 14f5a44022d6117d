// cuDNN's function table without cuDNN or a GPU: operation graphs are executed by the operators'
// definitions. For tests.
#ifndef MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_CUDNN_H_
#define MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_CUDNN_H_

#include <cstdint>
#include <memory>
#include <string>

#include "graph/types.h"
#include "kernels/cuda/cudnn/table.h"

namespace mendel::cuda {

/// Version 9.19.0, whatever the device. Handles execute in the memory and on the streams of the
/// one FakeDriver, which must exist then. Like the real library, it refuses incomplete or
/// unfinalized descriptors, tensors outside of any allocation, and a plan whose first execution
/// is captured. A plan can be made again from its JSON alone. An execution overwrites its
/// workspace.
///
/// The heuristics list these engines: 0; 1 by tensor cores; 2 by Winograd, 4,096 bytes of
/// workspace; 3, of which no plan can be made; 4, 1,000 bytes; 5, whose sums vary; 6, compiled at
/// run time; 8 by tensor cores and Winograd; 9 by tensor cores after a conversion; 10 by tensor
/// cores, 512 bytes; then, as fallback: 0 again; 7, 1 GiB. No heuristics list 11, 2,000 bytes.
/// Activations but Relu, epilogues of transposed convolutions, both with the channels last, and
/// attention in f16 and bf16 have two engines, compiled at run time: 12 by tensor cores, 256 bytes;
/// then 6.
/// Engines by tensor cores round f32 operands to TF32. No engine computes a depthwise convolution
/// with a residual, or stored tensors of several dtypes.
class FakeCudnn {
 public:
  FakeCudnn();
  ~FakeCudnn();
  FakeCudnn(const FakeCudnn&) = delete;
  FakeCudnn& operator=(const FakeCudnn&) = delete;

  const Cudnn& table() const { return table_; }

  /// The call with this number, counted from now and from 1, fails with this error, once. 0: none
  /// does.
  void FailAt(int64_t call, int error = 4000);
  /// The entry of that call; empty before it.
  std::string FailedCall() const;
  /// Convolutions that rounded their operands, replayed ones included.
  int64_t Tf32Convolutions() const;
  /// Convolutions of stored tensors of this dtype, replayed ones included.
  int64_t ConvolutionsOf(DType dtype) const;
  /// Calls since the last FailAt.
  int64_t Calls() const;
  /// Plans are made and loaded as by this version; a plan of another version is refused.
  void SetVersion(int version);

  /// Lists what was made and not given back, for people; empty if there is nothing.
  std::string Leaks() const;

  struct State;

 private:
  Cudnn table_;
  std::unique_ptr<State> state_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_CUDNN_H_
