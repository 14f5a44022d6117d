// Tests of the native kernels for single operators against the operators' definitions. They cover
// shapes of several strips, blocks and threads, every layout that reaches the kernels, and values
// that samplers do not draw.

#include <cmath>
#include <functional>
#include <limits>

#include "base/random.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "graph/graph.h"
#include "graph/random_graph.h"
#include "graph/sample_node.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cpu/testing/test_support.h"

namespace mendel::cpu {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr double kDoubleNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kDoubleInfinity = std::numeric_limits<double>::infinity();

void Check(const std::string& name, const std::vector<TensorType>& inputs, const Attributes& attrs,
           const SampleRanges& ranges = {}, const ChangeInputs& change = nullptr,
           double tolerance = 1e-5) {
  CheckOperator(name, inputs, attrs, ranges, change, tolerance);
}

TensorType F32(Shape shape) { return {DType::kF32, std::move(shape)}; }
TensorType I64(Shape shape) { return {DType::kI64, std::move(shape)}; }

enum class Lying { kPlain, kBlocked, kChannelsLast };

/// Normalizes [images, channels, 13, 11], which comes out of a convolution (blocked) or a
/// transposition (channels last).
void CheckChannels(const std::string& name, Lying lying, int64_t channels, const Attributes& attrs,
                   double mean) {
  SCOPED_TRACE(testing::Message() << name << " of " << channels << " channels, layout "
                                  << static_cast<int>(lying));
  Rng rng(3);
  GraphBuilder builder;
  const Shape shape =
      lying == Lying::kChannelsLast ? Shape{2, 13, 11, channels} : Shape{2, channels, 13, 11};
  const auto values = [&](Shape extents, double center) {
    HostValue value{F32(std::move(extents)), {}, {}};
    for (int64_t k = NumElements(value.type); k > 0; --k)
      value.scalars.push_back(center + static_cast<double>(rng.Between(-64, 64)) / 64);
    return value;
  };
  std::vector<HostValue> inputs = {values(shape, lying == Lying::kBlocked ? 0 : mean)};
  ValueId x = builder.Input("x", inputs[0].type);
  if (lying == Lying::kBlocked) {
    const HostValue kernel = values({channels, channels, 3, 3}, 0);
    const HostValue bias = values({channels}, mean);
    x = *builder.Add(
        "Conv",
        {x, builder.Constant(kernel.ToTensor(), "w"), builder.Constant(bias.ToTensor(), "b")},
        {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}});
  }
  if (lying == Lying::kChannelsLast)
    x = *builder.Add("Transpose", {x}, {{"perm", Ints{0, 3, 1, 2}}});
  std::vector<ValueId> operands = {x};
  for (int k = 1; k < FindOp(name)->max_inputs; ++k) {
    inputs.push_back(values({channels}, k == 4 ? 2 : 0));
    operands.push_back(builder.Input(Cat("p", k), inputs.back().type));
  }
  x = *builder.Add(name, operands, attrs);
  if (lying == Lying::kChannelsLast)
    x = *builder.Add("Transpose", {x}, {{"perm", Ints{0, 2, 3, 1}}});
  builder.Output("y", x);
  const absl::StatusOr<Graph> graph = builder.Build();
  ASSERT_TRUE(graph.ok()) << graph.status();
  for (const int threads : {1, 3}) {
    CompileOptions options;
    options.threads = threads;
    // A convolution before it leaves the mean with a rounding error.
    const double tolerance = lying == Lying::kBlocked ? 3e-5 : 1e-5;
    const bool side_by_side = lying == Lying::kChannelsLast && channels == 32;
    EXPECT_THAT(ExpectMatches(*graph, inputs, options, tolerance, 1),
                Contains(HasSubstr(side_by_side ? "channel norm, lanes" : "channel norm")));
  }
}

