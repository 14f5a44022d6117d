// Every registered operator satisfies these checks, whatever it computes. Each check draws nodes
// from the operator's own sampler.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <set>

#include "base/status.h"
#include "graph/graph.h"
#include "graph/grid.h"
#include "graph/op_conformance.h"
#include "graph/sample_node.h"
#include "graph/text.h"

namespace mendel {
namespace {

constexpr uint64_t kSeeds = 40;

/// Sums of few small numbers may leave the type.
bool WrapsAtSmallNumbers(DType dtype) { return dtype == DType::kI8 || IsUnsigned(dtype); }

class OpConformance : public testing::TestWithParam<const OpDefinition*> {
 protected:
  /// Runs `check(node, rng)` on kSeeds draws.
  template <class Check>
  void ForSamples(const Check& check) {
    const OpDefinition& op = *GetParam();
    if (op.sample == nullptr) GTEST_SKIP() << op.name << " has no sampler";
    for (uint64_t seed = 1; seed <= kSeeds && !HasFailure(); ++seed) {
      Rng rng(seed);
      const absl::StatusOr<SampledNode> node = SampleNode(op, rng);
      ASSERT_TRUE(node.ok()) << op.name << " seed " << seed << ": " << node.status();
      SCOPED_TRACE(Cat("seed ", seed, ": ", DescribeNode(*node)));
      check(*node, rng);
    }
  }
};

TEST_P(OpConformance, SamplesAreWellFormed) {
  ForSamples([](const SampledNode& node, Rng&) {
    ASSERT_FALSE(node.outputs.empty());
    for (const TensorType& type : node.outputs) EXPECT_LE(NumElements(type), 1 << 20);
    const Cost cost = CostOf(*node.op, node.view());
    EXPECT_TRUE(std::isfinite(cost.flops) && cost.flops >= 0);
    EXPECT_TRUE(std::isfinite(cost.bytes) && cost.bytes >= 0);
  });
}

TEST_P(OpConformance, TextFormRoundTrips) {
  ForSamples([](const SampledNode& node, Rng&) {
    GraphBuilder builder("g");
    std::vector<ValueId> values;
    for (const TensorType& type : node.inputs)
      values.push_back(builder.Input(Cat("x", values.size()), type));
    const absl::StatusOr<int32_t> id = builder.AddNode(node.op->name, values, node.attrs);
    ASSERT_TRUE(id.ok()) << id.status();
    builder.Output("y", {*id, 0});
    const absl::StatusOr<Graph> graph = builder.Build();
    ASSERT_TRUE(graph.ok()) << graph.status();
    const std::string text = PrintGraph(*graph);
    const absl::StatusOr<Graph> again = ParseGraph(text);
    ASSERT_TRUE(again.ok()) << again.status() << "\n" << text;
    EXPECT_EQ(PrintGraph(*again), text);
  });
}

TEST_P(OpConformance, RealMeaningIsDeterministicAndDefined) {
  ForSamples([](const SampledNode& node, Rng& rng) {
    const std::vector<HostValue> inputs = SampleInputs(node, rng);
    const std::vector<HostValue> outputs = EvaluateReal(node, inputs);
    const std::vector<HostValue> again = EvaluateReal(node, inputs);
    ASSERT_EQ(outputs.size(), node.outputs.size());
    for (size_t k = 0; k < outputs.size(); ++k) {
      EXPECT_EQ(outputs[k].type, node.outputs[k]);
      ASSERT_EQ(CountOf(outputs[k]), NumElements(node.outputs[k]));
      for (int64_t i = 0; i < CountOf(outputs[k]); ++i) {
        EXPECT_FALSE(std::isnan(outputs[k].At(i))) << "output " << k << " element " << i;
        EXPECT_EQ(outputs[k].At(i), again[k].At(i)) << "output " << k << " element " << i;
      }
    }
  });
}

TEST_P(OpConformance, ExtremeInputsDoNotCrash) {
  ForSamples([](const SampledNode& node, Rng& rng) {
    using Limits = std::numeric_limits<double>;
    constexpr std::array<double, 8> kExtremes = {
        0.0,   -0.0, Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), 1e38,
        -1e38, 1e-40};
    constexpr std::array<int64_t, 5> kIntegers = {0, -1, 1, std::numeric_limits<int64_t>::min(),
                                                  std::numeric_limits<int64_t>::max()};
    std::vector<HostValue> inputs = SampleInputs(node, rng);
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (IsIndexInput(*node.op, k)) continue;
      for (double& value : inputs[k].scalars)
        value = rng.Flip() ? kExtremes[rng.Below(kExtremes.size())] : value;
      for (int64_t& value : inputs[k].integers)
        value = rng.Flip(0.3) ? kIntegers[rng.Below(kIntegers.size())] : value;
      inputs[k] = HostValue::FromTensor(inputs[k].ToTensor());  // into the dtype's range
    }
    const std::vector<HostValue> outputs = EvaluateReal(node, inputs);
    for (size_t k = 0; k < outputs.size(); ++k)
      EXPECT_EQ(CountOf(outputs[k]), NumElements(node.outputs[k]));
  });
}

