#include "kernels/cpu/lowering/fuse.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "kernels/cpu/lowering/code_function.h"
#include "kernels/cpu/lowering/decomposed_activation.h"
#include "kernels/cpu/lowering/integer_product.h"
#include "kernels/cpu/lowering/lower.h"

namespace mendel::cpu {
namespace {

using dnnl::algorithm;

bool IsContraction(const Graph& graph, int32_t node) {
  const std::string_view op = graph.node(node).op->name;
  if (op != "Conv" && op != "ConvTranspose" && op != "MatMul") return false;
  const Node& n = graph.node(node);
  if (n.outputs[0].dtype != DType::kF32 || NumElements(n.outputs[0]) == 0) return false;
  const std::vector<TensorType> inputs = graph.InputTypes(node);
  return std::all_of(inputs.begin(), inputs.end(),
                     [](const TensorType& type) { return NumElements(type) > 0; });
}

/// True when a constant of this shape broadcasts along the contraction's channels (dimension 1, or
/// the last of a matrix product) or is a single number.
bool IsPerChannel(const Shape& constant, const Shape& output, size_t channel_dim) {
  if (constant.size() > output.size()) return false;
  const size_t skip = output.size() - constant.size();
  for (size_t d = 0; d < constant.size(); ++d) {
    if (constant[d] != 1 && (d + skip != channel_dim || constant[d] != output[channel_dim]))
      return false;
  }
  return true;
}

/// Grows one contraction's group along its only users.
class ElementwiseChain {
 public:
  ElementwiseChain(const Graph& graph, Folded& folded, const std::vector<int32_t>& owner,
                   int32_t root)
      : graph_(graph), folded_(folded), owner_(owner), value_{root, 0} {
    group_.nodes = {root};
    group_.contraction = true;
    const Node& node = graph.node(root);
    channel_dim_ = node.op->name == "MatMul" ? node.outputs[0].shape.size() - 1 : 1;
    constant_weights_ = folded.IsConstant(node.inputs[1]);
    constant_bias_ = node.inputs.size() < 3 || folded.IsConstant(node.inputs[2]);
  }

  Group Grow() {
    for (std::optional<PostOp> post_op = Next(); post_op.has_value(); post_op = Next()) {
      group_.nodes.insert(group_.nodes.end(), post_op->nodes.begin(), post_op->nodes.end());
      value_ = {post_op->nodes.back(), 0};
      const bool factor =
          post_op->kind == PostOp::Kind::kScale || post_op->kind == PostOp::Kind::kDivide;
      // A summand after a factor that stays outside the weights stays outside the bias.
      if (factor && !(scalable_ && constant_weights_ && constant_bias_)) shiftable_ = false;
      if (post_op->kind == PostOp::Kind::kResidual) scalable_ = false;
      if (post_op->kind == PostOp::Kind::kActivation) scalable_ = shiftable_ = false;
      group_.post_ops.push_back(std::move(*post_op));
    }
    return std::move(group_);
  }

 private:
  std::optional<PostOp> Next() {
    if (graph_.IsOutput(value_.node)) return std::nullopt;
    const std::vector<int32_t>& users = graph_.users(value_.node);
    for (int32_t user : users) {
      if (owner_[static_cast<size_t>(user)] >= 0) return std::nullopt;
    }
    if (users.size() != 1) {
      std::optional<PostOp> swish = users.size() == 2 ? Swish(users[0], users[1]) : std::nullopt;
      return swish.has_value() ? swish : Decomposed();
    }
    const Node& node = graph_.node(users[0]);
    if (std::count(node.inputs.begin(), node.inputs.end(), value_) != 1) return std::nullopt;
    if (node.outputs.size() != 1 || node.outputs[0] != graph_.type(value_)) return std::nullopt;
    if (const std::optional<Activation> activation = ActivationOf(node); activation.has_value()) {
      return PostOp{PostOp::Kind::kActivation, users, {}, *activation};
    }
    if (node.op->name == "BatchNormalization") return Normalize(users[0]);
    return Binary(users[0]);
  }

  std::optional<PostOp> Swish(int32_t sigmoid, int32_t product) const {
    const Node& s = graph_.node(sigmoid);
    const Node& m = graph_.node(product);
    const bool shape = s.op->name == "Sigmoid" && m.op->name == "Mul" && m.inputs.size() == 2 &&
                       graph_.OnlyUser(sigmoid) >= 0;
    const ValueId gate{sigmoid, 0};
    const bool matches = shape && ((m.inputs[0] == value_ && m.inputs[1] == gate) ||
                                   (m.inputs[1] == value_ && m.inputs[0] == gate));
    if (!matches) return std::nullopt;
    return PostOp{
        PostOp::Kind::kActivation, {sigmoid, product}, {}, {algorithm::eltwise_swish, 1, 0}};
  }

