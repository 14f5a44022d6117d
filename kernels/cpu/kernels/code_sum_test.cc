// Sums of codes against the chain of tile functions, bit for bit.

#include "kernels/cpu/kernels/code_sum.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

constexpr int64_t kPairs = 256 * 256;

DType CodeType(Rng& rng) { return rng.Flip() ? DType::kU8 : DType::kI8; }

TileCall Call(std::string_view name, std::array<int, 3> in, int out) {
  TileCall call;
  call.name = name;
  call.function = FindTileFunction(name);
  call.in = in;
  call.out = out;
  return call;
}

/// Adds buffers 0 and 1 into buffer 2. Equal scales have many quotients at halves.
TileProgram RandomProgram(Rng& rng, int64_t count) {
  const auto number = [&] { return static_cast<float>(rng.Uniform(0.003, 0.1)); };
  const auto zero = [&](DType dtype) {
    return static_cast<float>(rng.Between(LowestInteger(dtype), HighestInteger(dtype)));
  };
  TileProgram program;
  program.extents = {count};
  const float scale = number();
  for (int k = 0; k < 2; ++k) {
    TileOperand operand{{k, 0, {}}, {1}, CodeType(rng), true, 0, rng.Flip() ? scale : number()};
    operand.zero = zero(operand.dtype);
    program.operands.push_back(std::move(operand));
  }
  program.calls.push_back(Call("Add", {0, 1, 1}, 2));
  if (rng.Flip()) program.calls.push_back(Call("Relu", {2, 2, 2}, 3));
  program.result = program.calls.back().out;
  program.registers = program.result + 1;
  program.output.buffer = 2;
  program.output_dtype = CodeType(rng);
  program.quantizes = true;
  program.quantization = {rng.Flip() ? scale : number(), zero(program.output_dtype),
                          static_cast<float>(LowestInteger(program.output_dtype)),
                          static_cast<float>(HighestInteger(program.output_dtype))};
  return program;
}

std::vector<std::byte> Computed(Kernel& kernel, std::vector<std::byte>& a,
                                std::vector<std::byte>& b) {
  std::vector<std::byte> to(a.size(), std::byte{77});
  Bindings bindings;
  bindings.buffers = {a.data(), b.data(), to.data()};
  const ThreadScope scope(1);
  EXPECT_TRUE(kernel.Run(bindings).ok());
  return to;
}

TEST(CodeSum, EqualsTheChainForEveryPairOfCodes) {
  std::vector<std::byte> a(kPairs), b(kPairs);
  for (size_t k = 0; k < a.size(); ++k) {
    a[k] = static_cast<std::byte>(k / 256);
    b[k] = static_cast<std::byte>(k % 256);
  }
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    const TileProgram program = RandomProgram(rng, kPairs);
    const auto sum = MakeCodeSumKernel(program), chain = MakeElementwiseKernel(program);
    ASSERT_NE(sum, nullptr);
    EXPECT_EQ(Computed(*sum, a, b), Computed(*chain, a, b)) << "seed " << seed;
  }
}

TEST(CodeSum, WritesNothingBehindTheEnd) {
  Rng rng(5);
  for (const int64_t count : {1, 15, 31, 64, 100}) {
    std::vector<std::byte> a(static_cast<size_t>(count) + 1), b(a.size());
    const auto sum = MakeCodeSumKernel(RandomProgram(rng, count));
    EXPECT_EQ(Computed(*sum, a, b).back(), std::byte{77});
  }
}

TEST(CodeSum, RefusesOtherPrograms) {
  Rng rng(7);
  const TileProgram program = RandomProgram(rng, 64);
  TileProgram broadcast = program, product = program, floats = program, deep = program;
  broadcast.operands[0].strides = {0};
  product.calls[0].name = "Mul";
  floats.quantizes = false;
  deep.calls.push_back(Call("Tanh", {2, 2, 2}, 3));
  deep.calls.push_back(Call("Tanh", {3, 3, 3}, 4));
  for (const TileProgram& other : {broadcast, product, floats, deep})
    EXPECT_EQ(MakeCodeSumKernel(other), nullptr);
}

}  // namespace
}  // namespace mendel::cpu
