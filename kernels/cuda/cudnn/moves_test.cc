// Tests of Concat, Pad, Slice, Split and the like between calls of cuDNN: values with the channels
// last or in 16 bits are moved as the calls leave them, without conversions.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/cudnn/call_forms.h"
#include "kernels/cuda/cudnn/library.h"
#include "kernels/cuda/cudnn/library_case.h"
#include "kernels/cuda/nvrtc/architectures.h"
#include "kernels/cuda/nvrtc/compiler.h"
#include "kernels/cuda/testing/device_case.h"
#include "kernels/cuda/testing/fake/fake_cudnn.h"
#include "kernels/cuda/testing/fake/fake_driver.h"

namespace mendel::cuda {
namespace {

using cudnn_case::kDevice;
using cudnn_case::kWorkspace;
using testing::Contains;

/// A network of pointwise convolutions of stored weights, in multiples of 1/4.
class Net {
 public:
  ValueId Input(const Shape& shape) {
    const TensorType type{DType::kF32, shape};
    inputs_.push_back(HostValue::FromTensor(Numbers(type, 7)));
    return builder_.Input(Cat("x", inputs_.size()), type);
  }
  ValueId Conv(ValueId x, int64_t channels) {
    const Shape shape = {channels, builder_.type(x).shape[1], 1, 1};
    return Add("Conv", {x, Stored(shape)},
               {{"dilations", Ints{1, 1}},
                {"group", int64_t{1}},
                {"pads", Ints(4)},
                {"strides", Ints{1, 1}}});
  }
  ValueId Stored(const Shape& shape) {
    return builder_.Constant(Numbers({DType::kF32, shape}, 5), Cat("w", ++stored_));
  }
  ValueId Add(const char* op, std::vector<ValueId> inputs, Attributes attrs = {}) {
    return *builder_.Add(op, std::move(inputs), std::move(attrs));
  }
  ValueId Pool(const char* op, ValueId x) {
    return Add(op, {x},
               {{"kernel_shape", Ints{2, 2}},
                {"strides", Ints{1, 1}},
                {"dilations", Ints{1, 1}},
                {"pads", Ints{1, 1, 0, 0}}});
  }
  std::vector<ValueId> Split(ValueId x, Ints sizes) {
    const int32_t node =
        *builder_.AddNode("Split", {x}, {{"axis", int64_t{1}}, {"sizes", std::move(sizes)}});
    return {{node, 0}, {node, 1}};
  }
  void Output(ValueId value) { builder_.Output(Cat("y", ++outputs_), value); }
  DeviceCase Take() { return {"", *builder_.Build(), std::move(inputs_), {}}; }

 private:
  static Tensor Numbers(const TensorType& type, int64_t range) {
    std::vector<double> values;
    const int64_t middle = range / 2;
    for (int64_t k = 0; k < NumElements(type); ++k) {
      const int64_t row = k / range;
      values.push_back(static_cast<double>((3 * k + row) % range - middle) / 4);
    }
    return Tensor::FromDoubles(type, values);
  }

