// Reports as self-contained pages: a plan as `mendel explain --html` shows it, and a verdict.
#ifndef MENDEL_CLIENT_HTML_PAGES_H_
#define MENDEL_CLIENT_HTML_PAGES_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "runtime/plan.h"

namespace mendel {

/// `facts` are those of ReportExplanation with the times of steps ("plan steps", "baseline steps")
/// if there are any; `command` reproduces the page.
std::string PlanPage(const Plan& plan, const nlohmann::ordered_json& facts,
                     const std::string& command);

/// `facts` are those of docs/verify.md.
std::string VerdictPage(const nlohmann::ordered_json& facts, const std::string& command);

/// `facts` are those of `mendel compare`, whose table has these headings and rows.
std::string ComparisonPage(const nlohmann::ordered_json& facts,
                           const std::vector<std::string>& head,
                           const std::vector<std::vector<std::string>>& rows,
                           const std::string& command);

/// A picture of the last two dimensions of a tensor with boxes in it, all other dimensions
/// projected. `boxes` are objects with "begin", "end" and "status" ("wrong" or "unproven").
std::string BoxPicture(const nlohmann::ordered_json& shape, const nlohmann::ordered_json& boxes);

}  // namespace mendel

#endif  // MENDEL_CLIENT_HTML_PAGES_H_
