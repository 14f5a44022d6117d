// Attention kernels of every instruction set, against double.

#include "kernels/cpu/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "base/random.h"
#include "base/status.h"
#include "gtest/gtest.h"
#include "kernels/cpu/lowering/masked_keys.h"
#include "kernels/cpu/testing/guarded.h"
#include "kernels/cpu/testing/test_support.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLowest = std::numeric_limits<float>::lowest();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

constexpr float kGap = __builtin_bit_cast(float, 0x7fc0abcdu);  // a NaN between rows

/// A matrix a head, dense or with gaps between rows and heads; at times one stride is of more than
/// 2^31 bytes.
struct Matrix {
  GuardedFloats values;
  AttentionStrides strides;
  bool huge = false;

  size_t At(const Shape& heads, int64_t head, int64_t row, int64_t column) const {
    int64_t offset = row * strides.row + column * strides.column;
    for (size_t d = heads.size(); d-- > 0; head /= heads[d])
      offset += head % heads[d] * strides.heads[d];
    return static_cast<size_t>(offset);
  }
  /// Calls body(offset) for every element.
  template <class Body>
  void ForEach(const Shape& heads, int64_t rows, int64_t columns, const Body& body) const {
    for (int64_t i = 0; i < NumElements(heads) * rows * columns; ++i) {
      body(At(heads, i / (rows * columns), i / columns % rows, i % columns));
    }
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
    out_.ForEach(plan_.heads, plan_.queries, plan_.width,
                 [&](size_t at) { out_.values[at] = kNan; });
    plan_.zero_nan = rng.Flip(0.3);
    const bool causal = rng.Flip(0.3);
    for (int64_t k = rng.Between(causal, 3); k > 0; --k) AddTerm(causal && k == 1);
    if (rng.Flip(0.1))
      v_.values[RandomElement(v_, plan_.keys, plan_.width)] = rng.Flip() ? kInfinity : kNan;
    if (rng.Flip(0.1))
      k_.values[RandomElement(k_, plan_.depth, plan_.keys)] = rng.Flip() ? -kInfinity : kNan;
    plan_.q = q_.strides;
    plan_.k = k_.strides;
    plan_.v = v_.strides;
    plan_.out = out_.strides;
    CutAttention(plan_, static_cast<int>(rng.Between(1, 3)));
  }

  std::string Describe() const {
    return Cat(plan_.isa->name, " heads ", NumElements(plan_.heads), " queries ", plan_.queries,
               " keys ", plan_.keys, " depth ", plan_.depth, " width ", plan_.width, " terms ",
               plan_.terms.size(), " threads ", plan_.shares);
  }

  /// The largest error as a part of what is allowed.
  double Run() {
    GuardedFloats scratch(plan_.ScratchBytes() / static_cast<int64_t>(sizeof(float)), Guard::kEnd,
                          64);
    std::fill(scratch.begin(), scratch.end(), kNan);
    const ThreadScope scope(static_cast<int>(plan_.shares));
    AttentionOperands operands{
        q_.values.data(), k_.values.data(), v_.values.data(), {}, out_.values.data()};
    for (size_t k = 0; k < terms_.size(); ++k) operands.terms[k] = terms_[k].data();
    RunAttention(plan_, operands, scratch.data());
    double worst = GapsUntouched() ? 0 : HUGE_VAL;
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
    const bool gaps = rng_.Flip();
    const auto pitch = [&](int64_t dense) { return gaps ? dense + rng_.Between(0, 20) : dense; };
    const int64_t line = pitch(by_rows ? columns : rows);
    int64_t stride = interleaved ? line : pitch((by_rows ? rows : columns) * line);
    m.strides.heads.resize(plan_.heads.size());
    for (size_t d = plan_.heads.size(); d-- > 0; stride *= plan_.heads[d])
      m.strides.heads[d] = stride;
    m.strides.row = by_rows ? (interleaved ? heads * line : line) : 1;
    m.strides.column = by_rows ? 1 : line;
    m.huge = rng_.Flip(0.05);
    if (m.huge) (by_rows ? m.strides.row : m.strides.column) += int64_t{1} << 29;
    m.values =
        GuardedFloats(static_cast<int64_t>(m.At(plan_.heads, heads - 1, rows - 1, columns - 1)) + 1,
                      RandomGuard(rng_));
    if (!m.huge) std::fill(m.values.begin(), m.values.end(), kGap);
    m.ForEach(plan_.heads, rows, columns,
              [&](size_t at) { m.values[at] = static_cast<float>(rng_.Uniform(-1, 1)) * size; });
    return m;
  }
  size_t RandomElement(const Matrix& m, int64_t rows, int64_t columns) {
    return m.At(plan_.heads, rng_.Between(0, NumElements(plan_.heads) - 1),
                rng_.Between(0, rows - 1), rng_.Between(0, columns - 1));
  }
  /// True when nothing was written between the rows of outputs.
  bool GapsUntouched() const {
    if (out_.huge) return true;
    int64_t gaps = static_cast<int64_t>(out_.values.size());
    out_.ForEach(plan_.heads, plan_.queries, plan_.width, [&](size_t) { --gaps; });
    return gaps == std::count_if(out_.values.begin(), out_.values.end(), [](float value) {
             return __builtin_bit_cast(uint32_t, value) == __builtin_bit_cast(uint32_t, kGap);
           });
  }

