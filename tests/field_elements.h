// What the text of a kernel means with elements of GF(p) in place of floats, for tests.
//
// The bytes of a kernel stay as they are. Sums, products and quotients are the field's; functions that are no polynomials are the
// judge's oracles, under the same key, so that kernel and judge agree where they apply one function to one element. Four facts
// join what the text and the operators' meaning in the field spell differently:
//   Exp(a - b) in the text, of a softmax and its shift, is Exp(a) / Exp(b): the functional equation of the exponential. The shift,
//     whatever it is, cancels where it is one shift for numerator and denominator, and leaves the softmax without a shift that the
//     judge has.
//   Log of a sum of such quotients with one b is Log of the sum of Exp(a), minus b: the functional equation of the logarithm. Rows
//     of one element have the quotient 1, of which b is not known: they are not judged so.
//   1 / Sqrt(v) in the text, of a normalisation, is Rsqrt(v): the definition of that oracle. Nodes that divide by a root do so in
//     the text, too, by Quotient, which is a quotient by the oracle Sqrt as it is to the judge.
//   The largest of many elements, two at a time, is the judge's oracle of their set.
// Literals are the dyadic rationals that they are in the text: an attribute that f32 rounds differs from the judge's.
#ifndef MENDEL_TESTS_FIELD_ELEMENTS_H_
#define MENDEL_TESTS_FIELD_ELEMENTS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "graph/arithmetic.h"
#include "kernels/cuda/emulator/device.h"
#include "verifier/field_evaluator.h"

namespace mendel::cuda {

/// Between PreambleText() and kernels, which then say `float` and mean an element; and after them. No dtype but f32 is defined.
extern const char* const kBeginElements;
extern const char* const kEndElements;

/// Is this an operator of which both sides mean the same? Not among them: comparisons, and functions whose texts are formulas in
/// others (HardSwish) or have literals that f32 rounds (Gelu).
bool IsJudgedInField(std::string_view op);

/// The judge's functions under one draw, for the module that it was bound to last. Not thread-safe.
class FieldFunctions {
 public:
  explicit FieldFunctions(const Draw& draw);
  ~FieldFunctions();
  FieldFunctions(const FieldFunctions&) = delete;
  FieldFunctions& operator=(const FieldFunctions&) = delete;

  /// From here on, until another object is bound or this one ends, the module's elements are of this draw's field.
  void Bind(const EmulatedModule& module);
  /// Before each launch: elements of one are not taken for extremes and sums that another one has made.
  void Begin();

  uint64_t Call(std::string_view function, uint64_t a, uint64_t b);
  uint64_t Literal(double value) const;

 private:
  uint64_t ShiftedExp(uint64_t x, uint64_t shift);
  uint64_t Sum(uint64_t a, uint64_t b);
  uint64_t Log(uint64_t x) const;
  uint64_t Extreme(const ScalarFunction& function, uint64_t a, uint64_t b);
  uint64_t Apply(std::string_view op, uint64_t a, uint64_t b = 0) const;

  FieldEvaluator evaluator_;
  Arithmetic<Fp> arithmetic_;
  /// Of the sets of which these elements are the extremes by these functions.
  std::map<std::pair<std::string_view, uint64_t>, std::set<Fp>> members_;
  std::map<uint64_t, uint64_t> shifts_;  ///< b of the elements that are sums of Exp(a) / Exp(b)
};

}  // namespace mendel::cuda

#endif  // MENDEL_TESTS_FIELD_ELEMENTS_H_
