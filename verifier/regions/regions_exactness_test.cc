// Thousands of random programs: the boxes of Localize against evaluation of every element.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "base/status.h"
#include "graph/random_graph.h"
#include "graph/sample_node.h"
#include "verifier/regions/exhaustive_check.h"

namespace mendel {
namespace {

constexpr int64_t kMaxElements = 400;  // of one value: keeps exhaustive evaluation quick

WeightMode RandomMode(Rng& rng) {
  return rng.Flip(0.3) ? WeightMode::kExact : WeightMode::kSymbolic;
}

/// Programs of any operators of the registry with any attributes over values that share few
/// sources: operands are pieces of what is there, taken with steps, flipped, interleaved, or stored
/// tensors.
class OperatorGrower {
 public:
  OperatorGrower(Rng& rng, GraphBuilder& builder) : rng_(rng), builder_(builder) {
    values_.push_back(builder.Input("x", {DType::kF32, {rng.Between(120, 400)}}));
    if (rng.Flip(0.3)) values_.push_back(builder.Input("z", {DType::kF32, {rng.Between(40, 200)}}));
  }

  void Step() {
    const auto ops = AllOps();
    for (int attempt = 0; attempt < 20; ++attempt) {
      const OpDefinition& op = *ops[rng_.Below(ops.size())];
      if (op.sample == nullptr) continue;
      const auto node = SampleNode(op, rng_);
      if (!node.ok() || node->outputs[0].dtype != DType::kF32 ||
          NumElements(node->outputs[0]) > kMaxElements)
        continue;
      const std::optional<std::vector<ValueId>> operands = Operands(*node);
      if (!operands.has_value()) continue;
      const auto id = builder_.AddNode(op.name, *operands, node->attrs);
      if (!id.ok()) continue;
      const std::vector<TensorType>& outputs = builder_.node(*id).outputs;
      values_.push_back({*id, static_cast<int32_t>(rng_.Below(outputs.size()))});
      return;
    }
  }

  ValueId result() const { return values_.back(); }

 private:
  std::optional<std::vector<ValueId>> Operands(const SampledNode& node) {
    std::vector<ValueId> operands;
    const std::vector<HostValue> samples = SampleInputs(node, rng_);
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const TensorType& type = node.inputs[k];
      if (NumElements(type) > kMaxElements || NumElements(type) == 0) return std::nullopt;
      if (type.dtype != DType::kF32) {
        operands.push_back(builder_.Constant(samples[k].ToTensor()));
        continue;
      }
      const uint64_t kind = rng_.Below(k == 0 ? 20 : 5);
      std::optional<ValueId> value;
      if (kind == 0) value = Stored(type.shape, rng_.Flip(0.6));
      if (kind != 0) value = Piece(type.shape);
      if (!value.has_value()) value = Stored(type.shape, true);
      operands.push_back(*value);
    }
    return operands;
  }

  ValueId Stored(const Shape& shape, bool symbol) {
    std::vector<double> values(static_cast<size_t>(NumElements(shape)), 2);
    for (double& value : values) {
      if (symbol || rng_.Flip(0.1)) value = static_cast<double>(rng_.Between(1, 4));
    }
    return builder_.Constant(Tensor::FromDoubles({DType::kF32, shape}, values),
                             symbol ? Cat("w", rng_.Below(1000000000)) : "");
  }

  std::optional<ValueId> Add(std::string_view op, ValueId value, Attributes attrs) {
    const auto result = builder_.Add(op, {value}, std::move(attrs));
    return result.ok() ? std::optional(*result) : std::nullopt;
  }

  /// `shape` cut out of a value: neighbors, every second element, or backwards.
  std::optional<ValueId> Piece(const Shape& shape) {
    const int64_t need = NumElements(shape);
    const ValueId from = rng_.Flip(0.6) ? values_.back() : values_[rng_.Below(values_.size())];
    const TensorType type = builder_.type(from);
    if (type.dtype != DType::kF32) return std::nullopt;
    if (type.shape == shape && rng_.Flip(0.8)) return from;
    const int64_t have = NumElements(type);
    if (have < need) return std::nullopt;
    std::optional<ValueId> value = Add("Reshape", from, {{"shape", Shape{have}}});
    const int64_t step = rng_.Between(1, std::min<int64_t>(2, have / need));
    const int64_t start = rng_.Between(0, have - step * (need - 1) - 1);
    const int64_t last = start + step * (need - 1);
    const bool back = rng_.Flip(0.2);
    const Attributes forward{
        {"starts", Ints{start}}, {"ends", Ints{last + 1}}, {"steps", Ints{step}}};
    const Attributes backward{
        {"starts", Ints{last}}, {"ends", Ints{start - 1}}, {"steps", Ints{-step}}};
    if (value.has_value()) value = Add("Slice", *value, back ? backward : forward);
    if (value.has_value()) value = Add("Reshape", *value, {{"shape", shape}});
    return value;
  }