TEST(CpuOperator, NormalizesChannelsWhereTheyLie) {
  for (const Lying lying : {Lying::kPlain, Lying::kBlocked, Lying::kChannelsLast}) {
    for (const double mean : {0.0, 50.0}) {
      CheckChannels("InstanceNormalization", lying, 32, {{"epsilon", 1e-5}}, mean);
      for (const int64_t groups : {1, 2, 4, 8, 16, 32}) {
        CheckChannels("GroupNormalization", lying, 32, {{"num_groups", groups}, {"epsilon", 1e-3}},
                      mean);
      }
      CheckChannels("BatchNormalization", lying, 32, {{"epsilon", 1e-5}}, mean);
    }
    CheckChannels("GroupNormalization", lying, 24, {{"num_groups", int64_t{8}}, {"epsilon", 1e-3}},
                  0);
    CheckChannels("InstanceNormalization", lying, 7, {{"epsilon", 1e-5}}, 0);
  }
}

TEST(CpuOperator, NormalizesLongRows) {
  for (const int64_t count : {1, 15, 17, 31, 32, 33, 63, 1023, 1025, 5000}) {
    Check("InstanceNormalization", {F32({1, 3, count}), F32({3}), F32({3})}, {{"epsilon", 1e-3}});
  }
}

TEST(CpuOperator, NormalizesWhatFloatsCannotSum) {
  for (const char* name : {"InstanceNormalization", "GroupNormalization"}) {
    Attributes attrs{{"epsilon", 1e-3}};
    if (name[0] == 'G') attrs.Set("num_groups", int64_t{2});
    Check(name, {F32({1, 4, 300}), F32({4}), F32({4})}, attrs, {},
          [](std::vector<HostValue>& values) {
            for (double& x : values[0].scalars) x = 1e37 + x;
          });
  }
}

TEST(CpuOperator, NormalizesByPartsOfItsOwnInput) {
  GraphBuilder builder;
  const ValueId x = *builder.Add("Relu", {builder.Input("x", F32({2, 64}))});
  const ValueId row = *builder.Add(
      "Slice", {x}, {{"starts", Ints{0, 0}}, {"ends", Ints{1, 64}}, {"steps", Ints{1, 1}}});
  const ValueId mean = *builder.Add("Reshape", {row}, {{"shape", Ints{64}}});
  std::vector<ValueId> operands = {x};
  for (const char* name : {"scale", "bias"}) operands.push_back(builder.Input(name, F32({64})));
  operands.push_back(mean);
  operands.push_back(*builder.Add("Abs", {builder.Input("variance", F32({64}))}));
  const ValueId y = *builder.Add("BatchNormalization", operands, {{"epsilon", 0.5}});
  builder.Output("y", *builder.Add("Softmax", {y}, {{"axis", int64_t{1}}}));
  const Graph graph = *builder.Build();
  Rng rng(1);
  ExpectMatches(graph, RandomInputs(rng, graph), {});
}

/// The last function of a chain writes the result itself, unless the result overlaps an operand.
TEST(CpuOperator, ElementwiseResultsOverTheirOperandAndAside) {
  GraphBuilder builder;
  const auto add = [&](const char* op, std::vector<ValueId> inputs, Attributes attrs = {}) {
    return *builder.Add(op, std::move(inputs), std::move(attrs));
  };
  constexpr int64_t kCount = 40001;
  const Attributes axis = {{"axis", int64_t{1}}};
  const ValueId x = builder.Input("x", F32({1, kCount}));
  const ValueId first = add("Softmax", {x}, axis);
  builder.Output("over", add("Softmax", {add("Mul", {add("Sigmoid", {first}), first})}, axis));
  const ValueId other = builder.Input("other", F32({1, kCount}));
  builder.Output("aside", add("Mul", {add("Sigmoid", {other}), other}));
  const Graph graph = *builder.Build();
  Rng rng(1);
  for (const int threads : {1, 3}) {
    ExpectMatches(graph, RandomInputs(rng, graph), {.threads = threads});
    const auto executable = FindBackend("cpu")->Compile(graph, {.threads = threads});
    ASSERT_TRUE(executable.ok()) << executable.status();
    EXPECT_LT((*executable)->memory().arena_bytes, 2 * kCount * 4)
        << "the first product lies over its operand";
  }
}

