#include "client/html/html.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/status.h"

namespace mendel {
namespace {

constexpr std::string_view kStyle = R"css(
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1f23; --soft: #57606a; --line: #d0d7de;
  --panel: #f6f8fa; --accent: #1f6f4a; --mutant: #b45f06; --wrong: #b3261e; --rest: #4a6fa5; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #12161b; --ink: #e6edf3; --soft: #9aa6b2; --line: #35404b; --panel: #1a2027;
    --accent: #5fcf9a; --mutant: #ffb74d; --wrong: #ff8a80; --rest: #8fb4e8; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 66rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; margin: .5rem 0 .2rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .4rem; overflow-wrap: anywhere; }
.subtitle { color: var(--soft); margin: 0; overflow-wrap: anywhere; }
.soft { color: var(--soft); }
.scroll { overflow: auto; max-height: 80vh; border: 1px solid var(--line); border-radius: 6px; }
table { width: 100%; border-collapse: collapse; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: break-word; max-width: 30rem; }
th { color: var(--soft); font-weight: 600; position: sticky; top: 0; background: var(--paper); }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
dl { display: grid; grid-template-columns: minmax(6rem, max-content) 1fr; gap: .25rem 1rem; margin: 0; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
code, pre { font-family: ui-monospace, monospace; font-size: .92em; }
pre { background: var(--panel); padding: .6rem .8rem; border-radius: 6px; white-space: pre-wrap;
  overflow-wrap: anywhere; }
.bar { display: grid; grid-template: "label track value" / 16rem 1fr 8rem; gap: 0 .8rem;
  align-items: center; margin: .35rem 0; }
.bar .label { grid-area: label; overflow-wrap: anywhere; }
.bar .value { grid-area: value; text-align: right; font-variant-numeric: tabular-nums;
  white-space: nowrap; }
.bar .track { grid-area: track; height: 1rem; }
.bar .track div { height: 100%; border-radius: 3px; min-width: 2px; }
.before { background: var(--soft); } .after { background: var(--accent); }
.mutant { background: var(--mutant); } .rest { background: var(--rest); }
.graphs { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 1rem; }
figure { margin: 0; min-width: 0; } figcaption { color: var(--soft); margin-bottom: .4rem; }
svg { display: block; margin: 0 auto; }
svg .node rect { fill: var(--panel); stroke: var(--soft); }
svg .new rect { fill: var(--mutant); fill-opacity: .3; stroke: var(--mutant); stroke-width: 2; }
svg .patch rect { fill: var(--wrong); fill-opacity: .25; stroke: var(--wrong); stroke-width: 2; }
svg .port rect { fill: var(--rest); fill-opacity: .25; stroke: var(--rest); }
svg a { cursor: pointer; } svg a:hover rect, svg a:focus rect { stroke-width: 3.5; }
dl + .scroll { margin-top: .6rem; }
article { scroll-margin-top: 1rem; border-radius: 6px; }
article:target { outline: 2px solid var(--mutant); outline-offset: .5rem; }
summary { cursor: pointer; color: var(--soft); margin: .4rem 0; }
svg text { fill: var(--ink); font: 12px system-ui, sans-serif; text-anchor: middle; }
svg text.small { fill: var(--soft); font-size: 10px; }
svg .edge { fill: none; stroke: var(--soft); stroke-width: 1.2; }
svg .tensor { fill: var(--panel); stroke: var(--soft); }
svg .wrong { fill: var(--wrong); fill-opacity: .45; stroke: var(--wrong); }
svg .unproven { fill: var(--mutant); fill-opacity: .35; stroke: var(--mutant); stroke-dasharray: 4 2; }
svg.boxes text { fill: var(--soft); }
svg.boxes { width: 100%; max-width: 30rem; height: auto; margin: 0 0 .8rem; }
@media (max-width: 40rem) { .bar { grid-template: "label value" "track track" / 1fr max-content; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .5rem; } th, td { padding: .3rem .35rem; } }
)css";

}  // namespace

std::string Escaped(std::string_view text) {
  // JSON's writer replaces what is no UTF-8.
  const nlohmann::json json = std::string(text);
  const std::string safe =
      nlohmann::json::parse(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
          .get<std::string>();
  std::string result;
  for (const char c : safe) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= ' ' || c == '\n' || c == '\t') result += c;
    }
  }
  return result;
}

std::string Shortened(const std::string& text, size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) --bytes;
  return text.substr(0, bytes) + "…";
}

std::string HtmlPage(const std::string& title, const std::string& subtitle,
                     const std::string& body) {
  return Cat(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n",
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
      Escaped(title), "</title>\n<style>", kStyle, "</style>\n</head>\n<body>\n<main>\n<h1>",
      Escaped(title), "</h1>\n<p class=\"subtitle\">", Escaped(subtitle), "</p>\n", body,
      "</main>\n<script>for (const e of document.querySelectorAll('.middle')) e.scrollLeft = "
      "(e.scrollWidth - e.clientWidth) / 2;</script>\n</body>\n</html>\n");
}

std::string HtmlSection(const std::string& title, const std::string& html) {
  return Cat("<section>\n<h2>", Escaped(title), "</h2>\n", html, "</section>\n");
}

std::string HtmlFacts(const std::vector<std::pair<std::string, std::string>>& facts) {
  std::string html = "<dl>\n";
  for (const auto& [name, text] : facts)
    html += Cat("<dt>", Escaped(name), "</dt><dd>", Escaped(text), "</dd>\n");
  return html + "</dl>\n";
}

std::string HtmlTable(const std::vector<std::string>& head,
                      const std::vector<std::vector<std::string>>& rows,
                      const std::vector<size_t>& numbers) {
  const auto row = [&](const std::vector<std::string>& cells, const std::string& tag) {
    std::string html = "<tr>";
    for (size_t k = 0; k < cells.size(); ++k) {
      const bool number = std::find(numbers.begin(), numbers.end(), k) != numbers.end();
      html += Cat("<", tag, number ? " class=\"number\">" : ">", Escaped(cells[k]), "</", tag, ">");
    }
    return html + "</tr>\n";
  };
  std::string html = "<div class=\"scroll\"><table>\n<thead>" + row(head, "th") + "</thead>\n";
  for (const auto& cells : rows) html += row(cells, "td");
  return html + "</table></div>\n";
}

std::string HtmlBars(const std::vector<HtmlBar>& bars) {
  double largest = 0;
  for (const HtmlBar& bar : bars) largest = std::max(largest, bar.size);
  std::string html;
  for (const HtmlBar& bar : bars) {
    char width[32];
    std::snprintf(width, sizeof width, "%.2f",
                  largest > 0 ? 100 * std::max(0.0, bar.size) / largest : 0);
    html += Cat("<div class=\"bar\"><div class=\"label\">", Escaped(bar.label),
                "</div><div class=\"track\"><div class=\"", bar.kind,
                "\" style=\"width:", std::string(width), "%\"></div></div><div class=\"value\">",
                Escaped(bar.value), "</div></div>\n");
  }
  return html;
}

}  // namespace mendel
