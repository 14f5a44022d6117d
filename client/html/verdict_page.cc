#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "client/format.h"
#include "client/html/html.h"
#include "client/html/pages.h"
#include "client/version.h"

namespace mendel {
namespace {

using Json = nlohmann::ordered_json;

std::string RowText(const Json& numbers) {
  std::string text;
  for (const Json& number : numbers) text += (text.empty() ? "" : ", ") + number.dump();
  return "[" + text + "]";
}

/// Six digits; "undefined" for what is no finite number.
std::string NumberText(const Json& number) {
  if (!number.is_number()) return "undefined";
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", number.get<double>());
  return text;
}

std::string OutputHtml(const Json& output) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& box : output["boxes"]) {
    std::string witness = box.value("reason", "");
    if (box.contains("witness")) {
      const Json& at = box["witness"];
      witness = Cat("element ", RowText(at["element"]), ": A ", NumberText(at["value_a"]), ", B ",
                    NumberText(at["value_b"]));
    }
    rows.push_back({RowText(box["begin"]), RowText(box["end"]), box["status"], witness});
  }
  std::string html =
      Cat("<h3>", Escaped(output["name"].get<std::string>()), " ",
          Escaped(RowText(output["shape"])), "</h3>\n<p>", output["wrong_elements"].dump(), " of ",
          output["elements"].dump(), " elements differ.</p>\n");
  if (rows.empty()) return html;
  return html + BoxPicture(output["shape"], output["boxes"]) +
         HtmlTable({"begin", "end", "status", "witness"}, rows, {});
}

/// The verdict in words.
std::string Words(const Json& facts) {
  const std::string word = facts["verdict"];
  if (word == "equivalent")
    return Cat(
        "Every output element of both models is the same formal expression. The probability "
        "that this is wrong is at most 2^",
        Decimals(facts["bound_log2"].get<double>(), 0), ".");
  if (word == "equivalent-after-refit")
    return "Both models are the same once constants that a tool folded are computed exactly.";
  if (word == "partial")
    return "Some elements are proven equal, and there are inputs on which others differ.";
  if (word == "different") return "There are inputs on which the outputs differ.";
  return "The verifier could not decide.";
}

}  // namespace

std::string BoxPicture(const Json& shape, const Json& boxes) {
  const size_t rank = shape.size();
  const auto extent = [&](size_t from_end) {
    return rank >= from_end ? std::max<double>(1, shape[rank - from_end].get<double>()) : 1.0;
  };
  const double columns = extent(1), rows = extent(2);
  const double width = 400, height = std::clamp(width * rows / columns, 40.0, 400.0);
  const auto edge = [&](const Json& corner, size_t from_end, double missing) {
    return corner.size() >= from_end ? corner[corner.size() - from_end].get<double>() : missing;
  };
  std::string svg = Cat("<svg class=\"boxes\" viewBox=\"-2 -2 404 ", height + 22,
                        "\" role=\"img\"><title>wrong boxes</title><rect class=\"tensor\" width=\"",
                        width, "\" height=\"", height, "\"/>\n");
  for (const Json& box : boxes) {
    const double x = edge(box["begin"], 1, 0) / columns, y = edge(box["begin"], 2, 0) / rows;
    const double right = edge(box["end"], 1, 1) / columns, bottom = edge(box["end"], 2, 1) / rows;
    svg += Cat("<rect class=\"", box["status"] == "wrong" ? "wrong" : "unproven", "\" x=\"",
               x * width, "\" y=\"", y * height, "\" width=\"", std::max(2.0, (right - x) * width),
               "\" height=\"", std::max(2.0, (bottom - y) * height), "\"/>\n");
  }
  const std::string projected =
      rank > 2 ? Cat(", over all of the ", rank - 2, " dimensions before") : "";
  return Cat(svg, "<text x=\"200\" y=\"", height + 16, "\">", rows, " rows, ", columns, " columns",
             projected, "</text></svg>\n");
}

std::string VerdictPage(const Json& facts, const std::string& command) {
  const std::string word = facts["verdict"];
  std::string body = HtmlSection("Verdict", Cat("<p>", Words(facts), "</p>\n"));
  const std::string reason = facts.value("reason", "");
  if (!reason.empty()) body += Cat("<p>", Escaped(reason), "</p>\n");
  std::string outputs;
  for (const Json& output : facts["outputs"]) outputs += OutputHtml(output);
  if (!outputs.empty()) body += HtmlSection("Outputs", outputs);
  std::vector<std::vector<std::string>> rows;
  for (const Json& tensor : facts.value("earliest", Json::array()))
    rows.push_back({tensor["name"], tensor["op"], RowText(tensor["shape"])});
  if (!rows.empty())
    body +=
        HtmlSection("First values that differ", HtmlTable({"name", "operator", "shape"}, rows, {}));
  body += HtmlSection("Origin", HtmlFacts({{"A", facts["a"]},
                                           {"B", facts["b"]},
                                           {"weights", facts["weight_mode"]},
                                           {"seed", facts["seed"].dump()},
                                           {"page made by", Cat("Mendel ", VersionLine())}}) +
                                    Cat("<pre>", Escaped(command), "</pre>\n"));
  return HtmlPage(Cat("Two models: ", word),
                  Cat(facts["a"].get<std::string>(), " and ", facts["b"].get<std::string>()), body);
}

}  // namespace mendel