TEST(CpuOperator, LpPool) {
  for (const int64_t p : {1, 2, 3}) {
    Check("LpPool", {F32({2, 5, 31, 29})},
          {{"p", p},
           {"kernel_shape", Ints{3, 4}},
           {"strides", Ints{2, 1}},
           {"dilations", Ints{1, 2}},
           {"pads", Ints{1, 2, 1, 2}}});
  }
  Check("LpPool", {F32({1, 3, 9})},
        {{"p", int64_t{8}},
         {"kernel_shape", Ints{3}},
         {"strides", Ints{1}},
         {"dilations", Ints{1}},
         {"pads", Ints{0, 0}}},
        {}, [](std::vector<HostValue>& values) {
          for (double& x : values[0].scalars) x *= 1e30;  // its eighth power is no f32
        });
}

TEST(CpuOperator, Reductions) {
  for (const char* name :
       {"ReduceProd", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSum", "ReduceMax"}) {
    const bool positive = std::string(name) == "ReduceLogSum" || std::string(name) == "ReduceProd";
    const SampleRanges ranges = positive ? SampleRanges{{0, {0.5, 1.5}}} : SampleRanges{};
    for (const Ints& axes : {Ints{0}, Ints{1}, Ints{2}, Ints{0, 2}, Ints{0, 1, 2}}) {
      for (const int64_t keepdims : {0, 1}) {
        Check(name, {F32({2, 66, 70})}, {{"axes", axes}, {"keepdims", keepdims}}, ranges);
      }
    }
  }
}

/// Rows that end within a vector, within a turn of vectors and beyond a run, contiguous or not.
TEST(CpuOperator, ReductionsOfTails) {
  for (const char* name : {"ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1",
                           "ReduceSumSquare", "ReduceMean"}) {
    const SampleRanges ranges =
        std::string(name) == "ReduceProd" ? SampleRanges{{0, {0.99, 1.01}}} : SampleRanges{};
    for (const int64_t count : {1, 2, 15, 16, 17, 49, 63, 65, 200, 4096, 4099, 9001}) {
      Check(name, {F32({3, count})}, {{"axes", Ints{1}}, {"keepdims", int64_t{0}}}, ranges);
    }
    Check(name, {F32({5, 3, 33})}, {{"axes", Ints{0, 2}}, {"keepdims", int64_t{0}}}, ranges);
  }
}

TEST(CpuOperator, ExtremesKeepNaNsAndInfinities) {
  for (const char* name : {"ReduceMax", "ReduceMin"}) {
    for (const Ints& axes : {Ints{0}, Ints{1}}) {
      for (const size_t at : {0, 1, 31, 64, 170, 209}) {
        Check(name, {F32({2, 210})}, {{"axes", axes}, {"keepdims", int64_t{1}}}, {},
              [&](std::vector<HostValue>& values) {
                values[0].scalars[at] = kDoubleNan;
                values[0].scalars[210 + at] = at % 2 == 0 ? kDoubleInfinity : -kDoubleInfinity;
              });
      }
    }
    Check(name, {F32({2, 210})}, {{"axes", Ints{1}}, {"keepdims", int64_t{1}}}, {},
          [&](std::vector<HostValue>& values) {
            for (double& x : values[0].scalars)
              x = name[6] == 'M' && name[7] == 'a' ? -kDoubleInfinity : kDoubleInfinity;
          });
  }
}

TEST(CpuOperator, ReductionsOfLargeValues) {
  const auto scale = [](std::vector<HostValue>& values) {
    for (size_t k = 0; k < values[0].scalars.size(); ++k)
      values[0].scalars[k] *= k / 66 % 2 == 0 ? 1e30 : 1e-30;
  };
  for (const Ints& axes : {Ints{0}, Ints{1}}) {
    Check("ReduceProd", {F32({66, 66})}, {{"axes", axes}, {"keepdims", int64_t{1}}},
          {{0, {0.9, 1.1}}}, axes[0] == 0 ? ChangeInputs(scale) : nullptr);
    Check("ReduceL2", {F32({66, 66})}, {{"axes", axes}, {"keepdims", int64_t{1}}}, {}, scale);
    Check("ReduceLogSumExp", {F32({66, 66})}, {{"axes", axes}, {"keepdims", int64_t{1}}}, {},
          [](std::vector<HostValue>& values) {
            for (double& x : values[0].scalars) x *= 500;
            values[0].scalars[3] = kDoubleInfinity;
            values[0].scalars[70 * 5] = kDoubleNan;
            values[0].scalars[70 * 9] = -kDoubleInfinity;
          });
    Check("ReduceLogSumExp", {F32({66, 66})}, {{"axes", axes}, {"keepdims", int64_t{1}}}, {},
          [](std::vector<HostValue>& values) {
            for (double& x : values[0].scalars) x = -kDoubleInfinity;
          });
  }
}

/// NaNs, infinities and zeros of both signs in places where lines begin, end and go on.
void Salt(std::vector<HostValue>& values) {
  std::vector<double>& x = values[0].scalars;
  for (size_t k = 0; k < x.size(); k += 37)
    x[k] = k % 5 == 0   ? kDoubleNan
           : k % 5 == 1 ? kDoubleInfinity
           : k % 5 == 2 ? -kDoubleInfinity
           : k % 2 == 0 ? 0.0
                        : -0.0;
  if (!x.empty()) x[0] = kDoubleNan;
}

TEST(CpuOperator, Lines) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kI32, DType::kI64}) {
    const TensorType type{dtype, {2, 130, 66}};
    for (const int64_t axis : {0, 1, 2}) {
      for (const int64_t flag : {0, 1}) {
        Check("CumSum", {type}, {{"axis", axis}, {"exclusive", flag}, {"reverse", int64_t{0}}});
        Check("CumSum", {type}, {{"axis", axis}, {"exclusive", flag}, {"reverse", int64_t{1}}});
        for (const char* name : {"ArgMax", "ArgMin"}) {
          const Attributes attrs{
              {"axis", axis}, {"keepdims", int64_t{0}}, {"select_last_index", flag}};
          Check(name, {type}, attrs);
          if (IsFloat(dtype)) Check(name, {type}, attrs, {}, Salt);
        }
        for (const int64_t k : {1, 2})
          Check("TopK", {type}, {{"k", k}, {"axis", axis}, {"largest", flag}}, {},
                IsFloat(dtype) ? Salt : ChangeInputs());
      }
      if (IsFloat(dtype)) Check("Hardmax", {type}, {{"axis", axis}}, {}, Salt);
    }
    for (const int64_t k : {1, 30, 70, 500, 999, 1000}) {
      Check("TopK", {{dtype, {5, 1000}}}, {{"k", k}, {"axis", int64_t{1}}}, {},
            IsFloat(dtype) ? Salt : ChangeInputs());
    }
  }
}

