#include "verifier/compare.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/status.h"
#include "graph/restrict.h"
#include "verifier/axioms/axioms.h"
#include "verifier/axioms/canonical_pair.h"
#include "verifier/certify/axiom_domain.h"
#include "verifier/certify/certify_pair.h"
#include "verifier/certify/full_certify.h"
#include "verifier/certify/sweep.h"
#include "verifier/constants.h"
#include "verifier/divergence.h"
#include "verifier/exact_casts.h"
#include "verifier/regions/right_elements.h"
#include "verifier/weights/large_weights.h"
#include "verifier/weights/weight_pieces.h"
#include "verifier/weights/weights.h"
#include "verifier/witness/first_look.h"

namespace mendel {
namespace {

/// Ways to a "yes": as given and by axioms, with equal weights as symbols and with their values.
constexpr int kMaxAttempts = 4;
/// Regions and witnesses explain a "no"; without a limit of the caller's they end after this many
/// seconds.
constexpr double kRegionSeconds = 60;
constexpr double kWitnessSeconds = 240;
/// Seconds for programs that are known to differ by what doubles see of them.
constexpr double kWitnessSecondsFar = 600;
/// Share of the time left that the regions may take.
constexpr double kRegionShare = 0.4;
/// Shares for a witness sought before a proof by axioms, and for one after which no proof is tried.
constexpr double kFirstWitnessShare = 0.6;
constexpr double kOnlyWitnessShare = 0.85;
/// Weights that are farther apart are not one weight folded in two ways.
constexpr double kMostUlpsOfFolding = 1e4;
/// Boxes for which a witness is sought.
constexpr size_t kMaxWitnessedBoxes = 64;
constexpr std::string_view kOutOfTime = "out of time";

/// Claims nothing about parts of the output.
void ForgetRegions(ComparedOutput& output, const std::string& reason = "") {
  output.regions_known = false;
  output.boxes = {{Box::Whole(output.shape), std::nullopt, reason}};
}

class Comparison {
 public:
  /// `pieces`: both programs for the caller; `parts`: the same with large weights read by parts.
  Comparison(const std::pair<Graph, Graph>& pieces, const std::pair<Graph, Graph>& parts,
             std::vector<WeightDifference> weights, const CompareOptions& options)
      : pieces_(pieces), a_(parts.first), b_(parts.second), options_(options) {
    report_.weights = std::move(weights);
  }

  absl::StatusOr<CompareReport> Run() {
    for (const GraphOutput& output : a_.outputs()) {
      const Shape& shape = a_.type(output.value).shape;
      report_.outputs.push_back({output.name, shape, NumElements(shape), 0, true, {}});
    }
    const absl::Status proven = Prove();
    if (answered_) return std::move(report_);
    if (proven.ok()) {
      report_.verdict = Verdict::kEquivalent;
      return std::move(report_);
    }
    undecided_ = absl::IsUnimplemented(proven);
    if (!undecided_ && !absl::IsFailedPrecondition(proven) && !absl::IsDeadlineExceeded(proven))
      return proven;
    report_.reason = std::string(proven.message());
    if (absl::IsDeadlineExceeded(proven)) return OutOfTime();
    MENDEL_RETURN_IF_ERROR(QueryCaller(true));
    if (answered_) return std::move(report_);
    MENDEL_RETURN_IF_ERROR(Explain());
    Conclude();
    return std::move(report_);
  }

 private:
  VerifierOptions VerifierOptionsFor(WeightMode weights) const {
    VerifierOptions verifier = options_.verifier;
    verifier.weights = weights;
    verifier.definedness = DefinednessCheck::kBoth;
    verifier.target_log2 -= std::log2(kMaxAttempts);
    return verifier;
  }

  absl::Status AsGiven(const Graph& a, const Graph& b, WeightMode weights) {
    const VerifierOptions verifier = VerifierOptionsFor(weights);
    return Record(options_.cut_points ? CertifyGiven(a, b, verifier)
                                      : CertifyWithoutCuts(a, b, verifier));
  }

  absl::Status ByAxioms(const Graph& a, const Graph& b, WeightMode weights) {
    const VerifierOptions verifier = VerifierOptionsFor(weights);
    std::map<std::string, int> axioms;
    const absl::Status proven = Record(options_.cut_points ? CertifySwept(a, b, verifier, &axioms)
                                                           : Canonical(a, b, verifier, &axioms));
    if (proven.ok()) report_.axioms = std::move(axioms);
    return proven;
  }

