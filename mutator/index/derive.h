// The derivations: each takes a program and appends equal ones. One a file.
//
// All work on the last stage, and on iterators that play the same part together (height and width)
// as well as singly. None needs a target in mind: where they apply and with which factors follows
// from the coefficients and extents of the expression itself.
#ifndef MENDEL_MUTATOR_INDEX_DERIVE_H_
#define MENDEL_MUTATOR_INDEX_DERIVE_H_

#include <string>
#include <string_view>
#include <vector>

#include "mutator/index/expression.h"

namespace mendel {

struct Derived {
  std::string step;  ///< what was done, for reports: "split i2 by 2"
  Program program;
};
using DeriveStep = void (*)(const Program& program, std::vector<Derived>& derived);

/// i = m*a + b (+ a phase, cut off again): m is a dilation, a stride of a transposed convolution,
/// or a block of a banded product.
void SplitOutputs(const Program& program, std::vector<Derived>& derived);
/// k = m*u + v in a reduction, relaxed to a multiple of m where a factor is zero beyond: m is a
/// stride or a smaller kernel.
void SplitSums(const Program& program, std::vector<Derived>& derived);
/// A reduction whose iterator never stands alone becomes a sum of terms, one for each value (at
/// most 9 terms).
void UnrollSums(const Program& program, std::vector<Derived>& derived);
/// Ranges of reductions cut to where no factor is zero for its bounds.
void TightenSums(const Program& program, std::vector<Derived>& derived);
/// A product of two factors at composite positions (p + k) becomes a stage T over the positions
/// themselves, summed over what does not move, and a sum of T at the composite positions: matrix
/// product, then offset-add.
void StageProducts(const Program& program, std::vector<Derived>& derived);
/// sum over w of a[b, w] * c[b + w] as sum over j of a[b, j - b] * c[j].
void SkewSums(const Program& program, std::vector<Derived>& derived);

/// Two iterators that occur as one number in mixed radix only become one.
void MergeIterators(const Program& program, std::vector<Derived>& derived);

struct NamedStep {
  std::string_view name;
  DeriveStep step;
};
/// All of the above.
const std::vector<NamedStep>& AllSteps();

/// Drops reductions over one value and terms that are zero; decides divisions: (s*a + b - v) / s
/// with 0 <= b, v < s is whole for v = b only, so that a sum over v is one term.
void Normalize(Program& program);

/// Sets of iterators to which one step applies together: first all that want the same, then each
/// alone.
struct Wanted {
  Iterator iterator = 0;
  int64_t factor = 0;
  int64_t phase = 0;
};
std::vector<std::vector<Wanted>> Together(const std::vector<Wanted>& wanted);

/// True when some form of the term holds `iterator` and another one.
bool IsComposite(const IndexForm& form);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_INDEX_DERIVE_H_