  Rng& rng_;
  GraphBuilder& builder_;
  std::vector<ValueId> values_;
};

Graph RandomOperators(Rng& rng) {
  GraphBuilder builder("random");
  OperatorGrower grower(rng, builder);
  for (int64_t steps = rng.Between(1, 6); steps > 0; --steps) grower.Step();
  builder.Output("y", grower.result());
  return *builder.Build();
}

/// The same value by a detour through views, flips, interleavings or pieces.
ValueId Detour(Rng& rng, GraphBuilder& builder, ValueId x) {
  const Shape shape = builder.type(x).shape;
  if (shape.empty() || NumElements(shape) == 0) return x;
  const size_t d = static_cast<size_t>(rng.Below(shape.size()));
  const Ints zeros(shape.size(), 0), ones(shape.size(), 1);
  const auto slice = [&](ValueId value, int64_t begin, int64_t end, int64_t step) {
    Ints starts = zeros, ends = builder.type(value).shape, steps = ones;
    starts[d] = begin;
    ends[d] = end;
    steps[d] = step;
    return *builder.Add("Slice", {value}, {{"starts", starts}, {"ends", ends}, {"steps", steps}});
  };
  const int64_t axis = static_cast<int64_t>(d);
  switch (rng.Below(5)) {
    case 0:
      return slice(slice(x, shape[d] - 1, -1, -1), shape[d] - 1, -1, -1);
    case 1: {
      if (shape[d] < 2) return x;
      const int64_t cut = rng.Between(1, shape[d] - 1);
      return *builder.Add("Concat", {slice(x, 0, cut, 1), slice(x, cut, shape[d], 1)},
                          {{"axis", axis}});
    }
    case 2: {  // even and odd positions apart and together again
      if (shape[d] % 2 != 0 || shape.size() >= static_cast<size_t>(kMaxRank)) return x;
      Shape halves = shape;
      halves[d] /= 2;
      halves.insert(halves.begin() + axis + 1, 1);
      const ValueId even = *builder.Add("Reshape", {slice(x, 0, shape[d], 2)}, {{"shape", halves}});
      const ValueId odd = *builder.Add("Reshape", {slice(x, 1, shape[d], 2)}, {{"shape", halves}});
      const ValueId both = *builder.Add("Concat", {even, odd}, {{"axis", axis + 1}});
      return *builder.Add("Reshape", {both}, {{"shape", shape}});
    }
    case 3: {
      Ints perm(shape.size());
      std::iota(perm.begin(), perm.end(), 0);
      std::swap(perm[0], perm[d]);
      const ValueId there = *builder.Add("Transpose", {x}, {{"perm", perm}});
      return *builder.Add("Transpose", {there}, {{"perm", perm}});
    }
    default: {
      const ValueId flat = *builder.Add("Reshape", {x}, {{"shape", Shape{NumElements(shape)}}});
      return *builder.Add("Reshape", {flat}, {{"shape", shape}});
    }
  }
}

Graph Disguised(Rng& rng, const Graph& graph) {
  GraphBuilder builder("disguised");
  std::vector<std::vector<ValueId>> where;
  for (const Node& node : graph.nodes()) {
    std::vector<ValueId> inputs;
    for (ValueId value : node.inputs)
      inputs.push_back(where[static_cast<size_t>(value.node)][static_cast<size_t>(value.output)]);
    const int32_t id = *builder.CopyNode(node, inputs);
    std::vector<ValueId>& values = where.emplace_back();
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      values.push_back({id, static_cast<int32_t>(k)});
      if (IsFloat(node.outputs[k].dtype) && rng.Flip(0.4))
        values.back() = Detour(rng, builder, values.back());
    }
  }
  for (const GraphOutput& output : graph.outputs()) {
    builder.Output(
        output.name,
        where[static_cast<size_t>(output.value.node)][static_cast<size_t>(output.value.output)]);
  }
  return *builder.Build();
}

