// A "no" that one look shows: found without proofs by axioms, by one enclosure, and as rigorous as
// any.

#include "verifier/witness/first_look.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "graph/text.h"
#include "verifier/compare.h"
#include "verifier/divergence.h"

namespace mendel {
namespace {

struct Fault {
  int layer = -1;        ///< whose kernel gets
  double relative = 0;   ///< this share more in one weight, or
  bool flipped = false;  ///< is read backwards
};

/// Four 3x3 convolutions of 8 channels with relu between them, a mean over all positions and a
/// product of matrices.
Graph Network(const Fault& fault) {
  Rng rng(11);
  GraphBuilder builder;
  ValueId value = builder.Input("x", {DType::kF32, {1, 8, 10, 10}});
  for (int layer = 0; layer < 4; ++layer) {
    std::vector<double> weights(8 * 8 * 9);
    for (double& weight : weights)
      weight = static_cast<double>(static_cast<float>(rng.Normal() / 6));
    if (layer == fault.layer && fault.flipped) std::reverse(weights.begin(), weights.end());
    if (layer == fault.layer) weights[100] *= 1 + fault.relative;
    const ValueId w = builder.Constant(Tensor::FromDoubles({DType::kF32, {8, 8, 3, 3}}, weights),
                                       Cat("w", layer));
    value = *builder.Add(
        "Conv", {value, w},
        {{"strides", Ints{1, 1}}, {"dilations", Ints{1, 1}}, {"pads", Ints{1, 1, 1, 1}}});
    value = *builder.Add("Relu", {value});
  }
  value = *builder.Add("ReduceMean", {value}, {{"axes", Ints{2, 3}}, {"keepdims", int64_t{0}}});
  std::vector<double> last(8 * 5);
  for (double& weight : last) weight = static_cast<double>(static_cast<float>(rng.Normal()));
  value = *builder.Add(
      "MatMul",
      {value, builder.Constant(Tensor::FromDoubles({DType::kF32, {8, 5}}, last), "last")});
  builder.Output("y", value);
  return *builder.Build();
}

FirstLook Look(const Graph& f, const Graph& g) {
  const auto look = LookForDifference(f, g, 1);
  EXPECT_TRUE(look.ok()) << look.status();
  return look.ok() ? *look : FirstLook{};
}

TEST(FirstLook, SuspectsWhatDiffersAndNothingElse) {
  const Graph f = Network({});
  EXPECT_FALSE(Look(f, Network({})).suspect.has_value());
  for (const double relative : {1e-3, 1e-2}) {
    const FirstLook look = Look(f, Network({2, relative, false}));
    ASSERT_TRUE(look.suspect.has_value()) << relative;
    EXPECT_EQ(look.suspect->box.Volume(), 1);
    EXPECT_TRUE(look.all_apart);
    EXPECT_TRUE(look.far_apart) << relative;
  }
  EXPECT_TRUE(Look(f, Network({2, 0, true})).all_apart);
}

Graph OfVector(const std::string& body) {
  return *ParseGraph("graph \"g\" {\n%0 = Input() {name = \"x\", shape = [4]}\n" + body + "\n}");
}

TEST(FirstLook, RoundingIsNoDifferenceAndNaNIsOne) {
  const Graph f = OfVector("%1 = Add(%0, %0)\n%2 = Add(%1, %0)\nreturn \"y\" = %2");
  const Graph g = OfVector(
      "%1 = Constant() {value = f32[]{0.3}}\n%2 = Constant() {value = f32[]{10}}\n%3 = Mul(%0, "
      "%1)\n"
      "%4 = Mul(%3, %2)\n%5 = Constant() {value = f32[]{3}}\n%6 = Mul(%5, %0)\n%7 = Sub(%6, %4)\n"
      "%8 = Add(%4, %7)\nreturn \"y\" = %8");
  EXPECT_FALSE(Look(f, g).suspect.has_value());
  EXPECT_FALSE(Look(f, g).far_apart);
  // A value that is NaN against a number is a suspect.
  EXPECT_TRUE(Look(f, OfVector("%1 = Sub(%0, %0)\n%2 = Div(%1, %1)\nreturn \"y\" = %2"))
                  .suspect.has_value());
}

/// Literals may stand for constants that they are not, up to the rounding of floats: axioms have to
/// decide.
TEST(FirstLook, LiteralsAreNoWeights) {
  const auto scaled = [](std::string_view first, std::string_view second) {
    return OfVector(Cat("%1 = Constant() {value = f32[]{", first,
                        "}}\n%2 = Constant() {value = f32[]{", second,
                        "}}\n%3 = Mul(%0, %1)\n%4 = Mul(%3, %2)\nreturn \"y\" = %4"));
  };
  const FirstLook look = Look(scaled("0.33333334", "3"), scaled("1", "1"));
  EXPECT_TRUE(look.suspect.has_value());
  EXPECT_FALSE(look.far_apart);
}

CompareReport Compare(const Graph& a, const Graph& b, WeightMode weights = WeightMode::kExact) {
  CompareOptions options;
  options.verifier.weights = weights;
  auto report = ComparePrograms(a, b, options);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *std::move(report) : CompareReport{};
}

TEST(FirstLook, AFaultNeedsAtMostOneAttemptAtAProof) {
  const Graph a = Network({});
  for (const Fault& fault : {Fault{0, 1e-3, false}, Fault{3, 1e-3, false}, Fault{2, 0, true}}) {
    const CompareReport report = Compare(a, Network(fault));
    EXPECT_EQ(report.verdict, Verdict::kDifferent);
    EXPECT_LE(report.attempts, 1);
    ASSERT_EQ(report.outputs[0].boxes.size(), 1u);
    ASSERT_TRUE(report.outputs[0].boxes[0].witness.has_value());
    const Witness& witness = *report.outputs[0].boxes[0].witness;
    EXPECT_GT(std::abs(witness.value_f - witness.value_g), witness.error_f + witness.error_g);
    ASSERT_EQ(report.earliest.size(), 1u);
    EXPECT_EQ(report.earliest[0].name, Cat("w", fault.layer));
  }
}

TEST(FirstLook, ProofsByAxiomsAreTriedWhereNothingIsSeen) {
  const Graph f = OfVector(
      "%1 = Constant() {value = f32[]{2}}\n%2 = Mul(%0, %1)\n%3 = Relu(%2)\nreturn \"y\" = %3");
  const Graph g = OfVector(
      "%1 = Constant() {value = f32[]{2}}\n%2 = Relu(%0)\n%3 = Mul(%2, %1)\nreturn \"y\" = %3");
  const CompareReport report = Compare(f, g);
  EXPECT_EQ(report.verdict, Verdict::kEquivalent);
  EXPECT_GT(report.attempts, 1);
}

TEST(FirstLook, SymbolicProgramsGetTheWeightsOfA) {
  const Graph a = Network({});
  EXPECT_EQ(Compare(a, Network({1, 1e-3, false}), WeightMode::kSymbolic).verdict,
            Verdict::kEquivalent);
}

/// Enclosures until the first look's suspect has a proven witness, which it must get.
int EnclosuresOfSuspect(const Graph& f, const Graph& g) {
  const FirstLook look = Look(f, g);
  EXPECT_TRUE(look.suspect.has_value());
  if (!look.suspect.has_value()) return std::numeric_limits<int>::max();
  WitnessOptions options;
  options.max_candidates = 1;
  const auto answers = FindWitnesses(f, g, {&*look.suspect, 1}, options);
  EXPECT_TRUE(answers.ok()) << answers.status();
  if (!answers.ok()) return std::numeric_limits<int>::max();
  EXPECT_TRUE(answers->front().witness.has_value()) << answers->front().reason;
  return answers->front().evaluations;
}

TEST(FirstLook, OneEnclosureIsEnough) {
  const Graph f = Network({});
  for (const double relative : {1e-3, 1e-2}) {
    const Graph g = Network({2, relative, false});
    EXPECT_LE(EnclosuresOfSuspect(f, g), 2);
  }
}

/// Products of matrices lose more bits than convolutions do.
TEST(FirstLook, OneEnclosureIsEnoughForAChainOfProducts) {
  const auto chain = [](double relative) {
    Rng rng(12);
    GraphBuilder builder;
    ValueId value = builder.Input("x", {DType::kF32, {4, 256}});
    for (int layer = 0; layer < 8; ++layer) {
      std::vector<double> weights(256 * 256);
      for (double& weight : weights)
        weight = static_cast<double>(static_cast<float>(rng.Normal() / 16));
      if (layer == 4) weights[1000] *= 1 + relative;
      value = *builder.Add(
          "MatMul",
          {value, builder.Constant(Tensor::FromDoubles({DType::kF32, {256, 256}}, weights),
                                   Cat("w", layer))});
      value = *builder.Add("Tanh", {value});
    }
    builder.Output("y", value);
    return *builder.Build();
  };
  const Graph f = chain(0);
  const Graph g = chain(0.5);
  EXPECT_EQ(EnclosuresOfSuspect(f, g), 1);
}

/// Elements far apart are counted; those that differ by less may yet be equal by axioms.
TEST(FirstLook, CountsElementsFarApart) {
  const std::string end = "return \"y\" = %2";
  const Graph f =
      OfVector("%1 = Constant() {value = f32[4]{1, 1, 1, 1}}\n%2 = Mul(%0, %1)\n" + end);
  const Graph g =
      OfVector("%1 = Constant() {value = f32[4]{1, 2, 1.00000012, -1}}\n%2 = Mul(%1, %0)\n" + end);
  EXPECT_EQ(Look(f, g).elements_far_apart, 2);
  EXPECT_EQ(Look(f, f).elements_far_apart, 0);
}

TEST(DivergenceSearch, EvaluatesNoMoreThanTheAnswerNeeds) {
  const Graph f = OfVector("%1 = Relu(%0)\nreturn \"y\" = %1");
  const Graph all = OfVector("%1 = Neg(%0)\nreturn \"y\" = %1");
  const Graph half = OfVector(
      "%1 = Slice(%0) {starts = [0], ends = [2], steps = [1]}\n%2 = Slice(%0) {starts = [2], ends "
      "= [4], steps = [1]}\n"
      "%3 = Relu(%1)\n%4 = Concat(%3, %2) {axis = 0}\nreturn \"y\" = %4");
  DivergenceSearch search(WeightMode::kExact, 1, Deadline::Never());
  int evaluations = 0;
  const auto more = [&] {
    return search.evaluations() - std::exchange(evaluations, search.evaluations());
  };
  EXPECT_EQ(search.Find(f, all)->differing, std::vector<int64_t>{4});
  EXPECT_EQ(more(), 1);
  const auto found = search.Find(f, half);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->differing, std::vector<int64_t>{2});
  ASSERT_EQ(found->earliest.size(), 1u);
  EXPECT_EQ(found->earliest[0].op, "Relu");
  EXPECT_EQ(more(), 2);
  EXPECT_FALSE(search.FindFewer(f, half, 2)->has_value());
  EXPECT_EQ(more(), 1) << "the small prime shows two";
  EXPECT_EQ((*search.FindFewer(f, half, 3))->differing, std::vector<int64_t>{2});
  EXPECT_EQ(more(), 2);
  EXPECT_FALSE(search.FindFewer(f, half, 0)->has_value());
  EXPECT_EQ(more(), 0);
}

/// Axioms count elements where doubles leave some near: here half of what differs formally.
TEST(DivergenceSearch, AxiomsShowMoreElementsEqual) {
  const std::string two = "%1 = Constant() {value = f32[]{2}}\n";
  const Graph f = OfVector(two + "%2 = Mul(%0, %1)\n%3 = Relu(%2)\nreturn \"y\" = %3, \"z\" = %0");
  const Graph g = OfVector(
      two + "%2 = Relu(%0)\n%3 = Mul(%2, %1)\n%4 = Neg(%0)\nreturn \"y\" = %3, \"z\" = %4");
  CompareOptions options;
  options.verifier.weights = WeightMode::kExact;
  const auto report = ComparePrograms(f, g, options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->verdict, Verdict::kPartial) << report->reason;
  EXPECT_EQ(report->outputs[0].wrong_elements, 0);
  EXPECT_EQ(report->outputs[1].wrong_elements, 4);
  EXPECT_FALSE(report->axioms.empty());
}

}  // namespace
}  // namespace mendel
