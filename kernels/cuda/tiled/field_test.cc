// The bytes of tiled kernels with elements of GF(p) in place of floats, compared with the judge's values of the operators that they
// replace, at every element: what a candidate computes is the same polynomial, whatever the order of its sums.

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "graph/op_definition.h"
#include "graph/rewrite.h"
#include "gtest/gtest.h"
#include "kernels/cuda/convolution_case.h"
#include "kernels/cuda/emulator/device.h"
#include "kernels/cuda/fusion/preamble.h"
#include "kernels/cuda/product_case.h"
#include "kernels/cuda/tiled/candidate.h"
#include "kernels/cuda/tiled/chain.h"
#include "kernels/cuda/tiled/chain_case.h"
#include "kernels/cuda/tiled/chain_shape.h"
#include "kernels/cuda/tiled/library.h"
#include "kernels/cuda/tiled/product_chain.h"
#include "kernels/cuda/tiled/product_chain_case.h"
#include "verifier/field_evaluator.h"

namespace mendel::cuda {
namespace {

/// Between the preamble and the kernels, which then say `float` and mean an element. Functions that are no polynomials are the
/// judge's oracles.
constexpr const char* kElements = R"(
extern "C" {
unsigned long long mendel_field_prime;
unsigned long long (*mendel_field_call)(const char* op, unsigned long long v);
}
namespace mendel_field {
struct Element {
  Element() = default;
  Element(unsigned long long value) : v(value) {}
  Element(float whole) : v(whole < 0 ? mendel_field_prime - static_cast<unsigned long long>(-whole) : static_cast<unsigned long long>(whole)) {}
  unsigned long long v;
};
struct Number {
  typedef Element Stored;
  typedef Element Real;
  static Element Load(Element v) { return v; }
  static Element Store(Element v) { return v; }
};
}  // namespace mendel_field
namespace mendel_text {
typedef mendel_field::Element Element;
inline Element Plus(Element a, Element b) { return (a.v + b.v) % mendel_field_prime; }
inline Element Minus(Element a, Element b) { return (a.v + mendel_field_prime - b.v) % mendel_field_prime; }
inline Element Times(Element a, Element b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a.v) * b.v % mendel_field_prime);
}
// Of tensor cores: no rounding, the sums of a warp's products.
inline Element SumOfElements(Element c, const Element* left, const Element* right, int count) {
  for (int p = 0; p < count; ++p) c = Plus(c, Times(left[p], right[p]));
  return c;
}
inline Element RoundToTf32(Element v) { return v; }
inline void MultiplyTf32(Element& c0, Element& c1, Element& c2, Element& c3, const Element (&a)[4], const Element (&b)[2]) {
  mendel_shim::MultiplyInWarp<Element, 2>(c0, c1, c2, c3, a, b, SumOfElements);
}
inline void MultiplyF16(Element& c0, Element& c1, Element& c2, Element& c3, const Element (&a)[8], const Element (&b)[4]) {
  mendel_shim::MultiplyInWarp<Element, 4>(c0, c1, c2, c3, a, b, SumOfElements);
}
inline void MultiplyBf16(Element& c0, Element& c1, Element& c2, Element& c3, const Element (&a)[8], const Element (&b)[4]) {
  MultiplyF16(c0, c1, c2, c3, a, b);
}
inline Element Relu(Element a) { return mendel_field_call("Relu", a.v); }
inline Element Sigmoid(Element a) { return mendel_field_call("Sigmoid", a.v); }
inline Element Tanh(Element a) { return mendel_field_call("Tanh", a.v); }
}  // namespace mendel_text
#define float mendel_field::Element
#define F32 mendel_field::Number
)";

const FieldEvaluator* oracle = nullptr;

uint64_t CallOracle(const char* name, uint64_t v) {
  const std::vector<TensorType> scalar = {{DType::kF32, {1}}};
  FieldValue value;
  value.scalars = {Fp{v}};
  const FieldValue* operand = &value;
  return oracle->Apply(*FindOp(name), NodeView{scalar, {}, scalar}, {&operand, 1}, 0).scalars[0].value;
}

