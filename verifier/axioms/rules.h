// The axioms as rewriting rules, grouped by file. A rule may only state what is true for all finite
// inputs inside the domain of the node that it replaces, and may not forget a demand of that node
// (docs/axioms.md).
#ifndef MENDEL_VERIFIER_AXIOMS_RULES_H_
#define MENDEL_VERIFIER_AXIOMS_RULES_H_

#include <optional>
#include <span>
#include <string_view>

#include "verifier/axioms/axioms.h"
#include "verifier/axioms/terms.h"

namespace mendel {

/// The same value in another form, nearer to the canonical one; nullopt if the axiom does not
/// apply.
using Rewriting = std::optional<ValueId> (*)(Terms& terms, ValueId value);

inline bool IsConstantTerm(const Terms& terms, ValueId value) {
  return IsConstant(terms.node(value));
}

enum class Elements : uint8_t { kFloats, kAny };

/// kFinite: true of finite numbers. kAll: of infinities, and of values that are undefined, too.
enum class Domain : uint8_t { kFinite, kAll };

struct AxiomRule {
  std::string_view axiom;  ///< a name of AllAxioms()
  std::string_view op;     ///< operator of the nodes that it is tried on; "*": all
  Rewriting rewrite = nullptr;
  /// kFloats: input 0 and the output are floats. Integers wrap, so that kAny needs a proof of its
  /// own.
  Elements elements = Elements::kFloats;
  Domain domain = Domain::kFinite;
};

struct AxiomGroup {
  std::span<const AxiomDescription> axioms;
  std::span<const AxiomRule> rules;
};

AxiomGroup ActivationAxioms();
AxiomGroup ArithmeticAxioms();
AxiomGroup ArrangementAxioms();
AxiomGroup CastAxioms();
AxiomGroup ClipAxioms();
AxiomGroup ExponentialAxioms();
AxiomGroup ExtremeAxioms();
AxiomGroup IntegerAxioms();
AxiomGroup LiteralAxioms();
AxiomGroup LiteralExpressionAxioms();
AxiomGroup LogicAxioms();
AxiomGroup NormalizationAxioms();
AxiomGroup OrderAxioms();
AxiomGroup PieceAxioms();
AxiomGroup PoolAxioms();
AxiomGroup RootAxioms();
AxiomGroup StepAxioms();

/// Rules to be tried on nodes of `op`, in order.
std::span<const AxiomRule* const> RulesFor(std::string_view op);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_AXIOMS_RULES_H_
