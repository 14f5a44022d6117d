// Attention kernels of every instruction set that this machine has, and graphs with attention, against double.

#include "kernels/cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/random.h"
#include "base/status.h"
#include "graph/random_graph.h"
#include "gtest/gtest.h"
#include "kernels/cpu/program.h"
#include "kernels/cpu/test_support.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLowest = std::numeric_limits<float>::lowest();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<const DirectIsa*> Isas() { return RunnableIsas(&DirectAvx2, &DirectAvx512); }

/// A matrix a head in a buffer of exactly its size.
struct Matrix {
  std::vector<float> values;
  AttentionStrides strides;

  size_t At(const Shape& heads, int64_t head, int64_t row, int64_t column) const {
    int64_t offset = row * strides.row + column * strides.column;
    for (size_t d = heads.size(); d-- > 0; head /= heads[d]) offset += head % heads[d] * strides.heads[d];
    return static_cast<size_t>(offset);
  }
};

class AttentionCase {
 public:
  AttentionCase(const DirectIsa& isa, Rng& rng) : rng_(rng) {
    plan_.isa = &isa;
    for (int64_t k = rng.Between(0, 2); k > 0; --k) plan_.heads.push_back(rng.Between(1, 3));
    plan_.queries = rng.Between(1, rng.Flip() ? 8 : 130);
    plan_.keys = rng.Between(1, rng.Flip(0.2) ? 1500 : 150);
    plan_.depth = rng.Between(1, 70);
    plan_.width = rng.Between(1, rng.Flip(0.2) ? 150 : 70);
    plan_.scale = rng.Flip() ? 1.0f : 1 / std::sqrt(static_cast<float>(plan_.depth));
    const float size = rng.Flip(0.2) ? 60.0f : 1.0f;
    q_ = Fill(plan_.queries, plan_.depth, true, size);
    k_ = Fill(plan_.depth, plan_.keys, false, 1);
    v_ = Fill(plan_.keys, plan_.width, false, 1);
    out_ = Fill(plan_.queries, plan_.width, true, 0);
    std::fill(out_.values.begin(), out_.values.end(), kNan);
    masked_ = rng.Flip(0.6);
    if (masked_) MakeMask();
    plan_.q = q_.strides;
    plan_.k = k_.strides;
    plan_.v = v_.strides;
    plan_.out = out_.strides;
    plan_.mask = mask_.strides;
    CutAttention(plan_, static_cast<int>(rng.Between(1, 3)));
  }

  std::string Describe() const {
    return Cat(plan_.isa->name, " heads ", NumElements(plan_.heads), " queries ", plan_.queries, " keys ", plan_.keys, " depth ",
               plan_.depth, " width ", plan_.width, masked_ ? " masked" : "", " threads ", plan_.shares);
  }

  /// The largest error as a part of what is allowed.
  double Run() {
    AlignedBytes scratch(plan_.ScratchBytes());
    std::fill_n(reinterpret_cast<float*>(scratch.data()), plan_.ScratchBytes() / 4, kNan);
    const ThreadScope scope(static_cast<int>(plan_.shares));
    RunAttention(
        plan_, {q_.values.data(), k_.values.data(), v_.values.data(), masked_ ? mask_.values.data() : nullptr, out_.values.data()},
        reinterpret_cast<float*>(scratch.data()));
    double worst = 0;
    for (int64_t head = 0; head < NumElements(plan_.heads); ++head) {
      for (int64_t r = 0; r < plan_.queries; ++r) worst = std::max(worst, CheckRow(head, r));
    }
    return worst;
  }

 private:
  /// Rows and columns in either order, before or after the heads.
  Matrix Fill(int64_t rows, int64_t columns, bool row_major, float size) {
    Matrix m;
    const int64_t heads = NumElements(plan_.heads);
    const bool by_rows = row_major || rng_.Flip();
    const bool interleaved = by_rows && rng_.Flip();  // [row, head, column]
    int64_t stride = interleaved ? columns : rows * columns;
    m.strides.heads.resize(plan_.heads.size());
    for (size_t d = plan_.heads.size(); d-- > 0; stride *= plan_.heads[d]) m.strides.heads[d] = stride;
    m.strides.row = by_rows ? (interleaved ? heads * columns : columns) : 1;
    m.strides.column = by_rows ? 1 : rows;
    m.values.resize(static_cast<size_t>(heads * rows * columns));
    for (float& value : m.values) value = static_cast<float>(rng_.Uniform(-1, 1)) * size;
    return m;
  }