TEST_P(OpConformance, RestrictedNodeComputesTheBox) {
  if (GetParam()->restrict == nullptr) GTEST_SKIP() << "no restriction";
  ForSamples([](const SampledNode& node, Rng& rng) {
    if (NumElements(node.outputs[0]) == 0) return;
    const std::vector<HostValue> inputs = SampleInputs(node, rng);
    const HostValue full = EvaluateReal(node, inputs)[0];
    for (int trial = 0; trial < 4; ++trial) {
      const Box box = RandomBox(rng, node.outputs[0].shape);
      const std::optional<Restriction> restriction = node.op->restrict(node.view(), box);
      if (!restriction.has_value()) continue;
      ASSERT_EQ(restriction->inputs.size(), inputs.size());
      std::vector<HostValue> cut;
      std::vector<TensorType> types;
      for (size_t k = 0; k < inputs.size(); ++k) {
        const Box& part = restriction->inputs[k];
        if (node.op->max_inputs == kVariadic && part.Volume() == 0) continue;  // left out
        const Box whole = Box::Whole(node.inputs[k].shape);
        ASSERT_TRUE(part == whole || Intersect(part, whole) == part)
            << BoxString(part) << " of input " << k;
        cut.push_back(Cut(inputs[k], part));
        types.push_back(cut.back().type);
      }
      const absl::StatusOr<SampledNode> small = MakeNode(*node.op, types, restriction->attrs);
      ASSERT_TRUE(small.ok()) << BoxString(box) << ": " << small.status();
      ASSERT_EQ(small->outputs[0].shape, box.Extents()) << BoxString(box);
      const HostValue got = EvaluateReal(*small, cut)[0];
      const HostValue want = Cut(full, box);
      for (int64_t i = 0; i < CountOf(want); ++i) {
        ASSERT_TRUE(Near(got.At(i), want.At(i)))
            << BoxString(box) << " element " << i << ": " << got.At(i) << " vs " << want.At(i);
      }
    }
  });
}

/// Ascending positions of each dimension.
Grid RandomGrid(Rng& rng, const Shape& shape) {
  Grid grid;
  for (int64_t extent : shape) {
    const double kept = rng.Flip(0.3) ? 1.0 : rng.Flip() ? 0.5 : 0.2;
    std::vector<int64_t> list;
    for (int64_t p = 0; p < extent; ++p) {
      if (rng.Flip(kept)) list.push_back(p);
    }
    if (list.empty()) list.push_back(rng.Between(0, extent - 1));
    grid.push_back(rng.Flip(0.3) ? Positions::Range(list.front(), list.back() - list.front() + 1)
                                 : Positions::List(list));
  }
  return grid;
}

