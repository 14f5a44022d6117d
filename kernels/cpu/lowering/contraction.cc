#include "kernels/cpu/lowering/contraction.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/status.h"
#include "kernels/cpu/lowering/integer_product.h"
#include "kernels/cpu/lowering/lower.h"
#include "kernels/cpu/simd/native_isa.h"

namespace mendel::cpu {
namespace {

using dnnl::algorithm;

/// A per-channel or single constant as one double a channel.
std::vector<double> PerChannel(Folded& folded, ValueId value, int64_t channels) {
  const HostValue constant = folded.Exact(value);
  std::vector<double> values(static_cast<size_t>(channels));
  const bool number = NumElements(constant.type) == 1;
  for (size_t c = 0; c < values.size(); ++c)
    values[c] = constant.At(number ? 0 : static_cast<int64_t>(c));
  return values;
}

class EpilogueBuilder {
 public:
  EpilogueBuilder(Lowering& lowering, const Group& group, int64_t channels, bool second_eltwise)
      : folded_(lowering.folded()), channels_(channels), second_eltwise_(second_eltwise) {
    const Node& root = lowering.graph().node(group.nodes[0]);
    graph_ = &lowering.graph();
    scalable_ = folded_.IsConstant(root.inputs[1]);
    if (root.inputs.size() > 2) {
      const bool constant = folded_.IsConstant(root.inputs[2]);
      if (constant) epilogue_.bias = PerChannel(folded_, root.inputs[2], channels);
      scalable_ = scalable_ && constant;
      shiftable_ = constant;
    }
  }

  bool Add(const PostOp& post_op) {
    // A factor or summand outside the weights and the bias has to be one number for all channels.
    const bool number =
        post_op.operand.node >= 0 && NumElements(graph_->type(post_op.operand)) == 1;
    switch (post_op.kind) {
      case PostOp::Kind::kScale:
      case PostOp::Kind::kDivide: {
        std::vector<double> factors = PerChannel(folded_, post_op.operand, channels_);
        if (post_op.kind == PostOp::Kind::kDivide) {
          for (double& factor : factors) factor = 1 / factor;
        }
        if (scalable_) {
          Scale(factors);
        } else {
          shiftable_ = false;
          return number && Factor(factors[0]);
        }
        return true;
      }
      case PostOp::Kind::kShift:
      case PostOp::Kind::kUnshift: {
        std::vector<double> summands = PerChannel(folded_, post_op.operand, channels_);
        if (post_op.kind == PostOp::Kind::kUnshift) {
          for (double& summand : summands) summand = -summand;
        }
        if (shiftable_) {
          Shift(summands);
        } else {
          return number && Summand(summands[0]);
        }
        return true;
      }
      case PostOp::Kind::kNormalize:
        Normalize(graph_->node(post_op.nodes[0]));
        return true;
      case PostOp::Kind::kResidual:
        if (epilogue_.residual.has_value()) return false;
        AppendLinear();
        epilogue_.residual = post_op.operand;
        operations_.append_sum(1);
        scalable_ = false;
        return true;
      case PostOp::Kind::kActivation:
        scalable_ = shiftable_ = false;
        return Eltwise(post_op.activation);
    }
    return false;
  }

  Epilogue Take() {
    AppendLinear();
    epilogue_.attributes = UserScratchpad();
    epilogue_.attributes.set_post_ops(operations_);
    for (double& bias : epilogue_.bias)
      bias = static_cast<double>(WithoutSubnormal(static_cast<float>(bias))) == 0 ? 0 : bias;
    return std::move(epilogue_);
  }

 private:
  void SetLinear(double factor, double summand) {
    has_linear_ = true;
    factor_ = factor;
    summand_ = summand;
  }

  /// At most one activation is fused: oneDNN 2.6's AVX-512 direct convolution confuses the slopes
  /// of two ReLUs. A factor and a summand may follow where `second_eltwise_` allows them.
  bool Eltwise(const Activation& activation) {
    if (has_eltwise_ || has_linear_) return false;
    has_eltwise_ = true;
    operations_.append_eltwise(1, activation.algorithm, activation.alpha, activation.beta);
    return true;
  }

