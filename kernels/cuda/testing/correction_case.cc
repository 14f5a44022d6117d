#include "kernels/cuda/testing/correction_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "graph/emitter.h"
#include "graph/rewrite.h"
#include "kernels/cuda/emit/divided_sum.h"

namespace mendel::cuda {
namespace {

/// Bytes of one device buffer with room for a shifted pointer.
struct Buffer {
  std::vector<std::byte> storage;
  std::span<std::byte> bytes;
  size_t offset = 0;

  Buffer(DType dtype, const std::vector<double>& values, bool misaligned) {
    const Tensor tensor =
        Tensor::FromDoubles({dtype, {static_cast<int64_t>(values.size())}}, values);
    const size_t element = static_cast<size_t>(DTypeSize(dtype));
    storage.resize(tensor.bytes().size() + 32 + element);
    void* begin = storage.data();
    size_t room = storage.size();
    std::align(16, 16, begin, room);
    offset = misaligned ? element : 0;
    bytes = {static_cast<std::byte*>(begin), tensor.bytes().size() + offset};
    std::memcpy(bytes.data() + offset, tensor.bytes().data(), tensor.bytes().size());
  }
  Argument As(std::string name, bool writable) {
    return {std::move(name), bytes, writable, offset};
  }
};

/// The device memory of one run.
class Memory {
 public:
  Memory(const CorrectionCase& one, const std::vector<std::vector<HostValue>>& values,
         bool misaligned)
      : one_(one),
        values_(values),
        misaligned_(misaligned),
        dtype_(one.patch_kernels.kernels[0].correction.dtype) {}

  Argument Tensor(const Operand& operand, const std::string& name, bool writable) {
    if (operand.scratch) {
      const std::vector<double> nothing(static_cast<size_t>(one_.patch_kernels.scratch_elements),
                                        77);
      // Partial sums are of another type, and the buffer is never the caller's: it stays aligned
      // where there are some.
      const auto divided = [](const PatchKernel& kernel) {
        return kernel.correction.divided.stage != DividedSum::Stage::kNone;
      };
      const bool sums = std::any_of(one_.patch_kernels.kernels.begin(),
                                    one_.patch_kernels.kernels.end(), divided);
      return buffers_.try_emplace({-1, 0}, dtype_, nothing, misaligned_ && !sums)
          .first->second.As("scratch", writable);
    }
    const auto key = std::pair(operand.value.node, operand.value.output);
    return buffers_
        .try_emplace(key, dtype_, InLayout(Value(operand.value), one_.layout), misaligned_)
        .first->second.As(name, writable);
  }
  Argument Weights(const PatchKernel& kernel) {
    const std::vector<double> packed = PackWeights(kernel.correction, Value(kernel.w).scalars);
    return rows_.emplace_back(std::make_unique<Buffer>(dtype_, packed, misaligned_))
        ->As("w", false);
  }
  Argument Bias(ValueId bias) {
    return rows_.emplace_back(std::make_unique<Buffer>(dtype_, Value(bias).scalars, misaligned_))
        ->As("bias", false);
  }

 private:
  const HostValue& Value(ValueId id) const {
    return values_[static_cast<size_t>(id.node)][static_cast<size_t>(id.output)];
  }

