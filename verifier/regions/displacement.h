// Displacement: the move of what a value reads when one steps along it (docs/verifier.md).
#ifndef MENDEL_VERIFIER_REGIONS_DISPLACEMENT_H_
#define MENDEL_VERIFIER_REGIONS_DISPLACEMENT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace mendel {

/// A displacement in the dimensions of a source; empty when it stands still.
using Step = std::vector<int64_t>;
/// One step a dimension of the value.
using Columns = std::vector<Step>;

/// The moves of the elements that some term of a value reads: for every source (Input or symbolic
/// Constant node) the displacement for one period along each dimension of the value. A source that
/// is absent is not read by the term.
using DisplacementClass = std::map<int32_t, Columns>;

/// sum += factor * step.
void AddScaled(Step& sum, int64_t factor, const Step& step);
/// Makes zero the empty step, so that equal displacements compare equal.
void Canonicalize(Step& step);

/// Merges `b` into `a`; dimensions along which a common source moves differently are added to
/// `conflicts`.
void MergeInto(DisplacementClass& a, const DisplacementClass& b, std::set<size_t>& conflicts);
/// All classes as one: the arguments of a function, a denominator.
DisplacementClass Joint(const std::vector<DisplacementClass>& classes, std::set<size_t>& conflicts);

/// The groups of classes that one translation moves along dimension `dim`: classes that agree on
/// their common sources count once. A group contains the step of every source.
std::vector<std::map<int32_t, Step>> GroupsAlong(
    const std::vector<const DisplacementClass*>& classes, size_t dim);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_REGIONS_DISPLACEMENT_H_