/// What the elements above can compute.
bool IsJudged(const Graph& graph, const std::set<int32_t>& nodes) {
  static const std::set<std::string_view> kOps = {"Add",  "Conv",    "ConvTranspose", "Expand", "MatMul", "Mul",  "Neg",
                                                  "Relu", "Reshape", "Sigmoid",       "Slice",  "Sub",    "Tanh", "Transpose"};
  return std::all_of(nodes.begin(), nodes.end(), [&](int32_t id) {
    return kOps.count(graph.node(id).op->name) > 0 && graph.type({id, 0}).dtype == DType::kF32;
  });
}

struct JudgedKernel {
  std::string told;
  size_t graph = 0;
  LibraryGroup group;
};

class FieldCases {
 public:
  /// Every product of the graph by every fusion that it has, by a small tile, whole and with its sums divided where they are long
  /// enough, and by the first that is offered.
  void Add(const DeviceCase& one, uint64_t seed) {
    const std::vector<bool> constant = ConstantExpressions(one.graph), claimed(constant.size(), false);
    const GroupingScope scope{one.graph, constant, claimed};
    const TiledLibrary library(1, 90);
    const char* const small[] = {"tile:8x16x4:2x2", "tile:16x4x8:2x1", "tile:32x8x16:8x1"};
    const std::pair<const char*, Numerics> warps[] = {{"tile-tf32:16x16x8:2x2", Numerics::kTf32},
                                                      {"tile-f16:32x16x16:2x4", Numerics::kF16},
                                                      {"tile-bf16:32x32x32:4x8", Numerics::kBf16}};
    const auto& [warp, numerics] = warps[seed % 3];
    for (int32_t node = 0; node < static_cast<int32_t>(one.graph.nodes().size()); ++node) {
      std::vector<std::string> names = library.Algorithms(scope, node, Numerics::kStrict);
      if (names.size() > 1) names.resize(1);
      for (const auto& [fusion, name] : {std::pair(TiledFusion::kNone, ""), std::pair(TiledFusion::kPair, ":pair")}) {
        if (!MatchTiledChain(scope, node, fusion).has_value()) continue;
        for (const char* tile : {small[seed % 3], warp}) {
          if (tile == warp && seed % 4 > 1) continue;  // each class still has some
          names.push_back(Cat(tile, name));
          const std::string parts = Cat(names.back(), ":split", 2 + seed % 3);
          if (library.Group(scope, node, parts, numerics).ok()) names.push_back(parts);
        }
      }
      if (const auto chain = MatchProductChain(scope, node)) {
        const std::string name = std::string(small[seed % 3]) + (seed % 2 == 0 ? ":chain" : ":chain2");
        if (ShapeOfChain(one.graph, *chain, *ParseCandidate(name, 4)).ok()) names.push_back(name);
      }
      for (const std::string& name : names) {
        if (name.find("tile-") == 0 && RealName(one.graph.type({node, 0}).dtype) != "float") continue;
        auto group = library.Group(scope, node, name, numerics);
        ASSERT_TRUE(group.ok()) << group.status();
        if (!IsJudged(one.graph, group->nodes)) continue;
        chains += name.find(":chain") != std::string::npos ? 1 : 0;
        pairs += name.find(":pair") != std::string::npos ? 1 : 0;
        divided += name.find(":split") != std::string::npos ? 1 : 0;
        by_tensor_cores += name.find("tile-") == 0 ? 1 : 0;
        kernels.push_back({Cat(name, " of node ", node, ": ", one.told), graphs.size(), *std::move(group)});
      }
    }
    graphs.push_back(one.graph);
  }

  absl::StatusOr<std::unique_ptr<EmulatedModule>> Compile() const {
    std::string text = PreambleText() + kElements, entries = "#undef F32\n#undef float\n";
    std::set<std::string> seen;
    for (const JudgedKernel& one : kernels) {
      for (const FusedKernel* kernel : {&one.group.kernel, &one.group.finish}) {
        if (kernel->name.empty() || !seen.insert(kernel->name).second) continue;
        text += kernel->text;
        entries += Cat("MENDEL_ENTRY(", kernel->name, ", ", kernel->name, ")\n");
      }
    }
    return EmulatedModule::Compile({}, text + entries);
  }

