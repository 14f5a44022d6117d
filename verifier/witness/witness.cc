#include "verifier/witness/witness.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "base/status.h"
#include "graph/rewrite.h"
#include "verifier/witness/class_witness.h"
#include "verifier/witness/contracting_inputs.h"
#include "verifier/witness/early_steps.h"
#include "verifier/witness/enclosure_precision.h"
#include "verifier/witness/gap_noise.h"
#include "verifier/witness/witness_inputs.h"
#include "verifier/witness/witness_pair.h"

namespace mendel {
namespace {

using Inputs = std::shared_ptr<const std::vector<HostValue>>;

/// Boxes whose enclosure is so little work are enclosed with every candidate that looks best.
constexpr double kCheapFlops = 2e6;
/// Enclosures of a costly box that agree to so many bits are not expected to part in more of
/// them.
constexpr double kAgreement = 0x1p-200;
constexpr int kFullLadders = 3;  ///< enclosures a query that go up to the largest precision
constexpr int kShortLadder = 512;
/// The next precision of a costly box comes from the radius of the last enclosure.
constexpr int kLeastStep = 64;
constexpr int kMaxEnclosures = 10;  ///< a query
constexpr int kMaxEnclosuresCostly = 3;
/// Inputs a query on which one side is a number and the other is not.
constexpr size_t kMostUndefined = 6;
constexpr int kAscentSteps = 24;
constexpr double kAscentFlops = 5e10;  ///< of all queries together
/// Work on candidates, in doubles; the first few are tried whatever they cost.
constexpr double kCandidateFlops = 2e11;
constexpr int kLeastCandidates = 8;
/// Candidates tried of all but the largest programs; the smallest get more.
constexpr int kUsualCandidates = 64;
constexpr double kCheapCandidateFlops = 1e9;

/// Share of the time left that each part of a query by its first steps may take.
constexpr double kEarlyShare = 0.25;
/// The same of all queries together, at inputs at which the steps contract.
constexpr double kContractingShare = 0.6;

bool IsCheckpoint(int candidate) {
  return ((candidate + 1) & candidate) == 0;
}  // after 1, 2, 4, 8, ...

/// The state of one query.
struct State {
  const WitnessQuery* query = nullptr;
  double flops = 0;
  Inputs inputs;  ///< of the largest gap not yet enclosed
  Gap gap;
  bool tried = true;
  double largest_score = 0;
  double hidden_gap = 0;  ///< the largest that rounding hides
  double hidden_score = 0;
  int not_numbers = 0;
  std::vector<std::pair<Inputs, int64_t>> undefined;  ///< elements that one side may not define
  int enclosures = 0;
  std::vector<double> differences;  ///< of each enclosure: |f - g| is at most this
  std::string obstacle;
  int evaluations = 0;     ///< in balls
  int next_precision = 0;  ///< that the last enclosure requests
  std::optional<Witness> witness;

  bool cheap() const { return flops <= kCheapFlops; }
  bool exhausted() const { return enclosures >= (cheap() ? kMaxEnclosures : kMaxEnclosuresCostly); }
};

class Search {
 public:
  Search(const Graph& joint, const WitnessOptions& options)
      : joint_(joint),
        options_(options),
        seconds_(options.deadline.SecondsLeft()),
        draws_(joint, options.seed),
        noise_(joint, options.seed) {}

  absl::Status Run(std::span<const WitnessQuery> queries) {
    for (const WitnessQuery& query : queries) {
      State state;
      state.query = &query;
      MENDEL_ASSIGN_OR_RETURN(const Graph pair, RestrictPair(joint_, {{query.output, query.box}}));
      state.flops = TotalFlops(pair);
      states_.push_back(std::move(state));
    }
    MENDEL_RETURN_IF_ERROR(TryCandidates());
    for (State& state : states_) MENDEL_RETURN_IF_ERROR(TryClasses(state, false));
    for (State& state : states_) MENDEL_RETURN_IF_ERROR(Ascend(state));
    MENDEL_RETURN_IF_ERROR(Enclose(/*all=*/true));
    for (State& state : states_) MENDEL_RETURN_IF_ERROR(TryClasses(state, true));
    return absl::OkStatus();
  }

  std::vector<WitnessAnswer> Answers(bool only_constants) const {
    std::vector<WitnessAnswer> answers;
    for (const State& state : states_) {
      answers.push_back({state.witness,
                         state.witness.has_value() ? "" : Reason(state, only_constants),
                         state.hidden_gap, state.evaluations});
    }
    return answers;
  }

 private:
  double flops() const { return flops_ + noise_.flops(); }

  std::vector<State*> Pending() {
    std::vector<State*> pending;
    for (State& state : states_) {
      if (!state.witness.has_value()) pending.push_back(&state);
    }
    return pending;
  }