TEST(RegionsExactness, OfAllOperatorsOverSharedSources) {
  const uint64_t first = FirstSeed();
  const uint64_t count = SeedCount(1200);
  Tally tally;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Rng rng(seed);
    const Graph f = RandomOperators(rng);
    const Graph g = rng.Flip(0.8) ? RandomMutant(rng, f) : f;
    const WeightMode mode = RandomMode(rng);
    CompareWithExhaustive(seed, f, Disguised(rng, g), mode, tally);
    if (HasFatalFailure()) return;
  }
  tally.Print("all operators", first, count);
}

TEST(RegionsExactness, OfConvolutionsViewsAndSums) {
  const uint64_t first = FirstSeed();
  const uint64_t count = SeedCount(1500);
  Tally tally;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Rng rng(seed);
    const Graph f = RandomGraph(rng, static_cast<int>(rng.Between(1, 7)));
    const Graph mutant = RandomMutant(rng, f);
    const Graph g = rng.Flip(0.3) ? Disguised(rng, mutant) : mutant;
    CompareWithExhaustive(seed, f, g, RandomMode(rng), tally);
    if (HasFatalFailure()) return;
  }
  tally.Print("convolutions, views and sums", first, count);
}

/// Sums of products of slices of one long vector: many displacement classes, shared sources, flips.
/// Equal on a prefix by design.
TEST(RegionsExactness, OfSumsOfMovingViews) {
  const uint64_t first = FirstSeed();
  const uint64_t count = SeedCount(1000);
  Tally tally;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Rng rng(seed);
    const int64_t length = rng.Between(6, 24);
    const auto sum = [&](GraphBuilder& builder, ValueId x, Rng own) {
      std::optional<ValueId> total;
      for (int64_t terms = own.Between(1, 3); terms > 0; --terms) {
        std::optional<ValueId> product;
        for (int64_t factors = own.Between(1, 2); factors > 0; --factors) {
          const int64_t step = own.Between(-2, 2);
          const int64_t start = own.Between(0, 4) + (step < 0 ? -step * (length - 1) : 0);
          const int64_t end =
              step == 0 ? start + 1 : start + step * (length - 1) + (step > 0 ? 1 : -1);
          auto part = builder.Add("Slice", {x},
                                  {{"starts", Ints{start}},
                                   {"ends", Ints{end}},
                                   {"steps", Ints{step == 0 ? 1 : step}}});
          if (part.ok() && own.Flip(0.3)) part = builder.Add("Relu", {*part});
          if (part.ok() && product.has_value()) part = builder.Add("Mul", {*product, *part});
          EXPECT_TRUE(part.ok()) << part.status();
          product = *part;
        }
        total = total.has_value() ? *builder.Add("Add", {*total, *product}) : *product;
      }
      return *total;
    };
    const Rng stream = rng.Fork();
    const auto program = [&](bool mutant) {
      GraphBuilder builder;
      const ValueId x = builder.Input("x", {DType::kF32, {2 * length + 8}});
      const ValueId zero = *builder.Add(
          "Mul", {*builder.Add("Slice", {x},
                               {{"starts", Ints{0}}, {"ends", Ints{length}}, {"steps", Ints{1}}}),
                  builder.Constant(Tensor::Scalar(DType::kF32, 0))});
      const ValueId same = *builder.Add("Add", {zero, sum(builder, x, stream)});
      Rng other = rng;
      const ValueId value = mutant ? *builder.Add("Add", {zero, sum(builder, x, other)}) : same;
      // Pieces of f stay in g, so that programs agree in places.
      const int64_t cut = Rng(seed).Between(0, length - 1);
      const auto piece = builder.Add(
          "Slice", {value}, {{"starts", Ints{cut}}, {"ends", Ints{length}}, {"steps", Ints{1}}});
      builder.Output(
          "y", *builder.Add("Patch", {same, *piece}, {{"boxes", Boxes{Box{{cut}, {length}}}}}));
      return *builder.Build();
    };
    const WeightMode mode = RandomMode(rng);
    const Graph mutant = program(true);
    CompareWithExhaustive(seed, program(false), mutant, mode, tally);
    if (HasFatalFailure()) return;
  }
  tally.Print("sums of moving views", first, count);
}

}  // namespace
}  // namespace mendel
