// Einsum: a batched matrix product by oneDNN where every label is in the batch, in the rows, in the
// columns or summed on both sides, its operands where they lie if that can be said by strides; a
// strided loop otherwise.

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "graph/einsum_equation.h"
#include "kernels/cpu/kernels/copy.h"
#include "kernels/cpu/kernels/einsum.h"
#include "kernels/cpu/kernels/typed.h"
#include "kernels/cpu/lowering/contraction.h"
#include "kernels/cpu/lowering/lower.h"

namespace mendel::cpu {
namespace {

using dnnl::memory;

/// An operand as [batch, rows, columns], each of which stands for some labels.
struct MatrixOperand {
  ValueId value;
  std::string labels;                ///< of its dimensions
  std::array<std::string, 3> parts;  ///< labels of batch, rows, columns
};

class EinsumLowering {
 public:
  EinsumLowering(Lowering& lowering, int32_t id)
      : lowering_(lowering), id_(id), equation_(EquationOf(lowering, id)), roles_(equation_) {
    for (size_t side = 0; side < 2; ++side) {
      const Shape& shape = lowering_.shape(Input(side));
      for (size_t d = 0; d < shape.size(); ++d) extents_[equation_.operands[side][d]] = shape[d];
    }
  }

  absl::StatusOr<bool> Emit() {
    const DType dtype = lowering_.type({id_, 0}).dtype;
    if (!IsNumber(dtype)) return false;
    if (dtype == DType::kF32 && IsProduct() && EmitProduct()) return true;
    EmitLoop(dtype);
    return true;
  }

 private:
  static EinsumEquation EquationOf(Lowering& lowering, int32_t id) {
    absl::StatusOr<EinsumEquation> equation =
        ParseEinsum(lowering.graph().node(id).attrs.Str("equation"));
    MENDEL_CHECK(equation.ok());
    return *std::move(equation);
  }

  ValueId Input(size_t side) const { return lowering_.graph().node(id_).inputs[side]; }

  /// Every summed label is one of both operands.
  bool IsProduct() const {
    return std::all_of(roles_.summed.begin(), roles_.summed.end(), [&](char label) {
      return std::all_of(
          equation_.operands.begin(), equation_.operands.end(),
          [&](const std::string& labels) { return labels.find(label) != std::string::npos; });
    });
  }

  Shape ExtentsOf(const std::string& labels) const {
    Shape extents;
    for (const char label : labels) extents.push_back(extents_.at(label));
    return extents;
  }

  /// Strides along `order`: a repeated label moves along the diagonal, a missing one does not move.
  static Shape StridesOf(const std::string& order, const std::string& labels,
                         const Shape& strides) {
    Shape result(order.size(), 0);
    for (size_t d = 0; d < labels.size(); ++d) {
      const size_t at = order.find(labels[d]);
      if (at != std::string::npos) result[at] += strides[d];
    }
    return result;
  }

  /// The one stride of positions along all labels, row-major; nullopt when they have none.
  std::optional<int64_t> MergedStride(const std::string& order, const std::string& labels,
                                      const Shape& strides) const {
    const Shape extents = ExtentsOf(order), own = StridesOf(order, labels, strides);
    int64_t stride = 1, span = 0;
    for (size_t d = order.size(); d-- > 0;) {
      if (extents[d] == 1) continue;
      if (span == 0) {
        stride = own[d];
      } else if (own[d] != span) {
        return std::nullopt;
      }
      span = own[d] * extents[d];
    }
    return stride;
  }

  memory::dims DimsOf(const MatrixOperand& operand) const {
    memory::dims dims;
    for (const std::string& part : operand.parts) dims.push_back(NumElements(ExtentsOf(part)));
    return dims;
  }

  /// Describes the operand as a matrix where it lies; nullopt when no strides describe it.
  std::optional<memory::desc> AsItLies(const MatrixOperand& operand) const {
    const Place place = lowering_.Unblocked(operand.value);
    const memory::dims dims = DimsOf(operand);
    memory::dims strides;
    for (size_t k = 0; k < dims.size(); ++k) {
      const std::optional<int64_t> stride =
          MergedStride(operand.parts[k], operand.labels, place.layout.strides);
      if (!stride.has_value()) return std::nullopt;
      strides.push_back(*stride);
    }
    // A dimension of one position gets the stride that a row-major matrix would have.
    for (size_t k = dims.size(); k-- > 0;) {
      if (dims[k] == 1) strides[k] = k == 2 ? 1 : strides[k + 1] * dims[k + 1];
    }
    if (!IsNested(Layout{strides, -1, 1}, dims)) return std::nullopt;
    return memory::desc(dims, memory::data_type::f32, strides);
  }

  memory::desc Dense(const MatrixOperand& operand) const {
    const memory::dims dims = DimsOf(operand);
    return {dims, memory::data_type::f32, memory::format_tag::abc};
  }

  /// A copy of the operand as a dense matrix.
  Place Copied(const MatrixOperand& operand) {
    const Place from = lowering_.Unblocked(operand.value);
    const std::string order = operand.parts[0] + operand.parts[1] + operand.parts[2];
    const Shape extents = ExtentsOf(order);
    const Place to =
        lowering_.Temporary(NumElements(extents) * static_cast<int64_t>(sizeof(float)));
    const StridedCopy copy{from, to, extents, StridesOf(order, operand.labels, from.layout.strides),
                           RowMajorStrides(extents)};
    lowering_.Emit({}, "copy", MakeCopyKernel({copy}, sizeof(float)), {from, to});
    return to;
  }

