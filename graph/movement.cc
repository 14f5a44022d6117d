#include "graph/movement.h"

#include <utility>

#include "base/status.h"
#include "graph/elementwise.h"
#include "graph/functions.h"

namespace mendel {

absl::Status CheckAxis(int64_t axis, size_t rank) {
  if (axis < 0 || axis >= static_cast<int64_t>(rank))
    return InvalidInput("axis ", axis, " is outside the rank ", rank);
  return absl::OkStatus();
}

absl::Status CheckIndexType(const TensorType& type) {
  if (type.dtype != DType::kI32 && type.dtype != DType::kI64)
    return InvalidInput("indices must be i32 or i64, not ", TypeString(type));
  return absl::OkStatus();
}

absl::Status CheckExtents(const Shape& shape) {
  int64_t count = 1;
  for (int64_t extent : shape) {
    if (extent < 0 || (extent > 0 && count > kMaxElements / extent))
      return InvalidInput("bad shape ", ShapeString(shape));
    count *= extent;
  }
  return absl::OkStatus();
}

DType SampleAnyDType(Rng& rng) {
  constexpr std::array<DType, 5> kOthers = {DType::kF16, DType::kI32, DType::kI64, DType::kBool,
                                            DType::kF64};
  return rng.Flip(0.7) ? DType::kF32 : kOthers[rng.Below(kOthers.size())];
}

TensorType SampleIndexType(Rng& rng, Shape shape) {
  return {rng.Flip(0.3) ? DType::kI32 : DType::kI64, std::move(shape)};
}

DimAccess LinearAccess(size_t rank, size_t out_dim, int64_t coefficient, int64_t offset) {
  DimAccess access;
  access.coefficients.assign(rank, 0);
  access.coefficients[out_dim] = coefficient;
  access.offset = offset;
  return access;
}

absl::Status CheckReduction(const std::string& reduction) {
  for (std::string_view known : {"none", "add", "mul", "max", "min"}) {
    if (reduction == known) return absl::OkStatus();
  }
  return InvalidInput("unknown reduction '", reduction, "'");
}

template <class S>
S Scattered(const Reader<S>& in, const std::string& reduction, const S& old, const S& update) {
  if (reduction == "none") return update;
  if (reduction == "add") return Plus(old, update);
  if (reduction == "mul") return Times(old, update);
  return in.Call(reduction == "max" ? functions::kMax : functions::kMin, {old, update});
}
template double Scattered(const Reader<double>&, const std::string&, const double&, const double&);
template int64_t Scattered(const Reader<int64_t>&, const std::string&, const int64_t&,
                           const int64_t&);
template Fp Scattered(const Reader<Fp>&, const std::string&, const Fp&, const Fp&);
template Ball Scattered(const Reader<Ball>&, const std::string&, const Ball&, const Ball&);
template Extended Scattered(const Reader<Extended>&, const std::string&, const Extended&,
                            const Extended&);

Bound BoundOfScatter(const std::string& reduction, double count, const Bound& data,
                     const Bound& update, const Arithmetic<Bound>& arithmetic) {
  const Bound either = Either(data, update);
  if (reduction == "none") return either;
  if (reduction == "add") return SumOf(count + 1, either);
  if (reduction == "mul") {
    const Bound product{
        data.num_degree + count * update.num_degree, data.den_degree + count * update.den_degree,
        data.log2_num + count * update.log2_num, data.log2_den + count * update.log2_den};
    return Either(data, product);
  }
  const Bound operand = Either(either, Bound::Symbol());
  arithmetic.CountOperands(2 * count, operand);
  return operand;
}

}  // namespace mendel