  absl::Status TryCandidates() {
    std::vector<State*> pending;
    Graph pairs;
    double pairs_flops = 0;
    for (; candidates_ < options_.max_candidates && !options_.deadline.Passed(); ++candidates_) {
      if (candidates_ > 0 && OnlyEnclosuresFit(pending)) break;
      if (candidates_ >= kLeastCandidates && flops() > kCandidateFlops) break;
      if (candidates_ >= kUsualCandidates && flops() > kCheapCandidateFlops) break;
      if (const std::vector<State*> now = Pending(); now != pending) {
        pending = now;
        if (pending.empty()) break;
        std::vector<OutputBox> boxes;
        for (const State* state : pending)
          boxes.push_back({state->query->output, state->query->box});
        MENDEL_ASSIGN_OR_RETURN(pairs, RestrictPair(joint_, boxes));
        pairs_flops = TotalFlops(pairs);
      }
      const auto inputs = std::make_shared<const std::vector<HostValue>>(draws_.Draw(candidates_));
      MENDEL_ASSIGN_OR_RETURN(const std::vector<HostValue> values, Evaluate(pairs, *inputs));
      flops_ += pairs_flops;
      MENDEL_RETURN_IF_ERROR(NoteAll(pairs, pending, inputs, values));
      if (IsCheckpoint(candidates_)) MENDEL_RETURN_IF_ERROR(Enclose(/*all=*/false));
    }
    return absl::OkStatus();
  }

  /// True where the rest of the time is needed to enclose what has been found: half of it, and at
  /// least what that may take.
  bool OnlyEnclosuresFit(const std::vector<State*>& pending) const {
    double flops = 0;
    for (const State* state : pending)
      flops = std::max(flops, state->tried || state->cheap() ? 0 : state->flops);
    return flops > 0 && options_.deadline.SecondsLeft() <
                            std::max(seconds_ / 2, 2 * SecondsInBalls(flops, 3 * kFirstBitsCostly));
  }

  /// Records what one evaluation of `pairs` shows of each state. Gaps count beyond rounding noise,
  /// which is looked at only where a gap would be the largest so far.
  absl::Status NoteAll(const Graph& pairs, const std::vector<State*>& states, const Inputs& inputs,
                       const std::vector<HostValue>& values) {
    std::vector<std::vector<double>> noise;
    for (size_t k = 0; k < states.size(); ++k) {
      State& state = *states[k];
      const HostValue& f = values[2 * k];
      const HostValue& g = values[2 * k + 1];
      const Gap gap = LargestGap(f, g);
      if (gap.not_numbers) ++state.not_numbers;
      if (gap.undefined >= 0 && state.undefined.size() < kMostUndefined)
        state.undefined.emplace_back(inputs, gap.undefined);
      state.largest_score = std::max(state.largest_score, gap.score);
      if (gap.score == 0 || (!state.tried && gap.score <= state.gap.score)) continue;
      const bool costly = GapNoise::IsCostly(pairs);
      // Gaps that are no larger than one which noise hides are not worth its evaluation.
      if (costly && gap.score <= state.hidden_score) continue;
      if (noise.empty()) {
        MENDEL_ASSIGN_OR_RETURN(noise, noise_.OfPairs(pairs, *inputs, values));
      }
      MENDEL_ASSIGN_OR_RETURN(
          const VisibleGap visible,
          noise_.Visible(*state.query, *inputs, f, g, noise[2 * k], noise[2 * k + 1], costly));
      if (visible.gap.score == 0) {
        state.hidden_gap = std::max(state.hidden_gap, std::abs(gap.f - gap.g));
        state.hidden_score = std::max(state.hidden_score, gap.score);
        continue;
      }
      if (!state.tried && visible.gap.score <= state.gap.score) continue;
      state.inputs = inputs;
      state.gap = visible.gap;
      state.tried = false;
    }
    return absl::OkStatus();
  }

  /// Tries what enclosures do not pass: elements that one side may not define and, at last, the
  /// largest gap.
  absl::Status TryClasses(State& state, bool largest_gap) {
    if (largest_gap && state.inputs != nullptr)
      state.undefined.emplace_back(state.inputs, state.gap.element);
    for (const auto& [inputs, flat] : std::exchange(state.undefined, {})) {
      if (state.witness.has_value() || options_.deadline.Passed()) break;
      ++state.evaluations;
      MENDEL_ASSIGN_OR_RETURN(
          state.witness, WitnessByClasses(joint_, *state.query, *inputs, flat, options_.deadline));
    }
    return absl::OkStatus();
  }

