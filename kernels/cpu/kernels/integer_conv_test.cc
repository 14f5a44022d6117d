// Integer convolutions of random forms against plain loops, with weights at the ends of their
// range.
#include "kernels/cpu/kernels/integer_conv.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "kernels/cpu/simd/native_isa.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

struct Case {
  IntegerConv conv;
  std::vector<int16_t> weights;  ///< channel, input, tap
  std::vector<uint8_t> source;
};

/// The kinds differ in how many quads a sum in 16 bits holds.
int64_t RandomWeight(Rng& rng, int kind) {
  if (kind == 0) return rng.Between(-20, 20);
  if (kind == 1) return rng.Flip() ? 127 : -128;
  if (kind == 2) return rng.Between(-255, 255);
  return rng.Between(-128, 127);
}

Case RandomCase(Rng& rng) {
  Case c;
  IntegerConv& conv = c.conv;
  conv.from = rng.Flip() ? DType::kU8 : DType::kI8;
  const DType results[] = {DType::kI32, DType::kF32, DType::kU8, DType::kI8};
  conv.result = results[rng.Below(4)];
  conv.source_zero =
      static_cast<int32_t>(rng.Between(LowestInteger(conv.from), HighestInteger(conv.from)));
  conv.batch = rng.Between(1, 2);
  const auto form = rng.Below(4);  // product, convolution, groups, depthwise
  conv.groups = form == 2 ? rng.Between(2, 3) : form == 3 ? rng.Between(2, 70) : 1;
  conv.inputs = form == 3 ? 1 : rng.Between(1, form == 0 ? 1200 : 40);
  conv.outputs = form == 3 ? 1 : rng.Between(form == 2 ? 16 : 1, rng.Flip(0.2) ? 300 : 40);
  for (int d = 0; d < 3; ++d) {
    conv.in[d] = form != 0 ? rng.Between(1, d == 0 ? 3 : 9) : d < 2 ? 1 : rng.Between(1, 130);
    conv.out[d] = conv.in[d];
    if (form == 0) continue;
    conv.taps[d] = rng.Between(1, d == 0 ? 2 : 3);
    conv.stride[d] = rng.Between(1, 2);
    conv.dilation[d] = rng.Between(1, 2);
    const int64_t reach = (conv.taps[d] - 1) * conv.dilation[d] + 1;
    conv.pad[d] = rng.Flip() ? 0 : rng.Between(0, reach);
    const int64_t after = rng.Flip() ? 0 : rng.Between(0, reach);
    conv.in[d] = std::max(conv.in[d], reach - conv.pad[d] - after);
    conv.out[d] = (conv.in[d] + conv.pad[d] + after - reach) / conv.stride[d] + 1;
  }
  const int kind = static_cast<int>(rng.Below(4));
  for (int64_t k = conv.groups * conv.outputs * conv.Taps() * conv.inputs; k > 0; --k)
    c.weights.push_back(static_cast<int16_t>(RandomWeight(rng, kind)));
  const bool ends = rng.Flip(0.3);
  for (int64_t k = conv.batch * conv.in[0] * conv.in[1] * conv.in[2] * conv.groups * conv.inputs;
       k > 0; --k)
    c.source.push_back(static_cast<uint8_t>(ends ? 255 * rng.Below(2) : rng.Below(256)));
  for (int64_t k = 0; k < conv.groups * conv.outputs && conv.result != DType::kI32; ++k) {
    // Powers of two: nothing is rounded before the result is.
    conv.scale.push_back(std::ldexp(1.0f, static_cast<int>(rng.Between(-12, -6))));
    conv.shift.push_back(static_cast<float>(rng.Between(-64, 64)) / 4);
  }
  if (rng.Flip()) conv.low = 0;
  if (rng.Flip()) conv.high = static_cast<float>(rng.Between(1, 100));
  if (conv.result == DType::kU8 || conv.result == DType::kI8)
    conv.result_zero =
        static_cast<int32_t>(rng.Between(LowestInteger(conv.result), HighestInteger(conv.result)));
  return c;
}

/// The sum of one output channel at one position.
int32_t SumAt(const Case& c, int64_t position, int64_t channel) {
  const IntegerConv& conv = c.conv;
  const int64_t at[3] = {position / conv.out[2] / conv.out[1] % conv.out[0],
                         position / conv.out[2] % conv.out[1], position % conv.out[2]};
  const int64_t image = position / conv.Positions();
  int64_t sum = 0;
  for (int64_t tap = 0; tap < conv.Taps(); ++tap) {
    const int64_t index[3] = {tap / conv.taps[2] / conv.taps[1], tap / conv.taps[2] % conv.taps[1],
                              tap % conv.taps[2]};
    int64_t pixel = image;
    bool inside = true;
    for (int d = 0; d < 3; ++d) {
      const int64_t x = at[d] * conv.stride[d] + index[d] * conv.dilation[d] - conv.pad[d];
      inside = inside && x >= 0 && x < conv.in[d];
      pixel = pixel * conv.in[d] + x;
    }
    if (!inside) continue;
    for (int64_t i = 0; i < conv.inputs; ++i) {
      const uint8_t byte = c.source[static_cast<size_t>(
          (pixel * conv.groups + channel / conv.outputs) * conv.inputs + i)];
      const int64_t code = conv.from == DType::kI8 ? int64_t{static_cast<int8_t>(byte)} : byte;
      const int64_t weight =
          c.weights[static_cast<size_t>((channel * conv.inputs + i) * conv.Taps() + tap)];
      sum += (code - conv.source_zero) * weight;
    }
  }
  return static_cast<int32_t>(sum);
}

