// The emitted text instantiated with elements of GF(p), compared with the verifier's own evaluation
// of the corrected graph at every element: what the text computes is the same polynomial, whatever
// the order of its sums.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "base/status.h"
#include "graph/op_definition.h"
#include "kernels/cuda/testing/correction_case.h"
#include "kernels/cuda/testing/emulator/device.h"
#include "verifier/field_evaluator.h"

namespace mendel::cuda {
namespace {

/// The number type, after all kernels' texts. Functions that are no polynomials are the verifier's
/// oracles.
constexpr const char* kField = R"(
extern "C" {
unsigned long long mendel_field_prime;
unsigned long long (*mendel_field_call)(const char* op, unsigned long long v, double low, double high);
}
namespace mendel_field {
struct Element {
  unsigned long long v;
};
inline Element operator+(Element a, Element b) { return {(a.v + b.v) % mendel_field_prime}; }
inline Element operator*(Element a, Element b) {
  return {static_cast<unsigned long long>(static_cast<unsigned __int128>(a.v) * b.v % mendel_field_prime)};
}
struct Number {
  typedef Element Stored;
  typedef Element Real;
  static Element Load(Element v) { return v; }
  static Element Store(Element v) { return v; }
  static Element Zero() { return {0}; }
  static Element Relu(Element v) { return {mendel_field_call("Relu", v.v, 0, 0)}; }
  static Element LeakyRelu(Element v, double slope) { return {mendel_field_call("LeakyRelu", v.v, slope, 0)}; }
  static Element Clip(Element v, double low, double high) { return {mendel_field_call("Clip", v.v, low, high)}; }
  static Element Sigmoid(Element v) { return {mendel_field_call("Sigmoid", v.v, 0, 0)}; }
  static Element Tanh(Element v) { return {mendel_field_call("Tanh", v.v, 0, 0)}; }
};
}  // namespace mendel_field
)";

std::string FieldEntry(const EmittedKernel& kernel) {
  std::string parameters, arguments;
  for (int k = 0; k < 1 + (kernel.weights ? 1 : 0) + (kernel.bias ? 1 : 0) + kernel.operands; ++k) {
    parameters += Cat("const mendel_field::Element* a", k, ", ");
    arguments += Cat("a", k, ", ");
  }
  return Cat(
      "namespace ", kernel.name_space, " {\nextern \"C\" void ", kernel.name, "_field(", parameters,
      "mendel_field::Element* y) { Mend<mendel_field::Number>(static_cast<int>(blockIdx.x), ",
      arguments, "y); }\n}\nMENDEL_ENTRY(", kernel.name, "_field, ", kernel.name_space,
      "::", kernel.name, "_field)\n");
}

const FieldEvaluator* oracle = nullptr;

uint64_t CallOracle(const char* name, uint64_t v, double low, double high) {
  const std::vector<TensorType> scalar = {{DType::kF32, {1}}};
  const OpDefinition* op = FindOp(name);
  Attributes attrs;
  if (std::string_view(name) == "LeakyRelu") attrs.Set("alpha", low);
  if (std::string_view(name) == "Clip") attrs = {{"min", low}, {"max", high}};
  FieldValue value;
  value.scalars = {Fp{v}};
  const FieldValue* operand = &value;
  return oracle->Apply(*op, NodeView{scalar, attrs, scalar}, {&operand, 1}, 0).scalars[0].value;
}

/// One case's buffers and launches in GF(p).
class FieldRun {
 public:
  FieldRun(const CorrectionCase& one, const Draw& draw) : one_(one) {
    const absl::Status status = EvaluateValues(
        one.graph, draw, WeightMode::kSymbolic, InputNaming::kByName, Deadline::Never(),
        [&](ValueId id, const FieldValue& value) { values_[id] = value.scalars; });
    EXPECT_TRUE(status.ok()) << status;
  }

  absl::Status Launch(EmulatedModule& module) {
    for (size_t k = 0; k < one_.kernels.size(); ++k) {
      const PatchKernel& kernel = one_.patch_kernels.kernels[k];
      std::vector<Argument> arguments = {Of(kernel.x)};
      if (one_.kernels[k].weights) arguments.push_back(Weights(kernel));
      if (kernel.bias.node >= 0) arguments.push_back(Raw(values_[kernel.bias]));
      for (const Operand& operand : kernel.operands) arguments.push_back(Of(operand));
      arguments.push_back(Of(kernel.y));
      arguments.back().writable = true;
      LaunchShape launch = one_.kernels[k].launch;
      launch.shared *= 2;  // elements of eight bytes
      MENDEL_RETURN_IF_ERROR(module.Launch(one_.kernels[k].name + "_field", launch, arguments));
    }
    return absl::OkStatus();
  }