  /// Steps from the best inputs so far to larger gaps.
  absl::Status Ascend(State& state) {
    if (state.witness.has_value() || state.inputs == nullptr) return absl::OkStatus();
    ascent_flops_ += state.flops * kAscentSteps;
    if (ascent_flops_ > kAscentFlops) return absl::OkStatus();
    MENDEL_ASSIGN_OR_RETURN(const Graph pair,
                            RestrictPair(joint_, {{state.query->output, state.query->box}}));
    for (int step = 0; step < kAscentSteps && !options_.deadline.Passed(); ++step) {
      const auto inputs =
          std::make_shared<const std::vector<HostValue>>(draws_.Near(*state.inputs));
      MENDEL_ASSIGN_OR_RETURN(const std::vector<HostValue> values, Evaluate(pair, *inputs));
      ++ascended_;
      MENDEL_RETURN_IF_ERROR(NoteAll(pair, {&state}, inputs, values));
    }
    return absl::OkStatus();
  }

  /// Encloses the best candidates of queries: of all that are open, or of those that are cheap or
  /// have a convincing gap. Queries with the same candidate share what they compute.
  absl::Status Enclose(bool all) {
    std::map<Inputs, std::vector<State*>> groups;
    for (State* state : Pending()) {
      if (state->tried || state->exhausted()) continue;
      if (all || state->cheap() || state->gap.score >= kConvincing)
        groups[state->inputs].push_back(state);
    }
    for (const auto& [inputs, group] : groups) {
      const absl::Status status = EncloseGroup(inputs, group);
      if (status.ok()) continue;
      if (status.code() != absl::StatusCode::kAborted &&
          status.code() != absl::StatusCode::kUnimplemented)
        return status;
      for (State* state : group) {  // one of them spoils it for all: each alone
        if (state->witness.has_value()) continue;
        const absl::Status alone = group.size() == 1 ? status : EncloseGroup(inputs, {state});
        if (!alone.ok()) state->obstacle = std::string(alone.message());
      }
    }
    return absl::OkStatus();
  }

  absl::Status EncloseGroup(const Inputs& inputs, std::vector<State*> group) {
    int bits = std::max(kFirstBits, options_.max_precision_bits);
    for (State* state : group) {
      bits = std::min(
          bits, state->enclosures < kFullLadders ? options_.max_precision_bits : kShortLadder);
      ++state->enclosures;
      state->tried = true;
    }
    absl::Status last;
    for (int precision = kFirstBits, next = 0; precision <= bits && !group.empty();
         precision = next) {
      std::vector<OutputBox> boxes;
      for (const State* state : group)
        boxes.push_back({state->query->output, BoxToEnclose(*state)});
      MENDEL_ASSIGN_OR_RETURN(const Graph pairs, RestrictPair(joint_, boxes));
      const double flops = TotalFlops(pairs);
      if (flops > kCheapFlops)
        precision = std::clamp(precision,
                               std::min(bits, FirstPrecision(pairs, SmallestScore(group))), bits);
      next = 2 * precision;
      if (!InTime(flops, precision, group)) return absl::OkStatus();
      for (State* state : group) ++state->evaluations;
      const auto enclosures = EnclosePairs(pairs, *inputs, precision, options_.deadline);
      last = enclosures.status();
      if (last.code() == absl::StatusCode::kAborted) continue;  // undecided: more bits
      if (last.code() == absl::StatusCode::kDeadlineExceeded) {
        for (State* state : group) state->obstacle = std::string(last.message());
        return absl::OkStatus();
      }
      if (!last.ok()) return last;
      std::vector<State*> open;
      for (size_t k = 0; k < group.size(); ++k) {
        if (!Conclude(*group[k], inputs, boxes[k].box, (*enclosures)[k], flops))
          open.push_back(group[k]);
      }
      group = std::move(open);
      if (flops <= kCheapFlops || group.empty()) continue;
      next = precision + kLeastStep;
      for (const State* state : group) next = std::max(next, state->next_precision);
    }
    return last;
  }

  static double SmallestScore(const std::vector<State*>& group) {
    double smallest = group[0]->gap.score;
    for (const State* state : group) smallest = std::min(smallest, state->gap.score);
    return smallest;
  }

  static Box BoxToEnclose(const State& state) {
    return ElementBox(IndexAt(state.query->box, state.gap.element));
  }

  bool InTime(double flops, int precision, const std::vector<State*>& group) const {
    const double seconds = SecondsInBalls(flops, precision);
    if (seconds < std::max(1.0, options_.deadline.SecondsLeft() * 1.5)) return true;
    for (State* state : group) {
      state->obstacle =
          Cat("an enclosure at ", precision, " bits would take about ", std::ceil(seconds), " s");
    }
    return false;
  }

