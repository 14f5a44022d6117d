// Search method egraph: saturate, then extract, run, correct the costs by what was measured, and
// extract again.
//
// The costs of e-nodes are seconds in the chain: measured for the baseline, from measured
// alternatives where those were measured alone, predicted elsewhere (saturate.cc). Whole programs
// decide: every extracted program runs, its steps' times replace the costs of its e-nodes, and the
// next extraction knows better. It ends when an extraction comes again.

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "graph/rewrite.h"
#include "optimizer/egraph/egraph_record.h"
#include "optimizer/egraph/extract.h"
#include "optimizer/egraph/saturate.h"
#include "optimizer/profile/operator_profiles.h"
#include "optimizer/search/search_methods.h"
#include "optimizer/search/search_session.h"

namespace mendel {
namespace {

constexpr int kMaxExtractions = 12;
constexpr double kChoosingShare = 0.6;  // of the time left
/// Limits of one extraction: seconds, and a share of the time left.
constexpr double kExtractSeconds = 5, kExtractShare = 0.15;
/// The first extraction gets these seconds whatever is left.
constexpr double kLeastExtractSeconds = 0.5;
/// Cost of trying an extracted program and learning from it, in comparisons of whole programs.
constexpr double kTrialWholes = 2.5;
/// Cost of an operator that runs in its producer's step: it makes the smaller of two equally fast
/// programs win.
constexpr double kOperatorSeconds = 1e-9;
/// Share of a program's time that must be unchanged before the machine's drift is corrected by it.
constexpr double kCalmShare = 0.2;

class EGraphSearcher {
 public:
  explicit EGraphSearcher(SearchSession& session)
      : session_(session), baseline_(session.baseline().graph) {}

  absl::Status Run() {
    const std::string key = session_.Key(
        Cat("egraph 4 peak ", session_.options().max_peak_bytes, " weights ", WeightNames()));
    if (const auto stored = session_.cache().Get("search", key)) {
      if (auto result = ParseEGraphRecord(*stored, baseline_)) {
        session_.result() = *std::move(result);
        return absl::OkStatus();
      }
    }
    MENDEL_RETURN_IF_ERROR(session_.Begin(kChoosingShare));
    MENDEL_RETURN_IF_ERROR(Fill());
    MENDEL_RETURN_IF_ERROR(Improve());
    MENDEL_RETURN_IF_ERROR(session_.FinalComparison());
    session_.MeasureParts();
    session_.FinishCounters(true);
    SearchResult& result = session_.result();
    result.egraph = report_;
    MENDEL_RETURN_IF_ERROR(CheckPeak());
    if (result.stop_reason == StopReason::kInterrupted || session_.Interrupted())
      return absl::OkStatus();
    const auto record = PrintEGraphRecord(result);
    return record.has_value() ? session_.cache().Put("search", key, *record) : absl::OkStatus();
  }

 private:
  std::string WeightNames() const {
    Sha256 hash;
    for (const Node& node : baseline_.nodes()) {
      if (IsConstant(node)) hash.Update(SymbolName(node) + "\n");
    }
    return hash.HexDigest();
  }

