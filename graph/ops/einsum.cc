// Einsum(a, b){equation}, see einsum_equation.h.

#include <map>
#include <string>

#include "base/parallel.h"
#include "base/status.h"
#include "graph/contraction.h"
#include "graph/einsum_equation.h"
#include "graph/op_helpers.h"

namespace mendel::ops::einsum {
namespace {

using Equation = EinsumEquation;

Equation EquationOf(const NodeView& node) {
  auto equation = ParseEinsum(node.attrs.Str("equation"));
  MENDEL_CHECK(equation.ok());
  return *std::move(equation);
}

std::map<char, int64_t> ExtentsOf(const Equation& equation, std::span<const TensorType> inputs) {
  std::map<char, int64_t> extents;
  for (size_t side = 0; side < 2; ++side) {
    for (size_t d = 0; d < equation.operands[side].size(); ++d)
      extents[equation.operands[side][d]] = inputs[side].shape[d];
  }
  return extents;
}

Shape ExtentsAlong(const std::string& labels, const std::map<char, int64_t>& extents) {
  Shape shape;
  for (char label : labels) shape.push_back(extents.at(label));
  return shape;
}

/// Offsets in a tensor with these labels and strides of all positions along `order`, row-major. A
/// repeated label moves along the diagonal, a missing one not at all.
std::vector<int64_t> Offsets(const std::string& order, const std::string& labels,
                             const Shape& strides, const std::map<char, int64_t>& extents) {
  const Shape shape = ExtentsAlong(order, extents);
  std::vector<int64_t> offsets(static_cast<size_t>(NumElements(shape)));
  Shape index(shape.size(), 0);
  for (int64_t& offset : offsets) {
    for (size_t d = 0; d < labels.size(); ++d) {
      const size_t at = order.find(labels[d]);
      if (at != std::string::npos) offset += index[at] * strides[d];
    }
    NextIndex(shape, index);
  }
  return offsets;
}

struct EinsumMeaning {
  /// Matrix [rows][columns] of each batch, gathered from an operand.
  template <class S>
  static std::vector<S> Gather(const Reader<S>& in, int side, const Equation& equation,
                               const std::map<char, int64_t>& extents,
                               std::array<const std::string*, 3> order) {
    const std::string& labels = equation.operands[static_cast<size_t>(side)];
    const Shape strides = RowMajorStrides(in.shape(side));
    std::array<std::vector<int64_t>, 3> offsets;
    for (size_t k = 0; k < 3; ++k) offsets[k] = Offsets(*order[k], labels, strides, extents);
    std::vector<S> values;
    values.reserve(offsets[0].size() * offsets[1].size() * offsets[2].size());
    for (int64_t batch : offsets[0]) {
      for (int64_t row : offsets[1]) {
        for (int64_t column : offsets[2]) values.push_back(in.Flat(side, batch + row + column));
      }
    }
    return values;
  }

