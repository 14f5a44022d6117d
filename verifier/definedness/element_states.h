// Abstract elements of the values of two numbered programs, computed on demand.
#ifndef MENDEL_VERIFIER_DEFINEDNESS_ELEMENT_STATES_H_
#define MENDEL_VERIFIER_DEFINEDNESS_ELEMENT_STATES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "graph/evaluate.h"
#include "graph/extended.h"
#include "verifier/certify/numbering.h"
#include "verifier/verifier.h"

namespace mendel {

/// The known state of one value. A plain value is finite for every input, in every element.
struct ElementState {
  bool plain = true;
  Sign sign = Sign::kUnknown;  ///< sign of a plain float value
  /// Computed from infinities: its elements may be known better than its sign (exp(-inf) is 0).
  bool masked = false;
  /// Extent 1 in a dimension along which all elements are alike. Plain values may have none.
  Shape shape;
  std::vector<Extended> elements;
};

/// Not thread-safe. `numbering` outlives it.
class ElementStates {
 public:
  explicit ElementStates(const Numbering& numbering);

  /// The states of the numbers and of all that they are computed of. Unimplemented when too many
  /// elements may be undefined.
  absl::Status Compute(std::span<const int32_t> numbers);
  /// A number that Compute has seen.
  const ElementState& Of(int32_t number) const { return states_.at(number); }
  /// Element `flat` of a value of `shape` with this state.
  static const Extended& At(const ElementState& state, const Shape& shape, int64_t flat);

  EventTable& events() { return events_; }

 private:
  /// Values of so few elements are identified by how they are made, others by their number.
  static constexpr int64_t kMostExpanded = 1 << 16;

  absl::Status ComputeNode(int32_t node);
  bool IsPlain(const NumberedNode& node);
  bool IsDefined(const NumberedNode& node);
  /// Computes the elements of a plain masked value, where its node is simple.
  void Refine(int32_t number);
  ElementState ConstantState(int32_t number) const;
  Sign SignOf(const NumberedNode& node) const;
  absl::Status ComputeElements(int32_t node);
  /// All outputs of a node whose operands' elements cannot be followed.
  absl::Status ComputeOpaque(int32_t node);
  /// Output 0 of a node by one slice along each dimension that all operands are alike in; nullopt
  /// if an event depends on the position.
  std::optional<ElementState> ComputeBySlices(const NumberedNode& node);
  static std::vector<Box> WholeReads(const NumberedNode& node);
  std::vector<Extended> Evaluate(const NumberedNode& node, int output, const Box& box,
                                 const std::vector<Box>& reads, const Attributes& attrs);
  /// Elements in `box` of operand `k`.
  std::vector<Extended> Read(const NumberedNode& node, size_t k, const Box& box);
  /// Do operands have the same elements in both boxes, as far as they are not plain?
  bool AreAlike(const NumberedNode& node, const std::vector<Box>& a, const std::vector<Box>& b);
  const std::vector<Extended>& PlainElements(int32_t number);
  Extended Leaf(int32_t number, int64_t flat) const;
  const std::vector<int64_t>* Integers(int32_t number);
  void Store(int32_t number, ElementState state);

  const Numbering& numbering_;
  EventTable events_;
  std::vector<int32_t> first_number_;  ///< by node
  std::map<int32_t, ElementState> states_;
  std::map<int32_t, std::vector<Extended>> plain_elements_;
  std::map<int32_t, std::optional<HostValue>> integers_;
};

}  // namespace mendel

#endif  // MENDEL_VERIFIER_DEFINEDNESS_ELEMENT_STATES_H_
