#include "kernels/cuda/backend/memory_formats.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "kernels/cuda/backend/format_choice.h"
#include "kernels/cuda/fusion/operator_text.h"

namespace mendel::cuda {
namespace {

constexpr size_t kReadersOfViews = 2;  // of a value, each of whose views converts it on its own

/// The permutation from the graph's order to channels last, or back.
Ints Permutation(size_t rank, bool back) {
  Ints perm(rank, 0);
  for (size_t d = 1; d < rank; ++d) {
    const size_t last = d + 1 < rank ? d + 1 : 1;
    perm[back ? last : d] = static_cast<int64_t>(back ? d : last);
  }
  return perm;
}

class Former {
 public:
  Former(const Graph& graph, std::vector<LibraryGroup> calls, const std::vector<bool>& elsewhere)
      : graph_(graph),
        calls_(std::move(calls)),
        elsewhere_(elsewhere),
        choice_(ChooseForms(graph, calls_, elsewhere)) {}

  absl::StatusOr<FormedGraph> Run() {
    std::vector<LibraryGroup> formed;
    for (int32_t id = 0; id < static_cast<int32_t>(graph_.nodes().size()); ++id) {
      MENDEL_RETURN_IF_ERROR(Copy(id));
      const int call = choice_.call_of[static_cast<size_t>(id)];
      if (call < 0 || calls_[static_cast<size_t>(call)].result.node != id) continue;
      MENDEL_ASSIGN_OR_RETURN(LibraryGroup group, Finished(calls_[static_cast<size_t>(call)]));
      formed.push_back(std::move(group));
    }
    for (const GraphOutput& output : graph_.outputs()) {
      MENDEL_ASSIGN_OR_RETURN(const ValueId value, Plain(output.value));
      builder_.Output(output.name, value);
    }
    MENDEL_ASSIGN_OR_RETURN(Graph graph, builder_.Build());
    // Every node that is made has a reader, so that the builder's numbers hold.
    if (graph.nodes().size() != origins_.size())
      return InternalError("stored forms left ", origins_.size(), " nodes, not all read");
    return FormedGraph{std::move(graph), std::move(formed), std::move(origins_)};
  }

 private:
  const TensorType& TypeOf(ValueId value) const { return graph_.type(value); }

  FormRole Role(int32_t id) const { return choice_.roles[static_cast<size_t>(id)]; }

  absl::Status Copy(int32_t id) {
    const Node& node = graph_.node(id);
    if (IsInput(node)) {
      plain_[{id, 0}] = builder_.Input(InputName(node), node.outputs[0]);
      Note(plain_[{id, 0}].node, {id});
      return absl::OkStatus();
    }
    const MemoryFormat form = {choice_.channels_last[static_cast<size_t>(id)],
                               choice_.rounded[static_cast<size_t>(id)]};
    if (!form.IsOwn() && Role(id) == FormRole::kMove) return CopyMove(id, form);
    if (!form.IsOwn() && Role(id) == FormRole::kTurned) return CopyTurned(id, form);
    const bool last = form.channels_last;
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      const bool turned = last && NumElements(TypeOf(input)) != 1;
      const bool spread = turned && TypeOf(input).shape.size() != node.outputs[0].shape.size();
      if (!spread && WidensAsItReads(id, input)) {
        MENDEL_ASSIGN_OR_RETURN(inputs.emplace_back(), Widened(input, turned));
      } else if (turned) {
        MENDEL_ASSIGN_OR_RETURN(inputs.emplace_back(),
                                ChannelsLast(input, node.outputs[0].shape.size()));
      } else {
        MENDEL_ASSIGN_OR_RETURN(inputs.emplace_back(), InputOf(id, i));
      }
    }
    MENDEL_ASSIGN_OR_RETURN(const int32_t copy, builder_.CopyNode(node, std::move(inputs)));
    Note(copy, {id});
    for (int32_t k = 0; k < static_cast<int32_t>(node.outputs.size()); ++k) {
      if (last) {
        last_[{{id, k}, node.outputs[0].shape.size()}] = {copy, k};
      } else {
        plain_[{id, k}] = {copy, k};
      }
    }
    return absl::OkStatus();
  }