  /// The baseline with its measured costs, then everything that rules add.
  absl::Status Fill() {
    const Stopwatch clock;
    MENDEL_ASSIGN_OR_RETURN(const std::vector<double> seconds,
                            session_.profiler().NodeSeconds(
                                {baseline_, session_.result().best.algorithms, "the baseline"},
                                session_.measure_seconds() / 2));
    session_.NoteWholeSeconds(2 * clock.Seconds());
    MENDEL_ASSIGN_OR_RETURN(profiles_,
                            OperatorProfiles::Load(session_.cache(), session_.profiler().Device()));
    EGraphContext start{baseline_, {}};
    MENDEL_ASSIGN_OR_RETURN(const auto where, egraph_.AddGraph(baseline_, {}, -1, &start.nodes));
    for (const GraphOutput& output : baseline_.outputs()) {
      roots_.push_back(
          where[static_cast<size_t>(output.value.node)][static_cast<size_t>(output.value.output)]);
    }
    costs_.resize(egraph_.node_space(), 0);
    const std::vector<bool> constant = ConstantExpressions(baseline_);
    for (size_t i = 0; i < seconds.size(); ++i) {
      if (!constant[i]) costs_[static_cast<size_t>(start.nodes[i])] = seconds[i];
    }
    baseline_costs_ = costs_;
    baseline_nodes_ = start.nodes;
    SaturateLimits limits;
    limits.max_rounds = session_.options().max_rounds;
    // One extraction and what it finds must be tried, whatever candidates could still be looked at.
    session_.KeepFree(kLeastExtractSeconds + kTrialWholes * session_.whole_seconds());
    saturator_ = std::make_unique<Saturator>(session_, egraph_, costs_, profiles_, limits);
    const absl::Status filled = saturator_->Run(start, roots_);
    session_.KeepFree(0);
    session_.result().counters.set_rounds(saturator_->rounds());
    report_.applications = static_cast<int64_t>(saturator_->applications().size());
    report_.banned = saturator_->bans();
    report_.nodes = egraph_.node_count();
    report_.classes = egraph_.class_count();
    return filled;
  }

  /// Costs for the extraction: every step that runs costs more than zero.
  std::vector<double> ExtractionCosts() const {
    std::vector<double> costs = costs_;
    for (size_t i = 0; i < costs.size(); ++i) {
      const ENode& node = egraph_.node(static_cast<ENodeId>(i));
      const bool runs = std::any_of(node.operands.begin(), node.operands.end(),
                                    [&](ClassId c) { return !egraph_.IsConstantClass(c); });
      if (runs) costs[i] += kOperatorSeconds;
    }
    return costs;
  }

  absl::Status Improve() {
    std::vector<ENodeId> baseline;
    for (ENodeId id : baseline_nodes_) baseline.push_back(id < 0 ? id : egraph_.Canonical(id));
    std::set<std::vector<ENodeId>> seen = {Sorted(std::move(baseline))};
    for (int round = 0;
         round < kMaxExtractions && (round == 0 ? !session_.Interrupted() : session_.MayGoOn());
         ++round) {
      session_.Report("extracting");
      ExtractOptions options;
      options.seconds =
          std::clamp(kExtractShare * session_.SecondsLeft(), kLeastExtractSeconds, kExtractSeconds);
      options.max_peak_bytes = session_.options().max_peak_bytes;
      const auto found = ExtractProgram(egraph_, roots_, ExtractionCosts(), options);
      if (absl::IsResourceExhausted(found.status()))
        return absl::OkStatus();  // CheckPeak says what that means
      MENDEL_RETURN_IF_ERROR(found.status());
      Note(*found);
      MENDEL_ASSIGN_OR_RETURN(const SelectedGraph program,
                              ToGraph(egraph_, found->selection, roots_, baseline_));
      if (!seen.insert(Sorted(program.nodes)).second) return absl::OkStatus();
      if (!session_.Affords(kTrialWholes * session_.whole_seconds())) {
        session_.Stop(StopReason::kBudget);
        return absl::OkStatus();
      }
      session_.Report("whole program extracted");
      MENDEL_ASSIGN_OR_RETURN(const SearchSession::WholeResult trial,
                              session_.TryWhole(program.graph, "an extracted program",
                                                saturator_->MutantsIn(program.nodes)));
      if (trial.accepted) best_peak_ = found->peak_bytes;
      MENDEL_ASSIGN_OR_RETURN(
          const std::vector<double> seconds,
          session_.profiler().NodeSeconds(trial.variant, session_.measure_seconds() / 2));
      Learn(program, seconds);
    }
    return absl::OkStatus();
  }

  static std::vector<ENodeId> Sorted(std::vector<ENodeId> nodes) {
    nodes.erase(std::remove(nodes.begin(), nodes.end(), -1), nodes.end());
    std::sort(nodes.begin(), nodes.end());
    return nodes;
  }

