// mendel rules [--json]: what the mutator knows.

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "base/status.h"
#include "client/command.h"
#include "mutator/rule.h"

namespace mendel {
namespace {

absl::Status Rules(Context& context) {
  for (const Rule* rule : AllRules()) {
    const std::string stage = rule->stage == Stage::kNormalise ? "normalise" : "search";
    context.facts()["rules"].push_back({{"name", rule->name},
                                        {"claim", ClaimName(rule->claim)},
                                        {"stage", stage},
                                        {"before", rule->before},
                                        {"after", rule->after},
                                        {"precondition", rule->precondition},
                                        {"loses_when", rule->loses_when}});
    context.Line(Cat(rule->name, "  (", ClaimName(rule->claim), ", ", stage, ")"));
    context.Line(Cat("  before      ", rule->before));
    context.Line(Cat("  after       ", rule->after));
    context.Line(Cat("  requires    ", rule->precondition));
    context.Line(Cat("  loses when  ", rule->loses_when));
  }
  return absl::OkStatus();
}

Command Make() {
  return {"rules", "Lists the rewrite rules with claim, before and after", [](CLI::App&) -> Action { return &Rules; }};
}

MENDEL_REGISTER_COMMAND(&Make);

}  // namespace
}  // namespace mendel
