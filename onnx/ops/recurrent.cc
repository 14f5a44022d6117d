// RNN, GRU, LSTM and DynamicQuantizeLSTM (recurrence.h): one step of each.

#include "onnx/ops/recurrence.h"

namespace mendel::lowerings::recurrent {
namespace {

absl::Status ImportRnn(OpContext& op) {
  Recurrence rnn(op, 1, {"Tanh"});
  MENDEL_RETURN_IF_ERROR(rnn.Prepare());
  return rnn.Run({5}, false,
                 [&](const Recurrence::Direction& direction, ValueId input,
                     Recurrence::Values& state) -> absl::Status {
                   MENDEL_ASSIGN_OR_RETURN(const ValueId recurrent,
                                           rnn.Recurrent(state[0], direction));
                   MENDEL_ASSIGN_OR_RETURN(const ValueId sum, rnn.Emit("Add", {input, recurrent}));
                   MENDEL_ASSIGN_OR_RETURN(state[0], rnn.Activate(sum, direction, 0));
                   return absl::OkStatus();
                 });
}

/// z = f(Xz + H Rz), r = f(Xr + H Rr), h = g(Xh + (r H) Rh) or g(Xh + r (H Rh)), H = (1 - z) h + z
/// H. Gates in the order update, reset, hidden.
class GruStep {
 public:
  GruStep(OpContext& op, Recurrence& gru)
      : gru_(gru), linear_before_reset_(op.Int("linear_before_reset", 0) != 0) {}

  absl::Status operator()(const Recurrence::Direction& direction, ValueId input,
                          Recurrence::Values& state) {
    const ValueId before = state[0];
    MENDEL_ASSIGN_OR_RETURN(const Recurrence::Values x, gru_.Parts(input, 1, 3));
    MENDEL_ASSIGN_OR_RETURN(const Recurrence::Values weights,
                            gru_.Parts(direction.recurrent, 1, 3));
    Recurrence::Values biases;
    if (direction.recurrent_bias.has_value()) {
      MENDEL_ASSIGN_OR_RETURN(biases, gru_.Parts(*direction.recurrent_bias, 0, 3));
    }
    Recurrence::Values sides;
    if (gru_.loops()) {
      MENDEL_ASSIGN_OR_RETURN(sides, OneProduct(direction, before));
    }
    const auto recurrent = [&](ValueId of, size_t gate) -> absl::StatusOr<ValueId> {
      if (gate < sides.size()) return sides[gate];
      MENDEL_ASSIGN_OR_RETURN(const ValueId product, gru_.Emit("MatMul", {of, weights[gate]}));
      return biases.empty() ? product : gru_.Emit("Add", {product, biases[gate]});
    };
    const auto gate = [&](size_t k) -> absl::StatusOr<ValueId> {
      MENDEL_ASSIGN_OR_RETURN(const ValueId side, recurrent(before, k));
      MENDEL_ASSIGN_OR_RETURN(const ValueId sum, gru_.Emit("Add", {x[k], side}));
      return gru_.Activate(sum, direction, 0);
    };
    MENDEL_ASSIGN_OR_RETURN(const ValueId update, gate(0));
    MENDEL_ASSIGN_OR_RETURN(const ValueId reset, gate(1));
    ValueId side;
    if (linear_before_reset_) {
      MENDEL_ASSIGN_OR_RETURN(side, recurrent(before, 2));
      MENDEL_ASSIGN_OR_RETURN(side, gru_.Emit("Mul", {reset, side}));
    } else {
      MENDEL_ASSIGN_OR_RETURN(side, gru_.Emit("Mul", {reset, before}));
      MENDEL_ASSIGN_OR_RETURN(side, recurrent(side, 2));
    }
    MENDEL_ASSIGN_OR_RETURN(const ValueId sum, gru_.Emit("Add", {x[2], side}));
    MENDEL_ASSIGN_OR_RETURN(const ValueId hidden, gru_.Activate(sum, direction, 1));
    MENDEL_ASSIGN_OR_RETURN(const ValueId keep, gru_.Emit("Mul", {update, before}));
    MENDEL_ASSIGN_OR_RETURN(const ValueId rest, gru_.Complement(update));
    MENDEL_ASSIGN_OR_RETURN(const ValueId take, gru_.Emit("Mul", {rest, hidden}));
    MENDEL_ASSIGN_OR_RETURN(state[0], gru_.Emit("Add", {take, keep}));
    return absl::OkStatus();
  }