  /// A factor and then a summand end the operations. No two factors or summands are merged: their
  /// product may overflow. After an activation they are the second operation, which only some
  /// kernels keep apart.
  bool Factor(double factor) {
    if (has_linear_ || (has_eltwise_ && !second_eltwise_)) return false;
    SetLinear(factor, 0);
    return true;
  }
  bool Summand(double summand) {
    if (has_linear_ ? summand_ != 0 : has_eltwise_ && !second_eltwise_) return false;
    SetLinear(has_linear_ ? factor_ : 1, summand);
    return true;
  }

  void AppendLinear() {
    if (!has_linear_) return;
    operations_.append_eltwise(1, algorithm::eltwise_linear, static_cast<float>(factor_),
                               static_cast<float>(summand_));
    has_linear_ = false;
    has_eltwise_ = true;
    second_eltwise_ = false;
  }

  void Scale(const std::vector<double>& factors) {
    if (epilogue_.scale.empty()) epilogue_.scale.assign(factors.size(), 1.0);
    for (size_t c = 0; c < factors.size(); ++c) {
      epilogue_.scale[c] *= factors[c];
      if (!epilogue_.bias.empty()) epilogue_.bias[c] *= factors[c];
    }
  }

  void Shift(const std::vector<double>& summands) {
    if (epilogue_.bias.empty()) epilogue_.bias.assign(summands.size(), 0.0);
    for (size_t c = 0; c < summands.size(); ++c) epilogue_.bias[c] += summands[c];
  }

  /// BatchNormalization(x, scale, bias, mean, variance).
  void Normalize(const Node& node) {
    std::vector<double> factors = PerChannel(folded_, node.inputs[1], channels_);
    std::vector<double> summands = PerChannel(folded_, node.inputs[2], channels_);
    const std::vector<double> mean = PerChannel(folded_, node.inputs[3], channels_);
    const std::vector<double> variance = PerChannel(folded_, node.inputs[4], channels_);
    for (size_t c = 0; c < factors.size(); ++c) {
      factors[c] /= std::sqrt(variance[c] + node.attrs.Float("epsilon"));
      summands[c] -= mean[c] * factors[c];
    }
    Scale(factors);
    Shift(summands);
  }