  /// A summand or condition for all heads or each, all rows or each, all keys or each. Causal ones
  /// hide the later keys.
  void AddTerm(bool causal) {
    AttentionTerm term;
    term.condition = rng_.Flip();
    term.kept = rng_.Flip();
    const bool rows = causal || rng_.Flip(), columns = causal || rng_.Flip(0.8),
               heads = rng_.Flip(0.3);
    const int64_t row_count = rows ? plan_.queries : 1, column_count = columns ? plan_.keys : 1;
    term.strides = {Shape(plan_.heads.size(), 0), rows ? column_count : 0, columns ? 1 : 0};
    int64_t count = row_count * column_count;
    for (size_t d = plan_.heads.size(); heads && d-- > 0; count *= plan_.heads[d])
      term.strides.heads[d] = count;
    const float lows[] = {kLowest, -kInfinity, -1e4f};
    const float low = lows[rng_.Below(3)];
    term.other = rng_.Flip(0.2) ? 0.5f : low;
    const double part = rng_.Flip(0.2) ? 1 : (causal ? 0.05 : 0.3);  // hidden; 1: everything
    const bool first = rng_.Flip();
    std::vector<std::byte> bytes;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t r = i / column_count % row_count, c = i % column_count;
      const bool outside = causal && (first ? c > r : c < r - 5);
      const bool hides = (causal && part < 1) ? outside : rng_.Flip(part);
      const float summand = hides ? low : static_cast<float>(rng_.Uniform(-2, 2));
      const std::byte flag{hides != term.kept};
      const std::byte* from = term.condition ? &flag : reinterpret_cast<const std::byte*>(&summand);
      bytes.insert(bytes.end(), from, from + (term.condition ? 1 : 4));
    }
    plan_.terms.push_back(term);
    terms_.emplace_back(static_cast<int64_t>(bytes.size()), RandomGuard(rng_),
                        term.condition ? 1 : 4);
    std::copy(bytes.begin(), bytes.end(), terms_.back().begin());
  }

  double WithTerms(double score, int64_t head, int64_t r, int64_t c) const {
    for (size_t k = 0; k < terms_.size(); ++k) {
      const AttentionTerm& term = plan_.terms[k];
      const size_t at = static_cast<size_t>(HeadOffset(plan_, term.strides, head) +
                                            r * term.strides.row + c * term.strides.column);
      if (term.condition) {
        if ((terms_[k][at] != std::byte{0}) != term.kept) score = static_cast<double>(term.other);
      } else {
        float summand;
        std::memcpy(&summand, terms_[k].data() + 4 * at, sizeof summand);
        score += static_cast<double>(summand);
      }
    }
    return score;
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
      scores[static_cast<size_t>(c)] = WithTerms(dot, head, r, c);
      largest = std::max(largest, scores[static_cast<size_t>(c)]);
      size = std::max(size, terms * static_cast<double>(plan_.scale));
    }
    // A low-precision summand rounds the scores to its own precision. The lowest number leaves
    // nothing of them, in double either.
    if (std::fabs(largest) < 1e30) size = std::max(size, std::fabs(largest));
    for (double& score : scores) sum += score = std::exp(score - largest);
    if (plan_.zero_nan && std::isnan(sum)) {
      std::fill(scores.begin(), scores.end(), 0.0);
      sum = 1;
    }
    double worst = 0;
    for (int64_t i = 0; i < plan_.width; ++i) {
      double want = 0;
      for (int64_t c = 0; c < plan_.keys; ++c) {
        want += scores[static_cast<size_t>(c)] / sum *
                static_cast<double>(v_.values[v_.At(plan_.heads, head, c, i)]);
      }
      const double got = static_cast<double>(out_.values[out_.At(plan_.heads, head, r, i)]);
      // A weight that underflows only in f32 makes NaN of an infinity.
      if (std::isfinite(want) != std::isfinite(got) || (std::isnan(want) && !std::isnan(got)))
        return HUGE_VAL;
      // A score's rounding error changes its weight by the same factor.
      if (std::isfinite(want))
        worst = std::max(worst, std::fabs(want - got) / (2e-6 + 4e-7 * size));
    }
    return worst;
  }

  Rng& rng_;
  AttentionPlan plan_;
  Matrix q_, k_, v_, out_;
  std::vector<Guarded<std::byte>> terms_;
};