  /// Elements that differ from the verifier's, over the whole of the mutant's output.
  int64_t Differences() {
    int32_t patch = 0;
    while (one_.graph.node(patch).op->name != "Patch") ++patch;
    const std::vector<Fp> want = InOrder(values_[{patch, 0}], one_.graph.type({patch, 0}).shape);
    const std::vector<Fp>& got = buffers_[{false, one_.graph.node(patch).inputs[0]}];
    int64_t differences = 0;
    for (size_t i = 0; i < want.size(); ++i) differences += want[i] != got[i] ? 1 : 0;
    elements_ = static_cast<int64_t>(want.size());
    return differences;
  }
  int64_t elements() const { return elements_; }

 private:
  std::vector<Fp> InOrder(const std::vector<Fp>& values, const Shape& shape) const {
    const Shape strides = StridesOf(shape, one_.layout);
    std::vector<Fp> out(values.size());
    std::vector<int64_t> index(shape.size());
    size_t flat = 0;
    do {
      int64_t at = 0;
      for (size_t d = 0; d < shape.size(); ++d) at += index[d] * strides[d];
      out[static_cast<size_t>(at)] = values[flat++];
    } while (NextIndex(shape, index));
    return out;
  }
  static Argument Over(std::vector<Fp>& values, std::string name) {
    return {std::move(name), std::as_writable_bytes(std::span(values))};
  }
  Argument Of(const Operand& operand) {
    const auto [found, is_new] = buffers_.try_emplace(operand);
    if (is_new && operand.scratch)
      found->second.resize(static_cast<size_t>(one_.patch_kernels.scratch_elements));
    if (is_new && !operand.scratch)
      found->second = InOrder(values_[operand.value], one_.graph.type(operand.value).shape);
    return Over(found->second, "tensor");
  }
  Argument Weights(const PatchKernel& kernel) {
    std::vector<Fp> packed;
    for (int64_t at : PackedOrder(kernel.correction))
      packed.push_back(at < 0 ? Fp{} : values_[kernel.w][static_cast<size_t>(at)]);
    return Raw(std::move(packed));
  }
  Argument Raw(std::vector<Fp> values) {
    rows_.push_back(std::make_unique<std::vector<Fp>>(std::move(values)));
    return Over(*rows_.back(), "row");
  }

  const CorrectionCase& one_;
  std::map<ValueId, std::vector<Fp>> values_;
  std::map<Operand, std::vector<Fp>> buffers_;
  std::vector<std::unique_ptr<std::vector<Fp>>> rows_;
  int64_t elements_ = 0;
};

TEST(FieldInstantiation, EqualsTheVerifierAtEveryElement) {
  constexpr uint64_t kFirst = 1001, kCount = 12;
  std::vector<CorrectionCase> cases;
  std::vector<EmittedKernel> texts;
  std::string extra = kField;
  for (uint64_t seed = kFirst; seed < kFirst + kCount; ++seed) {
    cases.push_back(RandomCase(seed));
    if (seed % 2 == 0)
      cases.back() =
          WithDividedSums(std::move(cases.back()), static_cast<int>(2 + seed % 5), "parted_");
    for (const EmittedKernel& kernel : cases.back().kernels) {
      texts.push_back(kernel);
      extra += FieldEntry(kernel);
    }
  }
  auto module = EmulatedModule::Compile(texts, extra);
  ASSERT_TRUE(module.ok()) << module.status();
  Rng rng(11);
  const Draw draw = SeededDraw(rng);
  const FieldEvaluator evaluator(draw, WeightMode::kSymbolic);
  oracle = &evaluator;
  *static_cast<uint64_t*>((*module)->Symbol("mendel_field_prime")) = draw.prime;
  *static_cast<uint64_t (**)(const char*, uint64_t, double, double)>(
      (*module)->Symbol("mendel_field_call")) = &CallOracle;
  int64_t elements = 0;
  for (const CorrectionCase& one : cases) {
    FieldRun run(one, draw);
    const absl::Status status = run.Launch(**module);
    ASSERT_TRUE(status.ok()) << status << "; " << one.description;
    EXPECT_EQ(run.Differences(), 0) << one.description;
    elements += run.elements();
  }
  std::printf("%zu kernels in GF(%llu): %lld elements equal to the verifier's\n", texts.size(),
              static_cast<unsigned long long>(draw.prime), static_cast<long long>(elements));
}

}  // namespace
}  // namespace mendel::cuda
