// Tests of f32 products whose results stay in f16 or bf16: the conversions between them, and the
// memory that they cost.

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gmock/gmock.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cuda/cublaslt/library.h"
#include "kernels/cuda/testing/device_case.h"
#include "kernels/cuda/testing/fake/fake_cublaslt.h"
#include "kernels/cuda/testing/fake/fake_driver.h"

namespace mendel::cuda {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// Products in a chain: %2 = x w, then the given lines, with %1 (w), %3 (a bias) and %4 (another
/// input).
class KeptProducts : public testing::Test {
 protected:
  static constexpr int64_t kWhole = 4 * 6 * 8, kRounded = 2 * 6 * 8;  // bytes of a value of [6, 8]

  /// The operators of each launch, with the format of the values that it reads and writes. `later`:
  /// the algorithm of all products but the first one; empty: the same.
  std::vector<std::string> Launches(const std::string& rest, const std::string& algorithm,
                                    Numerics numerics, const std::string& later = "") {
    std::string weights, other;
    for (int k = 0; k < 64; ++k) weights += Cat(k == 0 ? "" : ", ", (k * 7 % 13 - 6) / 8.0);
    auto graph = ParseGraph(
        Cat("graph \"g\" {\n%0 = Input() {name = \"x\", shape = [6, 8]}\n%1 = Constant() {symbol = "
            "\"w\", ",
            "value = f32[8, 8]{", weights, "}}\n%2 = MatMul(%0, %1)\n",
            "%3 = Constant() {symbol = \"b\", value = f32[8]{1, 2, 3.001, 4, 5, -6, 7, 8}}\n",
            "%4 = Input() {name = \"r\", shape = [6, 8]}\n", rest, "\n}"));
    EXPECT_TRUE(graph.ok()) << graph.status();
    std::vector<double> x, r;
    for (int k = 0; k < 48; ++k) {
      x.push_back(k % 7 - 3 + k * 0x1p-13);
      r.push_back(k % 5 - 2 + k * 0x1p-14);
    }
    DeviceCase one{Cat(algorithm, "\n", rest), *std::move(graph), {}, {}, numerics};
    for (const auto* values : {&x, &r}) {
      if (one.inputs.size() == one.graph.inputs().size()) break;
      one.inputs.push_back(
          HostValue::FromTensor(Tensor::FromDoubles({DType::kF32, {6, 8}}, *values)));
    }
    std::map<int32_t, std::string> algorithms;
    for (int32_t node = 0; node < static_cast<int32_t>(one.graph.nodes().size()); ++node) {
      const bool is_later = !algorithms.empty() && !later.empty();
      if (one.graph.node(node).op->name == "MatMul")
        algorithms[node] = is_later ? later : algorithm;
    }
    auto program = LowerToDevice(one.graph, {.reuse_memory = cases_.size() % 2 == 0,
                                             .numerics = numerics,
                                             .algorithms = algorithms,
                                             .libraries = libraries_});
    EXPECT_TRUE(program.ok()) << program.status();
    if (!program.ok()) return {};
    std::vector<std::string> launches;
    for (const DeviceLaunch& launch : program->launches) {
      const std::string& kernel = launch.info.kernel;
      launches.push_back(
          launch.call == nullptr
              ? "kernel"
              : Cat("product", kernel.substr(std::min(kernel.size(), kernel.find('_')))));
      for (const int32_t node : launch.info.nodes)
        launches.back() += Cat(" ", one.graph.node(node).op->name);
      for (const DeviceBuffer& buffer : launch.pointers) {
        if (buffer.bytes == kWhole || buffer.bytes == kRounded)
          launches.back() += buffer.bytes == kWhole ? " 32" : " 16";
      }
    }
    one.program = *std::move(program);
    cases_.push_back(std::move(one));
    return launches;
  }

