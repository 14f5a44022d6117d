// mendel rules [--json | --markdown]: what the mutator knows.

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/status.h"
#include "client/command.h"
#include "mutator/rule.h"

namespace mendel::commands::rules {
namespace {

/// A cell of a table: bars would end it.
std::string Cell(std::string_view text) {
  std::string cell;
  for (char c : text) cell += c == '|' ? std::string("\\|") : std::string(1, c);
  return cell;
}

void PrintTable(Context& context) {
  context.Line("| rule | family | claim | before | after | requires | loses when |");
  context.Line("|---|---|---|---|---|---|---|");
  for (const Rule* rule : AllRules()) {
    std::string claim(ClaimName(rule->claim));
    if (rule->stage == Stage::kNormalize) claim += ", always applied";
    context.Line(Cat("| `", rule->name, "` | ", Cell(rule->family), " | ", claim, " | `",
                     Cell(rule->before), "` | `", Cell(rule->after), "` | ",
                     Cell(rule->precondition), " | ", Cell(rule->loses_when), " |"));
  }
}

absl::Status Rules(Context& context, bool markdown) {
  if (markdown) PrintTable(context);
  for (const Rule* rule : AllRules()) {
    const std::string stage = rule->stage == Stage::kNormalize ? "normalize" : "search";
    context.facts()["rules"].push_back({{"name", rule->name},
                                        {"family", rule->family},
                                        {"claim", ClaimName(rule->claim)},
                                        {"stage", stage},
                                        {"before", rule->before},
                                        {"after", rule->after},
                                        {"precondition", rule->precondition},
                                        {"loses_when", rule->loses_when}});
    if (markdown) continue;
    context.Line(Cat(rule->name, "  (", ClaimName(rule->claim), ", ", stage, ")"));
    context.Line(Cat("  family      ", rule->family));
    context.Line(Cat("  before      ", rule->before));
    context.Line(Cat("  after       ", rule->after));
    context.Line(Cat("  requires    ", rule->precondition));
    context.Line(Cat("  loses when  ", rule->loses_when));
  }
  return absl::OkStatus();
}

Command Make() {
  return {"rules", "Lists the rewrite rules with claim, before and after",
          [](CLI::App& app) -> Action {
            auto markdown = std::make_shared<bool>(false);
            app.add_flag("--markdown", *markdown, "Print one Markdown table");
            return [markdown](Context& context) { return Rules(context, *markdown); };
          }};
}

MENDEL_REGISTER_COMMAND(&Make);

}  // namespace
}  // namespace mendel::commands::rules