  const CorrectionCase& one_;
  const std::vector<std::vector<HostValue>>& values_;
  bool misaligned_;
  DType dtype_;
  std::map<std::pair<int32_t, int32_t>, Buffer> buffers_;
  std::vector<std::unique_ptr<Buffer>> rows_;
};

int32_t PatchOf(const Graph& graph) {
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    if (graph.node(static_cast<int32_t>(id)).op->name == "Patch") return static_cast<int32_t>(id);
  }
  return -1;
}

absl::Status Compare(const CorrectionCase& one, const std::vector<double>& want,
                     const Argument& got_bytes, DType dtype) {
  const std::span<const std::byte> bytes = got_bytes.bytes.subspan(got_bytes.offset);
  const Tensor got({dtype, {static_cast<int64_t>(want.size())}},
                   std::vector<std::byte>(bytes.begin(), bytes.end()));
  double scale = 1;
  for (double value : want) scale = std::max(scale, std::abs(value));
  const double tolerance = dtype == DType::kF32 ? 1e-5 : (dtype == DType::kF16 ? 2e-3 : 1.6e-2);
  for (size_t i = 0; i < want.size(); ++i) {
    const double value = got.DoubleAt(static_cast<int64_t>(i));
    const double expected = RoundTo(dtype, want[i]);
    const bool right =
        one.exact ? value == expected : std::abs(value - expected) <= tolerance * scale;
    if (!right)
      return absl::AbortedError(Cat("wrong result: element ", i, " is ", value, ", not ", expected,
                                    "; ", one.description));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CorrectionCase> MakeCase(const Graph& graph, Layout layout,
                                        const std::string& prefix, const Tile* tile) {
  CorrectionCase one;
  one.graph = graph;
  one.layout = layout;
  MENDEL_ASSIGN_OR_RETURN(one.patch_kernels, PatchKernelsOf(graph, PatchOf(graph), layout));
  for (PatchKernel& kernel : one.patch_kernels.kernels) {
    kernel.correction.name = prefix + kernel.correction.name;
    MENDEL_ASSIGN_OR_RETURN(
        EmittedKernel emitted,
        tile == nullptr || kernel.correction.divided.stage != DividedSum::Stage::kNone
            ? EmitKernel(kernel.correction)
            : EmitKernel(kernel.correction, *tile));
    one.kernels.push_back(std::move(emitted));
  }
  return one;
}

CorrectionCase WithDividedSums(CorrectionCase one, int parts, const std::string& prefix) {
  // Starts at the last kernel, so that the numbers of those before it stay.
  for (size_t k = one.patch_kernels.kernels.size(); k-- > 0;)
    DivideSums(k, parts, one.patch_kernels);
  one.kernels.clear();
  for (PatchKernel& kernel : one.patch_kernels.kernels) {
    kernel.correction.name = prefix + kernel.correction.name;
    auto emitted = EmitKernel(kernel.correction);
    MENDEL_CHECK(emitted.ok());
    one.kernels.push_back(*std::move(emitted));
  }
  one.description += Cat("; sums in ", parts, " parts");
  return one;
}

Graph WithComputedMutant(const Graph& corrected) {
  GraphBuilder builder("computed");
  std::vector<ValueId> inputs;
  for (const int32_t id : corrected.inputs()) {
    const std::string& name = InputName(corrected.node(id));
    inputs.push_back(builder.Input(name, corrected.node(id).outputs[0]));
    if (name != "mutant") continue;
    const auto negated = builder.Add("Neg", {inputs.back()});
    MENDEL_CHECK(negated.ok());
    inputs.back() = *negated;
  }
  const auto outputs = Inline(corrected, inputs, builder);
  MENDEL_CHECK(outputs.ok());
  builder.Output("y", outputs->at(0));
  auto graph = builder.Build();
  MENDEL_CHECK(graph.ok());
  return *std::move(graph);
}

std::vector<HostValue> SmallInputs(const Graph& graph, uint64_t seed) {
  Rng rng(seed);
  std::vector<HostValue> inputs;
  for (int32_t id : graph.inputs()) {
    HostValue value{graph.node(id).outputs[0], {}, {}};
    for (int64_t i = 0; i < NumElements(value.type); ++i)
      value.scalars.push_back(static_cast<double>(rng.Between(-3, 3)));
    inputs.push_back(std::move(value));
  }
  return inputs;
}

std::vector<double> InLayout(const HostValue& value, Layout layout) {
  const Shape& shape = value.type.shape;
  if (shape.size() < 3) return value.scalars;
  const Shape strides = StridesOf(shape, layout);
  std::vector<double> out(value.scalars.size());
  std::vector<int64_t> index(shape.size());
  size_t flat = 0;
  do {
    int64_t at = 0;
    for (size_t d = 0; d < shape.size(); ++d) at += index[d] * strides[d];
    out[static_cast<size_t>(at)] = value.scalars[flat++];
  } while (NextIndex(shape, index));
  return out;
}

std::vector<std::vector<HostValue>> EvaluateAll(const Graph& graph,
                                                std::span<const HostValue> inputs) {
  std::vector<std::vector<HostValue>> values;
  size_t next = 0;
  for (size_t id = 0; id < graph.nodes().size(); ++id) {
    const Node& node = graph.node(static_cast<int32_t>(id));
    if (IsInput(node)) {
      values.push_back({inputs[next++]});
    } else if (IsConstant(node)) {
      values.push_back({HostValue::FromTensor(ConstantValue(node))});
    } else {
      std::vector<const HostValue*> operands;
      for (ValueId input : node.inputs)
        operands.push_back(
            &values[static_cast<size_t>(input.node)][static_cast<size_t>(input.output)]);
      values.push_back(WithView(graph, static_cast<int32_t>(id), [&](const NodeView& view) {
        return EvaluateNode(*node.op, view, operands);
      }));
    }
  }
  return values;
}

absl::Status RunCase(const CorrectionCase& one, Module& module, bool misaligned) {
  const std::vector<HostValue> inputs = SmallInputs(one.graph, one.seed);
  const auto values = EvaluateAll(one.graph, inputs);
  Memory memory(one, values, misaligned);
  const ValueId base = one.graph.node(PatchOf(one.graph)).inputs[0];
  for (size_t k = 0; k < one.kernels.size(); ++k) {
    const PatchKernel& kernel = one.patch_kernels.kernels[k];
    std::vector<Argument> arguments = {memory.Tensor(kernel.x, "x", false)};
    if (one.kernels[k].weights) arguments.push_back(memory.Weights(kernel));
    if (kernel.bias.node >= 0) arguments.push_back(memory.Bias(kernel.bias));
    for (const Operand& operand : kernel.operands)
      arguments.push_back(memory.Tensor(operand, "add", false));
    arguments.push_back(memory.Tensor(kernel.y, "y", true));
    MENDEL_RETURN_IF_ERROR(Annotate(
        module.Launch(one.kernels[k].name, one.kernels[k].launch, arguments), one.description));
  }
  const int32_t patch = PatchOf(one.graph);
  return Compare(one, InLayout(values[static_cast<size_t>(patch)][0], one.layout),
                 memory.Tensor({false, base}, "y", false), one.graph.type(base).dtype);
}

}  // namespace mendel::cuda