  void ExpectRight() {
    ASSERT_TRUE(driver_.Prepare(ModuleOf(cases_)).ok());
    for (const DeviceCase& one : cases_)
      EXPECT_EQ(FailureOn(driver_.table(), &TextImage, one), "") << one.description;
  }

  FakeDriver driver_;
  FakeCublasLt lt_;
  CublasLtLibrary library_{lt_.table(), driver_.table(), int64_t{32} << 20};
  const CallLibrary* libraries_[1] = {&library_};
  std::vector<DeviceCase> cases_;
};

TEST_F(KeptProducts, ResultsStayInTheFormatBetweenProducts) {
  for (const auto& [kind, numerics] :
       {std::pair("cublaslt-f16", Numerics::kF16), std::pair("cublaslt-bf16", Numerics::kBf16)}) {
    const std::string kept = Cat(kind, "-kept");
    // x is rounded once; the result is converted at the end alone.
    const std::string plain =
        "%5 = Add(%2, %3)\n%6 = Relu(%5)\n%7 = MatMul(%6, %1)\nreturn \"y\" = %7";
    EXPECT_THAT(Launches(plain, kept, numerics),
                ElementsAre("kernel 32 16", "product_bias_relu MatMul Add Relu 16 16",
                            "product MatMul 16 16", "kernel 16 32"));
    EXPECT_THAT(Launches(plain, kind, numerics),
                ElementsAre("kernel 32 16", "product_bias_relu MatMul Add Relu 16 32",
                            "kernel 32 16", "product MatMul 16 32"));
    // Kernels between products read and write the format. Calls take Gelu by tanh along.
    EXPECT_THAT(
        Launches("%5 = Sigmoid(%2)\n%6 = Mul(%2, %5)\n%7 = MatMul(%6, %1)\nreturn \"y\" = %7", kept,
                 numerics),
        ElementsAre("kernel 32 16", "product MatMul 16 16", "kernel Sigmoid Mul 16 16",
                    "product MatMul 16 16", "kernel 16 32"));
    EXPECT_THAT(
        Launches("%5 = Gelu(%2) {approximate = \"tanh\"}\n%6 = MatMul(%5, %1)\nreturn \"y\" = %6",
                 kept, numerics),
        ElementsAre("kernel 32 16", "product_gelu MatMul Gelu 16 16", "product MatMul 16 16",
                    "kernel 16 32"));
    // A residual is rounded as operands are. One that a product has left so is read as it is.
    EXPECT_THAT(
        Launches("%5 = Add(%2, %4)\n%6 = MatMul(%5, %1)\n%7 = Add(%6, %5)\nreturn \"y\" = %7", kept,
                 numerics),
        ElementsAre("kernel 32 16", "kernel 32 16", "product_residual MatMul Add 16 16 16",
                    "product_residual MatMul Add 16 16 16", "kernel 16 32"));
    // A row operator reads the format, too.
    EXPECT_THAT(Launches("%5 = Softmax(%2) {axis = 1}\n%6 = MatMul(%5, %1)\nreturn \"y\" = %6",
                         kept, numerics),
                ElementsAre("kernel 32 16", "product MatMul 16 16", "kernel Softmax 16 16",
                            "product MatMul 16 16", "kernel 16 32"));
  }
  ExpectRight();
}

/// The mask's numbers are beyond the format, and no score is. A kernel adds them in f32, and
/// Softmax has a number for every element.
TEST_F(KeptProducts, AddendsBeyondTheFormatStayOutside) {
  const auto mask = [](const std::string& number, bool whole_row) {
    std::string values;
    for (int k = 0; k < 48; ++k)
      values += Cat(k == 0 ? "" : ", ", (whole_row && k < 8) || k % 3 == 0 ? number : "0");
    return Cat("%5 = Constant() {symbol = \"m\", value = f32[6, 8]{", values, "}}\n");
  };
  const std::string stored =
      "%6 = Add(%2, %5)\n%7 = Softmax(%6) {axis = 1}\n%8 = MatMul(%7, %1)\nreturn \"y\" = %8";
  for (const auto& [kind, numerics, large] :
       {std::tuple("cublaslt-f16-kept", Numerics::kF16, "-65505"),
        std::tuple("cublaslt-f16-kept", Numerics::kF16, "-3.4e38"),
        std::tuple("cublaslt-bf16-kept", Numerics::kBf16, "-3.4028234e38")}) {
    EXPECT_THAT(Launches(mask(large, true) + stored, kind, numerics),
                ElementsAre("kernel 32 16", "product MatMul 16 16", "kernel Add Softmax 16 32 16",
                            "product MatMul 16 16", "kernel 16 32"))
        << large;
  }
  EXPECT_THAT(Launches(mask("-10000", false) + stored, "cublaslt-f16-kept", Numerics::kF16),
              ElementsAre("kernel 32 16", "product_residual MatMul Add 16 16 16",
                          "kernel Softmax 16 16", "product MatMul 16 16", "kernel 16 32"));
  // The same holds for a number that reaches the addition through elementwise operators and views.
  const std::string computed =
      "%6 = Abs(%4)\n%7 = Mul(%6, %5)\n%8 = Reshape(%7) {shape = [6, 8]}\n%9 = MatMul(%0, %1)\n%10 "
      "= Add(%9, %8)\n"
      "%11 = Softmax(%10) {axis = 1}\nreturn \"y\" = %11, \"z\" = %2";
  EXPECT_THAT(Launches(mask("-1e6", false) + computed, "cublaslt-f16-kept", Numerics::kF16),
              Not(Contains(HasSubstr("residual"))));
  EXPECT_THAT(Launches(mask("-1000", false) + computed, "cublaslt-f16-kept", Numerics::kF16),
              Contains(HasSubstr("product_residual")));
  ExpectRight();
}

/// An attention of two heads. Its queries, keys and values are read where the products before have
/// left them.
TEST_F(KeptProducts, HeadsAreReadInPlace) {
  const std::string attention = R"(%5 = MatMul(%0, %1)
    %6 = MatMul(%0, %1)
    %7 = Reshape(%2) {shape = [6, 2, 4]}
    %8 = Transpose(%7) {perm = [1, 0, 2]}
    %9 = Reshape(%5) {shape = [6, 2, 4]}
    %10 = Transpose(%9) {perm = [1, 2, 0]}
    %11 = MatMul(%8, %10)
    %12 = Softmax(%11) {axis = 2}
    %13 = Reshape(%6) {shape = [6, 2, 4]}
    %14 = Transpose(%13) {perm = [1, 0, 2]}
    %15 = MatMul(%12, %14)
    %16 = Transpose(%15) {perm = [1, 0, 2]}
    %17 = Reshape(%16) {shape = [6, 8]}
    %18 = MatMul(%17, %1)
    return "y" = %18)";
  const auto launches = Launches(attention, "cublaslt-f16-kept", Numerics::kF16);
  EXPECT_THAT(launches, ElementsAre("kernel 32 16", "product MatMul 16 16", "product MatMul 16 16",
                                    "product MatMul 16 16",
                                    "product MatMul Reshape Transpose Reshape Transpose 16 16",
                                    "kernel Softmax", "product MatMul Reshape Transpose 16 16",
                                    "kernel Transpose 16 16", "product MatMul Reshape 16 16",
                                    "kernel 16 32"));
  EXPECT_EQ(Launches(attention, "cublaslt-f16", Numerics::kF16).size(), 12u)
      << "three more, which round, and none at the end";
  ExpectRight();
}

