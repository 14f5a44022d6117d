#include "verifier/witness/contracting_inputs.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/status.h"
#include "graph/loop.h"
#include "verifier/witness/gap_noise.h"
#include "verifier/witness/witness_inputs.h"
#include "verifier/witness/witness_pair.h"

namespace mendel {
namespace {

/// The larger the scale, the more do gates saturate.
constexpr std::array<double, 4> kScales = {30, 10, 100, 3};
constexpr std::array<int, 3> kFewBits = {64, 128, 256};

/// More bits or other inputs may decide, or there is no time or meaning in balls.
bool IsOpen(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsUnimplemented(status) ||
         absl::IsDeadlineExceeded(status);
}

struct Candidate {
  std::vector<HostValue> inputs;
  Gap gap;
};

class Contraction {
 public:
  Contraction(const Graph& joint, const Graph& pair, const WitnessQuery& query,
              const WitnessOptions& options)
      : joint_(joint),
        pair_(pair),
        query_(query),
        options_(options),
        draws_(joint, options.seed),
        noise_(joint, options.seed) {}

  absl::StatusOr<std::optional<Witness>> Run() {
    std::vector<Candidate> candidates;
    for (const double scale : kScales) {
      if (options_.deadline.Passed()) return std::nullopt;
      MENDEL_ASSIGN_OR_RETURN(std::optional<Candidate> candidate, WithVisibleGap(scale));
      if (!candidate.has_value()) continue;
      MENDEL_ASSIGN_OR_RETURN(std::optional<Witness> witness, Enclose(*candidate, kFewBits[0]));
      if (witness.has_value()) return witness;
      candidates.push_back(*std::move(candidate));
    }
    for (size_t k = 1; k < kFewBits.size(); ++k) {
      for (const Candidate& candidate : candidates) {
        if (options_.deadline.Passed()) return std::nullopt;
        MENDEL_ASSIGN_OR_RETURN(std::optional<Witness> witness, Enclose(candidate, kFewBits[k]));
        if (witness.has_value()) return witness;
      }
    }
    return std::nullopt;
  }

  int evaluations() const { return evaluations_; }

 private:
  absl::StatusOr<std::optional<Candidate>> WithVisibleGap(double scale) {
    Candidate candidate{draws_.LargeBetweenEnds(scale), {}};
    MENDEL_ASSIGN_OR_RETURN(const std::vector<HostValue> values, Evaluate(pair_, candidate.inputs));
    if (LargestGap(values[0], values[1]).score == 0) return std::nullopt;
    MENDEL_ASSIGN_OR_RETURN(GapNoise::Noise noise, noise_.OfPairs(pair_, candidate.inputs, values));
    MENDEL_ASSIGN_OR_RETURN(const VisibleGap visible,
                            noise_.Visible(query_, candidate.inputs, values[0], values[1], noise[0],
                                           noise[1], GapNoise::IsCostly(pair_)));
    if (visible.gap.score == 0) return std::nullopt;
    candidate.gap = visible.gap;
    return candidate;
  }

  absl::StatusOr<std::optional<Witness>> Enclose(const Candidate& candidate, int bits) {
    const Box element = ElementBox(IndexAt(query_.box, candidate.gap.element));
    MENDEL_ASSIGN_OR_RETURN(const Graph one, RestrictPair(joint_, {{query_.output, element}}));
    bits = std::min(bits, options_.max_precision_bits);
    ++evaluations_;
    const auto enclosures = EnclosePairs(one, candidate.inputs, bits, options_.deadline);
    if (IsOpen(enclosures.status())) return std::nullopt;  // the usual search names obstacles
    MENDEL_RETURN_IF_ERROR(enclosures.status());
    const auto& [flat, enclosure] = (*enclosures)[0];
    if (!enclosure.parted) return std::nullopt;
    return WitnessOf(candidate.inputs, IndexAt(element, flat), enclosure);
  }

  const Graph& joint_;
  const Graph& pair_;  ///< the query's box
  const WitnessQuery& query_;
  const WitnessOptions& options_;
  WitnessInputs draws_;
  GapNoise noise_;
  int evaluations_ = 0;  ///< in balls
};

}  // namespace

absl::StatusOr<std::optional<WitnessAnswer>> WitnessAtContractingInputs(
    const Graph& joint, const WitnessQuery& query, const WitnessOptions& options) {
  if (!HasLoop(joint)) return std::nullopt;
  MENDEL_ASSIGN_OR_RETURN(const Graph pair, RestrictPair(joint, {{query.output, query.box}}));
  if (!HasLoop(pair)) return std::nullopt;
  Contraction search(joint, pair, query, options);
  MENDEL_ASSIGN_OR_RETURN(std::optional<Witness> witness, search.Run());
  if (!witness.has_value()) return std::nullopt;
  return WitnessAnswer{std::move(witness), "", 0, search.evaluations()};
}

}  // namespace mendel