  std::vector<Graph> graphs;
  std::vector<JudgedKernel> kernels;
  int pairs = 0, chains = 0, divided = 0, by_tensor_cores = 0;
};

using Values = std::map<ValueId, std::vector<Fp>>;

/// Runs `kernel` on the values of its operands, then `more` of its pointers.
absl::Status Launch(const FusedKernel& kernel, std::vector<Argument> more, Values& values, EmulatedModule& module) {
  std::vector<Argument> arguments;
  for (const KernelOperand& operand : kernel.operands) {
    arguments.push_back({"operand", std::as_writable_bytes(std::span(values.at(operand.value)))});
  }
  arguments.insert(arguments.end(), more.begin(), more.end());
  LaunchShape launch = kernel.launch;
  launch.shared *= 2;  // elements of eight bytes
  return module.Launch(kernel.name, launch, arguments);
}

/// Elements of the result that differ from the judge's; -1 after an error, which is told.
int64_t Differences(const JudgedKernel& one, Values& values, EmulatedModule& module, int64_t& elements) {
  const std::vector<Fp>& want = values.at(one.group.result);
  std::vector<Fp> got(want.size()), parts(static_cast<size_t>(one.group.scratch_bytes) / sizeof(float));
  const auto written = [](std::vector<Fp>& to) {
    return Argument{"result", std::as_writable_bytes(std::span(to)), true, 0, sizeof(Fp)};
  };
  absl::Status status = Launch(one.group.kernel, {written(parts.empty() ? got : parts)}, values, module);
  if (status.ok() && !parts.empty()) {
    const Argument read{"parts", std::as_writable_bytes(std::span(parts))};
    status = Launch(one.group.finish, {read, written(got)}, values, module);
  }
  EXPECT_TRUE(status.ok()) << status << "\n" << one.told;
  if (!status.ok()) return -1;
  int64_t differences = 0;
  for (size_t i = 0; i < want.size(); ++i) differences += want[i] != got[i] ? 1 : 0;
  elements += static_cast<int64_t>(want.size());
  return differences;
}

/// Of the judge, under `draw`.
Values ValuesOf(const Graph& graph, const Draw& draw) {
  Values values;
  const absl::Status status = EvaluateValues(graph, draw, WeightMode::kSymbolic, InputNaming::kByName, Deadline::Never(),
                                             [&](ValueId id, const FieldValue& value) { values[id] = value.scalars; });
  EXPECT_TRUE(status.ok()) << status;
  return values;
}

/// Number of kernels that differ somewhere.
int Judge(FieldCases& cases, EmulatedModule& module, int64_t& elements, std::string& last_wrong) {
  Rng rng(11);
  const Draw draw = SeededDraw(rng);
  const FieldEvaluator evaluator(draw, WeightMode::kSymbolic);
  oracle = &evaluator;
  *static_cast<uint64_t*>(module.Symbol("mendel_field_prime")) = draw.prime;
  *static_cast<uint64_t (**)(const char*, uint64_t)>(module.Symbol("mendel_field_call")) = &CallOracle;
  int wrong = 0;
  std::map<size_t, Values> values;
  for (const JudgedKernel& one : cases.kernels) {
    const auto [known, is_new] = values.try_emplace(one.graph);
    if (is_new) known->second = ValuesOf(cases.graphs[one.graph], draw);
    if (Differences(one, known->second, module, elements) == 0) continue;
    ++wrong;
    last_wrong = one.told;
  }
  return wrong;
}

