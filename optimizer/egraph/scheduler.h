// The scheduler chooses the rules of a round: a rule that matches everywhere must not drown others.
#ifndef MENDEL_OPTIMIZER_EGRAPH_SCHEDULER_H_
#define MENDEL_OPTIMIZER_EGRAPH_SCHEDULER_H_

#include <cstdint>
#include <map>
#include <string>

namespace mendel {

/// egg's back-off: a rule with more new matches in a round than its limit is banned for some
/// rounds. Each time, both its limit and the length of its next ban double (Willsey et al. 2021,
/// section 5; egg's BackoffScheduler).
class BackoffScheduler {
 public:
  BackoffScheduler(int64_t match_limit, int64_t ban_length)
      : match_limit_(match_limit), ban_length_(ban_length) {}

  bool Banned(const std::string& rule, int64_t round) const {
    const auto it = rules_.find(rule);
    return it != rules_.end() && round < it->second.banned_until;
  }

  /// False: `rule` is banned from this round on; its matches must wait.
  bool Admit(const std::string& rule, int64_t matches, int64_t round) {
    State& state = rules_[rule];
    if (matches <= match_limit_ << state.bans) return true;
    state.banned_until = round + (ban_length_ << state.bans);
    ++state.bans;
    ++bans_;
    return false;
  }

  /// Moves all bans forward so that the first one ends before `round`, for when nothing else is
  /// left to do. False when no rule is banned then.
  bool Release(int64_t round) {
    int64_t first = -1;
    for (const auto& [rule, state] : rules_) {
      if (state.banned_until > round && (first < 0 || state.banned_until < first))
        first = state.banned_until;
    }
    if (first < 0) return false;
    for (auto& [rule, state] : rules_) {
      if (state.banned_until > round) state.banned_until -= first - round;
    }
    return true;
  }

  /// Times that a rule was banned.
  int64_t bans() const { return bans_; }

 private:
  struct State {
    int64_t banned_until = 0;
    int bans = 0;
  };
  int64_t match_limit_;
  int64_t ban_length_;
  int64_t bans_ = 0;
  std::map<std::string, State> rules_;
};

}  // namespace mendel

#endif  // MENDEL_OPTIMIZER_EGRAPH_SCHEDULER_H_