  template <class S>
  static void Fill(const Reader<S>& in, const NodeView& node, int, std::span<S> out) {
    const Equation equation = EquationOf(node);
    const std::map<char, int64_t> extents = ExtentsOf(equation, node.inputs);
    const EinsumRoles roles(equation);
    const std::vector<S> left =
        Gather(in, 0, equation, extents, {&roles.batch, &roles.rows, &roles.summed});
    const std::vector<S> right =
        Gather(in, 1, equation, extents, {&roles.batch, &roles.summed, &roles.columns});
    const Shape strides = RowMajorStrides(node.outputs[0].shape);
    const std::vector<int64_t> batches = Offsets(roles.batch, equation.output, strides, extents);
    const std::vector<int64_t> rows = Offsets(roles.rows, equation.output, strides, extents);
    const std::vector<int64_t> columns = Offsets(roles.columns, equation.output, strides, extents);
    const int64_t m = static_cast<int64_t>(rows.size());
    const int64_t n = static_cast<int64_t>(columns.size());
    const int64_t k = NumElements(ExtentsAlong(roles.summed, extents));
    constexpr int64_t kRows = 64;
    const int64_t strips = (m + kRows - 1) / kRows;
    auto* const context = ScalarScope<S>::Current();
    ParallelFor(static_cast<int64_t>(batches.size()) * strips, [&](int64_t job) {
      const ScalarScope<S> scope(context);
      const int64_t b = job / strips;
      const int64_t row = job % strips * kRows;
      const int64_t count = std::min(kRows, m - row);
      std::vector<S> product(static_cast<size_t>(count * n));
      Gemm(count, n, k, left.data() + (b * m + row) * k, k, right.data() + b * k * n, n,
           product.data(), n, false);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t base = batches[static_cast<size_t>(b)] + rows[static_cast<size_t>(row + i)];
        for (int64_t j = 0; j < n; ++j) {
          out[static_cast<size_t>(base + columns[static_cast<size_t>(j)])] =
              product[static_cast<size_t>(i * n + j)];
        }
      }
    });
  }
};

TypesOr Infer(std::span<const TensorType> inputs, const Attributes& attrs) {
  if (inputs[0].dtype != inputs[1].dtype) return InvalidInput("operands must have one dtype");
  if (inputs[0].dtype == DType::kBool)
    return InvalidInput("expected numbers, not ", TypeString(inputs[0]));
  MENDEL_ASSIGN_OR_RETURN(const Equation equation, ParseEinsum(attrs.Str("equation")));
  std::map<char, int64_t> extents;
  for (size_t side = 0; side < 2; ++side) {
    const std::string& labels = equation.operands[side];
    const Shape& shape = inputs[side].shape;
    if (labels.size() != shape.size()) {
      return InvalidInput("labels '", labels, "' of '", attrs.Str("equation"),
                          "' do not fit operand ", ShapeString(shape));
    }
    for (size_t d = 0; d < labels.size(); ++d) {
      const auto [entry, is_new] = extents.emplace(labels[d], shape[d]);
      if (!is_new && entry->second != shape[d]) {
        return InvalidInput("label '", std::string(1, labels[d]), "' has extents ", entry->second,
                            " and ", shape[d]);
      }
    }
  }
  if (equation.output.size() > static_cast<size_t>(kMaxRank))
    return Unsupported("an output of rank ", equation.output.size());
  return std::vector<TensorType>{{inputs[0].dtype, ExtentsAlong(equation.output, extents)}};
}

double SummedCount(const NodeView& node) {
  const Equation equation = EquationOf(node);
  double count = 1;
  for (int64_t extent :
       ExtentsAlong(EinsumRoles(equation).summed, ExtentsOf(equation, node.inputs)))
    count *= static_cast<double>(extent);
  return count;
}

Bound BoundOf(const NodeView& node, std::span<const Bound> inputs, int, const Arithmetic<Bound>&) {
  return SumOf(SummedCount(node), inputs[0] * inputs[1]);
}

Cost CostOfEinsum(const NodeView& node) {
  Cost cost{2.0 * static_cast<double>(NumElements(node.outputs[0])) * SummedCount(node),
            static_cast<double>(ByteSize(node.outputs[0]))};
  for (const TensorType& type : node.inputs) cost.bytes += static_cast<double>(ByteSize(type));
  return cost;
}

std::optional<Restriction> Restrict(const NodeView& node, const Box& out) {
  const Equation equation = EquationOf(node);
  Restriction result{{}, node.attrs};
  for (size_t side = 0; side < 2; ++side) {
    Box box = Box::Whole(node.inputs[side].shape);
    for (size_t d = 0; d < box.begin.size(); ++d) {
      const size_t at = equation.output.find(equation.operands[side][d]);
      if (at == std::string::npos) continue;
      box.begin[d] = out.begin[at];
      box.end[d] = out.end[at];
    }
    result.inputs.push_back(box);
  }
  return result;
}

std::optional<AccessPattern> Access(const NodeView& node) {
  const Equation equation = EquationOf(node);
  const size_t rank = equation.output.size();
  AccessPattern pattern;
  pattern.combine = AccessPattern::Combine::kProduct;
  pattern.breaks.resize(rank);
  for (size_t side = 0; side < 2; ++side) {
    InputAccess access;
    for (char label : equation.operands[side]) {
      DimAccess dim;
      dim.coefficients.assign(rank, 0);
      const size_t at = equation.output.find(label);
      dim.whole = at == std::string::npos;
      if (!dim.whole) dim.coefficients[at] = 1;
      access.dims.push_back(dim);
    }
    pattern.inputs.push_back(access);
  }
  return pattern;
}

OpSample Sample(Rng& rng) {
  constexpr std::string_view kEquations[] = {
      "ij,jk->ik",   "bij,bjk->bik", "ij,jk", "bhid,bhjd->bhij", "i,j->ij", "ij,ij->",
      "abc,cd->dab", "ii,ij->j",     "i,i",   "aij,b->ba",       "ij,jk->", "bqc,kc->bqk",
      "Ab,bA->bA"};
  const std::string equation(kEquations[rng.Below(std::size(kEquations))]);
  std::map<char, int64_t> extents;
  OpSample sample{{}, {{"equation", equation}}, {}};
  Shape shape;
  for (char c : equation.substr(0, equation.find('-'))) {
    if (c == ',') {
      sample.inputs.push_back({DType::kF32, shape});
      shape.clear();
    } else {
      shape.push_back(extents.emplace(c, rng.Between(1, 4)).first->second);
    }
  }
  sample.inputs.push_back({DType::kF32, shape});
  return sample;
}

OpDefinition Make() {
  OpDefinition op;
  op.name = "Einsum";
  op.min_inputs = op.max_inputs = 2;
  op.attributes = {{"equation", std::string(), true}};
  op.infer = &Infer;
  op.meaning = MeaningOf<EinsumMeaning>();
  op.linear_inputs = &LinearInAll;
  op.bound = &BoundOf;
  op.cost = &CostOfEinsum;
  op.restrict = &Restrict;
  op.access = &Access;
  op.sample = &Sample;
  return op;
}

MENDEL_REGISTER_OP(&Make);

}  // namespace
}  // namespace mendel::ops::einsum
