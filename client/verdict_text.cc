#include <cmath>
#include <cstdio>
#include <string_view>

#include "base/status.h"
#include "client/format.h"
#include "client/verdict.h"

namespace mendel {
namespace {

/// Limits of the text on boxes and tensors; others are only counted. --json reports all.
constexpr size_t kBoxesReported = 8;
constexpr size_t kTensorsReported = 8;

std::string Exact(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

std::string Short(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.2g", value);
  return text;
}

bool Refitted(const PairVerdict& verdict) {
  return verdict.refit.has_value() && verdict.refit->applies;
}

std::string RefitHeadline(const PairVerdict& verdict) {
  const RefitReport& refit = *verdict.refit;
  return Cat("equivalent-after-refit: ", refit.tensors.size(), " folded tensors of ",
             refit.refitted == RefitSide::kB ? "B" : "A", " lie within ", Short(refit.largest_ulps),
             " ulps (tolerance ", Short(verdict.fold_tolerance), "), bound 2^",
             Decimals(refit.certificate.bound_log2, 0));
}

/// Replaced constants, and the rounding that it cost: the verdict itself says nothing about |A -
/// B|.
void AddRefit(const PairVerdict& verdict, std::vector<std::string>& lines) {
  if (!verdict.refit.has_value()) return;
  const RefitReport& refit = *verdict.refit;
  if (!refit.applies) {
    lines.push_back("no refit: " + refit.reason);
    return;
  }
  for (size_t i = 0; i < refit.tensors.size() && i < kTensorsReported; ++i) {
    const RefitTensor& tensor = refit.tensors[i];
    lines.push_back(Cat("  ", tensor.name, " = ", tensor.expression, ": ", tensor.differing, " of ",
                        tensor.replaced, " elements differ, by up to ", Short(tensor.largest_ulps),
                        " ulps"));
  }
  if (refit.tensors.size() > kTensorsReported)
    lines.push_back(Cat("  and ", refit.tensors.size() - kTensorsReported, " more"));
  for (const RefitError& error : refit.errors) {
    lines.push_back(Cat("measured error of '", error.output, "': A ", Short(error.a_max), ", B ",
                        Short(error.b_max), " of the largest output"));
  }
}

std::string Headline(const PairVerdict& verdict) {
  const CompareReport& report = verdict.report;
  if (Refitted(verdict)) return RefitHeadline(verdict);
  std::string text(VerdictWord(verdict));
  int64_t wrong = 0;
  int64_t elements = 0;
  bool known = true;
  for (const ComparedOutput& output : report.outputs) {
    wrong += output.wrong_elements;
    elements += output.elements;
    known = known && output.regions_known;
  }
  if (report.verdict == Verdict::kEquivalent) {
    text += Cat(": every element of ", report.outputs.size(),
                report.outputs.size() == 1 ? " output" : " outputs");
    text += report.draws.empty() ? ", by congruence alone"
                                 : Cat(", bound 2^", Decimals(report.bound_log2, 0), ", ",
                                       report.draws.size(), " tests, ", report.segments,
                                       " segments, degree ", Decimals(report.degree, 0));
    if (verdict.weights == WeightMode::kSymbolic) text += "; the same program of the weights";
    if (const int count = report.RoundedConstants(); count > 0)
      text += Cat("; ", count, " constants are rounded, by at most half a unit");
    return text;
  }
  if (report.verdict == Verdict::kUnproven) return text + ": " + report.reason;
  text += Cat(": ", known ? "" : "at least ", wrong, " of ", elements,
              " output elements differ formally");
  if (report.verdict == Verdict::kPartial && report.bound_log2 < 0)
    text += Cat("; the others are equal, bound 2^", Decimals(report.bound_log2, 0));
  return text;
}

std::string ValueText(double value, double error) {
  if (std::isnan(value)) return "no finite number";
  return Cat(Exact(value), " (error at most ", Short(error), ")");
}

void AddOutput(const ComparedOutput& output, std::vector<std::string>& lines) {
  if (output.boxes.empty()) return;
  lines.push_back(Cat("output '", output.name, "' [", ShapeString(output.shape),
                      "]: ", output.regions_known ? "" : "at least ", output.wrong_elements, " of ",
                      output.elements, " elements differ formally"));
  for (size_t i = 0; i < output.boxes.size() && i < kBoxesReported; ++i) {
    const ComparedBox& box = output.boxes[i];
    std::string line = Cat("  ", BoxString(box.box));
    if (box.witness.has_value()) {
      const Witness& witness = *box.witness;
      line += Cat(" wrong: at ", IndexText(witness.element), " A gives ",
                  ValueText(witness.value_f, witness.error_f), ", B gives ",
                  ValueText(witness.value_g, witness.error_g));
    } else {
      line += Cat(" unproven", box.reason.empty() ? "" : ": ", box.reason);
    }
    lines.push_back(std::move(line));
  }
  if (output.boxes.size() > kBoxesReported)
    lines.push_back(Cat("  and ", output.boxes.size() - kBoxesReported, " more boxes"));
}

void AddWitnessFiles(const PairVerdict& verdict, std::vector<std::string>& lines) {
  for (const auto& [box, files] : verdict.witness_files) {
    for (const auto& [input, file] : files)
      lines.push_back(Cat("witness input '", input, "': ", file));
    return;
  }
}

constexpr std::string_view kEarliest = "earliest tensors of A that no tensor of B equals:";
constexpr std::string_view kWeights = "weights of one name that are stored differently:";

void AddTensors(const CompareReport& report, std::vector<std::string>& lines) {
  if (!report.earliest.empty()) lines.emplace_back(kEarliest);
  for (size_t i = 0; i < report.earliest.size() && i < kTensorsReported; ++i) {
    const DivergentTensor& tensor = report.earliest[i];
    lines.push_back(Cat("  ", tensor.name, "  ", tensor.op, " [", ShapeString(tensor.shape), "]"));
  }
  if (report.earliest.size() > kTensorsReported)
    lines.push_back(Cat("  and ", report.earliest.size() - kTensorsReported, " more"));
  if (!report.weights.empty()) lines.emplace_back(kWeights);
  for (size_t i = 0; i < report.weights.size() && i < kTensorsReported; ++i) {
    const WeightDifference& weight = report.weights[i];
    lines.push_back(Cat("  ", weight.name, "  ", weight.differing, " of ", weight.elements,
                        " elements, by up to ", Short(weight.largest_ulps), " ulps"));
  }
  if (report.weights.size() > kTensorsReported)
    lines.push_back(Cat("  and ", report.weights.size() - kTensorsReported, " more"));
}

}  // namespace

std::string_view VerdictWord(const PairVerdict& verdict) {
  return Refitted(verdict) ? "equivalent-after-refit" : VerdictName(verdict.report.verdict);
}

ExitCode ExitCodeOf(const PairVerdict& verdict) {
  if (Refitted(verdict)) return verdict.accept_refit ? kExitGood : kExitNo;
  switch (verdict.report.verdict) {
    case Verdict::kEquivalent:
      return kExitGood;
    case Verdict::kPartial:
    case Verdict::kDifferent:
      return kExitNo;
    case Verdict::kUnproven:
      return kExitUndecided;
  }
  return kExitUndecided;
}

std::vector<std::string> VerdictLines(const PairVerdict& verdict) {
  const CompareReport& report = verdict.report;
  std::vector<std::string> lines = {Headline(verdict)};
  if (!verdict.sizes.empty()) {
    std::string sizes;
    for (const Sizes& one : verdict.sizes) sizes += (sizes.empty() ? "" : "; ") + SizesText(one);
    lines.push_back("sizes of symbolic dimensions: " + sizes);
  }
  if (!report.lacking.empty()) {
    std::string operators;
    for (const std::string& op : report.lacking) operators += (operators.empty() ? "" : ", ") + op;
    lines.push_back("the verifier lacks axioms about: " + operators);
  }
  AddRefit(verdict, lines);
  for (const ComparedOutput& output : report.outputs) AddOutput(output, lines);
  AddWitnessFiles(verdict, lines);
  AddTensors(report, lines);
  std::string axioms;
  for (const auto& [name, count] : report.axioms)
    axioms += Cat(axioms.empty() ? "" : ", ", name, " x", count);
  if (!axioms.empty()) lines.push_back("axioms used: " + axioms);
  for (const std::string& note : verdict.notes) lines.push_back("note: " + note);
  return lines;
}

}  // namespace mendel
