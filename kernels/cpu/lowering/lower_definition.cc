// Operators without a kernel of their own, by the operator's definition.

#include <cstring>
#include <utility>

#include "graph/evaluate.h"
#include "kernels/cpu/lowering/lower.h"

namespace mendel::cpu {
namespace {

/// Converts operands to doubles or exact integers, evaluates, rounds into the output's dtype.
/// Allocates.
class DefinitionKernel : public Kernel {
 public:
  DefinitionKernel(const Node& node, std::vector<TensorType> inputs,
                   std::vector<std::optional<HostValue>> constants, std::vector<Place> from,
                   std::vector<Place> to)
      : op_(node.op),
        attrs_(node.attrs),
        inputs_(std::move(inputs)),
        outputs_(node.outputs),
        constants_(std::move(constants)),
        from_(std::move(from)),
        to_(std::move(to)) {}

  absl::Status Run(const Bindings& bindings) override {
    std::vector<HostValue> operands(inputs_.size());
    std::vector<const HostValue*> pointers;
    for (size_t k = 0; k < inputs_.size(); ++k) {
      if (constants_[k].has_value()) {
        pointers.push_back(&*constants_[k]);
        continue;
      }
      const std::span<const std::byte> bytes(bindings.Address(from_[k]),
                                             static_cast<size_t>(ByteSize(inputs_[k])));
      operands[k] = HostValue::FromTensor(Tensor(inputs_[k], bytes, nullptr));
      pointers.push_back(&operands[k]);
    }
    const std::vector<HostValue> results =
        EvaluateNode(*op_, NodeView{inputs_, attrs_, outputs_}, pointers);
    for (size_t k = 0; k < results.size(); ++k) {
      const Tensor tensor = results[k].ToTensor();
      if (!tensor.bytes().empty())
        std::memcpy(bindings.Address(to_[k]), tensor.bytes().data(), tensor.bytes().size());
    }
    return absl::OkStatus();
  }

 private:
  const OpDefinition* op_;
  Attributes attrs_;
  std::vector<TensorType> inputs_;
  std::vector<TensorType> outputs_;
  std::vector<std::optional<HostValue>> constants_;
  std::vector<Place> from_;
  std::vector<Place> to_;
};

}  // namespace

absl::Status LowerDefinition(Lowering& lowering, int32_t id) {
  const Node& node = lowering.graph().node(id);
  std::vector<std::optional<HostValue>> constants;
  std::vector<Place> from, to, touched;
  for (ValueId input : node.inputs) {
    if (lowering.folded().IsConstant(input)) {
      constants.push_back(HostValue::FromTensor(lowering.folded().Rounded(input)));
      from.emplace_back();
    } else {
      constants.emplace_back();
      from.push_back(lowering.Plain(input));
      touched.push_back(from.back());
    }
  }
  for (size_t k = 0; k < node.outputs.size(); ++k) {
    to.push_back(
        lowering.Allocate({id, static_cast<int32_t>(k)}, PlainLayout(node.outputs[k].shape)));
    touched.push_back(to.back());
  }
  auto kernel = std::make_unique<DefinitionKernel>(node, lowering.graph().InputTypes(id),
                                                   std::move(constants), from, to);
  lowering.Emit({id}, "definition", std::move(kernel), touched);
  return absl::OkStatus();
}

}  // namespace mendel::cpu