TEST(TiledField, EqualsTheJudgeAtEveryElement) {
  FieldCases cases;
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    ASSERT_NO_FATAL_FAILURE(cases.Add(RandomChain(seed, ChainValues::kPolynomial), seed));
    ASSERT_NO_FATAL_FAILURE(cases.Add(RandomProduct(seed, Numerics::kDefault), seed));
    ASSERT_NO_FATAL_FAILURE(cases.Add(RandomConvolutions(seed, Numerics::kDefault), seed));
    ASSERT_NO_FATAL_FAILURE(cases.Add(RandomMatrixChain(seed, ChainValues::kPolynomial), seed));
    ASSERT_NO_FATAL_FAILURE(cases.Add(RandomConvolutionChain(seed, ChainValues::kPolynomial), seed));
  }
  auto module = cases.Compile();
  ASSERT_TRUE(module.ok()) << std::string(module.status().message()).substr(0, 4000);
  int64_t elements = 0;
  std::string last_wrong;
  EXPECT_EQ(Judge(cases, **module, elements, last_wrong), 0) << last_wrong;
  EXPECT_GT(cases.pairs, 3);
  EXPECT_GT(cases.chains, 15);
  EXPECT_GT(cases.divided, 3);
  EXPECT_GT(cases.by_tensor_cores, 9);
  std::printf(
      "%zu tiled kernels in GF(p), %d of pairs, %d of chains, %d of divided sums, %d by tensor cores: %lld elements equal\n",
      cases.kernels.size(), cases.pairs, cases.chains, cases.divided, cases.by_tensor_cores, static_cast<long long>(elements));
}

struct Fault {
  std::string from, to;
  FusedKernel LibraryGroup::*kernel = &LibraryGroup::kernel;
};

/// Every fault, planted where it first fits, is seen in every kernel.
void ExpectSeen(const FieldCases& right, const std::vector<Fault>& faults) {
  ASSERT_FALSE(right.kernels.empty());
  for (const auto& [from, to, kernel] : faults) {
    FieldCases wrong = right;
    for (JudgedKernel& one : wrong.kernels) {
      std::string& text = (one.group.*kernel).text;
      const size_t at = text.find(from);
      ASSERT_NE(at, std::string::npos) << from;
      text.replace(at, from.size(), to);
    }
    auto module = wrong.Compile();
    ASSERT_TRUE(module.ok()) << module.status();
    int64_t elements = 0;
    std::string last_wrong;
    EXPECT_EQ(Judge(wrong, **module, elements, last_wrong), static_cast<int>(wrong.kernels.size())) << to;
  }
}

/// Another sign of the sums, columns of a warp's products exchanged, the last products of a sum and a part of a divided one left
/// out.
TEST(TiledField, PlantedFaultsDiffer) {
  FieldCases right;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    ASSERT_NO_FATAL_FAILURE(right.Add(RandomChain(seed, ChainValues::kPolynomial), seed));
  }
  FieldCases by_threads = right, by_tensor_cores = right;
  const auto has_tensor_cores = [](const JudgedKernel& one) { return one.told.rfind("tile-", 0) == 0; };
  std::erase_if(by_threads.kernels, has_tensor_cores);
  std::erase_if(by_tensor_cores.kernels, [&](const JudgedKernel& one) { return !has_tensor_cores(one); });
  ExpectSeen(by_threads, {{"] = Plus(sum0", "] = Minus(sum0"}});
  ExpectSeen(by_tensor_cores, {{"+ lane / 4 +", "+ (lane / 4 ^ 1) +"}});
  ExpectSeen(right, {{" && k < ", " && k + 4 < "}});
  std::erase_if(right.kernels, [](const JudgedKernel& one) { return one.group.scratch_bytes == 0; });
  ExpectSeen(right, {{"k0 >= begin", "k0 > begin"}, {"int part = 1", "int part = 2", &LibraryGroup::finish}});
}

/// The same in the first of two products.
TEST(TiledField, PlantedFaultsOfChainsDiffer) {
  FieldCases right;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    ASSERT_NO_FATAL_FAILURE(right.Add(RandomMatrixChain(seed, ChainValues::kPolynomial), seed));
  }
  std::erase_if(right.kernels, [](const JudgedKernel& one) { return one.told.find(":chain") == std::string::npos; });
  ExpectSeen(right, {{"] = Plus(sum[", "] = Minus(sum["}, {" && k < ", " && k + 4 < "}});
}

}  // namespace
}  // namespace mendel::cuda