class Attention : public IsaTest {
 protected:
  static const DirectIsa& isa() { return Kernels(&DirectAvx2, &DirectAvx512); }
};
MENDEL_FOR_ISAS(Attention, NativeIsa::kAvx2, NativeIsa::kAvx512);

TEST_P(Attention, MeansItsDefinition) {
  double largest = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    AttentionCase one(isa(), rng);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << one.Describe());
    largest = std::max(largest, one.Run());
    ASSERT_LE(largest, 1);
  }
  std::cout << isa().name << " attention: largest error " << largest << " of what is allowed\n";
}

TEST_P(Attention, HiddenKeysAreLeftOutWhereThatIsExact) {
  constexpr int64_t kQueries = 30, kKeys = 300, kDepth = 3;
  AttentionPlan plan;
  plan.isa = &isa();
  plan.queries = kQueries;
  plan.keys = kKeys;
  plan.depth = plan.width = kDepth;
  plan.q = plan.v = {{}, kDepth, 1};
  plan.k = {{}, kKeys, 1};
  plan.terms = {{{{}, kKeys, 1}, false, true, 0}};
  const int64_t panel = isa().panel_vectors * isa().lanes;
  std::vector<float> q(kQueries * kDepth, 1), k(kDepth * kKeys, 1), v(kKeys * kDepth, 1),
      mask(kQueries * kKeys, 0.5f);
  const auto range = [&] {
    HeadSizes sizes;
    const KeyRange found = VisibleKeys(
        plan,
        {q.data(), k.data(), v.data(), {reinterpret_cast<const std::byte*>(mask.data())}, nullptr},
        0, 10, 20, sizes);
    return std::pair(found.begin, found.end);
  };
  const std::pair<int64_t, int64_t> all{0, kKeys};
  EXPECT_EQ(range(), all);
  for (int64_t i = 0; i < kQueries * kKeys; ++i) {
    const int64_t key = i % kKeys, query = i / kKeys;
    if (key < panel + query || key > 2 * panel + query / 4)
      mask[static_cast<size_t>(i)] = -kInfinity;
  }
  EXPECT_EQ(range(), std::pair(panel, 3 * panel));
  for (const float low : {kLowest, -2000.0f}) {
    for (float& x : mask) x = x < 0 ? low : x;
    EXPECT_EQ(range(), std::pair(panel, 3 * panel)) << low;
  }
  for (std::vector<float>* tensor : {&v, &k, &q}) {
    // No key is left out where 0 times a value is NaN, or where scores may be as large as the
    // mask's offset.
    for (const float large : {kNan, kInfinity, 1e4f}) {
      const float before = std::exchange((*tensor)[11 * kDepth], large);
      EXPECT_EQ(range(), tensor == &v && large == 1e4f ? std::pair(panel, 3 * panel) : all)
          << large;
      (*tensor)[11 * kDepth] = before;
    }
  }
  std::fill_n(mask.begin() + 15 * kKeys, kKeys, -kInfinity);  // a query that sees nothing
  EXPECT_EQ(range(), all);
}

TEST_P(Attention, ExponentialsAreExactToRounding) {
  double largest = 0;
  for (double begin = 0; begin > -106; begin -= 0.25) {
    constexpr int64_t kCount = 401;
    std::vector<float> row(kCount + 15, kNan), x(kCount);
    for (size_t k = 1; k < x.size(); ++k)
      x[k] = static_cast<float>(begin - 0.25 * static_cast<double>(k) / kCount);
    std::copy(x.begin(), x.end(), row.begin());
    isa().softmax_row({kCount, 1, nullptr, 0}, row.data());
    for (size_t k = 0; k < x.size(); ++k) {
      const double want = std::exp(static_cast<double>(x[k]));
      const double error = std::fabs(want - static_cast<double>(row[k]));
      ASSERT_LE(error, 2e-7 * want + 1.5e-45) << isa().name << " exp(" << x[k] << ")";
      if (want > 1.2e-38) largest = std::max(largest, error / want);
    }
  }
  std::cout << isa().name << " exp on [-106, 0]: largest relative error " << largest << "\n";
}

}  // namespace
}  // namespace mendel::cpu
