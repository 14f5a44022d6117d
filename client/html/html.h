// Parts of self-contained HTML pages: no script, no font and no picture comes from elsewhere.
#ifndef MENDEL_CLIENT_HTML_HTML_H_
#define MENDEL_CLIENT_HTML_HTML_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mendel {

/// Text for elements and quoted attributes. Bytes that are no UTF-8 become U+FFFD.
std::string Escaped(std::string_view text);

/// `text` with at most so many bytes, cut between characters, and dots where it was cut.
std::string Shortened(const std::string& text, size_t bytes);

/// The page: its title as heading, a subtitle, then `body`, which is HTML. Light or dark as the
/// reader's system is.
std::string HtmlPage(const std::string& title, const std::string& subtitle,
                     const std::string& body);

/// A heading and HTML that follows it.
std::string HtmlSection(const std::string& title, const std::string& html);

/// A list of names and texts.
std::string HtmlFacts(const std::vector<std::pair<std::string, std::string>>& facts);

/// A table of text; columns numbered in `numbers` (from 0) are set to the right.
std::string HtmlTable(const std::vector<std::string>& head,
                      const std::vector<std::vector<std::string>>& rows,
                      const std::vector<size_t>& numbers);

/// A horizontal bar. `kind` is a class of the style: "before", "after", "mutant" or "rest".
struct HtmlBar {
  std::string label;
  std::string value;  ///< as text
  double size = 0;    ///< compared with the largest of all; negative: drawn as 0
  std::string kind;
};
std::string HtmlBars(const std::vector<HtmlBar>& bars);

}  // namespace mendel

#endif  // MENDEL_CLIENT_HTML_HTML_H_