/// Elements of `elements`, a tensor of this shape, at the grid; `fill` at absent positions.
template <class T>
std::vector<T> Select(const std::vector<T>& elements, const Shape& shape, const Grid& grid,
                      const T& fill) {
  std::vector<T> selected;
  const Shape extents = ExtentsOf(grid);
  if (NumElements(extents) == 0 || elements.empty()) return selected;
  std::vector<int64_t> at(shape.size(), 0);
  do {
    std::vector<int64_t> source(shape.size());
    bool absent = false;
    for (size_t d = 0; d < shape.size(); ++d) {
      source[d] = grid[d][at[d]];
      absent = absent || source[d] == kAbsent;
    }
    selected.push_back(absent ? fill : elements[static_cast<size_t>(FlatIndex(shape, source))]);
  } while (NextIndex(extents, at));
  return selected;
}

/// One grid of one output of a node, computed from grids of its inputs.
void CheckGrid(const SampledNode& node, const std::vector<HostValue>& inputs, int output,
               const Grid& wanted, const GridRestriction& part, Rng& rng) {
  const Shape& shape = node.outputs[static_cast<size_t>(output)].shape;
  ASSERT_EQ(part.inputs.size(), inputs.size());
  ASSERT_EQ(part.computed.size(), shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    const std::vector<int64_t> computed = part.computed[d].ToList();
    for (int64_t i = 0; i < wanted[d].size(); ++i) {
      ASSERT_TRUE(std::find(computed.begin(), computed.end(), wanted[d][i]) != computed.end())
          << "position " << wanted[d][i] << " of dimension " << d << " is not computed";
    }
  }
  const PrimeField field = PrimeField::RandomCertifying(rng);
  const FieldScope scope(field);
  const std::array<uint64_t, 2> key = {rng.Next(), rng.Next()};
  const std::vector<FieldOperand> operands = RandomField(node, inputs, rng);
  const Fp fill{field.FromDouble(part.fill)};
  std::vector<HostValue> cut;
  std::vector<FieldOperand> field_cut;
  std::vector<TensorType> types;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Shape& from = node.inputs[k].shape;
    const Shape extents = ExtentsOf(part.inputs[k]);
    if (node.op->max_inputs == kVariadic && NumElements(extents) == 0) continue;
    types.push_back({node.inputs[k].dtype, extents});
    cut.push_back(
        {types.back(), Select(inputs[k].scalars, from, part.inputs[k], part.fill),
         Select(inputs[k].integers, from, part.inputs[k], static_cast<int64_t>(part.fill))});
    field_cut.push_back(
        {Select(operands[k].scalars, from, part.inputs[k], fill),
         Select(operands[k].integers, from, part.inputs[k], static_cast<int64_t>(part.fill))});
  }
  const size_t out = static_cast<size_t>(output);
  HostValue got;
  std::vector<Fp> field_got;
  if (part.moved >= 0) {
    got = cut[static_cast<size_t>(part.moved)];
    field_got = field_cut[static_cast<size_t>(part.moved)].scalars;
    ASSERT_EQ(NumElements(got.type.shape), NumElements(ExtentsOf(part.computed)));
  } else {
    const absl::StatusOr<SampledNode> small = MakeNode(*node.op, types, part.attrs);
    ASSERT_TRUE(small.ok()) << small.status();
    const size_t at = static_cast<size_t>(part.output);
    ASSERT_EQ(small->outputs[at].shape, ExtentsOf(part.computed));
    got = EvaluateReal(*small, cut)[at];
    if (!node.op->opaque) field_got = EvaluateField(*small, field_cut, key).outputs[at];
  }
  const HostValue full = EvaluateReal(node, inputs)[out];
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const HostValue want{full.type, Select(full.scalars, shape, part.computed, nan),
                       Select(full.integers, shape, part.computed, int64_t{0})};
  const std::vector<bool> meant =
      Select(std::vector<bool>(static_cast<size_t>(NumElements(shape)), true), shape, part.computed,
             false);
  for (int64_t i = 0; i < CountOf(want); ++i) {
    if (!meant[static_cast<size_t>(i)]) continue;
    ASSERT_TRUE(Near(got.At(i), want.At(i)))
        << "element " << i << ": " << got.At(i) << " vs " << want.At(i);
  }
  if (node.op->opaque) return;
  const std::vector<Fp> field_want =
      Select(EvaluateField(node, operands, key).outputs[out], shape, part.computed, Fp{});
  for (size_t i = 0; i < field_got.size(); ++i) {
    if (meant[i]) {
      ASSERT_EQ(field_got[i], field_want[i]) << "element " << i << " in the field";
    }
  }
}

