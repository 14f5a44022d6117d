// Fills an e-graph with alternatives: rules match on graphs taken from it, the judge decides, what is equal is added.
#ifndef MENDEL_OPTIMIZER_EGRAPH_SATURATE_H_
#define MENDEL_OPTIMIZER_EGRAPH_SATURATE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "optimizer/contest.h"
#include "optimizer/egraph/egraph.h"
#include "optimizer/egraph/scheduler.h"
#include "optimizer/operator_profiles.h"

namespace mendel {

/// A graph taken from the e-graph and the e-node of each of its nodes: where rules look for places.
struct EGraphContext {
  Graph graph;
  std::vector<ENodeId> nodes;
};

struct SaturateLimits {
  int max_rounds = 4;
  int64_t match_limit = 300;  ///< new places of a rule in a round (scheduler.h)
  int64_t ban_length = 1;
  int max_contexts = 16;  ///< graphs that rules are applied to, a round
  /// False: alternatives cost what is predicted, nothing is run.
  bool measure = true;
  /// Of what the contest has to spare at the beginning: when that much is left, nothing is measured any more, and what is judged
  /// and added from there on costs what is predicted; ...
  double measure_share = 0.4;
  /// ... and when no more than this is left, nothing is added.
  double add_share = 0.28;
};

/// The state of one search. An application is one alternative added at one place; its number is the origin of the e-nodes that it
/// brought. Not thread-safe.
class Saturator {
 public:
  /// `costs` holds seconds an e-node number and grows with the e-graph.
  Saturator(Contest& contest, EGraph& egraph, std::vector<double>& costs, const OperatorProfiles& profiles,
            const SaturateLimits& limits);

  /// Applies rules to `start`, then to graphs that use what was added, until nothing new is found or a limit is met: the contest is
  /// stopped with the reason unless everything was found. Equal places are judged and measured once.
  absl::Status Run(const EGraphContext& start, const std::vector<ClassId>& roots);

  int64_t rounds() const { return round_; }
  int64_t bans() const { return scheduler_.bans(); }
  const std::vector<plan::AppliedMutant>& applications() const { return applications_; }
  /// The mutants whose e-nodes are among `nodes`, in the order in which they were added.
  std::vector<plan::AppliedMutant> MutantsIn(const std::vector<ENodeId>& nodes) const;

 private:
  using ContextPointer = std::shared_ptr<const EGraphContext>;
  struct Place {
    ContextPointer context;
    const Rule* rule = nullptr;
    Match match;
  };
  /// Equal subprograms under one rule and choice.
  struct PlaceClass {
    std::vector<Place> places;
    double seconds = 0;  ///< of all places, by the e-nodes' costs
    bool first_of_all = false;
  };
  /// What is known of a class of places that was judged.
  struct Judged {
    bool usable = false;
    bool measured = false;
    AloneTimes times;  ///< ratio predicted unless measured
  };
  struct Expansion {
    double gain = 0;
    std::string key;
    ContextPointer base;
    std::set<ENodeId> nodes;  ///< of the alternatives
  };

  absl::Status RunRound(const std::vector<ContextPointer>& contexts, std::vector<Expansion>& expansions);
  void CollectPlaces(const ContextPointer& context);
  absl::StatusOr<std::map<std::string, PlaceClass>> AdmittedClasses();
  absl::StatusOr<Judged> JudgeOnce(const Place& place, const std::string& key, double seconds);
  absl::Status AddPlaces(const PlaceClass& places, const Judged& judged, Expansion& expansion);
  absl::Status AddAlternative(const Place& place, const Mutant& mutant, const Alternative& alternative, const Judged& judged,
                              Expansion& expansion);
  void SetCosts(const Graph& alternative, const std::vector<ENodeId>& enodes, size_t first_new, double total);
  absl::StatusOr<std::vector<ContextPointer>> MakeContexts(std::vector<Expansion> expansions);
  double SecondsOf(const Place& place) const;
  bool Stopped();

  Contest& contest_;
  EGraph& egraph_;
  std::vector<double>& costs_;
  const OperatorProfiles& profiles_;
  SaturateLimits limits_;
  BackoffScheduler scheduler_;
  double spare_seconds_;  // at the beginning
  std::vector<ClassId> roots_;
  Graph start_;
  int64_t round_ = 0;
  bool left_out_ = false;
  std::set<std::string> seen_;                         // places: rule, choices, e-nodes
  std::map<std::string, std::vector<Place>> waiting_;  // by rule
  std::map<std::string, Judged> judged_;
  std::vector<plan::AppliedMutant> applications_;
};

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_EGRAPH_SATURATE_H_
