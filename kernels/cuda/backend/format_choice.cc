#include "kernels/cuda/backend/format_choice.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/fusion/operator_text.h"

namespace mendel::cuda {
namespace {

constexpr size_t kLeastRank = 3, kMostRank = 5;  // of what may lie with the channels last

bool HasChannels(const Node& node) {
  const size_t rank = node.outputs[0].shape.size();
  return rank >= kLeastRank && rank <= kMostRank;
}

class Choosing {
 public:
  Choosing(const Graph& graph, const std::vector<LibraryGroup>& calls,
           const std::vector<bool>& elsewhere)
      : graph_(graph), calls_(calls), read_alike_(graph.nodes().size()) {
    const size_t count = graph.nodes().size();
    choice_ = {std::vector<int>(count, -1), std::vector<FormRole>(count, FormRole::kNone),
               std::vector<bool>(count, false), std::vector<std::optional<DType>>(count)};
    for (size_t c = 0; c < calls_.size(); ++c) {
      for (const int32_t member : calls_[c].nodes)
        choice_.call_of[static_cast<size_t>(member)] = static_cast<int>(c);
    }
    for (size_t k = 0; k < count; ++k) {
      if (!elsewhere[k] && choice_.call_of[k] < 0)
        choice_.roles[k] = FormRoleOf(graph_.node(static_cast<int32_t>(k)));
    }
  }

  FormatChoice Run() {
    NoteCalls();
    for (int32_t id = Count(); id-- > 0;)
      read_alike_[static_cast<size_t>(id)] = FormatOfReaders(id);
    std::vector<bool> wanted(graph_.nodes().size(), false);
    for (int32_t id = Count(); id-- > 0;) wanted[static_cast<size_t>(id)] = IsWanted(id, wanted);
    for (int32_t id = 0; id < Count(); ++id) {
      const size_t k = static_cast<size_t>(id);
      const std::vector<ValueId>& inputs = graph_.node(id).inputs;
      choice_.channels_last[k] = wanted[k] && MayLieLast(id) &&
                                 std::any_of(inputs.begin(), inputs.end(), [&](ValueId input) {
                                   return last_.count(input) != 0 && TakesFormOf(id, input);
                                 });
      choice_.rounded[k] = FormatOfMove(id);
      for (const ValueId value : ValuesOf(id)) {
        if (choice_.channels_last[k]) last_.insert(value);
        if (choice_.rounded[k].has_value()) rounded_[value] = *choice_.rounded[k];
      }
      if (choice_.channels_last[k] || choice_.rounded[k].has_value()) RequestAsOperandsDo(id);
    }
    return std::move(choice_);
  }

 private:
  int32_t Count() const { return static_cast<int32_t>(graph_.nodes().size()); }
  FormRole Role(int32_t id) const { return choice_.roles[static_cast<size_t>(id)]; }
  bool MayLieLast(int32_t id) const {
    return Role(id) != FormRole::kNone && HasChannels(graph_.node(id));
  }
  std::vector<ValueId> ValuesOf(int32_t id) const {
    std::vector<ValueId> values;
    for (int32_t k = 0; k < static_cast<int32_t>(graph_.node(id).outputs.size()); ++k)
      values.push_back({id, k});
    return values;
  }

  void NoteCalls() {
    for (const LibraryGroup& call : calls_) {
      if (call.result_form.channels_last) last_.insert(call.result);
      if (call.result_form.rounded.has_value()) rounded_[call.result] = *call.result_form.rounded;
      if (!call.result_form.IsOwn()) choice_.asking[call.result].insert(call.node);
      for (size_t k = 0; k < call.operands.size(); ++k) {
        const MemoryFormat form = call.forms.empty() ? MemoryFormat() : call.forms[k];
        const ValueId value = call.operands[k].value;
        if (!form.rounded.has_value()) choice_.whole.insert(value);
        if (!form.IsOwn()) choice_.asking[value].insert(call.node);
        if (form.channels_last) read_last_.insert(value);
      }
      for (const KernelOperand& operand : call.finish.operands) choice_.whole.insert(operand.value);
    }
  }

  /// True where `id`, which may take another layout, has it whenever `input` has it.
  bool TakesFormOf(int32_t id, ValueId input) const {
    if (Role(id) == FormRole::kElementwise)
      return graph_.type(input).shape == graph_.node(id).outputs[0].shape;
    return Role(id) == FormRole::kMove || graph_.node(id).inputs[0] == input;
  }
  bool IsWanted(int32_t id, const std::vector<bool>& wanted) const {
    const std::vector<ValueId> values = ValuesOf(id);
    const std::vector<int32_t>& users = graph_.users(id);
    return std::any_of(values.begin(), values.end(),
                       [&](ValueId value) { return read_last_.count(value) != 0; }) ||
           std::any_of(users.begin(), users.end(), [&](int32_t user) {
             const std::vector<ValueId>& inputs = graph_.node(user).inputs;
             return wanted[static_cast<size_t>(user)] && MayLieLast(user) &&
                    std::any_of(inputs.begin(), inputs.end(), [&](ValueId input) {
                      return input.node == id && TakesFormOf(user, input);
                    });
           });
  }