TEST_P(OpConformance, RestrictedNodeComputesTheGrid) {
  int64_t cut = 0, trials = 0;
  ForSamples([&](const SampledNode& node, Rng& rng) {
    const std::vector<HostValue> inputs = SampleInputs(node, rng);
    if (std::any_of(node.inputs.begin(), node.inputs.end(),
                    [](const TensorType& type) { return NumElements(type) == 0; }))
      return;
    std::vector<Tensor> stored;
    for (const HostValue& input : inputs) stored.push_back(input.ToTensor());
    for (int trial = 0; trial < 6 && !HasFailure(); ++trial) {
      const int output = static_cast<int>(rng.Below(node.outputs.size()));
      const Shape& shape = node.outputs[static_cast<size_t>(output)].shape;
      if (NumElements(shape) == 0) return;
      std::vector<const Tensor*> constants;
      for (size_t k = 0; k < inputs.size(); ++k)
        constants.push_back(IsIndexInput(*node.op, k) && rng.Flip() ? &stored[k] : nullptr);
      const Grid wanted = RandomGrid(rng, shape);
      const auto part = RestrictToGrid(*node.op, {node.view(), constants, output, wanted});
      if (!IsWhole(wanted, shape)) ++trials;
      if (!part.has_value()) continue;
      if (!IsWhole(part->computed, shape)) ++cut;
      std::string text;
      for (const Positions& positions : wanted) text += PositionsString(positions) + " ";
      SCOPED_TRACE(Cat("output ", output, " wanted ", text));
      CheckGrid(node, inputs, output, wanted, *part, rng);
    }
  });
  std::printf("%s: %lld of %lld grids cut\n", std::string(GetParam()->name).c_str(),
              static_cast<long long>(cut), static_cast<long long>(trials));
}

TEST_P(OpConformance, FieldMeaningRunsWithoutZeroDenominators) {
  int runs = 0;
  int zeros = 0;
  ForSamples([&](const SampledNode& node, Rng& rng) {
    if (node.op->opaque) return;
    const std::vector<HostValue> inputs = SampleInputs(node, rng);
    const PrimeField field = PrimeField::RandomCertifying(rng);
    const FieldScope scope(field);
    const std::vector<FieldOperand> operands = RandomField(node, inputs, rng);
    const std::array<uint64_t, 2> key = {rng.Next(), rng.Next()};
    const FieldResult result = EvaluateField(node, operands, key);
    ++runs;
    zeros += result.zero_denominator;
    const FieldResult again = EvaluateField(node, operands, key);
    for (size_t k = 0; k < result.outputs.size(); ++k) {
      ASSERT_EQ(result.outputs[k], again.outputs[k]);
      for (Fp element : result.outputs[k]) ASSERT_LT(element.value, field.prime());
    }
  });
  EXPECT_LE(zeros * 10, runs);
}

