// Attention (opset 23 to 25) in products and a softmax.
//
// Keys that a query may not see (causal frontier, windows, padding, Boolean masks) get the score
// minus infinity. A query that sees no key yields zeros.

#include <algorithm>
#include <cmath>
#include <limits>

#include "onnx/formula.h"
#include "onnx/tensor_decode.h"

namespace mendel::lowerings::attention {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class AttentionImport {
 public:
  explicit AttentionImport(OpContext& op) : op_(op), f_(op) {}

  absl::Status Run() {
    MENDEL_RETURN_IF_ERROR(CheckInputs());
    ReadHeads();
    ReadCache();
    ReadMasks();
    if (f_.ok()) Emit();
    return f_.status();
  }

 private:
  absl::Status CheckInputs() {
    const int64_t rank = op_.rank(op_.In(0));
    for (int k = 0; k < 3; ++k) {
      if ((rank != 3 && rank != 4) || op_.rank(op_.In(k)) != rank)
        return InvalidInput("query, key and value must all have rank 3 or all rank 4");
    }
    if (op_.Has(4) != op_.Has(5)) return InvalidInput("past_key and past_value belong together");
    if (op_.Has(4) && op_.Has(6)) return InvalidInput("nonpad_kv_seqlen excludes a cache");
    return absl::OkStatus();
  }

  /// [N, length, heads * size] as [N, heads, length, size]; rank 4 stays.
  ValueId Heads(ValueId x, int64_t heads) {
    const Shape shape = f_.shape(x);
    if (shape.size() != 3) return x;
    if (heads < 1 || shape[2] % heads != 0) {
      f_.Fail(InvalidInput("cannot cut ", shape[2], " columns into ", heads, " heads"));
      return x;
    }
    return f_.Transpose(f_.Reshape(x, {shape[0], shape[1], heads, shape[2] / heads}), {0, 2, 1, 3});
  }

  void ReadHeads() {
    const int64_t q_heads = op_.Int("q_num_heads", 0), kv_heads = op_.Int("kv_num_heads", 0);
    query_ = Heads(op_.In(0), q_heads);
    key_ = Heads(op_.In(1), kv_heads);
    value_ = Heads(op_.In(2), kv_heads);
    past_ = op_.Has(4) && f_.rank(op_.In(4)) == 4 ? f_.shape(op_.In(4))[2] : 0;
    if (op_.Has(4)) {
      key_ = f_.Concat({op_.In(4), key_}, 2);
      value_ = f_.Concat({op_.In(5), value_}, 2);
    }
    if (op_.Wants(1)) f_.SetOutput(1, key_);
    if (op_.Wants(2)) f_.SetOutput(2, value_);
  }

  void ReadCache() {
    if (!f_.ok()) return;
    queries_ = f_.shape(query_)[2];
    keys_ = f_.shape(key_)[2];
    if (op_.Has(6)) {
      const Shape batch = f_.shape(op_.In(6));
      if (batch.size() != 1) f_.Fail(InvalidInput("nonpad_kv_seqlen must be a vector"));
      lengths_ = f_.Reshape(op_.In(6), {NumElements(batch), 1, 1, 1});
    }
  }

  /// 0, 1, .. count - 1 of the dtype of the lengths, along dimension `axis` of four.
  ValueId Positions(int64_t count, size_t axis) {
    std::vector<int64_t> values;
    for (int64_t k = 0; k < count; ++k) values.push_back(k);
    Shape shape(4, 1);
    shape[axis] = count;
    return f_.Literal(Tensor::FromInts({DType::kI64, shape}, values));
  }

  void Allow(ValueId condition) {
    allowed_ = allowed_.has_value() ? f_.Op("And", {*allowed_, condition}) : condition;
  }

  ValueId LessOrEqual(ValueId a, ValueId b) { return f_.Op("LessOrEqual", {a, b}); }

  /// The frontier of causal attention and the windows, around the position of each query.
  void ReadMasks() {
    const int64_t left = op_.Int("left_window_size", -1), right = op_.Int("right_window_size", -1);
    const bool causal = op_.Int("is_causal", 0) != 0;
    if (!f_.ok()) return;
    const ValueId key = Positions(keys_, 3);
    ValueId query = Positions(queries_, 2);
    if (lengths_.has_value()) {
      query = f_.Add(query, f_.Plus(*lengths_, -static_cast<double>(queries_)));
    } else if (past_ != 0) {
      query = f_.Plus(query, static_cast<double>(past_));
    }
    if (causal) Allow(LessOrEqual(key, query));
    if (left >= 0) Allow(LessOrEqual(query, f_.Plus(key, static_cast<double>(left))));
    if (right >= 0) Allow(LessOrEqual(key, f_.Plus(query, static_cast<double>(right))));
    if (lengths_.has_value()) Allow(f_.Op("Less", {key, *lengths_}));
    if (op_.Has(3)) ReadMask(op_.In(3));
  }

  /// A mask may end before the keys do: those beyond are not seen.
  void ReadMask(ValueId mask) {
    if (f_.rank(mask) < 1) return f_.Fail(InvalidInput("a mask needs a dimension for the keys"));
    const bool decides = f_.dtype(mask) == DType::kBool;
    const int64_t given = f_.shape(mask).back();
    if (given < keys_ && given != 1) {
      Ints pads(2 * f_.shape(mask).size(), 0);
      pads.back() = keys_ - given;
      mask = f_.Pad(mask, pads, decides ? 0 : -kInfinity);
    }
    if (decides) return Allow(mask);
    added_ = mask;
  }

