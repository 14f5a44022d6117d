// The values that a part reads and writes in one run.
#ifndef MENDEL_CLIENT_ONNXRUNTIME_PART_INPUTS_H_
#define MENDEL_CLIENT_ONNXRUNTIME_PART_INPUTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace mendel::ort {

/// Inputs at hand; `shapes[k]` has `ranks[k]` extents, `types[k]` is a TensorProto::DataType.
struct PartInputs {
  std::vector<int> ranks;
  std::vector<const int64_t*> shapes;
  std::vector<const void*> data;
  std::vector<int> types;
};

/// Size of input `k`.
size_t BytesOfInput(const PartInputs& inputs, size_t k);

/// The inputs' shapes as in the option --shapes: "in0:1x3,in1:scalar".
std::string ShapesText(const PartInputs& inputs);

/// A copy of inputs that lasts.
class KeptInputs {
 public:
  explicit KeptInputs(const PartInputs& inputs);
  PartInputs inputs() const;

 private:
  std::vector<std::vector<int64_t>> shapes_;
  std::vector<std::vector<std::byte>> data_;
  std::vector<int> types_;
};

/// Returns the buffer of output `index` with this shape, or NULL.
using MakeOutput = std::function<void*(int index, std::span<const int64_t> shape)>;

}  // namespace mendel::ort

#endif  // MENDEL_CLIENT_ONNXRUNTIME_PART_INPUTS_H_
