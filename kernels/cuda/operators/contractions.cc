// Convolutions and matrix products, directly: a thread an element. What runs where neither a
// library nor a tiled kernel (products.h) was measured to be better.

#include <algorithm>
#include <iterator>
#include <map>

#include "base/status.h"
#include "kernels/cuda/operators/products.h"
#include "kernels/cuda/operators/windows.h"

namespace mendel::cuda::texts::contractions {
namespace {

using Names = std::vector<std::string>;

std::string Accumulator(const ElementAt& at, const Position& bias) {
  return at.code.Variable(at.real(), at.view.inputs.size() > 2 ? at.In(2, bias) : at.Literal(0));
}

void Accumulate(const ElementAt& at, const std::string& sum, const Names& left,
                const Names& right) {
  const std::string a = at.In(0, left), b = at.In(1, right);
  at.code.Line(Cat(sum, " = Plus(", sum, ", Times(", a, ", ", b, "));"));
}

Names Joined(Names first, const Names& rest) {
  first.insert(first.end(), rest.begin(), rest.end());
  return first;
}

std::string ConvElement(const ElementAt& at) {
  const Shape& x = at.shape(0);
  const Shape& w = at.shape(1);
  const Names& o = at.position.at;
  const int64_t group_channels = w[0] / at.view.attrs.Int("group");
  const std::vector<Window> windows =
      WindowsOf(Shape(x.begin() + 2, x.end()), Shape(w.begin() + 2, w.end()), at.view.attrs);
  const std::string sum = Accumulator(at, Position{{o[1]}});
  if (w[1] == 0) return sum;
  const std::string first = at.code.LetIndex(Scaled(Divided(o[1], group_channels), w[1]));
  const std::string channel = at.code.Loop(w[1]);
  const OpenTaps open = OpenWindow(at.code, windows, Names(o.begin() + 2, o.end()));
  Accumulate(at, sum, Joined({o[0], Added(first, channel)}, open.places),
             Joined({o[1], channel}, open.taps));
  CloseAll(at.code, open);
  at.code.Close();
  return sum;
}

/// Output position p meets input position i by tap k where i * stride + k * dilation = p + pad.
std::string ConvTransposeElement(const ElementAt& at) {
  const Shape& x = at.shape(0);
  const Shape& w = at.shape(1);
  const Names& o = at.position.at;
  const Attributes& attrs = at.view.attrs;
  const int64_t depth = x[1] / attrs.Int("group");
  const std::string sum = Accumulator(at, Position{{o[1]}});
  const std::string group = at.code.LetIndex(Divided(o[1], w[1]));
  const std::string row = at.code.Loop(depth);
  const std::string channel = at.code.LetIndex(Added(Scaled(group, depth), row));
  Names taps, places;
  int braces = 1;
  for (size_t d = 0; d + 2 < x.size(); ++d) {
    const int64_t stride = attrs.IntList("strides")[d];
    taps.push_back(at.code.Loop(w[d + 2]));
    const std::string scaled =
        at.code.LetIndex(Added(Added(o[d + 2], attrs.IntList("pads")[d]),
                               Scaled(taps[d], -attrs.IntList("dilations")[d])));
    at.code.Open(Cat("if (", scaled, " >= 0 && ", Modulo(scaled, stride), " == 0 && ",
                     Divided(scaled, stride), " < ", x[d + 2], ")"));
    places.push_back(Divided(scaled, stride));
    braces += 2;
  }
  Accumulate(at, sum, Joined({o[0], channel}, places), Joined({channel, Modulo(o[1], w[1])}, taps));
  for (; braces > 0; --braces) at.code.Close();
  return sum;
}

std::string MatMulElement(const ElementAt& at) {
  const Names& o = at.position.at;
  const std::string sum = at.code.Variable(at.real(), at.Literal(0));
  const int64_t depth = at.shape(0).back();
  if (depth == 0) return sum;
  const std::string k = at.code.Loop(depth);
  const auto batch = [&](size_t side) {
    const Shape& shape = at.shape(side);
    Names from;
    for (size_t d = 0; d + 2 < shape.size(); ++d)
      from.push_back(shape[d] == 1 ? "0" : o[o.size() - shape.size() + d]);
    return from;
  };
  Accumulate(at, sum, Joined(batch(0), {o[o.size() - 2], k}), Joined(batch(1), {k, o.back()}));
  at.code.Close();
  return sum;
}

/// Labels of both operands and of the result; what the result lacks is summed over.
std::string EinsumElement(const ElementAt& at) {
  std::string equation = at.view.attrs.Str("equation");
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  const size_t comma = equation.find(','), arrow = equation.find("->");
  const std::string labels[] = {
      equation.substr(0, comma),
      equation.substr(comma + 1, arrow == std::string::npos ? arrow : arrow - comma - 1)};
  const std::string all = labels[0] + labels[1];
  std::string output;
  if (arrow != std::string::npos) {
    output = equation.substr(arrow + 2);
  } else {
    std::copy_if(all.begin(), all.end(), std::back_inserter(output),
                 [&](char c) { return std::count(all.begin(), all.end(), c) == 1; });
    std::sort(output.begin(), output.end());
  }
  std::map<char, std::string> names;
  for (size_t d = 0; d < output.size(); ++d) names[output[d]] = at.position.at[d];
  const std::string sum = at.code.Variable(at.real(), at.Literal(0));
  int braces = 0;
  for (size_t side = 0; side < 2; ++side) {
    for (size_t d = 0; d < labels[side].size(); ++d) {
      if (names.count(labels[side][d]) != 0) continue;
      names[labels[side][d]] = at.code.Loop(at.shape(side)[d]);
      ++braces;
    }
  }
  const auto place = [&](const std::string& operand) {
    Names from;
    for (char label : operand) from.push_back(names.at(label));
    return from;
  };
  Accumulate(at, sum, place(labels[0]), place(labels[1]));
  for (; braces > 0; --braces) at.code.Close();
  return sum;
}

MENDEL_REGISTER_OPERATOR_TEXTS({
    {.op = "Conv", .reads = Reads::kMany, .element = &ConvElement, .product = ConvProduct()},
    {.op = "ConvTranspose",
     .reads = Reads::kMany,
     .element = &ConvTransposeElement,
     .product = ConvTransposeProduct()},
    {.op = "Einsum", .reads = Reads::kMany, .element = &EinsumElement},
    {.op = "MatMul", .reads = Reads::kMany, .element = &MatMulElement, .product = MatMulProduct()},
});

}  // namespace
}  // namespace mendel::cuda::texts::contractions
