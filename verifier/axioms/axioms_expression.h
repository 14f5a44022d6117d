// Small programs for the tests of axioms: written as expressions, or drawn at random.
#ifndef MENDEL_VERIFIER_AXIOMS_AXIOMS_EXPRESSION_H_
#define MENDEL_VERIFIER_AXIOMS_AXIOMS_EXPRESSION_H_

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/random.h"
#include "graph/evaluate.h"
#include "graph/graph.h"

namespace mendel::axioms_test {

/// "Relu(Mul(x, -2)){...}": operators with attributes as in the text form; numbers are f32 scalars.
/// Inputs: x, y f32[2,3,4], h f32[2,1,4], m f32[3,3], z f32[1,2,6,6], b bool[2,3,4], q, q2 i8[3].
/// Weights: s f32[4], c1, c2, c3 f32[2], positive f32[4]. Literals: True, Full1 and Full3
/// f32[2,3,4] of ones and threes, Three8 i8, Three32 i32, Masked f32[4] with -inf where Kept has 0.
/// All inputs are inputs of every graph. CHECK-fails on errors.
Graph ParseExpression(std::string_view text);

/// A few operators with literals on small floats of one dtype, many of them patterns that an axiom
/// looks for.
Graph RandomExpression(Rng& rng);

/// `graph` with one operator, literal, order of operands or axis replaced by another of its kind;
/// now and then equal to it.
Graph RandomVariant(Rng& rng, const Graph& graph);

/// True when some float value of `graph` fits `is`, for these inputs. Errors of Evaluate.
absl::StatusOr<bool> HasValue(const Graph& graph, const std::vector<HostValue>& inputs,
                              const std::function<bool(double)>& is);

/// True when rounding may decide a comparison, or where a root, a logarithm, a quotient or a power
/// is defined: two operands of the comparison differ by less than 1e-9, or an operand is that small
/// and not 0.
absl::StatusOr<bool> RoundingDecides(const Graph& graph, const std::vector<HostValue>& inputs);

/// Random programs to draw: `usual`, or more for long runs (MENDEL_AXIOM_PROGRAMS).
uint64_t ProgramsToDraw(uint64_t usual);

}  // namespace mendel::axioms_test

#endif  // MENDEL_VERIFIER_AXIOMS_AXIOMS_EXPRESSION_H_