  std::optional<PostOp> Decomposed() const {
    const auto spelled = FindDecomposedActivation(graph_, folded_, value_);
    if (!spelled.has_value()) return std::nullopt;
    for (const int32_t node : spelled->nodes) {
      if (owner_[static_cast<size_t>(node)] >= 0) return std::nullopt;
    }
    return PostOp{PostOp::Kind::kActivation, spelled->nodes, {}, {spelled->algorithm, 0, 0}};
  }

  std::optional<PostOp> Normalize(int32_t user) const {
    const Node& node = graph_.node(user);
    if (!scalable_ || !constant_weights_ || !constant_bias_ || channel_dim_ != 1 ||
        node.inputs[0] != value_)
      return std::nullopt;
    for (size_t k = 1; k < node.inputs.size(); ++k) {
      if (!folded_.IsConstant(node.inputs[k])) return std::nullopt;
    }
    return PostOp{PostOp::Kind::kNormalize, {user}, {}, {}};
  }

  std::optional<PostOp> Binary(int32_t user) const {
    const Node& node = graph_.node(user);
    if (node.inputs.size() != 2) return std::nullopt;
    const bool left = node.inputs[0] == value_;
    const ValueId operand = node.inputs[left ? 1 : 0];
    const std::string_view op = node.op->name;
    const bool constant = folded_.IsConstant(operand);
    const Shape& shape = graph_.type(operand).shape;
    const bool per_channel =
        constant && IsPerChannel(shape, graph_.type(value_).shape, channel_dim_);
    if (per_channel) {
      const bool foldable = constant_weights_ && constant_bias_;
      const bool number = NumElements(shape) == 1;
      const bool scale = number || (scalable_ && foldable);
      const bool shift = number || (shiftable_ && constant_bias_);
      if (op == "Mul" && scale) return PostOp{PostOp::Kind::kScale, {user}, operand, {}};
      if (op == "Div" && left && scale) return PostOp{PostOp::Kind::kDivide, {user}, operand, {}};
      if (op == "Add" && shift) return PostOp{PostOp::Kind::kShift, {user}, operand, {}};
      if (op == "Sub" && left && shift) return PostOp{PostOp::Kind::kUnshift, {user}, operand, {}};
      return std::nullopt;
    }
    if (op == "Add" && graph_.type(operand) == graph_.type(value_))
      return PostOp{PostOp::Kind::kResidual, {user}, operand, {}};
    return std::nullopt;
  }

  const Graph& graph_;
  Folded& folded_;
  const std::vector<int32_t>& owner_;
  ValueId value_;
  Group group_;
  size_t channel_dim_ = 1;
  bool constant_weights_ = false;
  bool constant_bias_ = false;
  bool scalable_ = true;   ///< a factor could still go into the weights
  bool shiftable_ = true;  ///< a summand could still go into the bias
};

/// The nodes that read a node's value. Integer products and functions of codes read the codes
/// instead of what is computed from them.
class Readers {
 public:
  Readers(const Graph& graph, const std::vector<int32_t>& owner,
          const std::vector<std::optional<Group>>& groups)
      : graph_(graph), owner_(owner), groups_(groups) {
    for (const std::optional<Group>& group : groups) {
      if (group.has_value()) Add(*group);
    }
  }

  void Add(const Group& group) {
    std::vector<ValueId> operands;
    if (group.integer != nullptr) operands = OperandsOf(*group.integer);
    if (group.function != nullptr) operands = {group.function->source};
    for (const ValueId operand : operands) others_[operand.node].push_back(group.nodes[0]);
  }

  /// The caller visits nodes from last to first, so that later `unread` nodes are known.
  std::vector<int32_t> Of(int32_t id, const std::set<int32_t>& unread) const {
    std::vector<int32_t> readers;
    for (const int32_t user : graph_.users(id)) {
      const int32_t home = owner_[static_cast<size_t>(user)];
      const Group* const group = home >= 0 && groups_[static_cast<size_t>(home)].has_value()
                                     ? &*groups_[static_cast<size_t>(home)]
                                     : nullptr;
      const bool codes =
          group != nullptr && (group->integer != nullptr || group->function != nullptr);
      const bool inside = home == owner_[static_cast<size_t>(id)];
      if (unread.count(user) == 0 && (!codes || inside)) readers.push_back(user);
    }
    if (const auto others = others_.find(id); others != others_.end())
      readers.insert(readers.end(), others->second.begin(), others->second.end());
    return readers;
  }

