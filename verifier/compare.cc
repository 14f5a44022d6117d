#include "verifier/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/random.h"
#include "base/status.h"
#include "verifier/constants.h"
#include "verifier/divergence.h"
#include "verifier/facts.h"
#include "verifier/field_evaluator.h"
#include "verifier/full_certify.h"
#include "verifier/sweep.h"
#include "verifier/weights.h"

namespace mendel {
namespace {

constexpr int kMaxRedraws = 3;
/// Ways to a "yes": as given and by facts, with equal weights as symbols and with their values.
constexpr int kMaxAttempts = 4;
/// Regions and witnesses explain a "no"; without a limit of the caller's they end after this many seconds.
constexpr double kRegionSeconds = 60;
constexpr double kWitnessSeconds = 120;
/// Share of the time left that the regions may take.
constexpr double kRegionShare = 0.4;
/// Boxes for which a witness is sought.
constexpr size_t kMaxWitnessedBoxes = 64;
constexpr std::string_view kOutOfTime = "out of time";

Deadline Within(const Deadline& deadline, double seconds, double share) {
  return Deadline::After(std::min(seconds, share * deadline.SecondsLeft()));
}

class Comparison {
 public:
  Comparison(const Graph& a, const Graph& b, const CompareOptions& options) : a_(a), b_(b), options_(options) {}

  absl::StatusOr<CompareReport> Run() {
    for (const GraphOutput& output : a_.outputs()) {
      const Shape& shape = a_.type(output.value).shape;
      report_.outputs.push_back({output.name, shape, NumElements(shape), 0, true, {}});
    }
    report_.weights = WeightDifferences(a_, b_);
    const absl::Status proven = Prove();
    if (proven.ok()) {
      report_.verdict = Verdict::kEquivalent;
      return std::move(report_);
    }
    undecided_ = absl::IsUnimplemented(proven);
    if (!undecided_ && !absl::IsFailedPrecondition(proven) && !absl::IsDeadlineExceeded(proven)) return proven;
    report_.reason = std::string(proven.message());
    if (absl::IsDeadlineExceeded(proven)) return OutOfTime();
    if (options_.before_explaining) {
      MENDEL_ASSIGN_OR_RETURN(const bool answered, options_.before_explaining());
      if (answered) return std::move(report_);
    }
    MENDEL_RETURN_IF_ERROR(Explain());
    Conclude();
    return std::move(report_);
  }

 private:
  /// First the programs as they are, then by facts.
  absl::Status Certified(const Graph& a, const Graph& b, WeightMode weights) {
    JudgeOptions judge = options_.judge;
    judge.weights = weights;
    judge.target_log2 -= std::log2(kMaxAttempts);
    const absl::Status given = Record(options_.cut_points ? Certify(a, b, judge) : CertifyWithoutCuts(a, b, judge));
    if (!IsNo(given)) return given;
    std::map<std::string, int> facts;
    const absl::Status by_facts = Record(options_.cut_points ? CertifySwept(a, b, judge, &facts) : Canonical(a, b, judge, &facts));
    if (IsNo(by_facts)) return given;
    if (by_facts.ok()) report_.facts = std::move(facts);
    return by_facts;
  }

  static absl::StatusOr<Certificate> Canonical(const Graph& a, const Graph& b, const JudgeOptions& judge,
                                               std::map<std::string, int>* facts) {
    MENDEL_ASSIGN_OR_RETURN(const Graph canonical_a, Canonicalise(a, judge.weights, facts));
    MENDEL_ASSIGN_OR_RETURN(const Graph canonical_b, Canonicalise(b, judge.weights, facts));
    return CertifyWithoutCuts(canonical_a, canonical_b, judge);
  }

  static bool IsNo(const absl::Status& status) { return absl::IsFailedPrecondition(status) || absl::IsUnimplemented(status); }

  /// Each attempt before this one could have accepted a wrong program with the same probability: the bound adds them up.
  absl::Status Record(const absl::StatusOr<Certificate>& certificate) {
    ++attempts_;
    MENDEL_RETURN_IF_ERROR(certificate.status());
    report_.bound_log2 = certificate->bound_log2 + std::log2(attempts_);
    report_.draws = certificate->draws;
    report_.degree = certificate->degree;
    report_.segments = certificate->segments;
    // The first draw of a certificate selects cut points and proves nothing.
    if (options_.cut_points && !report_.draws.empty()) report_.draws.erase(report_.draws.begin());
    return absl::OkStatus();
  }

