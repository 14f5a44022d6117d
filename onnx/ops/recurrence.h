// Common parts of RNN, GRU and LSTM: layouts, directions, biases, and the loop over time.
//
// Short sequences are unrolled into ordinary nodes, so that rules and backends see every step. Long
// ones become one Loop a direction. The input side of all steps is one product in both cases.
//
// Quantized weights (com.microsoft) are codes [directions, columns, gates * hidden] with a scale
// and a zero point a direction or column. The input of all steps is quantized as a whole, the state
// anew in each step, as DynamicQuantizeLinear does it. The products are sums of integers. A
// loop's body cannot divide by the state's range, so that these recurrences are always unrolled.
// The state of the whole batch has one range, as in ONNX Runtime with one thread. With several
// threads, ONNX Runtime quantizes its rows apart, and its results depend on the number of threads.
#ifndef MENDEL_ONNX_OPS_RECURRENCE_H_
#define MENDEL_ONNX_OPS_RECURRENCE_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "onnx/op_context.h"

namespace mendel {

class Recurrence {
 public:
  using Values = std::vector<ValueId>;

  struct Direction {
    int64_t index = 0;
    ValueId recurrent;                       ///< weights [hidden, gates * hidden]
    std::optional<ValueId> recurrent_bias;   ///< [gates * hidden], when the operator adds it itself
    std::optional<ValueId> recurrent_scale;  ///< of quantized weights, [gates * hidden] or a scalar
  };
  /// A step takes its input side [N, gates * hidden] and the state before, each [N, hidden], and
  /// replaces the state. state[0] is the output.
  using Step = std::function<absl::Status(const Direction&, ValueId input, Values& state)>;

  /// `activations`: the defaults of one direction. `quantized`: inputs 8 to 11 are the scales and
  /// zero points of W and R.
  Recurrence(OpContext& op, int64_t gates, std::vector<std::string> activations,
             bool quantized = false)
      : op_(op), gates_(gates), activations_(std::move(activations)), quantized_(quantized) {}

  /// Reads attributes and checks shapes. Unimplemented: clipping, activations with parameters,
  /// sequences of different lengths.
  absl::Status Prepare();
  /// Emits all steps and sets the outputs. `states`: indices of the inputs that hold the first
  /// states. `own_bias`: the step adds the recurrent bias.
  absl::Status Run(const std::vector<int>& states, bool own_bias, const Step& step);

  // For steps. In a loop all values are those of its body.
  bool loops() const { return loop_ != nullptr; }
  absl::StatusOr<ValueId> Activate(ValueId x, const Direction& direction, size_t k);
  absl::StatusOr<ValueId> Emit(std::string_view name, Values inputs);
  /// `count` equal parts along `axis`.
  absl::StatusOr<Values> Parts(ValueId value, int64_t axis, int64_t count);
  /// The first `count` of `of` equal parts along `axis`, as one value.
  absl::StatusOr<ValueId> FirstParts(ValueId value, int64_t axis, int64_t count, int64_t of);
  /// Row `d` of input `k` [directions, columns] as [columns].
  absl::StatusOr<ValueId> Row(int k, int64_t d);
  /// 1 - x.
  absl::StatusOr<ValueId> Complement(ValueId x);
  /// The product of a state with the recurrent weights.
  absl::StatusOr<ValueId> Recurrent(ValueId state, const Direction& direction);

 private:
  /// The body of a loop that is being built.
  struct LoopBuilder {
    GraphBuilder body;
    std::map<ValueId, ValueId> outer;  ///< of values of the body that no step changes
    Values invariants;                 ///< values around the loop
    Values inputs;                     ///< inputs of the body, for them
  };

  absl::StatusOr<Values> Unroll(const Direction& direction, ValueId all, Values state,
                                const Step& step, ValueId& output);
  absl::StatusOr<Values> Loop(const Direction& direction, ValueId all, const Values& state,
                              const Step& step, ValueId& output);
  /// The body's input for a value around the loop.
  ValueId Invariant(ValueId outer);
  const TensorType& TypeOf(ValueId value) const {
    return loops() ? loop_->body.type(value) : op_.type(value);
  }
  /// All outputs of a node of the body, or of one around the loop where no step changes it.
  absl::StatusOr<Values> EmitAll(std::string_view name, Values inputs, Attributes attrs);
  absl::Status CheckShapes() const;
  absl::Status CheckLengths() const;
  absl::Status CheckQuantized() const;
  absl::Status ReadActivations();
  bool Reversed(int64_t d) const { return d == 1 || reverse_first_; }
  /// Weights of direction `d` [columns, gates * hidden]; less their zero point where quantized.
  absl::StatusOr<ValueId> Weights(int k, int64_t d);
  /// Element or row `d` of input `k`, a scale or zero point, in f32.
  absl::StatusOr<ValueId> Parameter(int k, int64_t d);
  absl::StatusOr<ValueId> Number(ValueId like, double element);
  /// `x` quantized, times `weights`, times both scales.
  absl::StatusOr<ValueId> QuantizedProduct(ValueId x, ValueId weights, ValueId scale);
  /// The input side of all steps [T, N, gates * hidden].
  absl::StatusOr<ValueId> Inputs(bool own_bias, Direction& direction);
  absl::StatusOr<ValueId> FirstState(int k, int64_t d);
  absl::StatusOr<ValueId> Joined(Values parts, int64_t axis);
  absl::Status SetOutputs(Values outputs, std::vector<Values> last);

  OpContext& op_;
  const int64_t gates_;
  std::vector<std::string> activations_;
  const bool quantized_;
  int64_t layout_ = 0;  ///< 1: batch first
  bool reverse_first_ = false;
  int64_t directions_ = 1;
  ValueId x_;  ///< [T, N, I]
  int64_t steps_ = 0;
  int64_t batch_ = 0;
  int64_t hidden_ = 0;
  LoopBuilder* loop_ = nullptr;  ///< null: steps are unrolled
};

}  // namespace mendel

#endif  // MENDEL_ONNX_OPS_RECURRENCE_H_