  bool WeightsDifferByMoreThanFolding() const {
    return std::any_of(
        report_.weights.begin(), report_.weights.end(),
        [](const WeightDifference& weight) { return weight.largest_ulps > kMostUlpsOfFolding; });
  }

  absl::Status QueryCaller(bool last) {
    if (!options_.before_explaining || first_witness_.has_value()) return absl::OkStatus();
    MENDEL_ASSIGN_OR_RETURN(answered_,
                            options_.before_explaining(pieces_.first, pieces_.second, last));
    return absl::OkStatus();
  }

  static absl::StatusOr<Certificate> Canonical(const Graph& a, const Graph& b,
                                               const VerifierOptions& verifier,
                                               std::map<std::string, int>* axioms) {
    MENDEL_ASSIGN_OR_RETURN(const auto pair, CanonicalizePair(a, b, verifier.weights, axioms));
    VerifierOptions formal = verifier;
    formal.definedness = DefinednessCheck::kNone;  // below, of the programs as given
    MENDEL_ASSIGN_OR_RETURN(Certificate certificate,
                            CertifyWithoutCuts(pair.first, pair.second, formal));
    MENDEL_RETURN_IF_ERROR(CheckDomainOfAxioms(a, b, {}, verifier));
    return certificate;
  }

  static bool IsNo(const absl::Status& status) {
    return absl::IsFailedPrecondition(status) || absl::IsUnimplemented(status);
  }

  /// Each attempt before this one could have accepted a wrong program with the same probability:
  /// the bound adds them up.
  absl::Status Record(const absl::StatusOr<Certificate>& certificate) {
    ++report_.attempts;
    // Draw after draw, one program divides by zero: it may do so for every input.
    if (absl::IsAborted(certificate.status()))
      return Unsupported("unproven: ", certificate.status().message(), " in every draw");
    MENDEL_RETURN_IF_ERROR(certificate.status());
    report_.bound_log2 = certificate->bound_log2 + std::log2(report_.attempts);
    report_.draws = certificate->draws;
    report_.degree = certificate->degree;
    report_.segments = certificate->segments;
    // The first draw of a certificate selects cut points and proves nothing.
    if (options_.cut_points && !report_.draws.empty()) report_.draws.erase(report_.draws.begin());
    return absl::OkStatus();
  }

  /// Returns the first answer that is no "no". In exact mode equal tensors are first one symbol,
  /// which bounds better than their digits. Where stored weights differ, an answer of the caller's
  /// is likelier than a proof by axioms and costs less.
  absl::Status Prove() {
    const bool exact = options_.verifier.weights == WeightMode::kExact;
    std::pair<Graph, Graph> shared;
    if (exact) {
      MENDEL_ASSIGN_OR_RETURN(shared, ShareEqualConstants(a_, b_));
    }
    const Graph& a = exact ? shared.first : a_;
    const Graph& b = exact ? shared.second : b_;
    // A proof is unlikely and costs more than a look where weights alone differ, and by more than
    // folding rounds.
    const bool looks_first = exact && WeightsDifferByMoreThanFolding() && OnlyWeightsDiffer(a_, b_);
    if (looks_first) {
      MENDEL_RETURN_IF_ERROR(SeekFirstWitness());
      if (first_witness_.has_value())
        return absl::FailedPreconditionError("the stored weights differ");
    }
    const absl::Status given = AsGiven(a, b, WeightMode::kSymbolic);
    if (!IsNo(given)) return given;
    if (exact && !report_.weights.empty()) {
      MENDEL_RETURN_IF_ERROR(QueryCaller(false));
      if (answered_) return given;
    }
    if (!looks_first) MENDEL_RETURN_IF_ERROR(SeekFirstWitness());
    if (first_witness_.has_value() || look_.far_apart) return given;
    if (look_.only_weights_differ) return exact ? AsGiven(a_, b_, WeightMode::kExact) : given;
    const absl::Status by_axioms = ByAxioms(a, b, WeightMode::kSymbolic);
    if (!IsNo(by_axioms) || !exact) return IsNo(by_axioms) ? given : by_axioms;
    const absl::Status stored = AsGiven(a_, b_, WeightMode::kExact);
    if (!IsNo(stored)) return stored;
    const absl::Status both = ByAxioms(a_, b_, WeightMode::kExact);
    return IsNo(both) ? stored : both;
  }