  /// In exact mode equal tensors are first one symbol, which bounds better than their digits.
  absl::Status Prove() {
    if (options_.judge.weights == WeightMode::kSymbolic) return Certified(a_, b_, WeightMode::kSymbolic);
    MENDEL_ASSIGN_OR_RETURN(const auto shared, ShareEqualConstants(a_, b_));
    const absl::Status as_symbols = Certified(shared.first, shared.second, WeightMode::kSymbolic);
    return IsNo(as_symbols) ? Certified(a_, b_, WeightMode::kExact) : as_symbols;
  }

  absl::StatusOr<CompareReport> OutOfTime() {
    report_.verdict = Verdict::kUnproven;
    report_.reason = std::string(kOutOfTime);
    for (ComparedOutput& output : report_.outputs) {
      output.regions_known = false;
      output.boxes = {{Box::Whole(output.shape), std::nullopt, report_.reason}};
    }
    return std::move(report_);
  }

  /// Where the programs differ, from which tensors on, and with which inputs that can be seen.
  absl::Status Explain() {
    const absl::Status diverged = Diverge();
    if (!diverged.ok() && !absl::IsDeadlineExceeded(diverged) && !absl::IsAborted(diverged)) return diverged;
    if (options_.regions && !undecided_) MENDEL_RETURN_IF_ERROR(FindRegions());
    for (ComparedOutput& output : report_.outputs) {
      if (!output.regions_known) output.boxes = {{Box::Whole(output.shape), std::nullopt, ""}};
    }
    return Witnesses();
  }

  absl::StatusOr<Divergence> DivergenceOf(const Graph& a, const Graph& b) const {
    Rng rng(options_.judge.seed);
    absl::StatusOr<Divergence> found = absl::AbortedError("");
    for (int k = 0; k <= kMaxRedraws && absl::IsAborted(found.status()); ++k) {
      found = FindDivergence(a, b, SeededDraw(rng), options_.judge.weights, options_.judge.deadline);
    }
    return found;
  }

  /// Facts may show more elements equal or, where they part what oracles hold together, fewer: the better view is taken.
  absl::Status Diverge() {
    formal_a_ = a_;
    formal_b_ = b_;
    absl::StatusOr<Divergence> found = DivergenceOf(a_, b_);
    std::map<std::string, int> facts;
    MENDEL_ASSIGN_OR_RETURN(const Graph canonical_a, Canonicalise(a_, options_.judge.weights, &facts));
    MENDEL_ASSIGN_OR_RETURN(const Graph canonical_b, Canonicalise(b_, options_.judge.weights, &facts));
    const absl::StatusOr<Divergence> by_facts = facts.empty() ? found : DivergenceOf(canonical_a, canonical_b);
    const auto total = [](const Divergence& one) { return std::reduce(one.differing.begin(), one.differing.end()); };
    if (by_facts.ok() && found.ok() && total(*by_facts) < total(*found)) {
      formal_a_ = canonical_a;
      formal_b_ = canonical_b;
      found = by_facts;
      report_.facts = std::move(facts);
    }
    for (size_t k = 0; k < report_.outputs.size(); ++k) {
      ComparedOutput& output = report_.outputs[k];
      output.wrong_elements = found.ok() ? found->differing[k] : 0;
      output.regions_known = output.elements == 0 || output.wrong_elements == output.elements;
      if (output.elements > 0 && output.regions_known) output.boxes = {{Box::Whole(output.shape), std::nullopt, ""}};
    }
    MENDEL_RETURN_IF_ERROR(found.status());
    report_.earliest = std::move(found->earliest);
    return absl::OkStatus();
  }

  /// All elements differ already, or the judge says which ones.
  absl::Status FindRegions() {
    const auto known = [](const ComparedOutput& output) { return output.regions_known; };
    if (std::all_of(report_.outputs.begin(), report_.outputs.end(), known)) return absl::OkStatus();
    JudgeOptions judge = options_.judge;
    judge.deadline = Within(judge.deadline, kRegionSeconds, kRegionShare);
    if (judge.weights == WeightMode::kSymbolic) return TakeRegions(formal_a_, formal_b_, judge, false);
    // What is wrong for these weights is wrong with the equal ones as symbols. Where that leaves as few wrong elements as one
    // draw with the weights' values has shown, both are the answer.
    MENDEL_ASSIGN_OR_RETURN(const auto shared, ShareEqualConstants(formal_a_, formal_b_));
    judge.weights = WeightMode::kSymbolic;
    MENDEL_RETURN_IF_ERROR(TakeRegions(shared.first, shared.second, judge, true));
    if (std::all_of(report_.outputs.begin(), report_.outputs.end(), known)) return absl::OkStatus();
    judge.weights = WeightMode::kExact;
    return TakeRegions(formal_a_, formal_b_, judge, false);
  }

