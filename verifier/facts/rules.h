// The facts as rewriting rules, grouped by file. A rule may only state what is true for all finite inputs inside the domain of the
// node that it replaces, and may not forget a demand of that node (docs/verification.md, "Facts").
#ifndef MENDEL_VERIFIER_FACTS_RULES_H_
#define MENDEL_VERIFIER_FACTS_RULES_H_

#include <optional>
#include <span>
#include <string_view>

#include "verifier/facts.h"
#include "verifier/facts/terms.h"

namespace mendel {

/// The same value in another form, nearer to the canonical one; nothing where the fact does not apply.
using Rewriting = std::optional<ValueId> (*)(Terms& terms, ValueId value);

inline bool IsConstantTerm(const Terms& terms, ValueId value) { return IsConstant(terms.node(value)); }

enum class Elements : uint8_t { kFloats, kAny };

struct FactRule {
  std::string_view fact;  ///< a name of AllFacts()
  std::string_view op;    ///< operator of the nodes that it is tried on; "*": all
  Rewriting rewrite = nullptr;
  /// kFloats: input 0 and the output are floats. Integers wrap, so that kAny needs a proof of its own.
  Elements elements = Elements::kFloats;
};

struct FactGroup {
  std::span<const FactDescription> facts;
  std::span<const FactRule> rules;
};

FactGroup ActivationFacts();
FactGroup ArithmeticFacts();
FactGroup ArrangementFacts();
FactGroup ClipFacts();
FactGroup ExponentialFacts();
FactGroup ExtremeFacts();
FactGroup LiteralFacts();
FactGroup LogicFacts();
FactGroup NormalizationFacts();
FactGroup PoolFacts();
FactGroup RootFacts();

/// Rules to be tried on nodes of `op`, in order.
std::span<const FactRule* const> RulesFor(std::string_view op);

}  // namespace mendel

#endif  // MENDEL_VERIFIER_FACTS_RULES_H_
