#include <nlohmann/json.hpp>

#include "base/status.h"
#include "client/html/html.h"
#include "client/html/pages.h"
#include "client/version.h"

namespace mendel {

using ComparisonFacts = nlohmann::ordered_json;

std::string ComparisonPage(const ComparisonFacts& facts, const std::vector<std::string>& head,
                           const std::vector<std::vector<std::string>>& rows,
                           const std::string& command) {
  std::string result = Cat("<p>", Escaped(facts["summary"].get<std::string>()), "</p>\n");
  for (const ComparisonFacts& note : facts["notes"])
    result += Cat("<p class=\"soft\">", Escaped(note.get<std::string>()), "</p>\n");
  std::string body = HtmlSection("Result", result);
  body += HtmlSection("Values", HtmlTable(head, rows, {2, 3, 4}));
  std::string unpaired;
  for (const ComparisonFacts& name : facts["without_counterpart"])
    unpaired += Cat(unpaired.empty() ? "" : ", ", name.get<std::string>());
  if (!unpaired.empty())
    body += HtmlSection("Without a counterpart", Cat("<p>", Escaped(unpaired), "</p>\n"));
  body += HtmlSection("Origin", HtmlFacts({{"model", facts["model"]},
                                           {"compared with", facts["with"]},
                                           {"runtime", facts["runtime"]},
                                           {"seed of random inputs", facts["seed"].dump()},
                                           {"page made by", Cat("Mendel ", VersionLine())}}) +
                                    Cat("<pre>", Escaped(command), "</pre>\n"));
  return HtmlPage("Values compared",
                  Cat(facts["model"].get<std::string>(), " and ", facts["with"].get<std::string>()),
                  body);
}

}  // namespace mendel
