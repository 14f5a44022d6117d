// DynamicQuantizeLSTM against its equations, step by step.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/evaluate.h"
#include "onnx/import.h"
#include "onnx/model_builder.h"

namespace mendel {
namespace {

using Numbers = std::vector<double>;

constexpr size_t kInputs = 3, kHidden = 2, kGates = 4 * kHidden, kBatch = 2;

Tensor Floats(Shape shape, const Numbers& values) {
  return Tensor::FromDoubles({DType::kF32, std::move(shape)}, values);
}

/// Numbers that f32 holds.
Numbers Waves(size_t count, double phase, double size = 1) {
  Numbers values(count);
  for (size_t k = 0; k < count; ++k)
    values[k] = static_cast<float>(size * std::sin(phase + 1.7 * static_cast<double>(k)));
  return values;
}

/// Weights of one direction: codes [rows, kGates], a scale and a zero point a column.
struct Codes {
  Numbers codes, scale, zero;
  /// `x` [kBatch, rows], quantized by its range with 0, times the weights.
  Numbers Times(const Numbers& x, double step, double shift) const {
    const size_t rows = codes.size() / kGates;
    Numbers y(kBatch * kGates);
    for (size_t n = 0; n < kBatch; ++n) {
      for (size_t g = 0; g < kGates; ++g) {
        double sum = 0;
        for (size_t k = 0; k < rows; ++k) {
          const double code =
              std::clamp(std::nearbyint(x[n * rows + k] / step) + shift, 0.0, 255.0);
          sum += (code - shift) * (codes[k * kGates + g] - zero[g]);
        }
        y[n * kGates + g] = sum * step * scale[g];
      }
    }
    return y;
  }
};

struct Range {
  explicit Range(const Numbers& x) {
    const double low = std::min(0.0, *std::min_element(x.begin(), x.end()));
    const double high = std::max(0.0, *std::max_element(x.begin(), x.end()));
    if (high > low) step = (high - low) / 255;
    shift = std::nearbyint(std::clamp(-low / step, 0.0, 255.0));
  }
  double step = 1, shift = 0;
};

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// Outputs [T, kBatch, kHidden] of one direction.
Numbers Lstm(const Numbers& x, const Codes& w, const Codes& r, const Numbers& bias, bool reverse) {
  const size_t steps = x.size() / (kBatch * kInputs);
  const Range range(x);  // of all steps
  Numbers h(kBatch * kHidden), c(kBatch * kHidden), y(steps * kBatch * kHidden);
  for (size_t k = 0; k < steps; ++k) {
    const size_t t = reverse ? steps - 1 - k : k;
    const auto begin = x.begin() + static_cast<std::ptrdiff_t>(t * kBatch * kInputs);
    const Numbers from_x = w.Times({begin, begin + kBatch * kInputs}, range.step, range.shift);
    const Range state(h);
    const Numbers from_h = r.Times(h, state.step, state.shift);
    const auto gate = [&](size_t n, size_t which, size_t u) {
      const size_t g = which * kHidden + u;
      return from_x[n * kGates + g] + from_h[n * kGates + g] + bias[g] + bias[kGates + g];
    };
    for (size_t n = 0; n < kBatch; ++n) {
      for (size_t u = 0; u < kHidden; ++u) {
        const size_t at = n * kHidden + u;
        c[at] = Sigmoid(gate(n, 2, u)) * c[at] + Sigmoid(gate(n, 0, u)) * std::tanh(gate(n, 3, u));
        h[at] = Sigmoid(gate(n, 1, u)) * std::tanh(c[at]);
        y[t * kBatch * kHidden + at] = h[at];
      }
    }
  }
  return y;
}

/// `by_column`: the recurrent weights have a scale and a zero point a column.
void ExpectEquations(int64_t steps, DType dtype, bool by_column) {
  const bool is_signed = dtype == DType::kI8;
  const Numbers x = Waves(static_cast<size_t>(steps) * kBatch * kInputs, 0.3, 2);
  const Numbers bias = Waves(2 * 2 * kGates, 0.9, 0.5);
  std::vector<Codes> w, r;
  const auto codes = [&](size_t rows, double phase, bool columns) {
    Codes made;
    for (const double wave : Waves(rows * kGates, phase))
      made.codes.push_back(std::nearbyint(127 * wave) + (is_signed ? 0 : 128));
    made.scale = Numbers(kGates, static_cast<float>(0.01 + 0.001 * phase));
    for (size_t g = 0; columns && g < kGates; ++g)
      made.scale[g] = static_cast<float>(0.005 * static_cast<double>(g + 1));
    made.zero = Numbers(kGates, is_signed ? 0 : 131);
    return made;
  };
  ModelBuilder model;
  model.Input("x", {std::to_string(steps), "2", "3"}).Output("y");
  const auto add = [&](const std::string& name, int64_t rows, double phase, bool columns,
                       std::vector<Codes>& both) {
    Numbers all, scales, zeros;
    for (const double d : {0.0, 1.0}) {
      both.push_back(codes(static_cast<size_t>(rows), phase + d, columns));
      const Codes& one = both.back();
      const auto each = static_cast<std::ptrdiff_t>(columns ? kGates : 1);
      all.insert(all.end(), one.codes.begin(), one.codes.end());
      scales.insert(scales.end(), one.scale.begin(), one.scale.begin() + each);
      zeros.insert(zeros.end(), one.zero.begin(), one.zero.begin() + each);
    }
    const Shape shape = columns ? Shape{2, kGates} : Shape{2};
    model.Initializer(name, Tensor::FromDoubles({dtype, {2, rows, kGates}}, all));
    model.Initializer(name + "_scale", Floats(shape, scales));
    model.Initializer(name + "_zero", Tensor::FromDoubles({dtype, shape}, zeros));
  };
  add("w", kInputs, 0.1, false, w);
  add("r", kHidden, 0.2, by_column, r);
  model.Initializer("b", Floats({2, 2 * kGates}, bias));
  auto& node = model.Node(
      "DynamicQuantizeLSTM",
      {"x", "w", "r", "b", "", "", "", "", "w_scale", "w_zero", "r_scale", "r_zero"}, {"y"});
  node.set_domain("com.microsoft");
  ModelBuilder::Set(node, "direction", std::string("bidirectional"));
  ModelBuilder::Set(node, "hidden_size", int64_t{kHidden});
  const auto imported = ImportOnnxBytes(model.Bytes(), "");
  ASSERT_TRUE(imported.ok()) << imported.status();
  const Tensor input = Floats({steps, kBatch, kInputs}, x);
  const auto have = Evaluate(imported->graph, std::vector<HostValue>{HostValue::FromTensor(input)});
  ASSERT_TRUE(have.ok()) << have.status();
  const auto half = [&](size_t d) {
    const auto begin = bias.begin() + static_cast<std::ptrdiff_t>(d * 2 * kGates);
    return Lstm(x, w[d], r[d], {begin, begin + 2 * kGates}, d == 1);
  };
  const Numbers forward = half(0), backward = half(1);
  const Numbers& scalars = (*have)[0].scalars;  // [T, direction, batch, hidden]
  ASSERT_EQ(scalars.size(), 2 * forward.size());
  const size_t each = kBatch * kHidden;
  for (size_t k = 0; k < forward.size(); ++k) {
    const size_t at = k / each * 2 * each + k % each;
    EXPECT_NEAR(scalars[at], forward[k], 1e-12) << k;
    EXPECT_NEAR(scalars[at + each], backward[k], 1e-12) << k;
  }
}

TEST(QuantizedRecurrence, FollowsTheEquations) {
  for (const int64_t steps : {3, 70}) {
    ExpectEquations(steps, DType::kU8, false);
    ExpectEquations(steps, DType::kI8, true);
  }
}

TEST(QuantizedRecurrence, ScalesOfAWrongShapeAreRefused) {
  ModelBuilder model;
  model.Input("x", {"3", "1", "2"}).Output("y");
  for (const char* name : {"w", "r"})
    model.Initializer(name, Tensor::Filled({DType::kI8, {1, 2, 8}}, 1));
  model.Initializer("scale", Floats({3}, {1, 1, 1}));
  model.Initializer("zero", Tensor::Filled({DType::kI8, {1}}, 0));
  auto& node =
      model.Node("DynamicQuantizeLSTM",
                 {"x", "w", "r", "", "", "", "", "", "scale", "zero", "scale", "zero"}, {"y"});
  node.set_domain("com.microsoft");
  const auto imported = ImportOnnxBytes(model.Bytes(), "");
  EXPECT_NE(std::string(imported.status().message()).find("must have 1 or 1 times 8 elements"),
            std::string::npos)
      << imported.status();
}

}  // namespace
}  // namespace mendel
