#include "client/html/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "client/html/graph_picture.h"
#include "client/html/pages.h"
#include "graph/text.h"

namespace mendel {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Html, NamesOfModelsAreText) {
  EXPECT_EQ(Escaped("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;'");
  EXPECT_EQ(Escaped("a\xff"
                    "b"),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_THAT(HtmlPage("<i>", "<i>", ""), Not(HasSubstr("<i>")));
  EXPECT_THAT(HtmlTable({"a"}, {{"<b>"}}, {}), HasSubstr("&lt;b&gt;"));
}

TEST(Html, BarsAreSharesOfTheLargest) {
  const std::string html =
      HtmlBars({{"a", "4 ms", 4, "before"}, {"b", "1 ms", 1, "after"}, {"c", "-1 ms", -1, "rest"}});
  EXPECT_THAT(html, HasSubstr("width:100.00%"));
  EXPECT_THAT(html, HasSubstr("width:25.00%"));
  EXPECT_THAT(html, HasSubstr("width:0.00%"));
}

TEST(Html, APictureHasAllNodesThatRun) {
  const auto graph = ParseGraph(R"(graph "g" {
    %0 = Input() {name = "x", shape = [2, 3]}
    %1 = Relu(%0)
    %2 = Add(%0, %1)
    return "y" = %2
  })");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const std::string svg = GraphPicture(
      *graph, {.link = [](int32_t node) { return node == 1 ? "#mutant-0" : ""; }, .note = nullptr});
  EXPECT_EQ(Count(svg, "<g class=\"node"), 3u);
  EXPECT_EQ(Count(svg, "<a href=\"#mutant-0\"><g class=\"node new\""), 1u);
  EXPECT_EQ(Count(svg, "class=\"edge\""), 3u);
}

TEST(Html, AVerdictShowsItsBoxes) {
  const auto facts =
      nlohmann::ordered_json::parse(R"({"a":"a.onnx","b":"b<.onnx","verdict":"partial",
    "reason":"","bound_log2":-90,"weight_mode":"exact","seed":1,"outputs":[{"name":"y","shape":[2,4,8],
    "elements":64,"wrong_elements":8,"regions_known":true,"boxes":[{"begin":[0,0,0],"end":[1,1,8],
    "status":"wrong","witness":{"element":[0,0,1],"value_a":1.5,"value_b":2}}]}]})");
  const std::string page = VerdictPage(facts, "mendel verify a.onnx b.onnx");
  EXPECT_THAT(page, HasSubstr("8 of 64 elements differ"));
  EXPECT_THAT(page, HasSubstr("element [0, 0, 1]: A 1.5, B 2"));
  EXPECT_THAT(page, HasSubstr("b&lt;.onnx"));
  EXPECT_EQ(Count(page, "<rect class=\"wrong\" x=\"0\" y=\"0\" width=\"400\" height=\"50\"/>"), 1u);
  EXPECT_THAT(page, Not(HasSubstr("http")));
}

}  // namespace
}  // namespace mendel
