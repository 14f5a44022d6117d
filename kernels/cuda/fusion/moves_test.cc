// Concat, Pad, Slice and Split in the emulator: by vectors under conditions, against their
// definition and to the bit.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cuda/backend/program.h"
#include "kernels/cuda/fusion/lowered_case.h"
#include "kernels/cuda/testing/expect_right.h"
#include "runtime/backend.h"

namespace mendel::cuda {
namespace {

using testing::HasSubstr;

/// Every value has memory of its own.
const ProgramOptions kApart = {.reuse_memory = false};

/// `lines` after inputs x and y of this shape and dtype.
DeviceCase CaseOf(const std::string& type, const std::string& lines) {
  return ParsedCase(Cat("%0 = Input() {name = \"x\", ", type, "}\n%1 = Input() {name = \"y\", ",
                        type, "}\n", lines),
                    1, kApart);
}

TEST(Moves, GoByVectorsWhereTheirBoundariesAllow) {
  const auto kernels = [](const std::string& type, const std::string& line) {
    return KernelsOf(CaseOf(type, Cat("%2 = ", line, "\nreturn \"r\" = %2")));
  };
  const std::string f32 = "shape = [2, 3, 3, 16]", f16 = "dtype = \"f16\", shape = [2, 3, 3, 16]";
  EXPECT_EQ(kernels(f32, "Concat(%0, %1) {axis = 3}"), "elements_by_4");
  EXPECT_EQ(kernels(f16, "Concat(%0, %1) {axis = 3}"), "elements_by_8");
  EXPECT_EQ(kernels(f16, "Concat(%0, %1) {axis = 1}"), "elements_by_8");
  EXPECT_EQ(kernels("dtype = \"f16\", shape = [2, 3, 3, 12]", "Concat(%0, %1) {axis = 3}"),
            "elements_by_4")
      << "12 is no multiple of 8";
  EXPECT_EQ(kernels("dtype = \"f16\", shape = [2, 3, 3, 5]", "Concat(%0, %1) {axis = 3}"),
            "elements")
      << "lanes would differ";
  EXPECT_EQ(
      kernels(f16, "Pad(%0) {mode = \"constant\", pads = [0, 1, 2, 0, 0, 1, 0, 8], value = 1.5}"),
      "elements_by_8");
  EXPECT_EQ(
      kernels(f16, "Pad(%0) {mode = \"constant\", pads = [0, 1, -2, 4, 0, 1, 0, 0], value = 1.5}"),
      "elements_by_4");
  EXPECT_EQ(
      kernels(f16,
              "Slice(%0) {ends = [2, 3, -1, 16], starts = [0, 0, 2, 8], steps = [1, 2, -1, 1]}"),
      "elements_by_8");
  EXPECT_EQ(
      kernels(f16, "Slice(%0) {ends = [2, 3, 3, 16], starts = [0, 0, 0, 0], steps = [1, 1, 1, 2]}"),
      "elements");
}

/// The inputs are all numbers of 16 bits, NaNs included.
TEST(Moves, KeepTheBitsOfNumbersOf16Bits) {
  constexpr size_t kColumns = 16, kRows = 65536 / kColumns;
  std::vector<uint16_t> x(kRows * kColumns), y(x.size());
  for (size_t k = 0; k < x.size(); ++k) {
    x[k] = static_cast<uint16_t>(k);
    y[k] = static_cast<uint16_t>(40503 * k + 77);  // another permutation
  }
  for (const std::string dtype : {"f16", "bf16"}) {
    const std::string type = Cat("dtype = \"", dtype, "\", shape = [", kRows, ", ", kColumns, "]");
    const DeviceCase one = CaseOf(type, Cat(R"(%2 = Concat(%0, %1) {axis = 1}
        %3 = Pad(%0) {mode = "constant", pads = [1, 2, 0, -3], value = 0.0}
        %4 = Slice(%1) {ends = [)",
                                            kRows, R"(, 16], starts = [1, 8], steps = [3, 1]}
        %5 = Split(%0) {axis = 1, sizes = [6, 10]}
        return "r0" = %2, "r1" = %3, "r2" = %4, "r3" = %5.1)"));
    FakeDriver driver;
    ASSERT_TRUE(driver.Prepare(ModuleOf({one})).ok());
    const auto executable = MakeExecutable(driver.table(), one.program, &TextImage);
    ASSERT_TRUE(executable.ok()) << executable.status();
    std::vector<Tensor> inputs;
    for (const auto* bits : {&x, &y}) {
      const auto bytes = std::as_bytes(std::span(*bits));
      inputs.emplace_back(one.graph.type({static_cast<int32_t>(inputs.size()), 0}),
                          std::vector<std::byte>(bytes.begin(), bytes.end()));
    }
    const auto results = RunOnTensors(**executable, one.graph, inputs);
    ASSERT_TRUE(results.ok()) << results.status();
    const auto bits = [&](size_t output, size_t row, size_t column) {
      const Tensor& result = (*results)[output];
      uint16_t number = 0;
      std::memcpy(
          &number,
          result.bytes().data() + 2 * (row * static_cast<size_t>(result.shape()[1]) + column), 2);
      return number;
    };
    size_t wrong = 0;
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t c = 0; c < kColumns; ++c) {
        const size_t k = r * kColumns + c;
        wrong += bits(0, r, c) != x[k];
        wrong += bits(0, r, kColumns + c) != y[k];
        if (c + 3 < kColumns) wrong += bits(1, r + 1, c + 2) != x[k];
        if (r % 3 == 1 && c >= 8) wrong += bits(2, r / 3, c - 8) != y[k];
        if (c >= 6) wrong += bits(3, r, c - 6) != x[k];
      }
    }
    EXPECT_EQ(wrong, 0u) << dtype;
  }
}

/// Makes graphs of one to three moves, some of them followed by other operators. Vectors divide
/// some of the extents and not others.
class MoveMaker {
 public:
  explicit MoveMaker(uint64_t seed) : rng_(seed) {
    constexpr DType kTypes[] = {DType::kF32,  DType::kF16, DType::kF16,
                                DType::kBF16, DType::kI8,  DType::kI64};
    dtype_ = kTypes[rng_.Below(6)];
  }
  Graph Make() {
    Shape shape;
    for (int64_t d = rng_.Between(1, 3); d > 0; --d) shape.push_back(rng_.Between(1, 4));
    shape.push_back(rng_.Flip(0.3) ? rng_.Between(1, 9) : 8 * rng_.Between(1, 3));
    ValueId value = Given(shape);
    for (int64_t k = rng_.Between(1, 3); k > 0; --k) {
      value = Move(value);
      if (dtype_ != DType::kI8 && dtype_ != DType::kI64 && rng_.Flip(0.2))
        value = Add("Relu", {value});
    }
    builder_.Output("r", value);
    return *builder_.Build();
  }