  void MakeMask() {
    mask_.strides = {Shape(plan_.heads.size(), 0), rng_.Flip() ? plan_.keys : 0, 1};
    mask_.values.resize(static_cast<size_t>(plan_.queries * plan_.keys));
    const float low = rng_.Flip() ? kLowest : -kInfinity;
    for (float& value : mask_.values) value = rng_.Flip(0.3) ? low : static_cast<float>(rng_.Uniform(-2, 2));
    if (rng_.Flip(0.3)) std::fill_n(mask_.values.begin(), plan_.keys, low);  // everything masked
  }

  double CheckRow(int64_t head, int64_t r) const {
    std::vector<double> scores(static_cast<size_t>(plan_.keys));
    double largest = -HUGE_VAL, size = 0, sum = 0;
    for (int64_t c = 0; c < plan_.keys; ++c) {
      double dot = 0, terms = 0;
      for (int64_t d = 0; d < plan_.depth; ++d) {
        const double term = static_cast<double>(q_.values[q_.At(plan_.heads, head, r, d)]) *
                            static_cast<double>(k_.values[k_.At(plan_.heads, head, d, c)]);
        dot += term;
        terms += std::fabs(term);
      }
      dot *= static_cast<double>(plan_.scale);
      if (masked_) dot += static_cast<double>(mask_.values[mask_.At(plan_.heads, head, r, c)]);
      scores[static_cast<size_t>(c)] = dot;
      largest = std::max(largest, dot);
      size = std::max(size, terms * static_cast<double>(plan_.scale));
    }
    for (double& score : scores) sum += score = std::exp(score - largest);
    double worst = 0;
    for (int64_t i = 0; i < plan_.width; ++i) {
      double want = 0;
      for (int64_t c = 0; c < plan_.keys; ++c) {
        want += scores[static_cast<size_t>(c)] / sum * static_cast<double>(v_.values[v_.At(plan_.heads, head, c, i)]);
      }
      const double got = static_cast<double>(out_.values[out_.At(plan_.heads, head, r, i)]);
      if (std::isnan(want) != std::isnan(got)) return HUGE_VAL;
      // Rounding of a score changes its weight by as much.
      if (!std::isnan(want)) worst = std::max(worst, std::fabs(want - got) / (2e-6 + 4e-7 * size));
    }
    return worst;
  }

  Rng& rng_;
  AttentionPlan plan_;
  Matrix q_, k_, v_, mask_, out_;
  bool masked_ = false;
};

TEST(Attention, MeansItsDefinition) {
  if (Isas().empty()) GTEST_SKIP() << "this machine has neither AVX2 nor AVX-512";
  for (const DirectIsa* isa : Isas()) {
    double largest = 0;
    for (uint64_t seed = 1; seed <= 24; ++seed) {
      Rng rng(seed);
      AttentionCase one(*isa, rng);
      SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << one.Describe());
      largest = std::max(largest, one.Run());
      ASSERT_LE(largest, 1);
    }
    std::cout << isa->name << " attention: largest error " << largest << " of what is allowed\n";
  }
}

TEST(Attention, ExponentialsAreExactToRounding) {
  for (const DirectIsa* isa : Isas()) {
    double largest = 0;
    for (double begin = 0; begin > -106; begin -= 0.25) {
      constexpr int64_t kCount = 401;
      std::vector<float> row(kCount + 15, kNan), x(kCount);
      for (size_t k = 1; k < x.size(); ++k) x[k] = static_cast<float>(begin - 0.25 * static_cast<double>(k) / kCount);
      std::copy(x.begin(), x.end(), row.begin());
      isa->softmax_row({kCount, 1}, row.data(), nullptr);
      for (size_t k = 0; k < x.size(); ++k) {
        const double want = std::exp(static_cast<double>(x[k]));
        const double error = std::fabs(want - static_cast<double>(row[k]));
        ASSERT_LE(error, 2e-7 * want + 1.5e-45) << isa->name << " exp(" << x[k] << ")";
        if (want > 1.2e-38) largest = std::max(largest, error / want);
      }
    }
    std::cout << isa->name << " exp on [-106, 0]: largest relative error " << largest << "\n";
  }
}

