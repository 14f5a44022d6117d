#include "tests/tiled_field_cases.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "base/random.h"
#include "base/status.h"
#include "graph/rewrite.h"
#include "gtest/gtest.h"
#include "kernels/cuda/fusion/preamble.h"
#include "kernels/cuda/testing/emulator/device.h"
#include "kernels/cuda/tiled/candidate.h"
#include "kernels/cuda/tiled/chain.h"
#include "kernels/cuda/tiled/chain_shape.h"
#include "kernels/cuda/tiled/library.h"
#include "kernels/cuda/tiled/product_chain.h"
#include "tests/field_elements.h"
#include "verifier/field_evaluator.h"

namespace mendel::cuda {
namespace {

const TiledLibrary kLibrary(1, 90, true);

bool IsVerified(const Graph& graph, const std::set<int32_t>& nodes) {
  return std::all_of(nodes.begin(), nodes.end(), [&](int32_t id) {
    return IsVerifiedInField(graph.node(id).op->name) && graph.type({id, 0}).dtype == DType::kF32;
  });
}

absl::StatusOr<std::unique_ptr<EmulatedModule>> Compile(
    const std::vector<VerifiedKernel>& kernels) {
  std::string text = PreambleText() + kBeginElements, entries = kEndElements;
  std::set<std::string> seen;
  for (const VerifiedKernel& one : kernels) {
    for (const FusedKernel* kernel : {&one.group.kernel, &one.group.finish}) {
      if (kernel->name.empty() || !seen.insert(kernel->name).second) continue;
      text += kernel->text;
      entries += Cat("MENDEL_ENTRY(", kernel->name, ", ", kernel->name, ")\n");
    }
  }
  return EmulatedModule::Compile({}, text + entries);
}

using Values = std::map<ValueId, std::vector<Fp>>;

/// Values of the verifier, under `draw`.
absl::StatusOr<Values> ValuesOf(const Graph& graph, const Draw& draw) {
  Values values;
  MENDEL_RETURN_IF_ERROR(
      EvaluateValues(graph, draw, WeightMode::kSymbolic, InputNaming::kByName, Deadline::Never(),
                     [&](ValueId id, const FieldValue& value) { values[id] = value.scalars; }));
  return values;
}

/// Runs `kernel` on the values of its operands, followed by the pointers `more`.
absl::Status Launch(const FusedKernel& kernel, const std::vector<Argument>& more, Values& values,
                    EmulatedModule& module) {
  std::vector<Argument> arguments;
  for (const KernelOperand& operand : kernel.operands) {
    arguments.push_back({"operand", std::as_writable_bytes(std::span(values.at(operand.value)))});
  }
  arguments.insert(arguments.end(), more.begin(), more.end());
  LaunchShape launch = kernel.launch;
  launch.shared *= kernel.text.find("Pair") == std::string::npos
                       ? 2
                       : 4;  // elements of eight bytes, also where two make a word
  return module.Launch(kernel.name, launch, arguments);
}

/// The result of the kernel.
absl::StatusOr<std::vector<Fp>> ResultOf(const LibraryGroup& group, Values& values,
                                         EmulatedModule& module) {
  std::vector<Fp> result(values.at(group.result).size()),
      parts(static_cast<size_t>(group.scratch_bytes) / sizeof(float));
  const auto written = [](std::vector<Fp>& to) {
    return Argument{"result", std::as_writable_bytes(std::span(to)), true, 0, sizeof(Fp)};
  };
  MENDEL_RETURN_IF_ERROR(
      Launch(group.kernel, {written(parts.empty() ? result : parts)}, values, module));
  if (parts.empty()) return result;
  const Argument read{"parts", std::as_writable_bytes(std::span(parts))};
  MENDEL_RETURN_IF_ERROR(Launch(group.finish, {read, written(result)}, values, module));
  return result;
}

/// Algorithms of a node, as in AddAll, with the class of each.
std::vector<std::pair<std::string, Numerics>> AlgorithmsOf(const GroupingScope& scope, int32_t node,
                                                           uint64_t seed) {
  const char* const small[] = {"tile:8x16x4:2x2", "tile:16x4x8:2x1", "tile:32x8x16:8x1"};
  const std::pair<const char*, Numerics> warps[] = {{"tile-tf32:16x16x8:2x2", Numerics::kTf32},
                                                    {"tile-f16:32x16x16:2x4", Numerics::kF16},
                                                    {"tile-bf16:32x32x32:4x8", Numerics::kBf16}};
  const auto& [warp, numerics] = warps[seed % 3];
  std::vector<std::pair<std::string, Numerics>> names;
  const std::vector<std::string> offered = kLibrary.Algorithms(scope, node, Numerics::kStrict);
  if (!offered.empty()) names.emplace_back(offered[0], Numerics::kStrict);
  constexpr std::pair<TiledFusion, const char*> kFusions[] = {
      {TiledFusion::kNone, ""}, {TiledFusion::kPair, ":pair"}, {TiledFusion::kRows, ":rows"}};
  for (const auto& [fusion, name] : kFusions) {
    if (!MatchTiledChain(scope, node, fusion).has_value()) continue;
    for (const char* tile : {small[seed % 3], warp}) {
      if (tile == warp && (seed % 4 > 1 || RealName(scope.graph.type({node, 0}).dtype) != "float"))
        continue;
      names.emplace_back(Cat(tile, name), numerics);
      const std::string parts = Cat(tile, name, ":split", 2 + seed % 3);
      const std::string copying = Cat(tile, name, ":async");
      if (kLibrary.Group(scope, node, copying, numerics).ok())
        names.emplace_back(copying, numerics);
      if (seed % 2 == 1 && kLibrary.Group(scope, node, parts, numerics).ok())
        names.emplace_back(parts, numerics);
    }
  }
  if (const auto chain = MatchProductChain(scope, node)) {
    const std::string name = Cat(small[seed % 3], seed % 2 == 0 ? ":chain" : ":chain2");
    if (ShapeOfChain(scope.graph, *chain, *ParseCandidate(name, 4)).ok())
      names.emplace_back(name, numerics);
  }
  return names;
}

bool HasPart(const VerifiedKernel& one, std::string_view part) {
  return one.description.substr(0, one.description.find(' ')).find(part) != std::string::npos;
}

}  // namespace

bool FieldCases::Add(size_t graph, int32_t node, const std::string& algorithm, Numerics numerics,
                     const std::string& description) {
  const std::vector<bool> constant = ConstantExpressions(graphs[graph]),
                          claimed(constant.size(), false);
  auto group = kLibrary.Group({graphs[graph], constant, claimed}, node, algorithm, numerics);
  EXPECT_TRUE(group.ok()) << group.status() << "\n" << description;
  if (!group.ok() || !IsVerified(graphs[graph], group->nodes)) return false;
  kernels.push_back(
      {Cat(algorithm, " of node ", node, ": ", description), graph, *std::move(group)});
  return true;
}

void FieldCases::AddAll(const Graph& graph, uint64_t seed, const std::string& description) {
  const std::vector<bool> constant = ConstantExpressions(graph), claimed(constant.size(), false);
  const GroupingScope scope{graph, constant, claimed};
  graphs.push_back(graph);
  for (int32_t node = 0; node < static_cast<int32_t>(graph.nodes().size()); ++node) {
    for (const auto& [name, numerics] : AlgorithmsOf(scope, node, seed))
      Add(graphs.size() - 1, node, name, numerics, description);
  }
}

int FieldCases::Count(std::string_view part) const {
  return static_cast<int>(
      std::count_if(kernels.begin(), kernels.end(),
                    [&](const VerifiedKernel& one) { return HasPart(one, part); }));
}

FieldCases FieldCases::With(std::string_view part) const {
  FieldCases cases{graphs, {}};
  std::copy_if(kernels.begin(), kernels.end(), std::back_inserter(cases.kernels),
               [&](const auto& one) { return HasPart(one, part); });
  return cases;
}

FieldCases FieldCases::Without(std::string_view part) const {
  FieldCases cases = *this;
  std::erase_if(cases.kernels, [&](const VerifiedKernel& one) { return HasPart(one, part); });
  return cases;
}

absl::StatusOr<Verification> Verify(const FieldCases& cases) {
  MENDEL_ASSIGN_OR_RETURN(const std::unique_ptr<EmulatedModule> module, Compile(cases.kernels));
  Rng rng(11);
  const Draw draw = SeededDraw(rng);
  FieldFunctions functions(draw);
  functions.Bind(*module);
  Verification verification;
  std::map<size_t, Values> values;
  for (size_t k = 0; k < cases.kernels.size(); ++k) {
    const VerifiedKernel& one = cases.kernels[k];
    const auto [known, is_new] = values.try_emplace(one.graph);
    if (is_new) {
      MENDEL_ASSIGN_OR_RETURN(known->second, ValuesOf(cases.graphs[one.graph], draw));
    }
    functions.Begin();
    const auto got = ResultOf(one.group, known->second, *module);
    if (!got.ok()) return Annotate(got.status(), one.description);
    verification.elements += static_cast<int64_t>(got->size());
    if (*got == known->second.at(one.group.result)) continue;
    verification.wrong.insert(k);
  }
  return verification;
}

int64_t ExpectRight(const FieldCases& cases) {
  const auto verification = Verify(cases);
  EXPECT_TRUE(verification.ok()) << std::string(verification.status().message()).substr(0, 4000);
  if (!verification.ok()) return 0;
  for (const size_t k : verification->wrong) ADD_FAILURE() << cases.kernels[k].description;
  return verification->elements;
}

FieldCases Planted(const FieldCases& right, const std::vector<Fault>& faults) {
  FieldCases wrong{right.graphs, {}};
  for (const auto& [from, to, kernel, last] : faults) {
    for (VerifiedKernel one : right.kernels) {
      one.description = Cat(from, " -> ", to, ", ", one.description);
      FusedKernel& changed = one.group.*kernel;
      const size_t at = last ? changed.text.rfind(from) : changed.text.find(from);
      EXPECT_NE(at, std::string::npos) << one.description << "\n" << changed.text;
      if (at == std::string::npos) continue;
      changed.text.replace(at, from.size(), to);
      const std::string name = Cat(changed.name, "_fault", wrong.kernels.size());
      changed.text.replace(changed.text.find(changed.name), changed.name.size(), name);
      changed.name = name;
      wrong.kernels.push_back(std::move(one));
    }
  }
  return wrong;
}

void ExpectSeen(const FieldCases& right, const std::vector<Fault>& faults) {
  const FieldCases wrong = Planted(right, faults);
  ASSERT_FALSE(wrong.kernels.empty());
  const auto verification = Verify(wrong);
  ASSERT_TRUE(verification.ok()) << std::string(verification.status().message()).substr(0, 4000);
  for (size_t k = 0; k < wrong.kernels.size(); ++k)
    EXPECT_EQ(verification->wrong.count(k), 1u) << wrong.kernels[k].description;
}

}  // namespace mendel::cuda
