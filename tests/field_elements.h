// The meaning of a kernel's text with elements of GF(p) in place of floats, for tests.
//
// The bytes of a kernel stay unchanged. Sums, products and quotients are the field's. Functions
// that are no polynomials are the verifier's oracles, under the same key: kernel and verifier agree
// where they apply one function to one element. Four axioms join different forms of the text and
// of the operators' meaning in the field:
//
//   Exp(a - b) in the text, of a softmax and its shift, is Exp(a) / Exp(b): the functional equation
//   of the exponential. One shift for numerator and denominator cancels, whatever it is. The result
//   is the verifier's softmax without a shift.
//   Log of a sum of such quotients with one b is Log of the sum of Exp(a), minus b: the functional
//   equation of the logarithm. Rows of one element are not verified so: their quotient is 1, and
//   its b is unknown.
//   1 / Sqrt(v) in the text, of a normalization, is Rsqrt(v): the definition of that oracle. Nodes
//   that divide by a root use Quotient in the text, a quotient by the verifier's oracle Sqrt.
//   The largest of many elements, two at a time, is the verifier's oracle of their set.
//
// Literals are dyadic rationals, as in the text: an attribute that f32 rounds differs from the
// verifier's.
#ifndef MENDEL_TESTS_FIELD_ELEMENTS_H_
#define MENDEL_TESTS_FIELD_ELEMENTS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "graph/arithmetic.h"
#include "kernels/cuda/testing/emulator/device.h"
#include "verifier/field_evaluator.h"

namespace mendel::cuda {

/// The text between PreambleText() and kernels, whose `float` then means an element; and the text
/// after the kernels. No dtype but f32 is defined.
extern const char* const kBeginElements;
extern const char* const kEndElements;

/// True for an operator with the same meaning on both sides. Comparisons are excluded, and
/// functions whose texts are formulas of other functions (HardSwish) or have literals that f32
/// rounds (Gelu).
bool IsVerifiedInField(std::string_view op);

/// The verifier's functions under one draw, for the last bound module. Not
/// thread-safe.
class FieldFunctions {
 public:
  explicit FieldFunctions(const Draw& draw);
  ~FieldFunctions();
  FieldFunctions(const FieldFunctions&) = delete;
  FieldFunctions& operator=(const FieldFunctions&) = delete;

  /// Sets the field of the module's elements to this draw's, until another object is bound or this
  /// one is destroyed.
  void Bind(const EmulatedModule& module);
  /// Starts a launch: extremes and sums of earlier launches are
  /// forgotten.
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
  /// The sets of which these elements are the extremes by these functions.
  std::map<std::pair<std::string_view, uint64_t>, std::set<Fp>> members_;
  std::map<uint64_t, uint64_t> shifts_;  ///< b of the elements that are sums of Exp(a) / Exp(b)
};

}  // namespace mendel::cuda

#endif  // MENDEL_TESTS_FIELD_ELEMENTS_H_