  void Note(const Extraction& found) {
    ++report_.extractions;
    report_.extraction = found.method;
    report_.columns = found.columns;
    report_.rows = found.rows;
    report_.loop_cuts = found.loop_cuts;
    report_.extraction_seconds += found.seconds;
    report_.predicted_ms = found.cost * 1e3;
    report_.lower_bound_ms = found.lower_bound * 1e3;
    report_.gap = found.gap;
    report_.peak_bytes = found.peak_bytes;
  }

  bool Own(const SelectedGraph& program, int32_t node) const {
    const ENodeId id = program.nodes[static_cast<size_t>(node)];
    return id >= 0 && egraph_.node(id).origin >= 0;
  }

  /// Neighbors of a node among the alternatives: producers of its operands, else its readers.
  std::vector<int32_t> Neighbors(const SelectedGraph& program, int32_t node,
                                 const std::vector<bool>& constant) const {
    std::vector<int32_t> own;
    for (ValueId value : program.graph.node(node).inputs) {
      if (!constant[static_cast<size_t>(value.node)] && Own(program, value.node))
        own.push_back(value.node);
    }
    if (!own.empty()) return own;
    for (int32_t user : program.graph.users(node)) {
      if (Own(program, user)) own.push_back(user);
    }
    return own;
  }

  /// Measured times replace the costs of the alternatives' e-nodes. Baseline nodes beside them may
  /// cost more or less than in the baseline (an activation no longer fused, another layout). The
  /// alternatives cause that difference, so it goes to their costs.
  void Learn(const SelectedGraph& program, const std::vector<double>& seconds) {
    const std::vector<bool> constant = ConstantExpressions(program.graph);
    const int32_t count = static_cast<int32_t>(program.graph.nodes().size());
    double calm_now = 0, calm_then = 0, all = 0;
    for (int32_t node = 0; node < count; ++node) {
      const size_t at = static_cast<size_t>(node);
      all += seconds[at];
      if (constant[at] || program.nodes[at] < 0 || Own(program, node) ||
          !Neighbors(program, node, constant).empty())
        continue;
      calm_now += seconds[at];
      calm_then += baseline_costs_[static_cast<size_t>(program.nodes[at])];
    }
    const double drift = calm_now > kCalmShare * all && calm_then > 0 ? calm_then / calm_now : 1;
    std::map<ENodeId, double> costs;
    for (int32_t node = 0; node < count; ++node) {
      const size_t at = static_cast<size_t>(node);
      if (constant[at] || program.nodes[at] < 0) continue;
      if (Own(program, node)) {
        costs[program.nodes[at]] += drift * seconds[at];
        continue;
      }
      const std::vector<int32_t> neighbors = Neighbors(program, node, constant);
      const double surplus =
          drift * seconds[at] - baseline_costs_[static_cast<size_t>(program.nodes[at])];
      for (int32_t other : neighbors) {
        costs[program.nodes[static_cast<size_t>(other)]] +=
            surplus / static_cast<double>(neighbors.size());
      }
    }
    for (const auto& [id, cost] : costs) costs_[static_cast<size_t>(id)] = std::max(0.0, cost);
  }

  /// A delivered program stays below the limit on memory.
  absl::Status CheckPeak() const {
    const int64_t limit = session_.options().max_peak_bytes;
    if (limit <= 0) return absl::OkStatus();
    int64_t peak = best_peak_;
    if (session_.result().mutants.empty()) {
      Selection selection{baseline_nodes_, {}};
      peak = PeakBytes(egraph_, selection, roots_);
    }
    if (peak <= limit) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        Cat("no program within ", limit,
            " bytes that is at least as fast was found; the best one needs ", peak));
  }

  SearchSession& session_;
  Graph baseline_;
  EGraph egraph_;
  OperatorProfiles profiles_;
  std::vector<ClassId> roots_;
  std::vector<double> costs_;
  std::vector<double> baseline_costs_;  // by e-node of the baseline
  std::vector<ENodeId> baseline_nodes_;
  std::unique_ptr<Saturator> saturator_;
  EGraphReport report_;
  int64_t best_peak_ = 0;
};

}  // namespace

absl::Status EGraphSearch(SearchSession& session) { return EGraphSearcher(session).Run(); }

}  // namespace mendel