TEST(CpuOperator, ReadsAtIndices) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kI32, DType::kI64, DType::kBool}) {
    for (const int64_t axis : {0, 1, 2}) {
      Shape indices = {4, 30, 17};
      indices[static_cast<size_t>(axis)] = 40;
      const double extent = axis == 0 ? 4 : axis == 1 ? 30 : 17;
      // Some indices lie outside.
      Check("GatherElements", {{dtype, {4, 30, 17}}, I64(indices)}, {{"axis", axis}},
            {{1, {-extent - 1, extent + 1}}});
      for (const double outside : {0.0, 1.0}) {
        Check("Gather", {{dtype, {4, 30, 17}}, I64({5, 7})}, {{"axis", axis}},
              {{1, {-extent - outside, extent + outside}}});
        Check("Gather", {{dtype, {4, 30, 17}}, I64({300})}, {{"axis", axis}},
              {{1, {-extent - outside, extent + outside}}});
      }
      Check("OneHot", {{DType::kI32, {40, 30}}, {dtype, {2}}},
            {{"axis", axis}, {"depth", int64_t{20}}}, {{0, {-24, 24}}});
    }
    for (const int64_t tuple : {1, 2, 3}) {
      Check("GatherND", {{dtype, {4, 30, 17}}, I64({30, 7, tuple})}, {}, {{1, {-5, 5}}});
      if (tuple < 3)
        Check("GatherND", {{dtype, {4, 30, 17}}, I64({4, 50, tuple})}, {{"batch_dims", int64_t{1}}},
              {{1, {-34, 34}}});
    }
    for (const int64_t batch : {0, 1, 2}) {
      for (const int64_t time : {0, 1, 2}) {
        const Shape shape = {6, 30, 17};
        if (batch == time) continue;
        Check("ReverseSequence", {{dtype, shape}, I64({shape[static_cast<size_t>(batch)]})},
              {{"batch_axis", batch}, {"time_axis", time}},
              {{1, {-1.0, static_cast<double>(shape[static_cast<size_t>(time)] + 2)}}});
      }
    }
  }
}