 private:
  ValueId Given(const Shape& shape) { return builder_.Input(Cat("t", ++inputs_), {dtype_, shape}); }
  ValueId Add(const char* op, std::vector<ValueId> inputs, Attributes attrs = {}) {
    return *builder_.Add(op, std::move(inputs), std::move(attrs));
  }
  int64_t Extent() { return rng_.Flip(0.3) ? rng_.Between(1, 5) : 4 * rng_.Between(1, 4); }

  ValueId Move(ValueId value) {
    const Shape shape = builder_.type(value).shape;
    const size_t axis = rng_.Flip() ? shape.size() - 1 : rng_.Below(shape.size());
    const int64_t kind = rng_.Between(0, 3);
    if (kind == 0) {
      Shape other = shape;
      other[axis] = axis + 1 == shape.size() ? Extent() : rng_.Between(1, 3);
      const ValueId second = Given(other);
      return Add("Concat",
                 rng_.Flip() ? std::vector{value, second, value} : std::vector{second, value},
                 {{"axis", static_cast<int64_t>(axis)}});
    }
    if (kind == 1) {
      constexpr const char* kModes[] = {"constant", "constant", "edge", "reflect", "wrap"};
      Ints pads(2 * shape.size());
      pads[axis] = rng_.Flip(0.2) && shape[axis] > 4 ? -4 : Extent() - 1;
      pads[shape.size() + rng_.Below(shape.size())] = Extent();
      return Add("Pad", {value},
                 {{"pads", pads},
                  {"mode", kModes[rng_.Below(5)]},
                  {"value", static_cast<double>(rng_.Between(-2, 2))}});
    }
    if (kind == 2 && shape[axis] > 1) {
      const int64_t first = rng_.Flip() && shape[axis] > 4 ? 4 : rng_.Between(1, shape[axis] - 1);
      const int32_t node = *builder_.AddNode(
          "Split", {value},
          {{"axis", static_cast<int64_t>(axis)}, {"sizes", Ints{first, shape[axis] - first}}});
      return {node, rng_.Flip() ? 1 : 0};
    }
    Ints starts(shape.size(), 0), ends = shape, steps(shape.size(), 1);
    if (rng_.Flip(0.4)) {
      starts[axis] = shape[axis] - 1, ends[axis] = -1, steps[axis] = -rng_.Between(1, 2);
    } else {
      starts[axis] = shape[axis] > 8 ? 4 * rng_.Between(0, 1) : 0;
      steps[0] = rng_.Between(1, 2);
    }
    return Add("Slice", {value}, {{"starts", starts}, {"ends", ends}, {"steps", steps}});
  }

