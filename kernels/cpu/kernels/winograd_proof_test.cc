// The verifier's proof that the algorithm F(m, r), with the matrices and tiles of the kernels,
// equals a convolution. The algorithm is a graph of gathers and matrix products, with rational
// literals and symbolic weights.

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cpu/kernels/winograd.h"
#include "kernels/cpu/kernels/winograd_matrices.h"
#include "verifier/verifier.h"

namespace mendel::cpu {
namespace {

/// The matrices of one F(m, r) as rational numbers, row-major.
struct Exact {
  std::vector<Rational> input, output, weights;
};

template <int M, int R>
void AddExact(std::map<std::pair<int, int>, Exact>& all) {
  using Matrices = WinogradMatrices<M, R>;
  static constexpr auto kInput = Matrices::Input();
  static constexpr auto kOutput = Matrices::Output();
  static constexpr auto kWeights = Matrices::Weights();
  constexpr int kProducts = M + R - 1;
  Exact exact;
  exact.input.assign(&kInput.at[0][0], &kInput.at[0][0] + kProducts * kProducts);
  exact.output.assign(&kOutput.at[0][0], &kOutput.at[0][0] + M * kProducts);
  exact.weights.assign(&kWeights.at[0][0], &kWeights.at[0][0] + kProducts * R);
  all[{M, R}] = exact;
}

const Exact& MatricesOf(int m, int r) {
  static const auto* all = [] {
    auto* made = new std::map<std::pair<int, int>, Exact>;
    AddExact<1, 1>(*made);
    AddExact<2, 3>(*made);
    AddExact<4, 3>(*made);
    AddExact<2, 5>(*made);
    AddExact<4, 5>(*made);
    AddExact<2, 7>(*made);
    AddExact<4, 7>(*made);
    return made;
  }();
  return all->at({m, r});
}

/// A plan's convolution as the operator Conv and as the algorithm.
class Algorithm {
 public:
  /// `spatial`: dimensions of the operator, the plan's last ones.
  Algorithm(const WinogradPlan& plan, size_t spatial) : plan_(plan), spatial_(spatial) {}

  Graph Direct() {
    GraphBuilder builder;
    builder_ = &builder;
    const auto [x, w] = Operands();
    Ints pads, strides(spatial_, 1), dilations;
    for (size_t d = 0; d < spatial_; ++d) pads.push_back(plan_.problem.pad[Own(d)]);
    for (size_t d = 0; d < spatial_; ++d) pads.push_back(PadEnd(d));
    for (size_t d = 0; d < spatial_; ++d) dilations.push_back(plan_.problem.step[Own(d)]);
    builder.Output(
        "y", Add("Conv", {x, w}, {{"strides", strides}, {"dilations", dilations}, {"pads", pads}}));
    return *builder.Build();
  }

  Graph Winograd() {
    GraphBuilder builder;
    builder_ = &builder;
    const auto [x, w] = Operands();
    ValueId factors = Gathered(x);  // [N, C, tiles..., positions...]
    for (size_t d = 0; d < spatial_; ++d)
      factors = Apply(factors, 2 + spatial_, MatricesAt(d).input, Products(d));
    Ints perm = Range(2 + spatial_, spatial_);  // [points..., N, tiles..., C]
    perm.push_back(0);
    Append(perm, Range(2, spatial_));
    perm.push_back(1);
    factors = Reshape(Transpose(factors, perm), {plan_.points, plan_.tiles, plan_.channels_in});
    ValueId weights = w;  // [O, C, taps...]
    for (size_t d = 0; d < spatial_; ++d)
      weights = Apply(weights, 2, MatricesAt(d).weights, Products(d));
    perm = Range(2, spatial_);  // [points..., C, O]
    Append(perm, {1, 0});
    weights = Reshape(Transpose(weights, perm),
                      {plan_.points, plan_.channels_in, plan_.problem.channels_out});
    Shape shape;
    for (size_t d = 0; d < spatial_; ++d) shape.push_back(Products(d));
    shape.push_back(plan_.batch);
    for (size_t d = 0; d < spatial_; ++d) shape.push_back(Tiles(d));
    shape.push_back(plan_.problem.channels_out);
    ValueId y = Reshape(Add("MatMul", {factors, weights}), shape);  // [points..., N, tiles..., O]
    const int64_t dims = static_cast<int64_t>(spatial_);
    perm = {dims, 2 * dims + 1};  // [N, O, tiles..., points...]
    Append(perm, Range(spatial_ + 1, spatial_));
    Append(perm, Range(0, spatial_));
    y = Transpose(y, perm);
    for (size_t d = 0; d < spatial_; ++d)
      y = Apply(y, 2 + spatial_, MatricesAt(d).output, plan_.transforms->m[Own(d)]);
    builder.Output("y", Scattered(y));
    return *builder.Build();
  }

