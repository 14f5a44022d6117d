#include "kernels/cuda/fusion/position.h"

#include "base/status.h"

namespace mendel::cuda {

std::string Added(const std::string& a, const std::string& b) {
  if (a == "0") return b;
  if (b == "0") return a;
  return Cat("(", a, " + ", b, ")");
}

std::string Added(const std::string& a, int64_t b) {
  if (a == "0") return b < 0 ? Cat("(", b, ")") : Cat(b);
  if (b == 0) return a;
  return b < 0 ? Cat("(", a, " - ", -b, ")") : Cat("(", a, " + ", b, ")");
}

std::string Scaled(const std::string& a, int64_t factor) {
  if (factor == 0 || a == "0") return "0";
  return factor == 1 ? a
                     : Cat("(", a, " * ", factor < 0 ? Cat("(", factor, ")") : Cat(factor), ")");
}

std::string Divided(const std::string& a, int64_t divisor) {
  return divisor == 1 || a == "0" ? a : Cat("(", a, " / ", divisor, ")");
}

std::string Modulo(const std::string& a, int64_t divisor) {
  return divisor == 1 || a == "0" ? "0" : Cat("(", a, " % ", divisor, ")");
}

Position Moved(Position at, size_t d, int64_t step, int64_t shift) {
  at.at[d] = Added(Scaled(at.at[d], step), shift);
  at.flat.clear();
  if (!at.root.empty())
    at.root[d] = {at.root[d].dim, at.root[d].step * step, at.root[d].shift * step + shift};
  return at;
}

std::string FlatOf(const Shape& shape, const Position& position) {
  if (!position.flat.empty()) return position.flat;
  const Shape strides = RowMajorStrides(shape);
  std::string sum = "0";
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1) sum = Added(sum, Scaled(position.at[d], strides[d]));
  }
  return sum;
}

}  // namespace mendel::cuda
