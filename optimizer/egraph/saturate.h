// Fills an e-graph with alternatives: rules match on graphs taken from it, the verifier decides,
// what is equal is added.
#ifndef MENDEL_OPTIMIZER_EGRAPH_SATURATE_H_
#define MENDEL_OPTIMIZER_EGRAPH_SATURATE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "optimizer/egraph/egraph.h"
#include "optimizer/egraph/scheduler.h"
#include "optimizer/profile/operator_profiles.h"
#include "optimizer/search/search_session.h"

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
  /// A share of the time that is spare at the beginning. When no more than it is left, measuring
  /// stops: alternatives verified and added later cost what is predicted.
  double measure_share = 0.4;
  /// When no more than this share is left, nothing is added.
  double add_share = 0.28;
};

/// The state of one search. An application is one alternative added at one place; its number is the
/// origin of the e-nodes that it brought. Not thread-safe.
class Saturator {
 public:
  /// `costs` holds seconds an e-node number and grows with the e-graph.
  Saturator(SearchSession& session, EGraph& egraph, std::vector<double>& costs,
            const OperatorProfiles& profiles, const SaturateLimits& limits);

  /// Applies rules to `start`, then to graphs that use what was added, until nothing new is found
  /// or a limit is met: the session is stopped with the reason unless everything was found. Equal
  /// places are verified and measured once.
  absl::Status Run(const EGraphContext& start, const std::vector<ClassId>& roots);

  int64_t rounds() const { return round_; }
  int64_t bans() const { return scheduler_.bans(); }
  const std::vector<plan::AppliedMutant>& applications() const { return applications_; }
  /// The mutants whose e-nodes are among `nodes`, in the order in which they were added.
  std::vector<plan::AppliedMutant> MutantsIn(const std::vector<ENodeId>& nodes) const;

 private:
  using ContextPointer = std::shared_ptr<const EGraphContext>;
  struct RuleMatch {
    ContextPointer context;
    const Rule* rule = nullptr;
    Match match;
  };
  /// Equal subprograms under one rule and choice.
  struct MatchClass {
    std::vector<RuleMatch> matches;
    double seconds = 0;  ///< seconds of all places, by the e-nodes' costs
    bool first_of_all = false;
  };
  /// Knowledge about a class of places that was verified.
  struct Verified {
    bool usable = false;
    bool measured = false;
    AloneTimes times;  ///< ratio predicted unless measured
  };
  struct Expansion {
    double gain = 0;
    std::string key;
    ContextPointer base;
    std::set<ENodeId> nodes;  ///< nodes of the alternatives
  };

  absl::Status RunRound(const std::vector<ContextPointer>& contexts,
                        std::vector<Expansion>& expansions);
  void CollectMatches(const ContextPointer& context);
  absl::StatusOr<std::map<std::string, MatchClass>> AdmittedClasses();
  absl::StatusOr<Verified> VerifyOnce(const RuleMatch& match, const std::string& key,
                                      double seconds);
  absl::Status AddMatches(const MatchClass& matches, const Verified& verified,
                          Expansion& expansion);
  absl::Status AddAlternative(const RuleMatch& match, const Mutant& mutant,
                              const Alternative& alternative, const Verified& verified,
                              Expansion& expansion);
  void SetCosts(const Graph& alternative, const std::vector<ENodeId>& enodes, size_t first_new,
                double total);
  absl::StatusOr<std::vector<ContextPointer>> MakeContexts(std::vector<Expansion> expansions);
  double SecondsOf(const RuleMatch& match) const;
  bool Stopped();

  SearchSession& session_;
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
  std::set<std::string> seen_;                             // places: rule, choices, e-nodes
  std::map<std::string, std::vector<RuleMatch>> waiting_;  // by rule
  std::map<std::string, Verified> verified_;
  std::vector<plan::AppliedMutant> applications_;
};

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_EGRAPH_SATURATE_H_