  /// Inputs on which the programs provably differ make proofs by axioms futile.
  absl::Status SeekFirstWitness() {
    MENDEL_ASSIGN_OR_RETURN(const Graph b, WithWitnessedWeights());
    MENDEL_ASSIGN_OR_RETURN(look_, LookForDifference(a_, b, options_.verifier.seed));
    WitnessOptions witness = options_.witness;
    witness.seed = options_.verifier.seed;
    witness.deadline =
        look_.far_apart
            ? options_.verifier.deadline.Share(kOnlyWitnessShare).Within(kWitnessSecondsFar)
            : options_.verifier.deadline.Share(kFirstWitnessShare).Within(kWitnessSeconds);
    MENDEL_ASSIGN_OR_RETURN(first_witness_, WitnessOfLook(a_, b, look_, witness));
    return absl::OkStatus();
  }

  /// In symbolic mode both programs get the weights of A: the verdict is about the programs.
  absl::StatusOr<Graph> WithWitnessedWeights() const {
    if (options_.verifier.weights == WeightMode::kSymbolic) return WithWeightsOf(a_, b_);
    return b_;
  }

  absl::StatusOr<CompareReport> OutOfTime() {
    report_.verdict = Verdict::kUnproven;
    report_.reason = std::string(kOutOfTime);
    for (ComparedOutput& output : report_.outputs) ForgetRegions(output, report_.reason);
    return std::move(report_);
  }

  /// Finds where the programs differ, from which tensors on, and inputs that show it.
  absl::Status Explain() {
    const absl::Status diverged = Diverge();
    if (!diverged.ok() && !absl::IsDeadlineExceeded(diverged) && !absl::IsAborted(diverged))
      return diverged;
    if (options_.regions && !undecided_) MENDEL_RETURN_IF_ERROR(FindRegions());
    // Programs may agree in every value and not in where they have one.
    const bool none =
        std::all_of(report_.outputs.begin(), report_.outputs.end(),
                    [](const ComparedOutput& output) { return output.boxes.empty(); });
    for (ComparedOutput& output : report_.outputs) {
      if (none) output.regions_known = output.elements == 0;
      if (!output.regions_known) ForgetRegions(output);
    }
    MENDEL_RETURN_IF_ERROR(CheckRightElements());
    return Witnesses();
  }

  /// Elements of one formal value are right only where both programs have it for the same inputs.
  absl::Status CheckRightElements() {
    const bool claims = std::any_of(
        report_.outputs.begin(), report_.outputs.end(), [](const ComparedOutput& output) {
          return output.regions_known && output.wrong_elements < output.elements;
        });
    if (!claims) return absl::OkStatus();
    std::vector<std::vector<Box>> wrong;
    for (const ComparedOutput& output : report_.outputs) {
      std::vector<Box>& boxes = wrong.emplace_back();
      for (const ComparedBox& box : output.boxes) boxes.push_back(box.box);
    }
    const absl::StatusOr<Graph> a = WithoutElements(a_, wrong), b = WithoutElements(b_, wrong);
    absl::Status defined = a.ok() ? b.status() : a.status();
    if (defined.ok() && !a->outputs().empty()) {
      defined = CheckDomainOfAxioms(*a, *b, {}, VerifierOptionsFor(options_.verifier.weights));
    }
    if (defined.ok() || absl::IsInternal(defined)) return defined;
    for (ComparedOutput& output : report_.outputs) {
      if (output.wrong_elements < output.elements) ForgetRegions(output);
    }
    report_.bound_log2 = 0;
    return absl::OkStatus();
  }

  /// Axioms may show more elements equal or, where they part what oracles hold together, fewer: the
  /// better view is taken.
  absl::Status Diverge() {
    formal_a_ = a_;
    formal_b_ = b_;
    DivergenceSearch search(options_.verifier.weights, options_.verifier.seed,
                            options_.verifier.deadline);
    absl::StatusOr<Divergence> found = search.Find(a_, b_);
    if (found.ok()) MENDEL_RETURN_IF_ERROR(DivergeByAxioms(search, *found));
    for (size_t k = 0; k < report_.outputs.size(); ++k) {
      ComparedOutput& output = report_.outputs[k];
      output.wrong_elements = found.ok() ? found->differing[k] : 0;
      output.regions_known = output.elements == 0 || output.wrong_elements == output.elements;
      if (output.elements > 0 && output.regions_known)
        output.boxes = {{Box::Whole(output.shape), std::nullopt, ""}};
    }
    MENDEL_RETURN_IF_ERROR(found.status());
    report_.earliest = std::move(found->earliest);
    return absl::OkStatus();
  }