  bool MovesOrChooses(int32_t id) const {
    return Role(id) == FormRole::kMove ||
           (Role(id) == FormRole::kTurned && FindOperatorText(graph_.node(id).op->name)->chooses);
  }
  /// The format in which all readers take the node's values, rounded for calls; none where any of
  /// them reads more bits.
  std::optional<DType> FormatOfReaders(int32_t id) const {
    const std::vector<ValueId> values = ValuesOf(id);
    const std::vector<int32_t>& users = graph_.users(id);
    if (graph_.IsOutput(id) || users.empty()) return std::nullopt;
    if (std::any_of(values.begin(), values.end(),
                    [&](ValueId value) { return choice_.whole.count(value) != 0; }))
      return std::nullopt;
    std::optional<DType> all;
    for (const int32_t user : users) {
      const int c = choice_.call_of[static_cast<size_t>(user)];
      const auto format = c >= 0 ? FormatRead(calls_[static_cast<size_t>(c)], id)
                                 : read_alike_[static_cast<size_t>(user)];
      if (!format.has_value() || (c < 0 && !MovesOrChooses(user)) ||
          (all.has_value() && all != format))
        return std::nullopt;
      all = format;
    }
    return all;
  }
  /// The format in which the call reads values of the node.
  static std::optional<DType> FormatRead(const LibraryGroup& call, int32_t id) {
    for (size_t k = 0; k < call.forms.size(); ++k) {
      if (call.operands[k].value.node == id) return call.forms[k].rounded;
    }
    return std::nullopt;
  }

  /// The format in which a move, or a pool that chooses, is computed.
  std::optional<DType> FormatOfMove(int32_t id) const {
    if (!MovesOrChooses(id)) return std::nullopt;
    const std::vector<ValueId>& inputs = graph_.node(id).inputs;
    if (const auto known = rounded_.find(inputs[0]); known != rounded_.end()) {
      const DType format = known->second;
      const bool all = std::all_of(inputs.begin(), inputs.end(),
                                   [&](ValueId input) { return IsRounded(input, format); });
      if (all && FillsWith(id, format)) return format;
    }
    const std::optional<DType> format = read_alike_[static_cast<size_t>(id)];
    const bool cheap =
        format.has_value() && std::all_of(inputs.begin(), inputs.end(), [&](ValueId input) {
          return IsRounded(input, *format) || IsRoundedAsComputed(input);
        });
    return cheap ? format : std::nullopt;
  }
  bool IsRounded(ValueId value, DType format) const {
    const auto known = rounded_.find(value);
    return known != rounded_.end() && known->second == format;
  }
  /// True where the value can be rounded as it is computed: it is a constant, stored rounded once,
  /// or it has one reader.
  bool IsRoundedAsComputed(ValueId value) const {
    const Node& node = graph_.node(value.node);
    if (IsConstant(node)) return true;
    return Role(value.node) != FormRole::kNone && graph_.OnlyUser(value.node) >= 0;
  }
  /// True where the format represents the number that the node fills with.
  bool FillsWith(int32_t id, DType format) const {
    const auto& fills = FindOperatorText(graph_.node(id).op->name)->move.fills;
    if (fills == nullptr) return true;
    const double number = WithView(graph_, id, fills);
    return Tensor::FromDoubles({format, {}}, std::vector<double>{number}).DoubleAt(0) == number;
  }

  /// Conversions around a node in another form than its own count as requested by the calls that
  /// cause that form.
  void RequestAsOperandsDo(int32_t id) {
    std::set<int32_t> all;
    const auto gather = [&](ValueId value) {
      const std::set<int32_t>& more = choice_.asking[value];
      all.insert(more.begin(), more.end());
    };
    const std::vector<ValueId> values = ValuesOf(id);
    std::for_each(values.begin(), values.end(), gather);
    std::for_each(graph_.node(id).inputs.begin(), graph_.node(id).inputs.end(), gather);
    for (const ValueId input : graph_.node(id).inputs)
      choice_.asking[input].insert(all.begin(), all.end());
    for (const ValueId value : values) choice_.asking[value] = all;
  }

  const Graph& graph_;
  const std::vector<LibraryGroup>& calls_;
  FormatChoice choice_;
  std::vector<std::optional<DType>> read_alike_;  // by node, see FormatOfReaders
  std::set<ValueId> read_last_,
      last_;  // values that calls read with the channels last, and those that lie so
  std::map<ValueId, DType> rounded_;  // values that lie in a smaller format
};

}  // namespace

FormRole FormRoleOf(const Node& node) {
  const OperatorText* text =
      IsInput(node) || IsConstant(node) ? nullptr : FindOperatorText(node.op->name);
  if (text == nullptr) return FormRole::kNone;
  if (text->move.permuted != nullptr) return FormRole::kMove;
  if (node.outputs.size() != 1) return FormRole::kNone;
  if (text->windowed || text->by_channel)
    return HasChannels(node) ? FormRole::kTurned : FormRole::kNone;
  if (text->reads != Reads::kAtPosition || text->is_row()) return FormRole::kNone;
  return FormRole::kElementwise;
}

FormatChoice ChooseForms(const Graph& graph, const std::vector<LibraryGroup>& calls,
                         const std::vector<bool>& elsewhere) {
  return Choosing(graph, calls, elsewhere).Run();
}

}  // namespace mendel::cuda