/// A double holds every result.
double ResultAt(const Case& c, int64_t position, int64_t channel) {
  const IntegerConv& conv = c.conv;
  const int32_t sum = SumAt(c, position, channel);
  if (conv.result == DType::kI32) return sum;
  const auto k = static_cast<size_t>(channel);
  float y = static_cast<float>(sum) * conv.scale[k] + conv.shift[k];
  y = std::min(std::max(y, conv.low), conv.high);
  if (conv.result == DType::kF32) return static_cast<double>(y);
  const double code = std::nearbyint(static_cast<double>(y)) + conv.result_zero;
  return std::clamp(code, static_cast<double>(LowestInteger(conv.result)),
                    static_cast<double>(HighestInteger(conv.result)));
}

double ElementOf(const std::vector<std::byte>& bytes, DType dtype, int64_t at) {
  const std::byte* const from = bytes.data() + at * DTypeSize(dtype);
  const auto as = [&](auto value) {
    std::memcpy(&value, from, sizeof(value));
    return static_cast<double>(value);
  };
  if (dtype == DType::kU8) return as(uint8_t{});
  if (dtype == DType::kI8) return as(int8_t{});
  return dtype == DType::kI32 ? as(int32_t{}) : as(float{});
}

/// Runs the kernel. Buffers end where their tensors do.
std::vector<std::byte> ResultOf(const Case& c, bool zero_at_run_time, int threads) {
  IntegerConv conv = c.conv;
  StoredIntegers stored;
  stored.weights = c.weights.data();
  stored.groups = conv.groups;
  stored.outputs = conv.outputs;
  stored.inputs = conv.inputs;
  stored.taps = conv.Taps();
  stored.channel_step = conv.Taps() * conv.inputs;
  stored.input_step = conv.Taps();
  stored.tap_step = 1;
  stored.run = conv.Run();
  const auto packed = std::make_shared<const PackedIntegers>(conv, stored);
  const auto aligned = [](std::vector<std::byte>& storage, int64_t bytes) {
    storage.resize(static_cast<size_t>(bytes) + 64);
    const auto address = reinterpret_cast<uintptr_t>(storage.data());
    return storage.data() + (64 - address % 64) % 64;
  };
  std::vector<std::byte> weights, scratch;
  std::vector<std::byte> source(c.source.size());
  std::memcpy(source.data(), c.source.data(), source.size());
  std::vector<std::byte> to(static_cast<size_t>(conv.batch * conv.Positions() * conv.groups *
                                                conv.outputs * DTypeSize(conv.result)));
  Bindings bindings;
  bindings.buffers = {source.data(), aligned(weights, packed->Bytes()), to.data(),
                      reinterpret_cast<std::byte*>(&conv.source_zero)};
  bindings.scratch = aligned(scratch, IntegerConvScratch(conv, threads));
  packed->Pack(stored, bindings.buffers[1]);
  conv.source.buffer = 0;
  conv.weights.buffer = 1;
  conv.to.buffer = 2;
  int32_t zero = conv.source_zero;
  if (zero_at_run_time) {
    conv.zero.emplace();
    conv.zero->buffer = 3;
    bindings.buffers[3] = reinterpret_cast<std::byte*>(&zero);
    conv.source_zero = 0;
  }
  const ThreadScope scope(threads);
  EXPECT_TRUE(MakeIntegerConvKernel(conv, packed, threads)->Run(bindings).ok());
  return to;
}

TEST(IntegerConv, MeansItsDefinition) {
  if (NativeIsaHere() == NativeIsa::kNone) GTEST_SKIP() << "there are kernels from AVX2 on";
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    const Case c = RandomCase(rng);
    if (!SuitsIntegerConv(c.conv)) continue;
    const std::vector<std::byte> have =
        ResultOf(c, rng.Flip(0.3), static_cast<int>(rng.Between(1, 3)));
    const int64_t channels = c.conv.groups * c.conv.outputs;
    for (int64_t k = 0; k < c.conv.batch * c.conv.Positions() * channels; ++k) {
      ASSERT_EQ(ElementOf(have, c.conv.result, k), ResultAt(c, k / channels, k % channels))
          << "element " << k;
    }
  }
}

}  // namespace
}  // namespace mendel::cpu