 private:
  /// The recurrent sides of all gates that read the state as it is, from one product.
  absl::StatusOr<Recurrence::Values> OneProduct(const Recurrence::Direction& direction,
                                                ValueId before) {
    const int64_t gates = linear_before_reset_ ? 3 : 2;
    MENDEL_ASSIGN_OR_RETURN(const ValueId weights,
                            gru_.FirstParts(direction.recurrent, 1, gates, 3));
    MENDEL_ASSIGN_OR_RETURN(ValueId sides, gru_.Emit("MatMul", {before, weights}));
    if (direction.recurrent_bias.has_value()) {
      MENDEL_ASSIGN_OR_RETURN(const ValueId bias,
                              gru_.FirstParts(*direction.recurrent_bias, 0, gates, 3));
      MENDEL_ASSIGN_OR_RETURN(sides, gru_.Emit("Add", {sides, bias}));
    }
    return gru_.Parts(sides, 1, gates);
  }

  Recurrence& gru_;
  const bool linear_before_reset_;
};

absl::Status ImportGru(OpContext& op) {
  Recurrence gru(op, 3, {"Sigmoid", "Tanh"});
  MENDEL_RETURN_IF_ERROR(gru.Prepare());
  return gru.Run({5}, true, GruStep(op, gru));
}

/// C = f C + i c, H = o h(C). Gates in the order input, output, forget, cell; peepholes in the
/// order input, output, forget.
class LstmStep {
 public:
  LstmStep(OpContext& op, Recurrence& lstm)
      : op_(op), lstm_(lstm), coupled_(op.Int("input_forget", 0) != 0) {}

  absl::Status operator()(const Recurrence::Direction& direction, ValueId input,
                          Recurrence::Values& state) {
    MENDEL_ASSIGN_OR_RETURN(const ValueId recurrent, lstm_.Recurrent(state[0], direction));
    MENDEL_ASSIGN_OR_RETURN(const ValueId sum, lstm_.Emit("Add", {input, recurrent}));
    MENDEL_ASSIGN_OR_RETURN(const Recurrence::Values gates, lstm_.Parts(sum, 1, 4));
    MENDEL_ASSIGN_OR_RETURN(const ValueId in, Gate(gates[0], direction, 0, state[1]));
    ValueId forget;
    if (coupled_) {
      MENDEL_ASSIGN_OR_RETURN(forget, lstm_.Complement(in));
    } else {
      MENDEL_ASSIGN_OR_RETURN(forget, Gate(gates[2], direction, 2, state[1]));
    }
    MENDEL_ASSIGN_OR_RETURN(const ValueId candidate, lstm_.Activate(gates[3], direction, 1));
    MENDEL_ASSIGN_OR_RETURN(const ValueId keep, lstm_.Emit("Mul", {forget, state[1]}));
    MENDEL_ASSIGN_OR_RETURN(const ValueId take, lstm_.Emit("Mul", {in, candidate}));
    MENDEL_ASSIGN_OR_RETURN(state[1], lstm_.Emit("Add", {keep, take}));
    MENDEL_ASSIGN_OR_RETURN(const ValueId out, Gate(gates[1], direction, 1, state[1]));
    MENDEL_ASSIGN_OR_RETURN(const ValueId shown, lstm_.Activate(state[1], direction, 2));
    MENDEL_ASSIGN_OR_RETURN(state[0], lstm_.Emit("Mul", {out, shown}));
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<ValueId> Gate(ValueId x, const Recurrence::Direction& direction, size_t peephole,
                               ValueId cell) {
    if (op_.Has(7)) {
      MENDEL_ASSIGN_OR_RETURN(const ValueId row, lstm_.Row(7, direction.index));
      MENDEL_ASSIGN_OR_RETURN(const Recurrence::Values weights, lstm_.Parts(row, 0, 3));
      MENDEL_ASSIGN_OR_RETURN(const ValueId seen, lstm_.Emit("Mul", {weights[peephole], cell}));
      MENDEL_ASSIGN_OR_RETURN(x, lstm_.Emit("Add", {x, seen}));
    }
    return lstm_.Activate(x, direction, 0);
  }

  OpContext& op_;
  Recurrence& lstm_;
  const bool coupled_;
};

absl::Status ImportLstm(OpContext& op) {
  Recurrence lstm(op, 4, {"Sigmoid", "Tanh", "Tanh"});
  MENDEL_RETURN_IF_ERROR(lstm.Prepare());
  return lstm.Run({5, 6}, false, LstmStep(op, lstm));
}

/// Weights are codes (recurrence.h), everything else is that of LSTM.
absl::Status ImportDynamicQuantizeLstm(OpContext& op) {
  Recurrence lstm(op, 4, {"Sigmoid", "Tanh", "Tanh"}, true);
  MENDEL_RETURN_IF_ERROR(lstm.Prepare());
  return lstm.Run({5, 6}, false, LstmStep(op, lstm));
}

const OpImportRegistrar registrar({
    {"GRU", 3, 6, &ImportGru},
    {"LSTM", 3, 8, &ImportLstm},
    {"RNN", 3, 6, &ImportRnn},
    {"com.microsoft.DynamicQuantizeLSTM", 3, 12, &ImportDynamicQuantizeLstm},
});

}  // namespace
}  // namespace mendel::lowerings::recurrent