  /// The elements of a constant operand as a dense matrix.
  Tensor Gathered(const MatrixOperand& operand) {
    const std::string order = operand.parts[0] + operand.parts[1] + operand.parts[2];
    const Shape extents = ExtentsOf(order);
    const Shape strides =
        StridesOf(order, operand.labels, RowMajorStrides(lowering_.shape(operand.value)));
    const std::span<const float> elements = lowering_.folded().Rounded(operand.value).As<float>();
    std::vector<double> gathered(static_cast<size_t>(NumElements(extents)));
    for (size_t i = 0; i < gathered.size(); ++i) {
      gathered[i] = static_cast<double>(
          elements[static_cast<size_t>(OffsetOf(extents, strides, static_cast<int64_t>(i)))]);
    }
    return Tensor::FromDoubles({DType::kF32, extents}, gathered);
  }

  bool EmitProduct() {
    // A constant is the right operand, which oneDNN packs.
    const size_t first =
        lowering_.folded().IsConstant(Input(0)) && !lowering_.folded().IsConstant(Input(1)) ? 1 : 0;
    const std::string& rows = first == 0 ? roles_.rows : roles_.columns;
    const std::string& columns = first == 0 ? roles_.columns : roles_.rows;
    const MatrixOperand left{
        Input(first), equation_.operands[first], {roles_.batch, rows, roles_.summed}};
    const MatrixOperand right{
        Input(1 - first), equation_.operands[1 - first], {roles_.batch, roles_.summed, columns}};
    const MatrixOperand out{{id_, 0}, equation_.output, {roles_.batch, rows, columns}};
    const bool packed = lowering_.folded().IsConstant(right.value);
    for (const Quality quality : {Quality::kGenerated, Quality::kGemm, Quality::kAnything}) {
      for (const bool lying : {true, false}) {
        const std::optional<memory::desc> a = lying ? AsItLies(left) : std::nullopt;
        const std::optional<memory::desc> b = lying && !packed ? AsItLies(right) : std::nullopt;
        const memory::desc any(DimsOf(right), memory::data_type::f32, memory::format_tag::any);
        std::optional<Chosen> chosen;
        try {
          const dnnl::matmul::desc desc(a.value_or(Dense(left)),
                                        packed ? any : b.value_or(Dense(right)), memory::desc(),
                                        Dense(out));
          chosen = Choose<dnnl::matmul>(desc, UserScratchpad(), AcceptQuality(quality));
        } catch (const dnnl::error&) {
          continue;  // strides that oneDNN does not describe
        }
        if (!chosen.has_value()) continue;
        const Place source = a.has_value() ? lowering_.Unblocked(left.value) : Copied(left);
        Place weights;
        if (packed) {
          weights = lowering_.PackedWeights(Gathered(right), Dense(right), chosen->weights);
        } else {
          weights = b.has_value() ? lowering_.Unblocked(right.value) : Copied(right);
        }
        EmitChosen(std::move(*chosen), source, weights, out);
        return true;
      }
    }
    return false;
  }

  /// The result lies as the product computes it, whatever the order of its labels.
  void EmitChosen(Chosen chosen, const Place& source, const Place& weights,
                  const MatrixOperand& out) {
    const std::string order = out.parts[0] + out.parts[1] + out.parts[2];
    const Shape strides = RowMajorStrides(ExtentsOf(order));
    Layout layout;
    for (const char label : out.labels) layout.strides.push_back(strides[order.find(label)]);
    const Place to = lowering_.Allocate({id_, 0}, Canonical(layout, lowering_.shape({id_, 0})));
    std::vector<PrimitiveArgument> arguments = {{DNNL_ARG_SRC, chosen.src, source},
                                                {DNNL_ARG_WEIGHTS, chosen.weights, weights},
                                                {DNNL_ARG_DST, chosen.dst, to}};
    lowering_.Emit(
        {id_}, chosen.implementation,
        MakePrimitiveKernel(std::move(chosen.primitive), std::move(arguments), chosen.scratchpad),
        {source, weights, to}, static_cast<int64_t>(chosen.scratchpad.get_size()));
  }

  void EmitLoop(DType dtype) {
    StridedContraction c;
    c.left = lowering_.Unblocked(Input(0));
    c.right = lowering_.Unblocked(Input(1));
    c.out = ExtentsOf(equation_.output);
    c.summed = ExtentsOf(roles_.summed);
    c.left_out = StridesOf(equation_.output, equation_.operands[0], c.left.layout.strides);
    c.right_out = StridesOf(equation_.output, equation_.operands[1], c.right.layout.strides);
    c.left_sum = StridesOf(roles_.summed, equation_.operands[0], c.left.layout.strides);
    c.right_sum = StridesOf(roles_.summed, equation_.operands[1], c.right.layout.strides);
    c.to = lowering_.Allocate({id_, 0}, PlainLayout(c.out));
    const std::vector<Place> touched = {c.left, c.right, c.to};
    lowering_.Emit({id_}, "contraction, strided", MakeStridedContractionKernel(std::move(c), dtype),
                   touched);
  }

  Lowering& lowering_;
  int32_t id_;
  EinsumEquation equation_;
  EinsumRoles roles_;
  std::map<char, int64_t> extents_;
};

}  // namespace

absl::StatusOr<bool> LowerEinsum(Lowering& lowering, int32_t id) {
  return EinsumLowering(lowering, id).Emit();
}

}  // namespace mendel::cpu