  /// Copies a move in the form of its inputs, along the dimensions where these lie.
  absl::Status CopyMove(int32_t id, const MemoryFormat& form) {
    const Node& node = graph_.node(id);
    const size_t rank = node.outputs[0].shape.size();
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs) {
      if (!form.rounded.has_value() && WidensAsItReads(id, input)) {
        MENDEL_ASSIGN_OR_RETURN(inputs.emplace_back(), Widened(input, true));
      } else {
        MENDEL_ASSIGN_OR_RETURN(inputs.emplace_back(), Formed(input, form));
      }
    }
    Attributes attrs = node.attrs;
    if (form.channels_last) {
      const auto& permuted = FindOperatorText(node.op->name)->move.permuted;
      attrs = WithView(graph_, id, [&](const NodeView& view) {
        return permuted(view, Permutation(rank, false));
      });
    }
    MENDEL_ASSIGN_OR_RETURN(const int32_t copy, builder_.AddNode(node.op->name, std::move(inputs),
                                                                 std::move(attrs), node.name));
    Note(copy, {id});
    for (int32_t k = 0; k < static_cast<int32_t>(node.outputs.size()); ++k)
      Leave({id, k}, form, {copy, k});
    return absl::OkStatus();
  }

  /// Copies a pool or BatchNormalization in the form of its input. With the channels last, it
  /// stands between two Transposes of its own, all one kernel.
  absl::Status CopyTurned(int32_t id, const MemoryFormat& form) {
    const Node& node = graph_.node(id);
    const ValueId input = node.inputs[0];
    ValueId from;
    if (!form.rounded.has_value() && left_.count(input) != 0 && choice_.whole.count(input) == 0) {
      MENDEL_ASSIGN_OR_RETURN(from, Widened(input, false));
    } else {
      MENDEL_ASSIGN_OR_RETURN(from, Formed(input, form));
      if (form.channels_last) {
        MENDEL_ASSIGN_OR_RETURN(from, Transposed(from, input, true));
      }
    }
    std::vector<ValueId> inputs = {from};
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      MENDEL_ASSIGN_OR_RETURN(inputs.emplace_back(), Plain(node.inputs[i]));
    }
    MENDEL_ASSIGN_OR_RETURN(const int32_t copy, builder_.CopyNode(node, std::move(inputs)));
    Note(copy, {id});
    const ValueId result = {id, 0};
    ValueId made = {copy, 0};
    if (form.channels_last) {
      MENDEL_ASSIGN_OR_RETURN(made, Transposed(made, result, false));
    }
    Leave(result, form, made);
    return absl::OkStatus();
  }

  /// Notes that `made`, `value` in the form, is the only copy so far.
  void Leave(ValueId value, const MemoryFormat& form, ValueId made) {
    if (form.rounded.has_value()) {
      left_[value] = {form, made};
      rounded_[{value, form}] = made;
    } else if (form.channels_last) {
      last_[{value, TypeOf(value).shape.size()}] = made;
    }
  }

  /// Operands of `call` in the order in which input `i` of the node may be one of them. The first
  /// two are those of the node whose call it is or of views before it. The others follow it in
  /// their order, but views of theirs may come before it.
  static std::vector<size_t> OperandOrderFor(const LibraryGroup& call, int32_t id, size_t i) {
    std::vector<size_t> operands(call.forms.size());
    std::iota(operands.begin(), operands.end(), 0);
    const bool is_own = id == call.node && i < 2;
    const bool multiplied = id < call.node || is_own;
    const size_t first = std::min(is_own ? i : (multiplied ? 0 : 2), operands.size());
    std::rotate(operands.begin(), operands.begin() + static_cast<std::ptrdiff_t>(first),
                operands.end());
    return operands;
  }

  /// A node's input. What its call reads in another form is converted back, so that the graph means
  /// what the call computes.
  absl::StatusOr<ValueId> InputOf(int32_t id, size_t i) {
    const ValueId input = graph_.node(id).inputs[i];
    const int c = choice_.call_of[static_cast<size_t>(id)];
    if (c < 0 || choice_.call_of[static_cast<size_t>(input.node)] == c) return Plain(input);
    const LibraryGroup& call = calls_[static_cast<size_t>(c)];
    for (const size_t k : OperandOrderFor(call, id, i)) {
      if (call.operands[k].value != input || !read_.insert({c, k}).second) continue;
      if (call.forms[k].IsOwn()) return Plain(input);
      MENDEL_ASSIGN_OR_RETURN(ValueId value, Formed(input, call.forms[k]));
      std::set<int32_t>& added = added_[c];
      if (call.forms[k].rounded.has_value()) {
        MENDEL_ASSIGN_OR_RETURN(value, Rounded(value, TypeOf(input).dtype, input));
        added.insert(value.node);
      }
      if (call.forms[k].channels_last) {
        MENDEL_ASSIGN_OR_RETURN(value, Transposed(value, input, true));
        added.insert(value.node);
      }
      return value;
    }
    return Plain(input);
  }

  /// Completes `call`, all of whose nodes have been copied.
  absl::StatusOr<LibraryGroup> Finished(const LibraryGroup& call) {
    LibraryGroup formed = call;
    formed.nodes = added_[choice_.call_of[static_cast<size_t>(call.result.node)]];
    for (const int32_t member : call.nodes) formed.nodes.insert(plain_.at({member, 0}).node);
    formed.node = plain_.at({call.node, 0}).node;
    formed.result = plain_.at(call.result);
    if (call.result_form.rounded.has_value()) {
      MENDEL_ASSIGN_OR_RETURN(formed.result,
                              Rounded(formed.result, *call.result_form.rounded, call.result));
      formed.nodes.insert(formed.result.node);
    }
    if (call.result_form.channels_last) {
      MENDEL_ASSIGN_OR_RETURN(formed.result, Transposed(formed.result, call.result, false));
      formed.nodes.insert(formed.result.node);
    }
    if (!call.result_form.IsOwn()) plain_.erase(call.result);  // nobody but the call has it
    Leave(call.result, call.result_form, formed.result);
    for (size_t k = 0; k < call.operands.size(); ++k) {
      KernelOperand& operand = formed.operands[k];
      if (operand.value.node < 0) continue;
      const MemoryFormat form = call.forms.empty() ? MemoryFormat() : call.forms[k];
      MENDEL_ASSIGN_OR_RETURN(operand.value, Formed(operand.value, form));
      operand.dtype = form.rounded.value_or(operand.dtype);
    }
    for (KernelOperand& operand : formed.finish.operands) {
      if (operand.value.node < 0) continue;
      MENDEL_ASSIGN_OR_RETURN(operand.value, Plain(operand.value));
    }
    formed.forms.clear();
    formed.result_form = {};
    return formed;
  }

  absl::StatusOr<ValueId> Formed(ValueId value, const MemoryFormat& form) {
    if (const auto known = rounded_.find({value, form}); known != rounded_.end())
      return known->second;
    if (const auto left = left_.find(value);
        left != left_.end() && left->second.first.rounded == form.rounded) {
      MENDEL_ASSIGN_OR_RETURN(const ValueId turned,
                              Transposed(left->second.second, value, !form.channels_last));
      return rounded_[{value, form}] = turned;
    }
    ValueId base;
    if (form.channels_last) {
      MENDEL_ASSIGN_OR_RETURN(base, ChannelsLast(value, TypeOf(value).shape.size()));
    } else {
      MENDEL_ASSIGN_OR_RETURN(base, Plain(value));
    }
    if (!form.rounded.has_value()) return base;
    MENDEL_ASSIGN_OR_RETURN(const ValueId rounded, Rounded(base, *form.rounded, value));
    return rounded_[{value, form}] = rounded;
  }

  /// True where a call has left `input` rounded and `id` converts it as it reads it. That costs
  /// less than another value in memory. Other readers share one conversion: calls, views with
  /// several readers, and kernels that read an element several times (broadcasts, row operators but
  /// for their rows). So do all readers of a value that a call reads in its own dtype. So do views
  /// of values with many readers; but moves read values as they lie.
  bool WidensAsItReads(int32_t id, ValueId input) const {
    const size_t k = static_cast<size_t>(id);
    if (left_.count(input) == 0 || choice_.whole.count(input) != 0 || elsewhere_[k] ||
        choice_.call_of[k] >= 0)
      return false;
    if (choice_.roles[k] == FormRole::kMove) return true;
    const Node& node = graph_.node(id);
    const OperatorText* text = FindOperatorText(node.op->name);
    if (text == nullptr) return false;
    if (text->windowed) return !left_.at(input).first.channels_last;
    if (text->is_row())
      return node.inputs[0] == input &&
             std::count(node.inputs.begin(), node.inputs.end(), input) == 1;
    if (text->reads == Reads::kMany ||
        (!text->once && NumElements(node.outputs[0]) > NumElements(TypeOf(input))))
      return false;
    if (text->reads == Reads::kAtPosition) return true;
    return graph_.users(input.node).size() <= kReadersOfViews && LeadsToOneReader(id);
  }

  /// True where one node reads the view `id`, directly or through other views.
  bool LeadsToOneReader(int32_t id) const {
    for (;;) {
      const std::vector<int32_t>& users = graph_.users(id);
      if (users.size() + (graph_.IsOutput(id) ? 1 : 0) != 1) return false;
      const OperatorText* text =
          users.empty() ? nullptr : FindOperatorText(graph_.node(users[0]).op->name);
      if (text == nullptr || text->reads != Reads::kMoved) return true;
      id = users[0];
    }
  }

  /// The value that a call has left rounded, in the value's own dtype again. `channels_last`: in
  /// the value's own rank.
  absl::StatusOr<ValueId> Widened(ValueId value, bool channels_last) {
    const auto& [form, from] = left_.at(value);
    MENDEL_ASSIGN_OR_RETURN(const ValueId wide, Rounded(from, TypeOf(value).dtype, value));
    return form.channels_last == channels_last ? wide : Transposed(wide, value, form.channels_last);
  }

  absl::StatusOr<ValueId> Plain(ValueId value) {
    if (const auto known = plain_.find(value); known != plain_.end()) return known->second;
    if (left_.count(value) != 0 && last_.count({value, TypeOf(value).shape.size()}) == 0) {
      MENDEL_ASSIGN_OR_RETURN(const ValueId wide, Widened(value, false));
      return plain_[value] = wide;
    }
    MENDEL_ASSIGN_OR_RETURN(const ValueId plain,
                            Transposed(last_.at({value, TypeOf(value).shape.size()}), value, true));
    return plain_[value] = plain;
  }

  /// The value, channels last, as an operand of `rank` dimensions to which it may be broadcast.
  absl::StatusOr<ValueId> ChannelsLast(ValueId value, size_t rank) {
    if (const auto known = last_.find({value, rank}); known != last_.end()) return known->second;
    if (left_.count(value) != 0 && plain_.count(value) == 0 && TypeOf(value).shape.size() == rank) {
      MENDEL_ASSIGN_OR_RETURN(const ValueId wide, Widened(value, true));
      return last_[{value, rank}] = wide;
    }
    MENDEL_ASSIGN_OR_RETURN(ValueId from, Plain(value));
    Shape shape = TypeOf(value).shape;
    if (shape.size() < rank) {
      shape.insert(shape.begin(), rank - shape.size(), 1);
      MENDEL_ASSIGN_OR_RETURN(from, Convert("Reshape", from, {{"shape", shape}}, value));
    }
    MENDEL_ASSIGN_OR_RETURN(const ValueId last, Transposed(from, value, false));
    return last_[{value, rank}] = last;
  }

  absl::StatusOr<ValueId> Rounded(ValueId from, DType to, ValueId of) {
    return Convert("Cast", from, {{"to", std::string(DTypeName(to))}}, of);
  }
  absl::StatusOr<ValueId> Transposed(ValueId from, ValueId of, bool back) {
    return Convert("Transpose", from,
                   {{"perm", Permutation(builder_.type(from).shape.size(), back)}}, of);
  }
  absl::StatusOr<ValueId> Convert(std::string_view op, ValueId from, Attributes attrs, ValueId of) {
    MENDEL_ASSIGN_OR_RETURN(const ValueId value, builder_.Add(op, {from}, std::move(attrs)));
    const std::set<int32_t>& asking = choice_.asking[of];
    Note(value.node, {of.node, true, {asking.begin(), asking.end()}});
    return value;
  }
  void Note(int32_t made, NodeOrigin origin) {
    if (static_cast<size_t>(made) >= origins_.size())
      origins_.resize(static_cast<size_t>(made) + 1);
    origins_[static_cast<size_t>(made)] = std::move(origin);
  }

  const Graph& graph_;
  const std::vector<LibraryGroup> calls_;
  const std::vector<bool>& elsewhere_;
  FormatChoice choice_;
  GraphBuilder builder_;
  std::vector<NodeOrigin> origins_;
  std::map<ValueId, ValueId> plain_;
  std::map<std::pair<ValueId, size_t>, ValueId> last_;  // by value and rank
  std::map<std::pair<ValueId, MemoryFormat>, ValueId> rounded_;
  std::map<ValueId, std::pair<MemoryFormat, ValueId>>
      left_;                               // rounded results of calls, and what is moved of them
  std::set<std::pair<int, size_t>> read_;  // operands of calls that have been met
  std::map<int, std::set<int32_t>>
      added_;  // nodes between converted operands and a call's own nodes
};

}  // namespace

bool HaveForms(const std::vector<LibraryGroup>& calls) {
  return std::any_of(calls.begin(), calls.end(), [](const LibraryGroup& call) {
    return !call.result_form.IsOwn() ||
           std::any_of(call.forms.begin(), call.forms.end(),
                       [](const MemoryFormat& form) { return !form.IsOwn(); });
  });
}

absl::StatusOr<FormedGraph> WithMemoryFormats(const Graph& graph, std::vector<LibraryGroup> calls,
                                              const std::vector<bool>& elsewhere) {
  return Former(graph, std::move(calls), elsewhere).Run();
}

}  // namespace mendel::cuda
