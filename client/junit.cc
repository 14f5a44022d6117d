#include <string_view>

#include "base/status.h"
#include "client/verdict.h"

namespace mendel {
namespace {

/// XML 1.0: the five characters, and no control characters.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\n':
        escaped += "&#10;";
        break;
      default:
        escaped += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return escaped;
}

enum class Result { kPass, kFailure, kError };

/// An output passes when it has no wrong or unproven box.
Result ResultOf(const PairVerdict& verdict, const ComparedOutput& output) {
  if (verdict.refit.has_value() && verdict.refit->applies)
    return verdict.accept_refit ? Result::kPass : Result::kFailure;
  if (verdict.report.verdict == Verdict::kEquivalent ||
      (output.regions_known && output.boxes.empty()))
    return Result::kPass;
  for (const ComparedBox& box : output.boxes) {
    if (box.witness.has_value()) return Result::kFailure;
  }
  return Result::kError;
}

}  // namespace

std::string VerdictJUnit(const PairVerdict& verdict) {
  std::string text;
  for (const std::string& line : VerdictLines(verdict)) text += line + "\n";
  const std::string message = Escaped(VerdictLines(verdict).front());
  int failures = 0;
  int errors = 0;
  std::string cases;
  for (const ComparedOutput& output : verdict.report.outputs) {
    const Result result = ResultOf(verdict, output);
    cases += Cat("    <testcase classname=\"", Escaped(verdict.file_b), "\" name=\"",
                 Escaped(output.name), "\"");
    if (result == Result::kPass) {
      cases += "/>\n";
      continue;
    }
    ++(result == Result::kFailure ? failures : errors);
    const std::string_view tag = result == Result::kFailure ? "failure" : "error";
    cases += Cat(">\n      <", tag, " type=\"", VerdictWord(verdict), "\" message=\"", message,
                 "\">", Escaped(text), "</", tag, ">\n    </testcase>\n");
  }
  const std::string counts = Cat("tests=\"", verdict.report.outputs.size(), "\" failures=\"",
                                 failures, "\" errors=\"", errors, "\"");
  return Cat("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites ", counts,
             ">\n  <testsuite name=\"mendel verify ", Escaped(verdict.file_a), "\" ", counts, ">\n",
             cases, "  </testsuite>\n</testsuites>\n");
}

}  // namespace mendel
