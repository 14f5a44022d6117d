#include "kernels/cuda/testing/fake/fake_operations.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <sstream>
#include <utility>

#include "base/status.h"
#include "graph/evaluate.h"
#include "graph/graph.h"
#include "kernels/cuda/testing/fake/tf32.h"

namespace mendel::cuda {
namespace {

/// Calls `use(row-major number, offset in elements)` for all elements.
template <class Use>
void ForElements(const FakeTensor& tensor, Use&& use) {
  const int64_t count = NumElements(tensor.dimensions);
  for (int64_t flat = 0; flat < count; ++flat) {
    int64_t offset = 0, rest = flat;
    for (size_t d = tensor.dimensions.size(); d-- > 0; rest /= tensor.dimensions[d]) {
      offset += rest % tensor.dimensions[d] * tensor.strides[d];
    }
    use(flat, offset);
  }
}

HostValue Loaded(const FakeTensor& tensor, const std::byte* memory) {
  const size_t size = static_cast<size_t>(DTypeSize(tensor.dtype));
  std::vector<std::byte> bytes(static_cast<size_t>(NumElements(tensor.dimensions)) * size);
  ForElements(tensor, [&](int64_t flat, int64_t offset) {
    std::memcpy(bytes.data() + static_cast<size_t>(flat) * size,
                memory + static_cast<size_t>(offset) * size, size);
  });
  return HostValue::FromTensor(Tensor({tensor.dtype, tensor.dimensions}, std::move(bytes)));
}

void RoundToTf32(HostValue& value) {
  for (double& scalar : value.scalars) scalar = RoundedToTf32(static_cast<float>(scalar));
}

void Store(const FakeTensor& tensor, const HostValue& value, std::byte* memory) {
  const Tensor rounded = Tensor::FromDoubles({tensor.dtype, tensor.dimensions}, value.scalars);
  const size_t size = static_cast<size_t>(DTypeSize(tensor.dtype));
  ForElements(tensor, [&](int64_t flat, int64_t offset) {
    std::memcpy(memory + static_cast<size_t>(offset) * size,
                rounded.bytes().data() + static_cast<size_t>(flat) * size, size);
  });
}

Attributes Geometry(const FakeOperation& it, const FakeTensor& x, const FakeTensor& w,
                    const FakeTensor& y) {
  const bool forward = it.kind == FakeKind::kConvolution;
  Ints pads = it.pads_begin;
  pads.insert(pads.end(), it.pads_end.begin(), it.pads_end.end());
  Attributes attrs{{"strides", it.strides},
                   {"dilations", it.dilations},
                   {"pads", pads},
                   {"group", (forward ? x : y).dimensions[1] / w.dimensions[1]}};
  if (forward) return attrs;
  Ints extra;
  for (size_t d = 0; d < it.strides.size(); ++d) {
    const int64_t least = (x.dimensions[d + 2] - 1) * it.strides[d] +
                          (w.dimensions[d + 2] - 1) * it.dilations[d] + 1 - it.pads_begin[d] -
                          it.pads_end[d];
    extra.push_back(y.dimensions[d + 2] - least);
  }
  attrs.Set("output_padding", extra);
  return attrs;
}

/// The values of an operation as Mendel's operators define them.
absl::StatusOr<ValueId> Meaning(GraphBuilder& builder, FakeKind kind,
                                const std::vector<ValueId>& operands, const Attributes& attrs) {
  switch (kind) {
    case FakeKind::kConvolution:
      return builder.Add("Conv", operands, attrs);
    case FakeKind::kBackwardData:
      return builder.Add("ConvTranspose", operands, attrs);
    case FakeKind::kAdd:
      return builder.Add("Add", operands);
    case FakeKind::kRelu:
      return builder.Add("Relu", operands);
    case FakeKind::kSigmoid:
      return builder.Add("Sigmoid", operands);
    case FakeKind::kSwish: {
      MENDEL_ASSIGN_OR_RETURN(const ValueId sigmoid, builder.Add("Sigmoid", operands));
      return builder.Add("Mul", {operands[0], sigmoid});
    }
    case FakeKind::kGelu:
      return builder.Add("Gelu", operands, {{"approximate", "none"}});
    case FakeKind::kGeluTanh:
      return builder.Add("Gelu", operands, {{"approximate", "tanh"}});
    default:
      break;
  }
  if (kind == FakeKind::kMaxOver || kind == FakeKind::kSumOver) {
    const auto last = static_cast<int64_t>(builder.type(operands[0]).shape.size()) - 1;
    return builder.Add(kind == FakeKind::kMaxOver ? "ReduceMax" : "ReduceSum", operands,
                       {{"axes", Ints{last}}, {"keepdims", int64_t{1}}});
  }
  const char* names[] = {"MatMul", "Mul", "Div", "Sub", "Exp", "Log"};
  const int first = static_cast<int>(FakeKind::kMatMul);
  return builder.Add(names[static_cast<int>(kind) - first], operands);
}

void Write(std::ostream& out, const Ints& values) {
  out << values.size() << ' ';
  for (const int64_t value : values) out << value << ' ';
}

Ints Read(std::istream& in) {
  size_t count = 0;
  in >> count;
  Ints values(in && count < 16 ? count : 0);
  for (int64_t& value : values) in >> value;
  return values;
}

}  // namespace

int64_t FakeTensor::Bytes() const {
  int64_t last = 0;
  for (size_t d = 0; d < dimensions.size(); ++d) last += (dimensions[d] - 1) * strides[d];
  return (last + 1) * DTypeSize(dtype);
}

bool FakeOperations::IsMultiplied(int64_t id) const {
  return std::any_of(operations.begin(), operations.end(), [&](const FakeOperation& it) {
    const bool multiplies = it.kind == FakeKind::kConvolution || it.kind == FakeKind::kBackwardData;
    return multiplies && (it.x == id || it.other == id);
  });
}

bool FakeOperations::NeedFusion() const {
  if (operations[0].kind == FakeKind::kBackwardData && operations.size() > 1) return true;
  return std::any_of(operations.begin(), operations.end(),
                     [](const FakeOperation& it) { return it.kind > FakeKind::kRelu; });
}

std::string FakeOperations::Print() const {
  std::ostringstream out;
  out << tensors.size() << ' ';
  for (const auto& [id, tensor] : tensors) {
    out << id << ' ' << static_cast<int>(tensor.dtype) << ' ' << tensor.is_virtual << ' '
        << tensor.is_by_value << ' ';
    Write(out, tensor.dimensions);
    Write(out, tensor.strides);
  }
  out << operations.size() << ' ';
  for (const FakeOperation& it : operations) {
    out << static_cast<int>(it.kind) << ' ' << it.x << ' ' << it.other << ' ' << it.y << ' ';
    for (const Ints* values : {&it.strides, &it.dilations, &it.pads_begin, &it.pads_end})
      Write(out, *values);
  }
  return out.str();
}

absl::StatusOr<FakeOperations> FakeOperations::Parse(const std::string& text) {
  std::istringstream in(text);
  FakeOperations result;
  size_t count = 0;
  in >> count;
  for (; in && count > 0; --count) {
    FakeTensor tensor;
    int dtype = 0;
    in >> tensor.id >> dtype >> tensor.is_virtual >> tensor.is_by_value;
    tensor.dtype = static_cast<DType>(dtype);
    tensor.dimensions = Read(in);
    tensor.strides = Read(in);
    result.tensors[tensor.id] = tensor;
  }
  in >> count;
  for (; in && count > 0; --count) {
    FakeOperation it;
    int kind = 0;
    in >> kind >> it.x >> it.other >> it.y;
    it.kind = static_cast<FakeKind>(kind);
    for (Ints* values : {&it.strides, &it.dilations, &it.pads_begin, &it.pads_end})
      *values = Read(in);
    result.operations.push_back(it);
  }
  if (!in || result.operations.empty()) return InvalidInput("no operations: ", text);
  return result;
}

absl::Status FakeOperations::Run(const std::function<std::byte*(int64_t id)>& memory,
                                 bool tf32) const {
  GraphBuilder builder;
  std::map<int64_t, ValueId> values;
  std::vector<HostValue> inputs;
  const auto value = [&](int64_t id) {
    if (const auto known = values.find(id); known != values.end()) return known->second;
    const FakeTensor& tensor = tensors.at(id);
    inputs.push_back(Loaded(tensor, memory(id)));
    if (tf32 && IsMultiplied(id)) RoundToTf32(inputs.back());
    // The operations of an attention are all in f32.
    if (operations[0].kind == FakeKind::kMatMul) inputs.back().type.dtype = DType::kF32;
    return values[id] = builder.Input(Cat("t", id), inputs.back().type);
  };
  for (const FakeOperation& it : operations) {
    std::vector<ValueId> read;
    for (const int64_t id : {it.x, it.other}) {
      if (id != 0) read.push_back(value(id));
    }
    const bool convolves = it.kind == FakeKind::kConvolution || it.kind == FakeKind::kBackwardData;
    const Attributes attrs =
        convolves ? Geometry(it, tensors.at(it.x), tensors.at(it.other), tensors.at(it.y))
                  : Attributes();
    MENDEL_ASSIGN_OR_RETURN(values[it.y], Meaning(builder, it.kind, read, attrs));
    if (builder.type(values[it.y]).shape != tensors.at(it.y).dimensions)
      return InvalidInput("the result has another shape");
  }
  std::vector<int64_t> stored;
  for (const FakeOperation& it : operations) {
    if (tensors.at(it.y).is_virtual) continue;
    stored.push_back(it.y);
    builder.Output(Cat("y", it.y), values.at(it.y));
  }
  MENDEL_ASSIGN_OR_RETURN(const Graph graph, builder.Build());
  MENDEL_ASSIGN_OR_RETURN(const std::vector<HostValue> results, Evaluate(graph, inputs));
  for (size_t k = 0; k < stored.size(); ++k)
    Store(tensors.at(stored[k]), results[k], memory(stored[k]));
  return absl::OkStatus();
}

}  // namespace mendel::cuda