TEST(CpuOperator, Scatters) {
  for (const DType dtype :
       {DType::kF32, DType::kF64, DType::kI32, DType::kI64, DType::kF16, DType::kBool}) {
    const bool number = dtype != DType::kF16 && dtype != DType::kBool;
    for (const char* reduction : {"none", "add", "mul", "max", "min"}) {
      if (!number && std::string(reduction) != "none") continue;
      // Updates meet, and some lie outside.
      for (const int64_t axis : {0, 1, 2}) {
        Check("ScatterElements", {{dtype, {6, 30, 17}}, I64({5, 25, 15}), {dtype, {5, 25, 15}}},
              {{"axis", axis}, {"reduction", std::string(reduction)}}, {{1, {-7, 7}}, {2, {0, 2}}});
      }
      for (const int64_t tuple : {1, 2, 3}) {
        Shape updates = {12, 2};
        const Shape shape = {6, 5, 70};
        updates.insert(updates.end(), shape.begin() + tuple, shape.end());
        Check("ScatterND", {{dtype, shape}, I64({12, 2, tuple}), {dtype, updates}},
              {{"reduction", std::string(reduction)}}, {{1, {-7, 7}}, {2, {0, 2}}});
      }
    }
  }
}

TEST(CpuOperator, ScatterReadsItsDataAgain) {
  GraphBuilder builder;
  const ValueId x = builder.Input("x", F32({40, 3}));
  const ValueId indices = builder.Input("i", I64({40, 1}));
  const ValueId data = *builder.Add("Neg", {x});
  builder.Output(
      "y", *builder.Add("ScatterND", {data, indices, data}, {{"reduction", std::string("add")}}));
  const absl::StatusOr<Graph> graph = builder.Build();
  ASSERT_TRUE(graph.ok()) << graph.status();
  HostValue values{F32({40, 3}), {}, {}}, at{I64({40, 1}), {}, {}};
  for (int k = 0; k < 120; ++k) values.scalars.push_back(k % 7);
  for (int k = 0; k < 40; ++k) at.integers.push_back((k * 7 + 3) % 40);
  ExpectMatches(*graph, {values, at}, {});
}

TEST(CpuOperator, Pads) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kI64, DType::kBool}) {
    for (const char* mode : {"constant", "edge", "reflect", "wrap"}) {
      for (const Ints& pads :
           {Ints{2, 3, 40, 1, 70, 5}, Ints{-1, 60, 0, 3, -2, 200}, Ints{0, -50, 3, 0, 1, 1}}) {
        Check("Pad", {{dtype, {4, 52, 9}}}, {{"pads", pads}, {"mode", std::string(mode)}});
      }
    }
  }
}