TEST_P(OpConformance, LinearInputsAreLinearInTheField) {
  if (GetParam()->linear_inputs == nullptr || GetParam()->opaque)
    GTEST_SKIP() << "linear in nothing";
  ForSamples([](const SampledNode& node, Rng& rng) {
    const uint32_t linear = node.op->linear_inputs(node.view());
    const std::vector<HostValue> inputs = SampleInputs(node, rng);
    const PrimeField field = PrimeField::RandomCertifying(rng);
    const FieldScope scope(field);
    const std::array<uint64_t, 2> key = {rng.Next(), rng.Next()};
    for (size_t k = 0; k < inputs.size(); ++k) {
      if ((linear >> k & 1) == 0) continue;
      ASSERT_FALSE(IsIndexInput(*node.op, k));
      std::vector<FieldOperand> a = RandomField(node, inputs, rng);
      std::vector<FieldOperand> b = a;
      std::vector<FieldOperand> mixed = a;
      const Fp factor{field.RandomElement(rng)};
      for (size_t i = 0; i < a[k].scalars.size(); ++i) {
        b[k].scalars[i].value = field.RandomElement(rng);
        mixed[k].scalars[i] = a[k].scalars[i] + factor * b[k].scalars[i];
      }
      const FieldResult of_a = EvaluateField(node, a, key);
      const FieldResult of_b = EvaluateField(node, b, key);
      const FieldResult of_mixed = EvaluateField(node, mixed, key);
      for (size_t o = 0; o < node.outputs.size(); ++o) {
        for (size_t i = 0; i < of_a.outputs[o].size(); ++i) {
          ASSERT_EQ(of_mixed.outputs[o][i], of_a.outputs[o][i] + factor * of_b.outputs[o][i])
              << "input " << k << " output " << o << " element " << i;
        }
      }
    }
  });
}

TEST_P(OpConformance, PolynomialsAgreeInDoublesAndField) {
  if (GetParam()->opaque) GTEST_SKIP() << "opaque";
  ForSamples([](const SampledNode& node, Rng& rng) {
    const std::vector<HostValue> inputs = SampleInputs(node, rng, 1);
    const std::vector<HostValue> real = EvaluateReal(node, inputs);
    const PrimeField field = PrimeField::RandomCertifying(rng);
    const FieldScope scope(field);
    const std::array<uint64_t, 2> key = {rng.Next(), rng.Next()};
    const FieldResult result = EvaluateField(node, FieldImages(node, inputs, rng.Flip()), key);
    for (size_t k = 0; k < real.size(); ++k) {
      if (NumElements(node.outputs[k]) == 0) continue;
      const BoundResult bound = EvaluateBound(node, inputs, static_cast<int>(k));
      if (bound.operand_count > 0 || bound.bound.HasDenominator()) continue;
      if (WrapsAtSmallNumbers(node.outputs[k].dtype)) continue;  // sums wrap
      for (int64_t i = 0; i < CountOf(real[k]); ++i) {
        ASSERT_EQ(result.outputs[k][static_cast<size_t>(i)].value, field.FromDouble(real[k].At(i)))
            << "output " << k << " element " << i;
      }
    }
  });
}

// The verifier calls two values equal when they are equal in the field. So field equalities of an
// operator (pinned points, idempotence, symmetry) must hold in doubles too. Outputs, operands, 0
// and 1 are all compared with each other.
TEST_P(OpConformance, FieldEqualityImpliesRealEquality) {
  if (GetParam()->opaque) GTEST_SKIP() << "opaque";
  ForSamples([](const SampledNode& node, Rng& rng) {
    const std::vector<HostValue> inputs = SampleInputs(node, rng, rng.Flip() ? 1 : 2);
    const PrimeField field = PrimeField::RandomCertifying(rng);
    const FieldScope scope(field);
    const std::array<uint64_t, 2> key = {rng.Next(), rng.Next()};
    const FieldResult result = EvaluateField(node, FieldImages(node, inputs, rng.Flip()), key);
    if (result.zero_denominator) return;
    std::map<uint64_t, double> known = {{0, 0.0}, {1, 1.0}};
    const auto add = [&](uint64_t element, double value) {
      const auto [it, inserted] = known.emplace(element, value);
      EXPECT_TRUE(inserted || Near(it->second, value))
          << "one field element for " << it->second << " and " << value;
    };
    for (const HostValue& input : inputs) {
      for (int64_t i = 0; i < CountOf(input); ++i) add(field.FromDouble(input.At(i)), input.At(i));
    }
    const std::vector<HostValue> real = EvaluateReal(node, inputs);
    for (size_t k = 0; k < real.size(); ++k) {
      if (WrapsAtSmallNumbers(node.outputs[k].dtype)) continue;  // sums wrap
      for (int64_t i = 0; i < CountOf(real[k]); ++i)
        add(result.outputs[k][static_cast<size_t>(i)].value, real[k].At(i));
    }
  });
}

