#include "kernels/cuda/testing/device_case.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "base/random.h"
#include "base/status.h"
#include "graph/sample_node.h"
#include "kernels/cuda/fusion/preamble.h"

namespace mendel::cuda {
namespace {

/// Rounding of a kernel in this dtype, relative to the largest element.
double ToleranceOf(DType dtype) {
  return dtype == DType::kBF16
             ? 1.0 / 64
             : (dtype == DType::kF16 ? 1.0 / 512 : (dtype == DType::kF64 ? 1e-12 : 2e-5));
}

std::string BitDifference(const Tensor& expected, const Tensor& got) {
  for (int64_t k = 0; k < got.size(); ++k) {
    const double a = expected.DoubleAt(k), b = got.DoubleAt(k);
    const bool same = std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
    if (!same) return Cat("element ", k, " is ", b, ", not ", a);
  }
  return "";
}

/// Every f32 number that a pattern of 16 bits is the upper or rounded part of: itself, half a
/// place above, and the neighbors of that.
std::vector<float> Neighborhoods(DType dtype) {
  std::vector<float> result;
  for (uint32_t pattern = 0; pattern <= 0xffff; ++pattern) {
    const auto bits = static_cast<uint16_t>(pattern);
    const float own =
        dtype == DType::kF16 ? HalfToFloat(bits) : std::bit_cast<float>(pattern << 16);
    const auto below = std::bit_cast<uint32_t>(own);
    const uint32_t middle = below + (dtype == DType::kF16 ? 0x1000 : 0x8000);
    result.push_back(own);
    for (const uint32_t beside : {middle - 1, middle, middle + 1})
      result.push_back(std::bit_cast<float>(beside));
  }
  // Middles of subnormal halves lie elsewhere: multiples of 2^-25.
  for (int k = 0; k <= 2048; ++k) {
    const float middle = std::ldexp(static_cast<float>(k), -25);
    for (const float value : {middle, std::nextafter(middle, 1.0F), std::nextafter(middle, -1.0F)})
      result.insert(result.end(), {value, -value});
  }
  return result;
}

template <class T>
std::vector<std::byte> BytesOf(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

absl::StatusOr<DeviceCase> CastCase(const Tensor& input, DType to) {
  DeviceCase one{Cat("casts of ", DTypeName(input.dtype()), " to ", DTypeName(to)), {}, {}, {}};
  one.exact = true;
  one.inputs.push_back(HostValue::FromTensor(input));
  GraphBuilder builder;
  const ValueId x = builder.Input("x", input.type());
  MENDEL_ASSIGN_OR_RETURN(const int32_t id,
                          builder.AddNode("Cast", {x}, {{"to", std::string(DTypeName(to))}}));
  builder.Output("y", {id, 0});
  MENDEL_ASSIGN_OR_RETURN(one.graph, builder.Build());
  MENDEL_ASSIGN_OR_RETURN(one.program, LowerToDevice(one.graph));
  return one;
}

}  // namespace

absl::StatusOr<std::vector<DeviceCase>> HalfPrecisionCases() {
  std::vector<DeviceCase> cases;
  std::vector<uint16_t> patterns(0x10000);
  std::iota(patterns.begin(), patterns.end(), uint16_t{0});
  for (const DType half : {DType::kF16, DType::kBF16}) {
    const Tensor stored({half, {0x10000}}, BytesOf(patterns));
    MENDEL_ASSIGN_OR_RETURN(cases.emplace_back(), CastCase(stored, DType::kF32));
    const std::vector<float> values = Neighborhoods(half);
    const Tensor wide({DType::kF32, {static_cast<int64_t>(values.size())}}, BytesOf(values));
    MENDEL_ASSIGN_OR_RETURN(cases.emplace_back(), CastCase(wide, half));
  }
  return cases;
}

absl::StatusOr<std::vector<char>> TextImage(const std::string& text) {
  return std::vector<char>(text.c_str(), text.c_str() + text.size() + 1);
}

std::string Difference(const HostValue& expected, const Tensor& got, double tolerance) {
  const Tensor rounded = expected.ToTensor();
  double largest = 1;
  for (int64_t k = 0; k < got.size(); ++k) {
    if (std::isfinite(rounded.DoubleAt(k)))
      largest = std::max(largest, std::abs(rounded.DoubleAt(k)));
  }
  for (int64_t k = 0; k < got.size(); ++k) {
    const double a = rounded.DoubleAt(k), b = got.DoubleAt(k);
    if ((std::isnan(a) && std::isnan(b)) || a == b) continue;
    if (IsFloat(got.dtype()) && std::abs(a - b) <= tolerance * largest) continue;
    return Cat("element ", k, " is ", b, ", not ", a);
  }
  return "";
}

absl::StatusOr<DeviceCase> SampledCase(const OpDefinition& op, uint64_t seed) {
  Rng rng(seed);
  MENDEL_ASSIGN_OR_RETURN(const SampledNode node, SampleNode(op, rng));
  DeviceCase one{Cat(DescribeNode(node), ", seed ", seed), {}, {}, {}};
  // One input at least stays one, so that there is something to run.
  const uint64_t constants = rng.Flip() ? 0 : rng.Next() << 1;
  GraphBuilder builder;
  std::vector<ValueId> inputs;
  for (const HostValue& sampled : SampleInputs(node, rng)) {
    const size_t k = inputs.size();
    const Tensor tensor = sampled.ToTensor();
    if ((constants >> k & 1) != 0) {
      inputs.push_back(builder.Constant(tensor, IsFloat(tensor.dtype()) ? Cat("w", k) : ""));
    } else {
      inputs.push_back(builder.Input(Cat("x", k), tensor.type()));
      one.inputs.push_back(HostValue::FromTensor(tensor));
    }
  }
  MENDEL_ASSIGN_OR_RETURN(const int32_t id, builder.AddNode(op.name, inputs, node.attrs));
  for (size_t k = 0; k < node.outputs.size(); ++k)
    builder.Output(Cat("y", k), {id, static_cast<int32_t>(k)});
  MENDEL_ASSIGN_OR_RETURN(one.graph, builder.Build());
  MENDEL_ASSIGN_OR_RETURN(one.program, LowerToDevice(one.graph, {.reuse_memory = seed % 2 == 0}));
  return one;
}

absl::StatusOr<OperatorCases> SampleOperators(uint64_t seeds) {
  OperatorCases result;
  for (const OpDefinition* op : AllOps()) {
    if (op->sample == nullptr) continue;
    ++result.operators;
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      auto one = SampledCase(*op, seed);
      if (absl::IsUnimplemented(one.status())) {
        result.refused.emplace_back(one.status().message());
        continue;
      }
      if (!one.ok()) return Annotate(one.status(), Cat(op->name, " seed ", seed));
      result.cases.push_back(*std::move(one));
    }
  }
  return result;
}

std::string ModuleOf(const std::vector<DeviceCase>& cases) {
  std::string text = PreambleText();
  std::set<std::string> seen;
  for (const DeviceCase& one : cases) {
    for (const std::string& kernel : one.program.texts) {
      if (seen.insert(kernel).second) text += kernel;
    }
  }
  return text;
}

absl::StatusOr<std::string> WrongNumber(Executable& executable, const DeviceCase& one) {
  MENDEL_ASSIGN_OR_RETURN(const std::vector<HostValue> expected, Evaluate(one.graph, one.inputs));
  return WrongNumber(executable, one, expected);
}

absl::StatusOr<std::string> WrongNumber(Executable& executable, const DeviceCase& one,
                                        const std::vector<HostValue>& expected) {
  std::vector<Tensor> inputs;
  for (const HostValue& input : one.inputs) inputs.push_back(input.ToTensor());
  MENDEL_ASSIGN_OR_RETURN(const std::vector<Tensor> results,
                          RunOnTensors(executable, one.graph, inputs));
  for (size_t k = 0; k < results.size(); ++k) {
    const double tolerance =
        std::max(ToleranceOf(results[k].dtype()), 8 * OperandRounding(one.numerics));
    const std::string difference = one.exact ? BitDifference(expected[k].ToTensor(), results[k])
                                             : Difference(expected[k], results[k], tolerance);
    if (!difference.empty()) return Cat("output ", k, ": ", difference);
  }
  return "";
}

std::string FailureOf(Executable& executable, const DeviceCase& one) {
  const auto wrong = WrongNumber(executable, one);
  return wrong.ok() ? *wrong : std::string(wrong.status().message());
}

std::string FailureOn(const Driver& driver, const ImageOf& image, const DeviceCase& one) {
  const auto executable = MakeExecutable(driver, one.program, image);
  return executable.ok() ? FailureOf(**executable, one)
                         : std::string(executable.status().message());
}

}  // namespace mendel::cuda