  /// True when there is nothing more to learn from these inputs.
  static bool Conclude(State& state, const Inputs& inputs, const Box& box,
                       const std::pair<int64_t, Enclosure>& best, double flops) {
    const auto& [flat, enclosure] = best;
    if (!enclosure.parted) {
      state.differences.resize(static_cast<size_t>(state.enclosures),
                               std::numeric_limits<double>::infinity());
      state.differences.back() = std::min(state.differences.back(), enclosure.difference);
      if (enclosure.f.IsExact() && enclosure.g.IsExact()) return true;
      const double size = std::max(enclosure.f.Magnitude().second, enclosure.g.Magnitude().second);
      state.next_precision = PrecisionToPart(enclosure, state.gap);
      return flops > kCheapFlops && std::isfinite(enclosure.difference) &&
             enclosure.difference <= kAgreement * size;
    }
    state.witness = WitnessOf(*inputs, IndexAt(box, flat), enclosure);
    if (!state.witness.has_value())
      state.obstacle = "the values that differ are too large for doubles";
    return true;
  }

  std::string Reason(const State& state, bool only_constants) const {
    std::string reason = Cat("no witness among ", candidates_, " inputs");
    if (ascended_ > 0) reason += " and steps from the best of them";
    reason += Cat("; largest relative gap in double precision ", state.largest_score);
    if (!state.differences.empty()) {
      double largest = 0;
      size_t bounded = 0;
      for (double difference : state.differences) {
        if (!std::isfinite(difference)) continue;
        largest = std::max(largest, difference);
        ++bounded;
      }
      reason += Cat("; ", state.differences.size(), " enclosures meet");
      if (bounded > 0)
        reason += Cat(", |f - g| <= ", largest,
                      bounded == state.differences.size() ? "" : " where it is bounded");
    }
    if (state.not_numbers > 0)
      reason += Cat("; NaN or infinity against a number in double precision on ", state.not_numbers,
                    " inputs");
    if (!state.obstacle.empty()) reason += Cat("; ", state.obstacle);
    if (only_constants) reason += "; the programs differ in stored numbers only";
    if (options_.deadline.Passed()) reason += "; out of time";
    return reason;
  }

  const Graph& joint_;
  const WitnessOptions& options_;
  const double seconds_;  ///< for everything
  WitnessInputs draws_;
  std::vector<State> states_;
  int candidates_ = 0;
  int ascended_ = 0;
  double flops_ = 0;  ///< of candidates so far, without noise
  GapNoise noise_;
  double ascent_flops_ = 0;
};

/// A witness in the first steps of a loop, or at inputs at which its steps contract.
absl::StatusOr<std::optional<WitnessAnswer>> LoopWitness(const Graph& joint,
                                                         const WitnessQuery& query,
                                                         const WitnessOptions& options,
                                                         size_t queries) {
  MENDEL_ASSIGN_OR_RETURN(const std::vector<EarlyQuery> parts, EarlyQueries(joint, query));
  for (const EarlyQuery& part : parts) {
    WitnessOptions limited = options;
    limited.deadline = options.deadline.Share(kEarlyShare);
    limited.max_candidates = std::min(options.max_candidates, kUsualCandidates);
    const WitnessQuery whole{0, Box::Whole(part.box.Extents())};
    Search search(part.joint, limited);
    MENDEL_RETURN_IF_ERROR(search.Run(std::span(&whole, 1)));
    WitnessAnswer answer = search.Answers(false)[0];
    if (!answer.witness.has_value()) continue;
    for (size_t d = 0; d < part.box.begin.size(); ++d)
      answer.witness->element[d] += part.box.begin[d];
    return answer;
  }
  WitnessOptions limited = options;
  limited.deadline = options.deadline.Share(kContractingShare / static_cast<double>(queries));
  return WitnessAtContractingInputs(joint, query, limited);
}

}  // namespace

absl::StatusOr<std::vector<WitnessAnswer>> FindWitnesses(const Graph& f, const Graph& g,
                                                         std::span<const WitnessQuery> queries,
                                                         const WitnessOptions& options) {
  MENDEL_ASSIGN_OR_RETURN(const Graph joint, JoinByValue(f, g));
  const bool only_constants = OnlyConstantsDiffer(f, g);
  std::vector<std::optional<WitnessAnswer>> in_loops(queries.size());
  std::vector<WitnessQuery> open;
  for (size_t k = 0; k < queries.size(); ++k) {
    MENDEL_ASSIGN_OR_RETURN(in_loops[k], LoopWitness(joint, queries[k], options, queries.size()));
    if (!in_loops[k].has_value()) open.push_back(queries[k]);
  }
  Search search(joint, options);
  if (!open.empty()) MENDEL_RETURN_IF_ERROR(search.Run(open));
  std::vector<WitnessAnswer> searched = search.Answers(only_constants);
  std::vector<WitnessAnswer> answers;
  for (size_t k = 0, next = 0; k < queries.size(); ++k) {
    if (in_loops[k].has_value()) {
      answers.push_back(*std::move(in_loops[k]));
    } else {
      answers.push_back(std::move(searched[next++]));
    }
  }
  return answers;
}

}  // namespace mendel