 private:
  /// Number in the plan of the operator's dimension d.
  size_t Own(size_t d) const { return d + 3 - spatial_; }
  int64_t Products(size_t d) const {
    return plan_.transforms->m[Own(d)] + plan_.transforms->r[Own(d)] - 1;
  }
  int64_t Tiles(size_t d) const { return static_cast<int64_t>(plan_.starts[Own(d)].size()); }
  const Exact& MatricesAt(size_t d) const {
    return MatricesOf(plan_.transforms->m[Own(d)], plan_.transforms->r[Own(d)]);
  }
  int64_t PadEnd(size_t d) const {
    const WinogradProblem& p = plan_.problem;
    return p.out[Own(d)] + (plan_.transforms->r[Own(d)] - 1) * p.step[Own(d)] - p.in[Own(d)] -
           p.pad[Own(d)];
  }

  static Ints Range(size_t begin, size_t count) {
    Ints numbers(count);
    std::iota(numbers.begin(), numbers.end(), static_cast<int64_t>(begin));
    return numbers;
  }
  static void Append(Ints& to, const Ints& more) { to.insert(to.end(), more.begin(), more.end()); }

  ValueId Add(std::string_view op, std::vector<ValueId> inputs, Attributes attrs = {}) {
    const absl::StatusOr<ValueId> value = builder_->Add(op, std::move(inputs), std::move(attrs));
    EXPECT_TRUE(value.ok()) << value.status();
    return *value;
  }
  ValueId Transpose(ValueId x, const Ints& perm) { return Add("Transpose", {x}, {{"perm", perm}}); }
  ValueId Reshape(ValueId x, const Shape& shape) {
    return Add("Reshape", {x}, {{"shape", Ints(shape)}});
  }

  std::pair<ValueId, ValueId> Operands() {
    Shape x = {plan_.batch, plan_.channels_in}, w = {plan_.problem.channels_out, plan_.channels_in};
    for (size_t d = 0; d < spatial_; ++d) {
      x.push_back(plan_.problem.in[Own(d)]);
      w.push_back(plan_.transforms->r[Own(d)]);
    }
    const ValueId input = builder_->Input("x", {DType::kF64, x});
    return {input, builder_->Constant(Tensor::Filled({DType::kF64, w}, 1), "w")};
  }

  ValueId Literal(const Shape& shape, const std::vector<double>& values) {
    return builder_->Constant(Tensor::FromDoubles({DType::kF64, shape}, values));
  }