TEST_F(KeptProducts, OthersReadItInItsOwnDtype) {
  // Every reader converts the value as it reads it, and the output has a kernel for that. Views
  // with more readers share that conversion.
  EXPECT_THAT(
      Launches("%5 = Transpose(%2) {perm = [1, 0]}\n%6 = Sin(%2)\nreturn \"y\" = %5, \"z\" = %6",
               "cublaslt-f16-kept", Numerics::kF16),
      ElementsAre("kernel 32 16", "product MatMul 16 16", "kernel Transpose 16 32",
                  "kernel Sin 16 32"));
  EXPECT_THAT(Launches("%5 = Transpose(%2) {perm = [1, 0]}\n%6 = Sin(%2)\n%7 = Sigmoid(%2)\n"
                       "return \"y\" = %5, \"z\" = %6, \"u\" = %7, \"v\" = %2",
                       "cublaslt-f16-kept", Numerics::kF16),
              ElementsAre("kernel 32 16", "product MatMul 16 16", "kernel 16 32",
                          "kernel Transpose 32 32", "kernel Sin 16 32", "kernel Sigmoid 16 32"));
  // All readers take f32 where a call reads it, here through a view.
  const std::string viewed =
      "%5 = Transpose(%2) {perm = [1, 0]}\n%6 = MatMul(%2, %5)\n%7 = Sin(%2)\n%8 = Sin(%5)\n"
      "return \"y\" = %6, \"z\" = %7, \"u\" = %8";
  EXPECT_THAT(
      Launches(viewed, "cublaslt-f16-kept", Numerics::kF16, "cublaslt"),
      ElementsAre("kernel 32 16", "product MatMul 16 16", "kernel 16 32", "kernel Transpose 32 32",
                  "product MatMul 32 32", "kernel Sin 32 32", "kernel Sin 32 32"));
  // Broadcasts would convert elements several times: they share one conversion.
  for (const char* op : {"%6 = Add(%2, %5)\n%7 = Mul(%2, %5)",
                         "%6 = Expand(%2) {shape = [2, 6, 8]}\n%7 = Mul(%2, %5)"}) {
    EXPECT_THAT(Launches(Cat("%5 = Constant() {symbol = \"c\", value = f32[2, 1, 1]{1, 2}}\n", op,
                             "\nreturn \"y\" = %6, \"z\" = %7"),
                         "cublaslt-f16-kept", Numerics::kF16),
                ElementsAre("kernel 32 16", "product MatMul 16 16", "kernel 16 32",
                            testing::EndsWith(" 32"), "kernel Mul 32"));
  }
  // A product of the same rounding that yields f32 reads the rounded value.
  EXPECT_THAT(Launches("%5 = MatMul(%2, %1)\nreturn \"y\" = %5", "cublaslt-bf16-kept",
                       Numerics::kBf16, "cublaslt-bf16"),
              ElementsAre("kernel 32 16", "product MatMul 16 16", "product MatMul 16 32"));
  ExpectRight();
}