  Rng rng_;
  DType dtype_ = DType::kF32;
  int inputs_ = 0;
  GraphBuilder builder_;
};

TEST(Moves, MeanTheirDefinition) {
  constexpr uint64_t kCases = 80;
  std::vector<DeviceCase> cases;
  size_t vectors = 0;
  for (uint64_t seed = 1; seed <= kCases; ++seed) {
    const Graph graph = MoveMaker(seed).Make();
    cases.push_back(LoweredCase(graph, Cat("seed ", seed, "\n", PrintGraph(graph)), seed, kApart));
    vectors += KernelsOf(cases.back()).find("_by_") != std::string::npos ? 1 : 0;
  }
  std::printf("%zu graphs, %zu of them by vectors\n", cases.size(), vectors);
  EXPECT_GT(vectors, kCases / 4);
  EXPECT_LT(vectors, kCases);
  ExpectAllRight(cases);
}

/// Every part of a vector's load is needed: a fault in any of them is seen.
TEST(Moves, PlantedFaultsAreSeen) {
  const DeviceCase good = CaseOf("shape = [3, 8]", R"(%2 = Concat(%0, %1) {axis = 1}
      %3 = Pad(%2) {mode = "constant", pads = [1, 4, 0, 0], value = 2.0}
      return "r" = %3)");
  const std::vector<std::pair<std::string, std::string>> faults = {
      {" = *reinterpret_cast<const Pack<float, 4>*>(p0 + ",
       " = *reinterpret_cast<const Pack<float, 4>*>(p0 + 4 + "},
      {" < 8", " < 16"},       // where the first piece ends
      {" >= 8", " >= 4"},      // and the second begins
      {"v0 >= 1", "v0 >= 0"},  // the row that is padded
      {"v1 >= 4", "v1 >= 8"},  // the columns that are
      {"2.0f", "0.0f"},
  };
  std::vector<DeviceCase> cases = {good};
  for (const auto& [from, to] : faults) {
    cases.push_back(good);
    std::string& text = cases.back().program.texts[0];
    const std::string name = cases.back().program.entries[0], other = Cat(name, "_", cases.size());
    for (size_t at = text.find(name); at != std::string::npos;
         at = text.find(name, at + other.size()))
      text.replace(at, name.size(), other);
    cases.back().program.entries[0] = cases.back().program.launches[0].kernel = other;
    const size_t before = text.find(from);
    ASSERT_NE(before, std::string::npos) << from << "\n" << text;
    for (size_t at = before; at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  }
  ASSERT_THAT(KernelsOf(good), HasSubstr("_by_4"));
  FakeDriver driver;
  const absl::Status prepared = driver.Prepare(ModuleOf(cases));
  ASSERT_TRUE(prepared.ok()) << std::string(prepared.message()).substr(0, 4000);
  EXPECT_EQ(FailureOn(driver.table(), &TextImage, cases[0]), "");
  for (size_t k = 0; k < faults.size(); ++k)
    EXPECT_NE(FailureOn(driver.table(), &TextImage, cases[k + 1]), "") << faults[k].first;
}

}  // namespace
}  // namespace mendel::cuda
