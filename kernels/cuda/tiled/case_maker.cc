#include "kernels/cuda/tiled/case_maker.h"

#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "graph/text.h"

namespace mendel::cuda {

CaseMaker::CaseMaker(uint64_t seed, ChainValues values)
    : rng_(seed), floats_(values == ChainValues::kFloats), seed_(seed) {
  constexpr DType kTypes[] = {DType::kF32, DType::kF32, DType::kF16, DType::kBF16, DType::kF64};
  if (floats_) dtype_ = kTypes[rng_.Below(5)];
}

void CaseMaker::DrawBatch() {
  for (int64_t rank = rng_.Between(0, 2); rank > 0; --rank) batch_.push_back(rng_.Between(1, 3));
}

Shape CaseMaker::With(int64_t rows, int64_t columns) const {
  Shape shape = batch_;
  shape.insert(shape.end(), {rows, columns});
  return shape;
}

ValueId CaseMaker::Source(const Shape& shape, bool stored) {
  std::vector<double> values;
  for (int64_t left = NumElements(shape); left > 0; --left)
    values.push_back(static_cast<double>(rng_.Between(-16, 16)) / 16);
  const Tensor tensor = Tensor::FromDoubles({dtype_, shape}, values);
  const std::string name = Cat("v", sources_++);
  if (stored) return e_.Constant(tensor, name);
  case_.inputs.push_back(HostValue::FromTensor(tensor));
  return e_.Input(name, tensor.type());
}

ValueId CaseMaker::Right(int64_t depth, int64_t columns, bool batched, bool transposed) {
  Shape shape = batched ? batch_ : Shape();
  const size_t rank = shape.size() + 2;
  if (!transposed) {
    shape.insert(shape.end(), {depth, columns});
    return Source(shape, rng_.Flip());
  }
  shape.insert(shape.end(), {columns, depth});
  Ints perm;
  for (size_t d = 0; d < rank; ++d) perm.push_back(static_cast<int64_t>(d));
  std::swap(perm[rank - 1], perm[rank - 2]);
  return e_.Transpose(Source(shape), perm);
}

ValueId CaseMaker::Function(ValueId value) {
  const char* const floats[] = {"Gelu", "Tanh", "Relu", "Abs"};
  const char* const oracles[] = {"Sigmoid", "Tanh", "Relu", "Neg"};
  return e_.Op((floats_ ? floats : oracles)[rng_.Below(4)], {value});
}

ValueId CaseMaker::Follower(ValueId value) {
  if (rng_.Flip()) return Function(value);
  const ValueId other = Source(rng_.Flip() ? Shape{e_.shape(value).back()} : e_.shape(value));
  return rng_.Flip() ? e_.Add(value, other) : e_.Op("Mul", {other, value});
}

DeviceCase CaseMaker::Finished(ValueId value) {
  e_.Output("y", value);
  auto graph = e_.Finish();
  MENDEL_CHECK(graph.ok());
  case_.graph = *std::move(graph);
  case_.description = Cat("seed ", seed_, "\n", PrintGraph(case_.graph));
  return std::move(case_);
}

}  // namespace mendel::cuda
