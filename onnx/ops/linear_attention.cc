// LinearAttention and CausalConvWithState (opset 27): the recurrence unrolled, and the convolution
// of what was before with what comes.

#include <cmath>

#include "onnx/formula.h"

namespace mendel::lowerings::linear_attention {
namespace {

constexpr int64_t kMaxSteps = 512;

/// [N, T, heads * size] as [N, heads, T, size].
ValueId Heads(Formula& f, ValueId x, int64_t heads) {
  const Shape shape = f.shape(x);
  if (!f.ok()) return x;
  return f.Transpose(f.Reshape(x, {shape[0], shape[1], heads, shape[2] / heads}), {0, 2, 1, 3});
}

/// The recurrence runs in float32, as in ONNX's function body, or in double.
ValueId Widened(Formula& f, ValueId x) {
  return f.dtype(x) == DType::kF64 ? x : f.Cast(x, DType::kF32);
}

/// Step `t` of [N, heads, T, size] as a column [N, heads, size, 1] or a row.
ValueId Column(Formula& f, ValueId x, int64_t t) { return f.Transposed(f.Slice(x, 2, t, t + 1)); }

struct Recurrence {
  int64_t query_heads = 0;
  int64_t heads = 0;  ///< heads of keys and values
  double scale = 1;
  std::optional<ValueId> decay = std::nullopt;  ///< [N, heads, T, key size or 1]
  std::optional<ValueId> rate = std::nullopt;   ///< [N, heads or 1, T, 1]
};

/// The state of each key head, once for each query head that shares it.
ValueId Shared(Formula& f, const Recurrence& recurrence, ValueId state) {
  const Shape shape = f.shape(state);
  const int64_t sharers = recurrence.query_heads / recurrence.heads;
  if (!f.ok() || sharers == 1) return state;
  const ValueId single = f.Reshape(state, {shape[0], shape[1], 1, shape[2], shape[3]});
  return f.Reshape(f.Expand(single, {shape[0], shape[1], sharers, shape[2], shape[3]}),
                   {shape[0], recurrence.query_heads, shape[2], shape[3]});
}

absl::Status Unroll(OpContext& op, Formula& f, const Recurrence& recurrence, ValueId past) {
  const ValueId query = Heads(f, Widened(f, op.In(0)), recurrence.query_heads);
  const ValueId key = Heads(f, Widened(f, op.In(1)), recurrence.heads);
  const ValueId value = Heads(f, Widened(f, op.In(2)), recurrence.heads);
  const DType narrow = f.dtype(op.In(0)), state_dtype = f.dtype(past);
  ValueId state = Widened(f, past);
  const int64_t steps = op.shape(op.In(0))[1];
  std::vector<ValueId> outputs;
  for (int64_t t = 0; t < steps; ++t) {
    if (recurrence.decay.has_value())
      state = f.Mul(state, f.Op("Exp", {Column(f, *recurrence.decay, t)}));
    const ValueId k = Column(f, key, t);
    ValueId v = f.Slice(value, 2, t, t + 1);
    if (recurrence.rate.has_value()) {
      const ValueId known = f.MatMul(f.Transposed(k), state);
      v = f.Mul(f.Slice(*recurrence.rate, 2, t, t + 1), f.Sub(v, known));
    }
    state = f.Add(state, f.Mul(k, v));
    const ValueId read = f.MatMul(f.Slice(query, 2, t, t + 1), Shared(f, recurrence, state));
    outputs.push_back(f.Times(read, recurrence.scale));
  }
  if (!f.ok()) return f.status();
  const ValueId y = f.Cast(f.Concat(outputs, 2), narrow);
  const Shape shape = f.shape(y);
  if (!f.ok()) return f.status();
  f.SetOutput(0,
              f.Reshape(f.Transpose(y, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]}));
  f.SetOutput(1, f.Cast(state, state_dtype));
  return f.status();
}

absl::Status CheckLinear(OpContext& op, const Recurrence& recurrence) {
  if (recurrence.heads < 1 || recurrence.query_heads < 1 ||
      recurrence.query_heads % recurrence.heads != 0)
    return InvalidInput("q_num_heads must be a multiple of kv_num_heads");
  for (const int k : {0, 1, 2, 4, 5}) {
    if (!op.Has(k)) continue;
    const Shape& shape = op.shape(op.In(k));
    int64_t heads = k == 0 ? recurrence.query_heads : recurrence.heads;
    if (k == 5 && shape.size() == 3 && shape[2] == 1) heads = 1;  // one rate for all heads
    if (shape.size() != 3 || shape[2] % heads != 0 || shape[2] == 0)
      return InvalidInput("cannot cut input ", k, " of ", ShapeString(shape), " into heads");
  }
  const int64_t steps = op.shape(op.In(0))[1];
  if (steps < 1 || steps > kMaxSteps)
    return Unsupported("sequences of 1 to ", kMaxSteps, " steps are supported, not ", steps);
  return absl::OkStatus();
}

absl::Status ImportLinearAttention(OpContext& op) {
  op.Ignore("chunk_size");  // how to compute, not what
  const std::string rule = op.Str("update_rule", "gated_delta");
  const bool gated = rule == "gated" || rule == "gated_delta";
  const bool delta = rule == "delta" || rule == "gated_delta";
  if (!gated && !delta && rule != "linear") return InvalidInput("update_rule '", rule, "'");
  if (gated != op.Has(4) || delta != op.Has(5))
    return InvalidInput("decay and beta do not fit update_rule '", rule, "'");
  Recurrence recurrence{op.Int("q_num_heads", 0), op.Int("kv_num_heads", 0), op.Float("scale", 0)};
  MENDEL_RETURN_IF_ERROR(CheckLinear(op, recurrence));
  Formula f(op);
  const Shape query = op.shape(op.In(0));
  const int64_t key_size = query[2] / recurrence.query_heads;
  const int64_t value_size = op.shape(op.In(2))[2] / recurrence.heads;
  if (recurrence.scale == 0) recurrence.scale = 1 / std::sqrt(static_cast<double>(key_size));
  if (gated) recurrence.decay = Heads(f, Widened(f, op.In(4)), recurrence.heads);
  if (delta) recurrence.rate = Heads(f, Widened(f, op.In(5)), op.shape(op.In(5)).back());
  const Shape state = {query[0], recurrence.heads, key_size, value_size};
  if (op.Has(3) && op.shape(op.In(3)) != state) {
    return InvalidInput("the past state is ", ShapeString(op.shape(op.In(3))), ", not ",
                        ShapeString(state));
  }
  return Unroll(op, f, recurrence, op.Has(3) ? op.In(3) : f.Filled(op.In(0), 0, state));
}

absl::Status ImportCausalConvWithState(OpContext& op) {
  const std::string activation = op.Str("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return InvalidInput("activation '", activation, "' does not exist");
  const Shape x = op.shape(op.In(0)), w = op.shape(op.In(1));
  if (x.size() != 3 || w.size() != 3 || w[0] != x[1] || w[1] != 1 || w[2] < 1)
    return InvalidInput("weights ", ShapeString(w), " do not fit ", ShapeString(x));
  Formula f(op);
  const int64_t before = w[2] - 1;
  const ValueId padded =
      op.Has(3) ? f.Concat({op.In(3), op.In(0)}, 2) : f.Pad(op.In(0), {0, 0, before, 0, 0, 0});
  std::vector<ValueId> inputs = {padded, op.In(1)};
  if (op.Has(2)) inputs.push_back(op.In(2));
  const ValueId y =
      f.Op("Conv", inputs,
           {{"strides", Ints{1}}, {"dilations", Ints{1}}, {"pads", Ints{0, 0}}, {"group", x[1]}});
  f.SetOutput(0, activation == "none" ? y : f.Swish(y, 1));
  if (op.Wants(1)) f.SetOutput(1, f.Slice(padded, 2, x[2], x[2] + before));
  return f.status();
}

const OpImportRegistrar registrar({
    {"CausalConvWithState", 2, 4, &ImportCausalConvWithState},
    {"LinearAttention", 3, 6, &ImportLinearAttention},
});

}  // namespace
}  // namespace mendel::lowerings::linear_attention