  /// Of outputs whose regions are not known yet. `confirmed`: only if as many elements are wrong as differ in the draw.
  absl::Status TakeRegions(const Graph& a, const Graph& b, const JudgeOptions& judge, bool confirmed) {
    const absl::StatusOr<JudgeReport> localised = Localise(a, b, judge);
    if (absl::IsUnimplemented(localised.status())) return absl::OkStatus();
    MENDEL_RETURN_IF_ERROR(localised.status());
    if (localised->verdict == Verdict::kUnproven) return absl::OkStatus();
    for (size_t k = 0; k < report_.outputs.size(); ++k) {
      ComparedOutput& output = report_.outputs[k];
      const OutputReport& found = localised->outputs[k];
      if (output.regions_known || (confirmed && found.wrong_elements != output.wrong_elements)) continue;
      output.wrong_elements = found.wrong_elements;
      output.regions_known = true;
      output.boxes.clear();
      for (const Box& box : found.wrong) output.boxes.push_back({box, std::nullopt, ""});
    }
    return absl::OkStatus();
  }

  /// In symbolic mode both programs get the weights of A: the verdict is about the programs.
  absl::Status Witnesses() {
    std::vector<WitnessQuery> queries;
    std::vector<ComparedBox*> boxes;
    for (size_t k = 0; k < report_.outputs.size(); ++k) {
      for (ComparedBox& box : report_.outputs[k].boxes) {
        if (box.box.Volume() == 0) continue;
        if (queries.size() == kMaxWitnessedBoxes) {
          box.reason = Cat("not sought: more than ", kMaxWitnessedBoxes, " boxes");
          continue;
        }
        queries.push_back({static_cast<int>(k), box.box});
        boxes.push_back(&box);
      }
    }
    Graph b = b_;
    if (options_.judge.weights == WeightMode::kSymbolic) {
      MENDEL_ASSIGN_OR_RETURN(b, WithWeightsOf(a_, b_));
    }
    WitnessOptions witness = options_.witness;
    witness.seed = options_.judge.seed;
    witness.deadline = Within(options_.judge.deadline, kWitnessSeconds, 1);
    auto answers = FindWitnesses(a_, b, queries, witness);
    if (absl::IsUnimplemented(answers.status()) || absl::IsDeadlineExceeded(answers.status())) {
      for (ComparedBox* box : boxes) box->reason = std::string(answers.status().message());
      return absl::OkStatus();
    }
    MENDEL_RETURN_IF_ERROR(answers.status());
    for (size_t k = 0; k < boxes.size(); ++k) {
      boxes[k]->witness = std::move((*answers)[k].witness);
      boxes[k]->reason = std::move((*answers)[k].reason);
    }
    return absl::OkStatus();
  }

  void Conclude() {
    bool witnessed = false;
    bool all_wrong = true;
    bool all_known = true;
    std::string unwitnessed;
    for (const ComparedOutput& output : report_.outputs) {
      all_known = all_known && output.regions_known;
      all_wrong = all_wrong && output.wrong_elements == output.elements;
      for (const ComparedBox& box : output.boxes) {
        witnessed = witnessed || box.witness.has_value();
        if (unwitnessed.empty()) unwitnessed = box.reason;
      }
    }
    if (witnessed) {
      report_.verdict = all_wrong || !all_known ? Verdict::kDifferent : Verdict::kPartial;
      report_.reason.clear();
      return;
    }
    report_.verdict = Verdict::kUnproven;
    if (options_.judge.deadline.Passed()) {
      report_.reason = std::string(kOutOfTime);
    } else if (!unwitnessed.empty()) {
      report_.reason += Cat("; no witness: ", unwitnessed);
    }
    if (options_.judge.deadline.Passed()) return;
    std::set<std::string> operators;
    for (const DivergentTensor& tensor : report_.earliest) {
      if (tensor.op != "Constant") operators.insert(tensor.op);
    }
    report_.lacking.assign(operators.begin(), operators.end());
  }

  const Graph& a_;
  const Graph& b_;
  const CompareOptions& options_;
  Graph formal_a_;  ///< as given or canonical, whichever agree more
  Graph formal_b_;
  int attempts_ = 0;
  bool undecided_ = false;  ///< the judge does not even know whether the programs differ formally
  CompareReport report_;
};

}  // namespace

absl::StatusOr<CompareReport> ComparePrograms(const Graph& a, const Graph& b, const CompareOptions& options) {
  MENDEL_RETURN_IF_ERROR(CheckGraph(a));
  MENDEL_RETURN_IF_ERROR(CheckGraph(b));
  return Comparison(a, b, options).Run();
}

}  // namespace mendel