  /// Moves dimension `first` of x to the end and multiplies it by the transpose of a matrix with
  /// `rows` rows: integers, then a division by each row's common denominator.
  ValueId Apply(ValueId x, size_t first, const std::vector<Rational>& matrix, int64_t rows) {
    const size_t rank = builder_->type(x).shape.size();
    Ints perm = Range(0, rank);
    std::rotate(perm.begin() + static_cast<int64_t>(first),
                perm.begin() + static_cast<int64_t>(first) + 1, perm.end());
    const size_t columns = matrix.size() / static_cast<size_t>(rows);
    std::vector<double> numerators(matrix.size()), denominators(static_cast<size_t>(rows));
    for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
      int64_t common = 1;
      for (size_t k = 0; k < columns; ++k)
        common = std::lcm(common, matrix[row * columns + k].denominator);
      denominators[row] = static_cast<double>(common);
      for (size_t k = 0; k < columns; ++k) {
        const Rational& number = matrix[row * columns + k];
        const int64_t numerator = number.numerator * (common / number.denominator);
        numerators[k * static_cast<size_t>(rows) + row] = static_cast<double>(numerator);
      }
    }
    const ValueId product = Add(
        "MatMul", {Transpose(x, perm), Literal({static_cast<int64_t>(columns), rows}, numerators)});
    return Add("Div", {product, Literal({rows}, denominators)});
  }

  ValueId GatherAlong(ValueId x, size_t dim, const std::vector<int64_t>& positions) {
    std::vector<double> numbers(positions.begin(), positions.end());
    const ValueId indices = builder_->Constant(
        Tensor::FromDoubles({DType::kI64, {static_cast<int64_t>(numbers.size())}}, numbers));
    return Add("Gather", {x, indices}, {{"axis", static_cast<int64_t>(dim)}});
  }

  /// The input's tiles: [N, C, tiles..., positions of a tile...].
  ValueId Gathered(ValueId x) {
    Ints pads(2 * (spatial_ + 2), 0);
    Shape shape = {plan_.batch, plan_.channels_in};
    std::vector<std::vector<int64_t>> positions(spatial_);
    for (size_t d = 0; d < spatial_; ++d) {
      const WinogradProblem& p = plan_.problem;
      for (int64_t start : plan_.starts[Own(d)]) {
        for (int64_t k = 0; k < Products(d); ++k)
          positions[d].push_back(start + k * p.step[Own(d)]);  // in the padded input
      }
      const int64_t last = *std::max_element(positions[d].begin(), positions[d].end());
      pads[2 + d] = p.pad[Own(d)];
      pads[spatial_ + 4 + d] = std::max(PadEnd(d), last + 1 - p.in[Own(d)] - p.pad[Own(d)]);
      shape.push_back(Tiles(d));
      shape.push_back(Products(d));
    }
    x = Add("Pad", {x}, {{"pads", pads}});
    for (size_t d = 0; d < spatial_; ++d) x = GatherAlong(x, d + 2, positions[d]);
    Ints perm = {0, 1};
    for (size_t half = 0; half < 2; ++half) {
      for (size_t d = 0; d < spatial_; ++d) perm.push_back(static_cast<int64_t>(2 + 2 * d + half));
    }
    return Transpose(Reshape(x, shape), perm);
  }

  /// Returns [N, O, tiles..., outputs of a tile...] in the order of the output, without the part
  /// outside.
  ValueId Scattered(ValueId y) {
    Ints perm = {0, 1};
    Shape shape = {plan_.batch, plan_.problem.channels_out};
    for (size_t d = 0; d < spatial_; ++d) {
      perm.push_back(static_cast<int64_t>(2 + d));
      perm.push_back(static_cast<int64_t>(2 + spatial_ + d));
      shape.push_back(Tiles(d) * plan_.transforms->m[Own(d)]);
    }
    y = Reshape(Transpose(y, perm), shape);
    for (size_t d = 0; d < spatial_; ++d) {
      const WinogradProblem& p = plan_.problem;
      std::vector<int64_t> places(static_cast<size_t>(p.out[Own(d)]), -1);
      int64_t place = 0;
      for (int64_t start : plan_.starts[Own(d)]) {
        for (int64_t k = 0; k < plan_.transforms->m[Own(d)]; ++k, ++place) {
          const int64_t at = start + k * p.step[Own(d)];
          if (at >= p.out[Own(d)]) continue;
          EXPECT_EQ(places[static_cast<size_t>(at)], -1) << "two tiles compute one output";
          places[static_cast<size_t>(at)] = place;
        }
      }
      y = GatherAlong(y, d + 2, places);
    }
    return y;
  }