  Folded& folded_;
  const Graph* graph_;
  int64_t channels_;
  bool second_eltwise_;
  Epilogue epilogue_;
  dnnl::post_ops operations_;
  bool scalable_ = true;
  bool shiftable_ = true;
  bool has_eltwise_ = false;
  bool has_linear_ = false;  ///< a factor and a summand end the operations
  double factor_ = 1, summand_ = 0;
};

}  // namespace

std::optional<Epilogue> MakeEpilogue(Lowering& lowering, const Group& group, size_t count,
                                     int64_t channels, Kernels kernels) {
  const bool second_eltwise = kernels == Kernels::kNative || NativeIsaHere() != NativeIsa::kAvx512;
  EpilogueBuilder builder(lowering, group, channels, second_eltwise);
  for (size_t k = 0; k < count; ++k) {
    if (!builder.Add(group.post_ops[k])) return std::nullopt;
  }
  return builder.Take();
}

Accept AcceptQuality(Quality quality) {
  return [quality](const std::string& name) {
    if (quality == Quality::kAnything) return true;
    if (IsReference(name)) return false;
    return quality == Quality::kGemm || !IsGemm(name);
  };
}

std::vector<int32_t> NodesOf(const Group& group, size_t count) {
  std::vector<int32_t> nodes = {group.nodes[0]};
  for (size_t k = 0; k < count; ++k)
    nodes.insert(nodes.end(), group.post_ops[k].nodes.begin(), group.post_ops[k].nodes.end());
  return nodes;
}

absl::Status LowerRest(Lowering& lowering, const Group& group, size_t count) {
  std::vector<int32_t> rest;
  for (size_t k = count; k < group.post_ops.size(); ++k) {
    rest.insert(rest.end(), group.post_ops[k].nodes.begin(), group.post_ops[k].nodes.end());
  }
  if (rest.empty()) return absl::OkStatus();
  MENDEL_ASSIGN_OR_RETURN(const bool done, LowerElementwise(lowering, rest));
  for (size_t k = count; !done && k < group.post_ops.size(); ++k) {
    const std::vector<int32_t>& nodes = group.post_ops[k].nodes;
    MENDEL_ASSIGN_OR_RETURN(const bool alone, LowerElementwise(lowering, nodes));
    for (size_t n = 0; !alone && n < nodes.size(); ++n)
      MENDEL_RETURN_IF_ERROR(LowerDefinition(lowering, nodes[n]));
  }
  return absl::OkStatus();
}

absl::Status EmitContraction(Lowering& lowering, const Group& group, size_t count,
                             const Epilogue& epilogue, const Chosen& chosen,
                             const Operands& operands) {
  const std::vector<int32_t> nodes = NodesOf(group, count);
  const ValueId result{nodes.back(), 0};
  const Layout layout = Canonical(*LayoutOf(chosen.dst), Shape(chosen.dst.dims()));
  // A matrix product may be computed on collapsed dimensions, always row-major.
  const bool same_rank = chosen.dst.dims().size() == lowering.shape(result).size();
  const Layout value_layout = same_rank ? layout : PlainLayout(lowering.shape(result));

  std::vector<PrimitiveArgument> arguments = {{DNNL_ARG_SRC, chosen.src, operands.src},
                                              {DNNL_ARG_WEIGHTS, chosen.weights, operands.weights}};
  if (operands.dynamic_bias.has_value()) {
    arguments.push_back({DNNL_ARG_BIAS, chosen.bias, *operands.dynamic_bias});
  } else if (!epilogue.bias.empty()) {
    const Place bias = lowering.Constant(
        "", static_cast<int64_t>(epilogue.bias.size() * sizeof(float)), [&](std::byte* to) {
          for (size_t c = 0; c < epilogue.bias.size(); ++c) {
            const float value = static_cast<float>(epilogue.bias[c]);
            std::memcpy(to + c * sizeof(float), &value, sizeof(float));
          }
        });
    arguments.push_back({DNNL_ARG_BIAS, chosen.bias, bias});
  }
  std::optional<Place> residual;
  if (epilogue.residual.has_value()) residual = lowering.In(*epilogue.residual, value_layout);
  const bool narrow = chosen.dst.data_type() == dnnl::memory::data_type::bf16;
  const Place dst = narrow ? lowering.AllocateNarrow(result, value_layout)
                           : lowering.Allocate(result, value_layout);
  arguments.push_back({DNNL_ARG_DST, chosen.dst, dst});

  std::vector<Place> touched;
  for (const PrimitiveArgument& argument : arguments) touched.push_back(argument.place);
  std::optional<std::pair<Place, Place>> in_place;
  if (residual.has_value()) {
    touched.push_back(*residual);
    const bool read_too =
        residual->buffer == operands.src.buffer || residual->buffer == operands.weights.buffer;
    if (!read_too) in_place = {dst, *residual};
  }
  lowering.Emit(
      nodes, chosen.implementation,
      MakePrimitiveKernel(chosen.primitive, std::move(arguments), chosen.scratchpad, residual),
      touched, static_cast<int64_t>(chosen.scratchpad.get_size()), in_place);
  return LowerRest(lowering, group, count);
}

absl::StatusOr<bool> LowerContraction(Lowering& lowering, const Group& group) {
  if (group.integer != nullptr) {
    MENDEL_RETURN_IF_ERROR(LowerIntegerProduct(lowering, group));
    return true;
  }
  const bool product = lowering.graph().node(group.nodes[0]).op->name == "MatMul";
  return product ? LowerMatMul(lowering, group) : LowerConv(lowering, group);
}

}  // namespace mendel::cpu