  GraphBuilder builder_;
  std::vector<HostValue> inputs_;
  int stored_ = 0, outputs_ = 0;
};

using Moving = std::function<ValueId(Net& net, ValueId x, ValueId y)>;
Attributes Cut(Ints starts, Ints ends, Ints steps) {
  return {{"starts", starts}, {"ends", ends}, {"steps", steps}};
}

/// Operators that move values of [2, 8, 6, 5] between two calls, as one launch.
const std::map<std::string, Moving> kMoves = {
    {"Concat of channels",
     [](Net& net, ValueId x, ValueId y) {
       return net.Add("Concat", {x, y, x}, {{"axis", int64_t{1}}});
     }},
    {"Concat of columns",
     [](Net& net, ValueId x, ValueId y) {
       return net.Add("Concat", {y, x}, {{"axis", int64_t{3}}});
     }},
    {"Pad",
     [](Net& net, ValueId x, ValueId) {
       return net.Add("Pad", {x}, {{"pads", Ints{0, 8, 1, 0, 0, 0, 2, 1}}});
     }},
    {"Pad with numbers",
     [](Net& net, ValueId x, ValueId) {
       return net.Add("Pad", {x}, {{"pads", Ints{0, 0, 1, 0, 1, 0, -2, 1}}, {"value", -1.5}});
     }},
    {"Pad by reflection",
     [](Net& net, ValueId x, ValueId) {
       return net.Add("Pad", {x},
                      {{"pads", Ints{0, 0, 1, 2, 0, 0, 2, 1}}, {"mode", std::string("reflect")}});
     }},
    {"Slice of channels",
     [](Net& net, ValueId x, ValueId) {
       return net.Add("Slice", {x}, Cut({0, 4, 0, 0}, {2, 8, 6, 5}, {1, 1, 1, 1}));
     }},
    {"Slice backwards",
     [](Net& net, ValueId x, ValueId) {
       return net.Add("Slice", {x}, Cut({0, 7, 1, 0}, {2, -1, 6, 5}, {1, -1, 2, 3}));
     }},
    {"Split",
     [](Net& net, ValueId x, ValueId) {
       return net.Split(x, {4, 4})[1];
     }},
    {"MaxPool of a Concat",
     [](Net& net, ValueId x, ValueId y) {
       return net.Pool("MaxPool", net.Add("Concat", {x, y}, {{"axis", int64_t{1}}}));
     }},
};

struct MovesRig {
  FakeDriver driver;
  FakeCudnn fake;
  CudnnLibrary library{fake.table(), kDevice, kWorkspace};
  std::vector<DeviceCase> cases = {};