/// [batch, length, heads * size] to [batch, heads, length, size], or its transposition.
ValueId Heads(GraphBuilder& builder, ValueId x, int64_t heads, bool transposed) {
  const Shape shape = builder.type(x).shape;
  const ValueId cut = *builder.Add("Reshape", {x}, {{"shape", Ints{shape[0], shape[1], heads, shape[2] / heads}}});
  return *builder.Add("Transpose", {cut}, {{"perm", transposed ? Ints{0, 2, 3, 1} : Ints{0, 2, 1, 3}}});
}

struct Attended {
  Graph graph;
  bool offered;  ///< by construction
};

Attended RandomAttention(Rng& rng) {
  GraphBuilder builder;
  const int64_t batch = rng.Between(1, 2), heads = rng.Between(1, 3), size = rng.Between(1, 24);
  const int64_t queries = rng.Between(1, 60), keys = rng.Between(1, 60);
  const auto input = [&](const char* name, Shape shape) { return builder.Input(name, {DType::kF32, std::move(shape)}); };
  const ValueId q = Heads(builder, input("q", {batch, queries, heads * size}), heads, false);
  const ValueId k = Heads(builder, input("k", {batch, keys, heads * size}), heads, true);
  const ValueId v =
      rng.Flip() ? Heads(builder, input("v", {batch, keys, heads * size}), heads, false) : input("v", {batch, heads, keys, size});
  ValueId y = *builder.Add("MatMul", {q, k});
  const ValueId factor = builder.Constant(Tensor::Scalar(DType::kF32, rng.Uniform(0.2, 2)));
  if (rng.Flip()) y = *builder.Add(rng.Flip() ? "Mul" : "Div", {y, factor});
  if (rng.Flip()) {
    const Shape shapes[] = {{keys}, {queries, keys}, {batch, 1, 1, keys}, {batch, heads, queries, keys}, {1, heads, 1, keys}};
    const ValueId mask = input("mask", shapes[rng.Below(5)]);
    y = rng.Flip() ? *builder.Add("Add", {y, mask}) : *builder.Add("Add", {mask, y});
  }
  y = *builder.Add("Softmax", {y}, {{"axis", int64_t{3}}});
  const bool read = rng.Flip(0.2);
  if (read) builder.Output("scores", y);
  y = *builder.Add("MatMul", {y, v});
  if (rng.Flip(0.3)) y = *builder.Add("Relu", {y});
  if (rng.Flip(0.7)) {
    y = *builder.Add("Transpose", {y}, {{"perm", Ints{0, 2, 1, 3}}});
    y = *builder.Add("Reshape", {y}, {{"shape", Ints{batch, queries, heads * size}}});
  }
  builder.Output("y", y);
  return {*builder.Build(), !read};
}

TEST(CpuFusion, AttentionIsOneStep) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    const Attended attended = RandomAttention(rng);
    CompileOptions options;
    options.threads = static_cast<int>(rng.Between(1, 3));
    for (int32_t id = 0; id < static_cast<int32_t>(attended.graph.nodes().size()); ++id) {
      for (const std::string& name : FindBackend("cpu")->Algorithms(attended.graph, id, Numerics::kStrict)) {
        if (name == "attention-own") options.algorithms[id] = name;
      }
    }
    if (Isas().empty()) GTEST_SKIP() << "this machine has neither AVX2 nor AVX-512";
    ASSERT_EQ(options.algorithms.size(), attended.offered ? 1u : 0u);
    int steps = 0, others = 0;
    for (const std::string& kernel : ExpectMatches(attended.graph, RandomInputs(rng, attended.graph), options, 2e-5)) {
      steps += kernel.find("attention-own") == 0;
      others += kernel.find("brg") == 0 || kernel.find("gemm") == 0 || kernel.find("jit:") == 0 || kernel.find("ref") == 0;
    }
    EXPECT_EQ(steps, attended.offered ? 1 : 0);
    EXPECT_EQ(others > 0, !attended.offered) << "products or softmax by the library";
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace mendel::cpu
