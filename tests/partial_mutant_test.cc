// A partial mutant on the shapes of a real network, from rule to execution: the dilated back end of
// CSRNet (512 channels, 28x28, dilation 2), its residues stacked in space. Verified exact to the
// element, corrected, certified, run on the CPU backend.

#include <gtest/gtest.h>

#include <cmath>

#include "corrector/corrector.h"
#include "graph/emitter.h"
#include "graph/evaluate.h"
#include "mutator/rule.h"
#include "runtime/backend.h"
#include "runtime/measure.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

Graph DilatedLayer(int64_t channels, int64_t extent) {
  Emitter e("layer");
  Rng rng(3);
  const auto weight = [&](const Shape& shape, const char* name, double scale) {
    std::vector<double> values(static_cast<size_t>(NumElements(shape)));
    for (double& value : values) value = scale * rng.Normal();
    return e.Constant(Tensor::FromDoubles({DType::kF32, shape}, values), name);
  };
  const ValueId x = e.Input("in0", {DType::kF32, {1, channels, extent, extent}});
  const ValueId y =
      e.Op("Conv", {x, weight({channels, channels, 3, 3}, "w", 0.02), weight({channels}, "b", 0.1)},
           {{"strides", Ints{1, 1}}, {"dilations", Ints{2, 2}}, {"pads", Ints{2, 2, 2, 2}}});
  e.Output("out0", e.Op("Relu", {y}));
  auto graph = e.Finish();
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

/// The mutant of dilation_stack on the whole layer.
Mutant StackedMutant(const Graph& layer) {
  const Rule* rule = FindRule("dilation_stack");
  EXPECT_NE(rule, nullptr);
  const std::vector<Match> matches =
      rule->match(layer, static_cast<int32_t>(layer.nodes().size()) - 1, DefaultPredictor());
  EXPECT_EQ(matches.size(), 1u);
  auto mutant = MakeMutant(layer, *rule, matches[0], DefaultPredictor());
  EXPECT_TRUE(mutant.ok()) << mutant.status();
  return *std::move(mutant);
}

TEST(PartialMutant, WrongBoxesAreTheSeams) {
  const Graph layer = DilatedLayer(512, 28);
  const Mutant mutant = StackedMutant(layer);
  const auto report = Localize(mutant.original, mutant.mutant, {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->verdict, Verdict::kPartial);
  // Residue 0 ends and residue 1 begins at the seam: rows and columns 26 and 1 of the original
  // order.
  ASSERT_EQ(report->outputs.size(), 1u);
  EXPECT_EQ(report->outputs[0].wrong_elements, 512 * (28 * 28 - 26 * 26));
  int64_t volume = 0;
  for (const Box& box : report->outputs[0].wrong) {
    volume += box.Volume();
    const auto seam = [&](size_t d) {
      return box.end[d] - box.begin[d] == 1 && (box.begin[d] == 1 || box.begin[d] == 26);
    };
    EXPECT_TRUE(seam(2) || seam(3)) << BoxString(box);
    std::printf("wrong %s\n", BoxString(box).c_str());
  }
  EXPECT_EQ(volume, report->outputs[0].wrong_elements);
}

TEST(PartialMutant, CorrectedMutantRunsAndCertifies) {
  const Graph layer = DilatedLayer(64, 28);
  const Mutant mutant = StackedMutant(layer);
  const auto report = Localize(mutant.original, mutant.mutant, {});
  ASSERT_TRUE(report.ok()) << report.status();
  const auto corrected = Recompute(mutant.original, mutant.mutant, *report, 0.5);
  ASSERT_TRUE(corrected.ok()) << corrected.status();
  std::printf("correction: %.1f %% of the layer's arithmetic\n", 100 * corrected->flop_share);
  const auto certificate = Certify(mutant.original, corrected->graph, {});
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  EXPECT_LE(certificate->bound_log2, -80);
  EXPECT_FALSE(Certify(mutant.original, mutant.mutant, {}).ok())
      << "the uncorrected mutant must not certify";

  const Backend* backend = FindBackend("cpu");
  ASSERT_NE(backend, nullptr);
  const std::vector<Tensor> inputs = RandomInputs(layer, 5);
  const auto reference = Evaluate(layer, std::vector<HostValue>{HostValue::FromTensor(inputs[0])});
  ASSERT_TRUE(reference.ok());
  for (const Graph* graph : {&mutant.mutant, &corrected->graph}) {
    auto executable = backend->Compile(*graph, {.threads = 2});
    ASSERT_TRUE(executable.ok()) << executable.status();
    const auto output = RunOnTensors(**executable, *graph, inputs);
    ASSERT_TRUE(output.ok()) << output.status();
    double scale = 0, error = 0;
    for (int64_t i = 0; i < (*output)[0].size(); ++i) {
      scale = std::max(scale, std::abs((*reference)[0].At(i)));
      error = std::max(error, std::abs((*reference)[0].At(i) - (*output)[0].DoubleAt(i)));
    }
    if (graph == &mutant.mutant) {
      EXPECT_GT(error / scale, 1e-3) << "the uncorrected mutant should be visibly wrong";
    } else {
      EXPECT_LT(error / scale, 1e-5);
    }
  }
}

}  // namespace
}  // namespace mendel