  /// The net's launches: operators of each, "convert" where it only converts, "Conv" for calls.
  std::vector<std::string> Launches(Net& net, const CallForm& form,
                                    const std::string& description) {
    const CallLibrary* const libraries[] = {&library};
    DeviceCase one = net.Take();
    one.description = Cat(form.algorithm, ", ", description);
    one.numerics = form.numerics;
    std::map<int32_t, std::string> algorithms;
    for (int32_t node = 0; node < static_cast<int32_t>(one.graph.nodes().size()); ++node) {
      if (one.graph.node(node).op->name == "Conv") algorithms[node] = form.algorithm;
    }
    auto program = LowerToDevice(one.graph, {.reuse_memory = cases.size() % 2 == 0,
                                             .numerics = form.numerics,
                                             .algorithms = algorithms,
                                             .libraries = libraries});
    EXPECT_TRUE(program.ok()) << one.description << program.status();
    if (program.ok()) one.program = *std::move(program);
    std::vector<std::string> launches;
    for (const DeviceLaunch& launch : one.program.launches) {
      std::string operators;
      for (const int32_t node : launch.info.nodes)
        operators += Cat(operators.empty() ? "" : " ", one.graph.node(node).op->name);
      launches.push_back(operators.empty() ? "convert" : operators);
    }
    cases.push_back(std::move(one));
    return launches;
  }
  /// The launches of two calls, the move of their results, and a call that reads it.
  std::vector<std::string> LaunchesBetween(const Moving& move, const CallForm& form,
                                           const std::string& description) {
    Net net;
    const ValueId x = net.Input({2, 3, 6, 5});
    const ValueId one = net.Conv(x, 8), two = net.Conv(one, 8);
    net.Output(net.Conv(move(net, one, two), 4));
    return Launches(net, form, description);
  }
  void ExpectRight() {
    const absl::Status prepared = driver.Prepare(ModuleOf(cases));
    ASSERT_TRUE(prepared.ok()) << std::string(prepared.message()).substr(0, 4000);
    for (const DeviceCase& one : cases)
      EXPECT_EQ(FailureOn(driver.table(), &TextImage, one), "") << one.description;
    EXPECT_EQ(driver.Leaks() + fake.Leaks(), "");
  }
};

TEST(CudnnMoves, StayInTheFormOfTheirNeighbors) {
  MovesRig rig;
  for (const CallForm& form : kCallForms) {
    for (const auto& [description, move] : kMoves) {
      const auto launches = rig.LaunchesBetween(move, form, description);
      EXPECT_EQ(std::count(launches.begin(), launches.end(), "convert"), 2)
          << form.algorithm << ", " << description;
      const DeviceCase& one = rig.cases.back();
      const auto& steps = one.program.launches;
      ASSERT_GE(steps.size(), 3u);
      EXPECT_EQ(launches.front() + launches.back(), "convertconvert") << description;
      const DeviceLaunch& moving = steps[steps.size() - 3];
      ASSERT_EQ(moving.info.nodes.size(), 1u) << description;
      const Node& node = one.graph.node(moving.info.nodes[0]);
      EXPECT_EQ(description.substr(0, description.find(' ')), node.op->name);
      EXPECT_EQ(moving.pointers.back().bytes, form.bytes * NumElements(node.outputs.back()))
          << description;
      for (size_t k = 0; k + 1 < moving.pointers.size(); ++k)
        EXPECT_LE(moving.pointers[k].bytes, form.bytes * 2 * 16 * 30) << description;
    }
  }
  rig.ExpectRight();
}

/// Blocks of dense, inception and U-shaped networks.
ValueId DenseBlock(Net& net, ValueId x) {
  std::vector<ValueId> all = {net.Pool("AveragePool", x)};
  for (int layer = 0; layer < 3; ++layer) {
    const ValueId joined = net.Add("Concat", all, {{"axis", int64_t{1}}});
    const int64_t channels = 8 * (layer + 1);
    std::vector<ValueId> norm = {joined};
    for (int k = 0; k < 3; ++k) norm.push_back(net.Stored({channels}));
    norm.push_back(net.Add("Abs", {net.Stored({channels})}));
    all.push_back(
        net.Conv(net.Add("Relu", {net.Add("BatchNormalization", norm, {{"epsilon", 0.5}})}), 8));
  }
  return net.Conv(net.Add("Concat", all, {{"axis", int64_t{1}}}), 8);
}
ValueId InceptionBlock(Net& net, ValueId x) {
  const ValueId pooled = net.Conv(net.Pool("AveragePool", x), 4);
  return net.Conv(
      net.Add("Concat", {net.Conv(x, 8), pooled, net.Pool("MaxPool", x)}, {{"axis", int64_t{1}}}),
      8);
}
ValueId UBlock(Net& net, ValueId x) {
  const ValueId up = net.Add("Resize", {net.Pool("MaxPool", x)},
                             {{"output_sizes", Ints{2, 8, 6, 5}},
                              {"scales", std::vector<double>(4, 1)},
                              {"mode", std::string("linear")}});
  return net.Conv(net.Add("Concat", {x, up}, {{"axis", int64_t{1}}}), 8);
}
/// Convolves one half of the channels, and swaps the halves.
ValueId ShuffleBlock(Net& net, ValueId x) {
  const std::vector<ValueId> halves = net.Split(x, {4, 4});
  return net.Conv(net.Add("Concat", {net.Conv(halves[1], 4), halves[0]}, {{"axis", int64_t{1}}}),
                  8);
}

TEST(CudnnMoves, BlocksConvertAtTheirEndsAlone) {
  MovesRig rig;
  using Block = ValueId (*)(Net&, ValueId);
  for (const CallForm& form : kCallForms) {
    for (const auto& [description, block] :
         std::map<std::string, Block>{{"dense", &DenseBlock},
                                      {"inception", &InceptionBlock},
                                      {"U", &UBlock},
                                      {"shuffle", &ShuffleBlock}}) {
      Net net;
      net.Output(block(net, net.Conv(net.Input({2, 3, 6, 5}), 8)));
      const auto launches = rig.Launches(net, form, description);
      EXPECT_EQ(std::count(launches.begin(), launches.end(), "convert"), 2)
          << form.algorithm << ", " << description;
      if (description == "dense") {
        EXPECT_THAT(launches, Contains("Concat BatchNormalization Relu")) << form.algorithm;
      }
      for (const DeviceLaunch& launch : rig.cases.back().program.launches) {
        EXPECT_TRUE(launch.info.nodes.empty() ||
                    launch.info.kernel.find("transposition") == std::string::npos)
            << description;
      }
    }
  }
  rig.ExpectRight();
}

/// Values that others read, too, in f32 and in the graph's order, and values that cannot be rounded
/// where they are moved.
TEST(CudnnMoves, AreRightWhereFormsEnd) {
  MovesRig rig;
  for (const CallForm& form : kCallForms) {
    for (const auto& [description, move] : kMoves) {
      Net net;
      const ValueId x = net.Input({2, 3, 6, 5});
      const ValueId one = net.Conv(x, 8), moved = move(net, one, net.Input({2, 8, 6, 5}));
      net.Output(net.Conv(moved, 4));
      net.Output(moved);
      net.Output(net.Add("Sin", {moved}));
      net.Output(net.Add("ReduceSum", {moved}, {{"axes", Ints{1}}, {"keepdims", int64_t{1}}}));
      net.Output(one);
      rig.Launches(net, form, description);
    }
  }
  // -65505 is no number of f16, nor is 0.1 of either format: readers of f32 get them in f32.
  for (const double number : {0.1, -65505.0}) {
    for (const CallForm& form : kCallForms) {
      Net net;
      const ValueId padded = net.Add("Pad", {net.Conv(net.Input({2, 3, 6, 5}), 8)},
                                     {{"pads", Ints{0, 0, 1, 0, 0, 0, 0, 0}}, {"value", number}});
      net.Output(net.Add("Neg", {padded}));
      rig.Launches(net, form, Cat("Pad with ", number));
      if (form.bytes == 2) {
        EXPECT_EQ(rig.cases.back().program.launches.back().pointers.back().bytes,
                  4 * 2 * 8 * 7 * 5);
      }
    }
  }
  rig.ExpectRight();
}

/// NVRTC compiles what the host's compiler compiles, and a wide Concat fits registers.
TEST(CudnnMoves, CompileWithoutADevice) {
  const auto compiler = Compiler::Get();
  if (!compiler.ok()) {
    EXPECT_FALSE(std::filesystem::exists("/usr/local/cuda")) << compiler.status();
    GTEST_SKIP() << compiler.status();
  }
  const Moving wide = [](Net& net, ValueId x, ValueId y) {
    std::vector<ValueId> all = {x};
    for (int k = 0; k < 23; ++k) all.push_back(net.Conv(k % 2 == 0 ? x : y, 8));
    return net.Add("Concat", all, {{"axis", int64_t{1}}});
  };
  // Each kernel is compiled for one of the architectures.
  MovesRig rig;
  for (const CallForm& form : kCallForms) {
    for (const auto& [description, move] : kMoves) rig.LaunchesBetween(move, form, description);
    EXPECT_THAT(rig.LaunchesBetween(wide, form, "wide"), Contains("Concat"));
  }
  for (size_t k = 0; k < kCompiledArchitectures.size(); ++k) {
    const int architecture = kCompiledArchitectures[k];
    if (!(*compiler)->Supports(architecture)) continue;
    std::vector<DeviceCase> cases;
    for (size_t number = k; number < rig.cases.size(); number += kCompiledArchitectures.size())
      cases.push_back(rig.cases[number]);
    const auto compiled = (*compiler)->Compile(ModuleOf(cases), "moves", architecture);
    ASSERT_TRUE(compiled.ok()) << std::string(compiled.status().message()).substr(0, 4000);
    EXPECT_EQ(compiled->usage.spilled_bytes, 0) << "sm_" << architecture;
    int most = 0;
    for (const auto& [name, usage] : compiled->entries) most = std::max(most, usage.registers);
    std::printf("sm_%d: %zu kernels, at most %d registers a thread\n", architecture,
                compiled->entries.size(), most);
  }
}

}  // namespace
}  // namespace mendel::cuda