  /// `x` of the key's heads, each repeated for the query heads that share it.
  ValueId Shared(ValueId x) {
    const Shape shape = f_.shape(x);
    const int64_t heads = f_.ok() ? f_.shape(query_)[1] : 0;
    if (!f_.ok() || shape[1] == heads) return x;
    if (shape[1] == 0 || heads % shape[1] != 0) {
      f_.Fail(InvalidInput(heads, " query heads cannot share ", shape[1], " key heads"));
      return x;
    }
    const ValueId single = f_.Reshape(x, {shape[0], shape[1], 1, shape[2], shape[3]});
    const ValueId repeated =
        f_.Expand(single, {shape[0], shape[1], heads / shape[1], shape[2], shape[3]});
    return f_.Reshape(repeated, {shape[0], heads, shape[2], shape[3]});
  }

  /// Rows that see no key; nullopt if every row is known to see one.
  std::optional<ValueId> HiddenRows() {
    std::optional<ValueId> seen = allowed_;
    if (added_.has_value()) {
      const ValueId finite = f_.Op("Greater", {*added_, f_.Scalar(*added_, -kInfinity)});
      seen = seen.has_value() ? f_.Op("And", {*seen, finite}) : finite;
    }
    if (!seen.has_value() || !f_.ok()) return std::nullopt;
    const ValueId any = f_.Reduce("ReduceMax", *seen, {f_.rank(*seen) - 1});
    if (!f_.ok()) return std::nullopt;
    const Tensor* known = op_.ConstantOf(any);
    bool all = known != nullptr;
    for (int64_t k = 0; all && k < known->size(); ++k) all = known->IntAt(k) != 0;
    if (all) return std::nullopt;
    return f_.Op("Not", {any});
  }

  ValueId Probabilities(ValueId scores) {
    if (added_.has_value()) scores = f_.Add(scores, *added_);
    if (allowed_.has_value()) scores = f_.Where(*allowed_, scores, f_.Scalar(scores, -kInfinity));
    if (mode_ == 2) f_.SetOutput(3, scores);
    const ValueId weights = f_.Softmax(scores, 3);
    const std::optional<ValueId> hidden = HiddenRows();
    return hidden.has_value() ? f_.Where(*hidden, f_.Scalar(weights, 0), weights) : weights;
  }

  void Emit() {
    // Query and key get the root each, rounded as the function body rounds it.
    float scale = 1 / std::sqrt(static_cast<float>(f_.shape(query_)[3]));
    scale = static_cast<float>(op_.Float("scale", static_cast<double>(scale)));
    if (!(scale >= 0)) return f_.Fail(InvalidInput("scale ", scale, " has no root"));
    const double root = static_cast<double>(std::sqrt(scale));
    const double cap = op_.Float("softcap", 0);
    // The language has no rounding inside an operator.
    constexpr int64_t kPrecisions[] = {0, 1, 10, 11, 16};  // none, f32, f16, f64, bf16
    const int64_t precision = op_.Int("softmax_precision", 0);
    if (std::find(std::begin(kPrecisions), std::end(kPrecisions), precision) ==
        std::end(kPrecisions))
      return f_.Fail(InvalidInput("softmax_precision ", precision, " is no type of floats"));
    mode_ = op_.Wants(3) ? op_.Int("qk_matmul_output_mode", 0) : -1;
    op_.Ignore("qk_matmul_output_mode");
    ValueId scores = f_.MatMul(f_.Times(query_, root), f_.Times(f_.Transposed(Shared(key_)), root));
    if (mode_ == 0) f_.SetOutput(3, scores);
    if (cap > 0) scores = f_.Times(f_.Op("Tanh", {f_.Times(scores, 1 / cap)}), cap);
    if (mode_ == 1) f_.SetOutput(3, scores);
    const ValueId weights = Probabilities(scores);
    if (mode_ == 3) f_.SetOutput(3, weights);
    ValueId y = f_.MatMul(weights, Shared(value_));
    if (op_.rank(op_.In(0)) == 3 && f_.ok()) {
      const Shape shape = f_.shape(y);
      y = f_.Reshape(f_.Transpose(y, {0, 2, 1, 3}), {shape[0], shape[2], shape[1] * shape[3]});
    }
    f_.SetOutput(0, y);
  }

  OpContext& op_;
  Formula f_;
  ValueId query_, key_, value_;
  int64_t past_ = 0, queries_ = 0, keys_ = 0;
  int64_t mode_ = -1;               ///< what output 3 is; -1: not wanted
  std::optional<ValueId> lengths_;  ///< keys that are no padding, of each image
  std::optional<ValueId> allowed_;  ///< which keys a query sees
  std::optional<ValueId> added_;    ///< to the scores
};

absl::Status ImportAttention(OpContext& op) { return AttentionImport(op).Run(); }

const OpImportRegistrar registrar({
    {"Attention", 3, 7, &ImportAttention},
});

}  // namespace
}  // namespace mendel::lowerings::attention