TEST_F(KeptProducts, AreOfferedWhereTheClassAllowsIt) {
  auto graph = ParseGraph(R"(graph "g" {
    %0 = Input() {name = "a", shape = [2, 3]}
    %1 = Input() {name = "b", shape = [3, 2]}
    %2 = MatMul(%0, %1)
    return "y" = %2
  })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (const Numerics numerics : kAllNumerics) {
    const auto names = LibraryAlgorithms(*graph, 2, numerics, libraries_);
    for (const Numerics technique : {Numerics::kF16, Numerics::kBf16}) {
      const std::string name = Cat("cublaslt-", NumericsName(technique), "-kept");
      const auto program = LowerToDevice(
          *graph, {.numerics = numerics, .algorithms = {{2, name}}, .libraries = libraries_});
      if (numerics == technique) {
        EXPECT_THAT(names, Contains(name));
        EXPECT_THAT(names, Contains(name + ":1"));
        EXPECT_TRUE(program.ok()) << program.status();
        continue;
      }
      EXPECT_THAT(names, Not(Contains(HasSubstr(name))));
      EXPECT_EQ(program.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(program.status().message()),
                  HasSubstr(Cat("has no algorithm '", name, "' under numerics")));
    }
  }
}

}  // namespace
}  // namespace mendel::cuda