TEST(CpuOperator, PadsWhatIsTransposed) {
  for (const char* mode : {"constant", "edge", "reflect", "wrap"}) {
    GraphBuilder builder;
    const ValueId x = builder.Input("x", F32({30, 40}));
    const ValueId turned = *builder.Add("Transpose", {x}, {{"perm", Ints{1, 0}}});
    builder.Output("y", *builder.Add("Pad", {turned},
                                     {{"pads", Ints{3, 5, -1, 9}}, {"mode", std::string(mode)}}));
    const absl::StatusOr<Graph> graph = builder.Build();
    ASSERT_TRUE(graph.ok()) << graph.status();
    HostValue values{F32({30, 40}), {}, {}};
    for (int k = 0; k < 1200; ++k) values.scalars.push_back(k);
    EXPECT_THAT(ExpectMatches(*graph, {values}, {}), Not(Contains("definition")));
  }
}

/// Copies of every element size: transposed (into the middle of a padding), every other column, one
/// column many times.
TEST(CpuOperator, Copies) {
  for (const DType dtype : {DType::kF32, DType::kI32, DType::kF16, DType::kI64, DType::kBool}) {
    for (const Shape& shape :
         {Shape{2, 16, 32}, Shape{3, 47, 66}, Shape{1, 5, 130}, Shape{2, 200, 1}}) {
      GraphBuilder builder;
      const ValueId x = builder.Input("x", {dtype, shape});
      const ValueId column = builder.Input("column", {dtype, {shape[1], 1}});
      const ValueId turned = *builder.Add("Transpose", {x}, {{"perm", Ints{0, 2, 1}}});
      builder.Output("turned", turned);
      builder.Output("padded", *builder.Add("Pad", {turned},
                                            {{"pads", Ints{0, 1, 2, 0, 3, 1}},
                                             {"mode", std::string("constant")}}));
      const Ints zeros{0, 0, 0}, steps{1, 1, 2};
      builder.Output(
          "even",
          *builder.Add("Slice", {x}, {{"starts", zeros}, {"ends", Ints(shape)}, {"steps", steps}}));
      builder.Output("wide", *builder.Add("Expand", {column}, {{"shape", Ints{3, shape[1], 40}}}));
      const absl::StatusOr<Graph> graph = builder.Build();
      ASSERT_TRUE(graph.ok()) << graph.status();
      SCOPED_TRACE(PrintGraph(*graph));
      std::vector<HostValue> values;
      for (int32_t input : graph->inputs()) {
        HostValue& value = values.emplace_back(HostValue{graph->node(input).outputs[0], {}, {}});
        for (int64_t k = 0; k < NumElements(value.type); ++k) {
          if (IsFloat(dtype)) value.scalars.push_back(static_cast<double>(k % 2039));
          if (!IsFloat(dtype)) value.integers.push_back(dtype == DType::kBool ? k % 3 % 2 : k);
        }
      }
      for (const int threads : {1, 3}) {
        CompileOptions options;
        options.threads = threads;
        EXPECT_THAT(ExpectMatches(*graph, values, options), Not(Contains("definition")));
      }
    }
  }
}

TEST(CpuOperator, Triangles) {
  const int64_t far = std::numeric_limits<int64_t>::max();
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kI64, DType::kBool}) {
    for (const int64_t k :
         {int64_t{0}, int64_t{3}, int64_t{-5}, int64_t{33}, int64_t{-41}, far, -far}) {
      for (const int64_t upper : {0, 1})
        Check("Trilu", {{dtype, {3, 40, 33}}}, {{"upper", upper}, {"k", k}});
    }
  }
}

}  // namespace
}  // namespace mendel::cpu