TEST_P(OpConformance, BoundsAreFinite) {
  if (GetParam()->opaque) GTEST_SKIP() << "opaque";
  ForSamples([](const SampledNode& node, Rng& rng) {
    const std::vector<HostValue> inputs = SampleInputs(node, rng);
    ASSERT_TRUE(node.op->bound != nullptr || node.op->meaning.bound != nullptr)
        << "neither bound nor an At meaning";
    bool symbols = false;
    for (size_t k = 0; k < inputs.size(); ++k)
      symbols = symbols || (!IsIndexInput(*node.op, k) && CountOf(inputs[k]) > 0);
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      if (NumElements(node.outputs[k]) == 0) continue;
      const BoundResult result = EvaluateBound(node, inputs, static_cast<int>(k));
      const Bound& bound = result.bound;
      for (double part : {bound.num_degree, bound.den_degree, bound.log2_num, bound.log2_den,
                          result.operand_count}) {
        EXPECT_TRUE(std::isfinite(part) && part >= 0) << part;
      }
      EXPECT_TRUE(!symbols || bound.num_degree + bound.den_degree >= 1);
    }
  });
}

TEST_P(OpConformance, AccessCoversWhatIsRead) {
  if (GetParam()->access == nullptr) GTEST_SKIP() << "no access pattern";
  ForSamples([](const SampledNode& node, Rng& rng) {
    const std::optional<AccessPattern> pattern = node.op->access(node.view());
    if (!pattern.has_value() || NumElements(node.outputs[0]) == 0) return;
    ASSERT_EQ(pattern->breaks.size(), node.outputs[0].shape.size());
    const std::vector<HostValue> inputs = SampleInputs(node, rng);
    const HostValue before = EvaluateReal(node, inputs)[0];
    for (int trial = 0; trial < 12; ++trial) {
      const size_t k = rng.Below(inputs.size());
      if (IsIndexInput(*node.op, k) || CountOf(inputs[k]) == 0) continue;
      const int64_t element =
          static_cast<int64_t>(rng.Below(static_cast<uint64_t>(CountOf(inputs[k]))));
      std::vector<HostValue> changed = inputs;
      const HostValue fresh = SampleInputs(node, rng)[k];
      const size_t at = static_cast<size_t>(element);
      if (IsFloat(node.inputs[k].dtype)) {
        changed[k].scalars[at] = fresh.scalars[at];
      } else {
        changed[k].integers[at] = fresh.integers[at];
      }
      const HostValue after = EvaluateReal(node, changed)[0];
      for (int64_t i = 0; i < CountOf(before); ++i) {
        if (Same(before.At(i), after.At(i))) continue;
        ASSERT_TRUE(Covers(*pattern, node, k, i, element))
            << "output element " << i << " reads element " << element << " of input " << k;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Every, OpConformance, testing::ValuesIn(AllOps().begin(), AllOps().end()),
                         [](const testing::TestParamInfo<const OpDefinition*>& info) {
                           return std::string(info.param->name);
                         });

// ---------------------------------------------------------------------------------------------------------------------------

/// Names and file stems without regard to case and underscores: "LeakyRelu" and "leaky_relu".
std::string Folded(std::string_view text) {
  std::string folded;
  for (char c : text) {
    if (c != '_') folded += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return folded;
}

TEST(OpRegistry, NamesAreTheFiles) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(MENDEL_OPS_DIR)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() == ".cc" && !path.stem().string().ends_with("_test"))
      files.insert(Folded(path.stem().string()));
  }
  std::set<std::string> names;
  for (const OpDefinition* op : AllOps()) names.insert(Folded(op->name));
  EXPECT_EQ(names, files);
}

TEST(OpRegistry, OnlyInputAndConstantHaveNoSampler) {
  std::vector<std::string> without;
  for (const OpDefinition* op : AllOps()) {
    if (op->sample == nullptr) without.emplace_back(op->name);
  }
  EXPECT_THAT(without, testing::ElementsAre("Constant", "Input"));
}

}  // namespace
}  // namespace mendel