 private:
  const Graph& graph_;
  const std::vector<int32_t>& owner_;
  const std::vector<std::optional<Group>>& groups_;
  std::map<int32_t, std::vector<int32_t>> others_;
};

/// Elementwise nodes whose only user is an elementwise node of the same shape join its group.
void GroupElementwise(const Graph& graph, Folded& folded, std::vector<int32_t>& owner,
                      std::vector<std::optional<Group>>& groups, std::set<int32_t>& unread) {
  Readers readers(graph, owner, groups);
  const std::map<int32_t, CodeFunction> functions = FindCodeFunctions(graph, folded, owner);
  for (int32_t id = static_cast<int32_t>(graph.nodes().size()) - 1; id >= 0; --id) {
    const std::vector<int32_t> users = readers.Of(id, unread);
    if (users.empty() && !graph.users(id).empty() && !graph.IsOutput(id)) {
      unread.insert(id);
      continue;
    }
    if (owner[static_cast<size_t>(id)] >= 0 || folded.IsConstant({id, 0})) continue;
    if (const auto function = functions.find(id); function != functions.end()) {
      Group group;
      group.nodes = {id};
      group.function = std::make_shared<const CodeFunction>(function->second);
      owner[static_cast<size_t>(id)] = id;
      readers.Add(group);
      groups[static_cast<size_t>(id)] = std::move(group);
      continue;
    }
    if (!IsElementwise(graph, folded, id)) continue;
    int32_t home = id;
    if (!graph.IsOutput(id) && !users.empty()) {
      const int32_t candidate = owner[static_cast<size_t>(users[0])];
      bool joins = candidate >= 0 && groups[static_cast<size_t>(candidate)].has_value() &&
                   !groups[static_cast<size_t>(candidate)]->contraction &&
                   groups[static_cast<size_t>(candidate)]->function == nullptr &&
                   groups[static_cast<size_t>(candidate)]->nodes.size() < 24 &&
                   graph.node(candidate).outputs[0].shape == graph.node(id).outputs[0].shape;
      for (int32_t user : users) joins = joins && owner[static_cast<size_t>(user)] == candidate;
      if (joins) home = candidate;
    }
    owner[static_cast<size_t>(id)] = home;
    if (home == id) groups[static_cast<size_t>(id)] = Group{};
    std::vector<int32_t>& nodes = groups[static_cast<size_t>(home)]->nodes;
    nodes.insert(nodes.begin(), id);
  }
}

}  // namespace

std::optional<Activation> ActivationOf(const Node& node) {
  const std::string_view op = node.op->name;
  const auto value = [&](std::string_view name) {
    return static_cast<float>(node.attrs.Float(name));
  };
  if (op == "Relu") return Activation{algorithm::eltwise_relu, 0, 0};
  if (op == "LeakyRelu") return Activation{algorithm::eltwise_relu, value("alpha"), 0};
  if (op == "Clip") {
    if (value("min") > value("max")) return std::nullopt;  // a constant: oneDNN refuses such bounds
    return Activation{algorithm::eltwise_clip, value("min"), value("max")};
  }
  if (op == "Sigmoid") return Activation{algorithm::eltwise_logistic, 0, 0};
  if (op == "Tanh") return Activation{algorithm::eltwise_tanh, 0, 0};
  if (op == "Elu") return Activation{algorithm::eltwise_elu, value("alpha"), 0};
  if (op == "HardSwish") return Activation{algorithm::eltwise_hardswish, 0, 0};
  if (op == "Gelu") {
    return Activation{node.attrs.Str("approximate") == "tanh" ? algorithm::eltwise_gelu_tanh
                                                              : algorithm::eltwise_gelu_erf,
                      0, 0};
  }
  return std::nullopt;
}

std::vector<std::optional<Group>> FindGroups(const Graph& graph, Folded& folded,
                                             const CompileOptions& options,
                                             std::set<int32_t>& unread) {
  const size_t count = graph.nodes().size();
  std::vector<int32_t> owner(count, -1);  // last node of the group that a node is in
  std::vector<std::optional<Group>> groups(count);
  IntegerOperands operands;
  const auto integers = [&](int32_t id) -> std::shared_ptr<const IntegerProduct> {
    const auto named = options.algorithms.find(id);
    if (named != options.algorithms.end() && !named->second.empty()) return nullptr;
    return FindIntegerProduct(graph, folded, owner, id, Allows(options.numerics, Numerics::kInt8),
                              operands);
  };
  for (int32_t id = 0; id < static_cast<int32_t>(count); ++id) {
    const std::shared_ptr<const IntegerProduct> product = integers(id);
    if (product == nullptr) continue;
    Group group{product->nodes, true, {}};
    group.integer = product;
    const int32_t last = group.nodes.back();
    for (int32_t node : group.nodes) owner[static_cast<size_t>(node)] = last;
    groups[static_cast<size_t>(last)] = std::move(group);
  }
  // Later contractions come first: when two are added, the later one computes the sum, with the
  // earlier one as its residual.
  for (int32_t id = static_cast<int32_t>(count) - 1; id >= 0; --id) {
    if (owner[static_cast<size_t>(id)] >= 0 || folded.IsConstant({id, 0}) ||
        !IsContraction(graph, id))
      continue;
    Group group = ElementwiseChain(graph, folded, owner, id).Grow();
    const int32_t last = group.nodes.back();
    for (int32_t node : group.nodes) owner[static_cast<size_t>(node)] = last;
    groups[static_cast<size_t>(last)] = std::move(group);
  }
  GroupElementwise(graph, folded, owner, groups, unread);
  return groups;
}

}  // namespace mendel::cpu