  absl::Status DivergeByAxioms(DivergenceSearch& search, Divergence& found) {
    // No axiom makes values equal that are this far apart.
    if (look_.all_apart || look_.only_weights_differ ||
        look_.elements_far_apart >= TotalDiffering(found))
      return absl::OkStatus();
    std::map<std::string, int> axioms;
    MENDEL_ASSIGN_OR_RETURN(Graph canonical_a,
                            Canonicalize(a_, options_.verifier.weights, &axioms));
    MENDEL_ASSIGN_OR_RETURN(Graph canonical_b,
                            Canonicalize(b_, options_.verifier.weights, &axioms));
    if (axioms.empty()) return absl::OkStatus();
    auto fewer = search.FindFewer(canonical_a, canonical_b, TotalDiffering(found));
    if (!fewer.ok() || !fewer->has_value()) return absl::OkStatus();
    found = **std::move(fewer);
    formal_a_ = std::move(canonical_a);
    formal_b_ = std::move(canonical_b);
    report_.axioms = std::move(axioms);
    return absl::OkStatus();
  }

  /// All elements differ already, or the verifier says which ones.
  absl::Status FindRegions() {
    const auto known = [](const ComparedOutput& output) { return output.regions_known; };
    if (std::all_of(report_.outputs.begin(), report_.outputs.end(), known)) return absl::OkStatus();
    VerifierOptions verifier = options_.verifier;
    verifier.deadline = verifier.deadline.Share(kRegionShare).Within(kRegionSeconds);
    if (verifier.weights == WeightMode::kSymbolic)
      return TakeRegions(formal_a_, formal_b_, verifier, false);
    // Elements that are wrong for these weights are wrong with the equal ones as symbols. Where
    // that leaves as few wrong elements as one draw with the weights' values shows, both are the
    // answer.
    MENDEL_ASSIGN_OR_RETURN(const auto shared, ShareEqualConstants(formal_a_, formal_b_));
    verifier.weights = WeightMode::kSymbolic;
    MENDEL_RETURN_IF_ERROR(TakeRegions(shared.first, shared.second, verifier, true));
    if (std::all_of(report_.outputs.begin(), report_.outputs.end(), known)) return absl::OkStatus();
    verifier.weights = WeightMode::kExact;
    return TakeRegions(formal_a_, formal_b_, verifier, false);
  }

  /// Fills outputs whose regions are not known yet. `confirmed`: only if as many elements are wrong
  /// as differ in the draw.
  absl::Status TakeRegions(const Graph& a, const Graph& b, const VerifierOptions& verifier,
                           bool confirmed) {
    const absl::StatusOr<VerifierReport> localized = Localize(a, b, verifier);
    if (absl::IsUnimplemented(localized.status())) return absl::OkStatus();
    MENDEL_RETURN_IF_ERROR(localized.status());
    if (localized->verdict == Verdict::kUnproven) return absl::OkStatus();
    bool taken = false;
    for (size_t k = 0; k < report_.outputs.size(); ++k) {
      ComparedOutput& output = report_.outputs[k];
      const OutputReport& found = localized->outputs[k];
      if (output.regions_known || (confirmed && found.wrong_elements != output.wrong_elements))
        continue;
      output.wrong_elements = found.wrong_elements;
      output.regions_known = taken = true;
      output.boxes.clear();
      for (const Box& box : found.wrong) output.boxes.push_back({box, std::nullopt, ""});
    }
    // Two reports may each be wrong.
    if (taken) {
      region_bound_ += std::exp2(localized->bound_log2);
      report_.bound_log2 = std::log2(region_bound_);
    }
    return absl::OkStatus();
  }

  absl::Status Witnesses() {
    std::vector<WitnessQuery> queries;
    std::vector<ComparedBox*> boxes;
    for (size_t k = 0; k < report_.outputs.size(); ++k) {
      for (ComparedBox& box : report_.outputs[k].boxes) {
        if (box.box.Volume() == 0) continue;
        if (HoldsFirstWitness(static_cast<int>(k), box.box)) {
          box.witness = first_witness_;
          continue;
        }
        if (queries.size() == kMaxWitnessedBoxes) {
          box.reason = Cat("not sought: more than ", kMaxWitnessedBoxes, " boxes");
          continue;
        }
        queries.push_back({static_cast<int>(k), box.box});
        boxes.push_back(&box);
      }
    }
    if (queries.empty()) return absl::OkStatus();
    MENDEL_ASSIGN_OR_RETURN(const Graph b, WithWitnessedWeights());
    WitnessOptions witness = options_.witness;
    witness.seed = options_.verifier.seed;
    witness.deadline = options_.verifier.deadline.Within(kWitnessSeconds);
    auto answers = FindWitnesses(a_, b, queries, witness);
    if (absl::IsUnimplemented(answers.status()) || absl::IsDeadlineExceeded(answers.status())) {
      for (ComparedBox* box : boxes) box->reason = std::string(answers.status().message());
      return absl::OkStatus();
    }
    MENDEL_RETURN_IF_ERROR(answers.status());
    for (size_t k = 0; k < boxes.size(); ++k) {
      boxes[k]->witness = std::move((*answers)[k].witness);
      boxes[k]->reason = std::move((*answers)[k].reason);
      boxes[k]->hidden_gap = (*answers)[k].hidden_gap;
    }
    return absl::OkStatus();
  }

