// An operator definition is everything about an operator that needs no backend, in one value
// registered by its file graph/ops/<op>.cc.
//
// There is no operator enum and no switch over operators anywhere. Code that treats an operator
// specially queries a property below. All function pointers are pure functions of their arguments
// and thread-safe.
#ifndef MENDEL_GRAPH_OP_DEFINITION_H_
#define MENDEL_GRAPH_OP_DEFINITION_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/random.h"
#include "graph/access.h"
#include "graph/attributes.h"
#include "graph/bound.h"
#include "graph/meaning.h"
#include "graph/sign.h"
#include "graph/types.h"

namespace mendel {

/// Name, kind and default of one attribute. The kind is that of `default_value`; a required
/// attribute has no default.
struct AttributeSpec {
  AttributeSpec(std::string name, AttrValue default_value, bool required = false);
  AttributeSpec(const AttributeSpec& other);
  AttributeSpec& operator=(const AttributeSpec& other);
  ~AttributeSpec();

  std::string name;
  AttrValue default_value;
  bool required = false;
};

/// Work of one execution, by the operator's textbook formula: multiply-adds count two.
struct Cost {
  double flops = 0;
  double bytes = 0;  ///< operands read once plus results written once
};

/// One instance for tests: a valid node of the operator.
struct OpSample {
  std::vector<TensorType> inputs;
  Attributes attrs;
  /// Inputs whose elements must lie in [first, second), e.g. indices; others are free.
  std::vector<std::pair<int, std::pair<double, double>>> ranges;
};

/// The computation of a box of an operator's output from boxes of its inputs (see restrict in
/// OpDefinition).
struct Restriction {
  /// One box per input. The operator applied to the inputs cut to these boxes, with `attrs`, yields
  /// exactly the wanted box. An input whose box is empty is left out (variadic operators: Concat,
  /// Patch).
  std::vector<Box> inputs;
  Attributes attrs;
};

/// The computation of boxes of several outputs of an operator from boxes of its inputs. The
/// operator over these boxes, with `attrs`, has an output for each of the whole; output k is box
/// outputs[k] of the whole's, where it was wanted.
struct OutputsRestriction {
  std::vector<Box> inputs;
  Attributes attrs;
  std::vector<Box> outputs;
};

/// The demand on the operand of an operator that is not defined everywhere. kSameNode: no axiom
/// suffices, the operator must occur with the same operands where it is known to be defined.
enum class Demand : uint8_t { kNonZero, kPositive, kNonNegative, kSameNode };

/// An operator is defined where its input `input` satisfies `demand`.
struct PartialDomain {
  size_t input = 0;
  Demand demand = Demand::kSameNode;
  /// Operators of one group are defined for the same operand (Div and Reciprocal); empty: only
  /// nodes with all inputs equal.
  std::string_view group = "";
  /// Input that lifts the demand where it contains whole numbers >= 0 (x^2 is a product); -1: none.
  int whole_exponent = -1;
};

/// kU64: the operator has one meaning for numbers modulo 2^64 (sums, products, bits, equality).
/// kAll: it moves elements or converts them.
enum class StorageTypes : uint8_t { kNone, kU64, kAll };

inline constexpr int kVariadic = 1 << 20;

struct OpDefinition {
  /// The operator's name in the text form; also its ONNX name unless onnx/ says otherwise.
  std::string_view name;
  int min_inputs = 0;
  int max_inputs = 0;  ///< kVariadic when unlimited
  std::vector<AttributeSpec> attributes;

  /// Output types, or InvalidArgument with the expectation. Attributes are complete and of the
  /// right kinds.
  absl::StatusOr<std::vector<TensorType>> (*infer)(std::span<const TensorType> inputs,
                                                   const Attributes& attrs) = nullptr;

  /// The definition. It is empty (`real == nullptr`) only for Input and Constant.
  Meaning meaning;

  /// Bit k set: the output is linear (homogeneous of degree one) in input k with the other inputs
  /// fixed. Null: in none.
  uint32_t (*linear_inputs)(const NodeView& node) = nullptr;

  /// Bit k set: input k is read as indices, axes or a condition that decides which elements are
  /// read. When such an input is not a known constant the verifier treats the whole node as an
  /// opaque oracle of all its inputs.
  uint32_t index_inputs = 0;

  /// The same for all inputs: the node is an opaque oracle of all elements of its inputs unless
  /// they are constants (sorting, arg max, rounding casts of tensors).
  bool opaque = false;

  /// Bound of every element of output `output`. Null: the meaning's bound of the first element,
  /// valid when all elements are computed alike. `arithmetic` counts operands of oracle calls of
  /// ONE output element.
  Bound (*bound)(const NodeView& node, std::span<const Bound> inputs, int output,
                 const Arithmetic<Bound>& arithmetic) = nullptr;

  /// Operands of all oracle calls of the whole output, where its elements share calls. Null: each
  /// element has those of `bound`.
  double (*shared_operands)(const NodeView& node) = nullptr;

  /// The domain on floats, if it is limited. nullopt: defined for all finite inputs.
  std::optional<PartialDomain> domain = std::nullopt;

  /// True if some output element is infinite or NaN for finite operands in `domain` (the largest
  /// element of an empty set). Null: never.
  bool (*infinite)(const NodeView& node) = nullptr;

  /// Sign of float outputs. Null: nothing is known.
  SignRule sign = nullptr;

  /// Null: one flop per output element.
  Cost (*cost)(const NodeView& node) = nullptr;

  /// Boxes of the inputs that suffice for box `out` of output 0, or nullopt where this operator
  /// needs everything. Null: always everything.
  std::optional<Restriction> (*restrict)(const NodeView& node, const Box& out) = nullptr;

  /// The same for several outputs: `wanted` has a box of each, or nullopt where nothing reads it.
  /// The boxes that are computed cover the wanted ones. Null: always everything.
  std::optional<OutputsRestriction> (*restrict_outputs)(
      const NodeView& node, std::span<const std::optional<Box>> wanted) = nullptr;

  /// The elements that output elements read, for the region analyzer; null or nullopt: unknown,
  /// compared element by element.
  std::optional<AccessPattern> (*access)(const NodeView& node) = nullptr;

  /// Draws a valid instance, covering every attribute, dtype family, rank and edge (size one,
  /// padding, empty groups). Used by the registry-driven conformance tests of every backend and of
  /// the verifier.
  OpSample (*sample)(Rng& rng) = nullptr;

  /// Output elements are those of input 0 in row-major order (Reshape): a backend may alias
  /// them.
  bool is_view = false;

  /// The storage types (IsStorageOnly) among the element types of its inputs.
  StorageTypes storage = StorageTypes::kNone;
};

/// All registered operators, sorted by name. Built on first use; immutable afterwards.
std::span<const OpDefinition* const> AllOps();
/// Null when there is no such operator.
const OpDefinition* FindOp(std::string_view name);
/// CHECK-fails when there is no such operator.
const OpDefinition& GetOp(std::string_view name);

/// Cost by the definition's formula or the default.
Cost CostOf(const OpDefinition& op, const NodeView& node);

/// Registers an operator before main(); CHECK-fails on duplicates at first use. Last line of every
/// file in graph/ops.
struct OpRegistrar {
  explicit OpRegistrar(OpDefinition (*make)());
};
#define MENDEL_REGISTER_OP(make) const ::mendel::OpRegistrar op_registrar(make)

}  // namespace mendel

#endif  // MENDEL_GRAPH_OP_DEFINITION_H_