  const WinogradPlan& plan_;
  size_t spatial_;
  GraphBuilder* builder_ = nullptr;
};

/// The case is small, with an incomplete last tile, unequal paddings and two channels.
WinogradPlan PlanFor(const WinogradTransforms& transforms, int64_t dilation) {
  WinogradPlan plan;
  plan.isa = &WinogradAvx2();  // its tables only, none of its instructions
  plan.transforms = &transforms;
  plan.batch = 2;
  plan.channels_in = 2;
  plan.problem.channels_out = 3;
  for (size_t d = 0; d < 3; ++d) {
    const bool used = transforms.m[d] > 1;
    plan.problem.step[d] = used ? dilation : 1;
    plan.problem.pad[d] = used ? static_cast<int64_t>(d) : 0;
    plan.problem.out[d] = used ? transforms.m[d] * dilation + 1 : 2;
    plan.problem.in[d] = plan.problem.out[d] + (transforms.r[d] - 1) * plan.problem.step[d] -
                         plan.problem.pad[d] - (used ? 1 : 0);
  }
  return plan;
}

TEST(WinogradProof, TheAlgorithmsEqualConvolutions) {
  const WinogradIsa& isa = WinogradAvx2();
  for (int k = 0; k < isa.transform_count; ++k) {
    const WinogradTransforms& transforms = isa.transforms[k];
    size_t used = 3;
    while (used > 1 && transforms.m[3 - used] == 1) --used;
    for (size_t spatial = used; spatial <= 3; ++spatial) {
      for (int64_t dilation : {1, 2}) {
        SCOPED_TRACE(testing::Message()
                     << "F(" << transforms.m[0] << "x" << transforms.m[1] << "x" << transforms.m[2]
                     << ", " << transforms.r[0] << "x" << transforms.r[1] << "x" << transforms.r[2]
                     << ") in " << spatial << " dimensions, dilation " << dilation);
        WinogradPlan plan = PlanFor(transforms, dilation);
        for (size_t d = 0; d + spatial < 3; ++d) plan.problem.in[d] = plan.problem.out[d] = 1;
        CutIntoTiles(plan, 1);
        Algorithm algorithm(plan, spatial);
        const Graph direct = algorithm.Direct();
        const Graph winograd = algorithm.Winograd();
        const absl::StatusOr<Certificate> certificate = Certify(direct, winograd, {});
        ASSERT_TRUE(certificate.ok()) << certificate.status();
        EXPECT_LE(certificate->bound_log2, -80);
        const absl::StatusOr<VerifierReport> report = Localize(direct, winograd, {});
        ASSERT_TRUE(report.ok()) << report.status();
        EXPECT_EQ(report->verdict, Verdict::kEquivalent) << report->reason;
      }
    }
  }
}

/// The data's matrices hold numbers that floats hold: the kernels compute with the very matrices
/// that were proved.
TEST(WinogradProof, DataMatricesAreExactInFloat) {
  const WinogradIsa& isa = WinogradAvx2();
  for (int k = 0; k < isa.transform_count; ++k) {
    for (int d = 0; d < 3; ++d) {
      const Exact& matrices = MatricesOf(isa.transforms[k].m[d], isa.transforms[k].r[d]);
      for (const std::vector<Rational>* matrix : {&matrices.input, &matrices.output}) {
        for (const Rational& number : *matrix) {
          EXPECT_EQ(static_cast<double>(static_cast<float>(number.Double())) *
                        static_cast<double>(number.denominator),
                    static_cast<double>(number.numerator));
        }
      }
    }
  }
}

}  // namespace
}  // namespace mendel::cpu