  bool HoldsFirstWitness(int output, const Box& box) const {
    return first_witness_.has_value() && look_.suspect->output == output &&
           box.Contains(first_witness_->element);
  }

  void Conclude() {
    bool witnessed = false;
    bool all_wrong = true;
    bool all_known = true;
    std::string unwitnessed;
    for (ComparedOutput& output : report_.outputs) {
      all_known = all_known && output.regions_known;
      for (const ComparedBox& box : output.boxes) {
        if (box.witness.has_value() && output.wrong_elements == 0) output.wrong_elements = 1;
        witnessed = witnessed || box.witness.has_value();
        if (unwitnessed.empty()) unwitnessed = box.reason;
        report_.hidden_gap = std::max(report_.hidden_gap, box.hidden_gap);
      }
      all_wrong = all_wrong && output.wrong_elements == output.elements;
    }
    if (witnessed) {
      report_.verdict = all_wrong || !all_known ? Verdict::kDifferent : Verdict::kPartial;
      report_.reason.clear();
      report_.hidden_gap = 0;
      return;
    }
    report_.verdict = Verdict::kUnproven;
    if (report_.hidden_gap > 0)
      report_.reason = Cat("formally different, not seen in floats: the largest gap is ",
                           report_.hidden_gap, ", which rounding hides; ", report_.reason);
    if (options_.verifier.deadline.Passed()) {
      report_.reason = std::string(kOutOfTime);
    } else if (!unwitnessed.empty()) {
      const bool says_so = unwitnessed.starts_with("no witness");
      report_.reason += Cat(says_so ? "; " : "; no witness: ", unwitnessed);
    }
    if (options_.verifier.deadline.Passed()) return;
    std::set<std::string> operators;
    for (const DivergentTensor& tensor : report_.earliest) {
      if (tensor.op != "Constant") operators.insert(tensor.op);
    }
    report_.lacking.assign(operators.begin(), operators.end());
  }

  const std::pair<Graph, Graph>& pieces_;
  const Graph& a_;
  const Graph& b_;
  const CompareOptions& options_;
  Graph formal_a_;  ///< as given or canonical, whichever agree more
  Graph formal_b_;
  bool answered_ = false;
  double region_bound_ = 0;  ///< the probability that a right element of a region report is wrong
  FirstLook look_;
  std::optional<Witness> first_witness_;  ///< first witness of look_'s suspect
  /// The verifier does not even know whether the programs differ formally.
  bool undecided_ = false;
  CompareReport report_;
};

}  // namespace

int CompareReport::RoundedConstants() const {
  int count = 0;
  for (const auto& [name, times] : axioms) count += name.starts_with("literal ") ? times : 0;
  return count;
}

absl::StatusOr<CompareReport> ComparePrograms(const Graph& given_a, const Graph& given_b,
                                              const CompareOptions& options) {
  MENDEL_RETURN_IF_ERROR(CheckGraph(given_a));
  MENDEL_RETURN_IF_ERROR(CheckGraph(given_b));
  MENDEL_ASSIGN_OR_RETURN(const Graph a, WithExactCasts(given_a, options.verifier.weights));
  MENDEL_ASSIGN_OR_RETURN(const Graph b, WithExactCasts(given_b, options.verifier.weights));
  // A program that computes rows which nobody reads has hardly a value in common with one that does
  // not.
  MENDEL_ASSIGN_OR_RETURN(const Graph needed_a, ComputeNeeded(a));
  MENDEL_ASSIGN_OR_RETURN(const Graph needed_b, ComputeNeeded(b));
  MENDEL_ASSIGN_OR_RETURN(const auto pieces,
                          CutLargeWeights(needed_a, needed_b, 2 * kMostElementsOfPart));
  MENDEL_ASSIGN_OR_RETURN(const auto parts, SplitLargeWeights(pieces.first, pieces.second));
  return Comparison(pieces, parts, WeightDifferences(a, b), options).Run();
}

}  // namespace mendel
