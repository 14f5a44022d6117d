#include "verifier/certify/certify_pair.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "base/check.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "base/status.h"
#include "verifier/certify/guesses.h"
#include "verifier/certify/redraw.h"
#include "verifier/definedness/definedness.h"
#include "verifier/regions/segments.h"

namespace mendel {
namespace {

/// Rounds that repair the partition where it failed; the next ones use no cuts at all.
constexpr int kRepairRounds = 4;
constexpr int kMaxRounds = 64;
/// Values whose elements hold fewer random bits in all are not merged: they agree by chance too
/// often.
constexpr double kLeastMergedBits = 19;
/// Bound of a plan that congruence alone proves: no probability enters.
constexpr double kProvenLog2 = -1024;

std::string DescribeNumber(const Numbering& numbering, int32_t number) {
  const NumberedValue& value = numbering.values[static_cast<size_t>(number)];
  const Node& node = *numbering.NodeOf(number).node;
  return Cat(value.origin.side == Side::kOriginal ? "original" : "plan", " node ",
             value.origin.value.node, " (", node.op->name, node.name.empty() ? "" : " '", node.name,
             node.name.empty() ? ")" : "')");
}

/// Equal for equal elements. Ranges are hashed apart, on several threads.
Hash128 Fingerprint(const std::vector<Fp>& elements) {
  constexpr size_t kRange = 1 << 15;
  std::vector<Hash128> hashes((elements.size() + kRange - 1) / kRange);
  ParallelFor(static_cast<int64_t>(hashes.size()), [&](int64_t k) {
    const size_t begin = static_cast<size_t>(k) * kRange;
    KeyedHash hash({0, static_cast<uint64_t>(elements.size())});
    for (size_t i = begin; i < std::min(elements.size(), begin + kRange); ++i)
      hash.Add(elements[i].value);
    hashes[static_cast<size_t>(k)] = hash.Finish();
  });
  if (hashes.size() == 1) return hashes[0];
  KeyedHash hash({1, static_cast<uint64_t>(elements.size())});
  for (const Hash128& one : hashes) {
    hash.Add(one.high);
    hash.Add(one.low);
  }
  return hash.Finish();
}

class Certifier {
 public:
  /// `exact_tests` >= 0: that many tests, whatever the target.
  Certifier(const Graph& original, const Graph& plan, const VerifierOptions& options,
            int exact_tests)
      : original_(original),
        plan_(plan),
        options_(options),
        exact_tests_(exact_tests),
        constants_(options.weights) {}

  absl::StatusOr<Certificate> Run() {
    certificate_.verifier_version = kVerifierVersion;
    certificate_.original_hash = HashGraph(original_, constants_);
    certificate_.plan_hash = HashGraph(plan_, constants_);
    certificate_.weights = options_.weights;
    numbering_ = NumberValues(original_, plan_, merges_, constants_);
    certificate_.shared_nodes = numbering_.shared_nodes;
    if (numbering_.claims.empty()) {
      certificate_.bound_log2 = kProvenLog2;
      return certificate_;
    }
    MENDEL_RETURN_IF_ERROR(Select());
    for (int round = 1; round <= kMaxRounds; ++round) {
      numbering_ = NumberValues(original_, plan_, merges_, constants_);
      partition_ = MakePartition(numbering_, whole_, round > kRepairRounds);
      CombineSegments(numbering_, partition_);
      MENDEL_ASSIGN_OR_RETURN(const std::vector<Mismatch> mismatches, Prove(round));
      if (mismatches.empty()) {
        if (options_.definedness != DefinednessCheck::kNone)
          MENDEL_RETURN_IF_ERROR(CheckWhereDefined(original_, plan_, merges_, options_));
        return certificate_;
      }
      MENDEL_RETURN_IF_ERROR(RepairCuts(mismatches));
    }
    return Unsupported("unproven: no partition of the plan into equal segments within ", kMaxRounds,
                       " rounds");
  }

 private:
  bool DrawsAreFixed() const { return !options_.fixed_draws.empty(); }

  /// Tests the partition with draw number `index` (0: selection); a zero denominator costs a
  /// redraw.
  absl::StatusOr<std::vector<Mismatch>> Test(
      size_t index, const std::function<void(int32_t, const FieldValue&)>& visit) {
    if (DrawsAreFixed() && index >= options_.fixed_draws.size()) {
      return InvalidInput("the bound needs more than the ", options_.fixed_draws.size(),
                          " given draws");
    }
    Draw draw;
    const auto test = [&](int redraw) {
      // A small prime selects faster; divisions by its frequent zeros leave it to a large one.
      const bool small = index == 0 && redraw == 0;
      draw = DrawsAreFixed() ? options_.fixed_draws[index]
                             : (small ? SelectionDraw(FreshEntropy()) : FreshDraw());
      return TestSegments(numbering_, partition_, draw, options_.weights, options_.deadline, visit);
    };
    auto mismatches = DrawsAreFixed() ? test(0) : WithRedraws(test);
    if (absl::IsAborted(mismatches.status())) {
      return Unsupported("unproven: denominators stay zero after ", kMaxRedraws, " redraws");
    }
    if (mismatches.ok()) {
      certificate_.draws.resize(index);
      certificate_.draws.push_back(draw);
    }
    return mismatches;
  }

  /// Finds values of the plan that equal values of the original under one draw. Outputs that differ
  /// there differ for certain.
  absl::Status Select() {
    merges_ = GuessMerges(numbering_);
    if (!merges_.empty()) {
      numbering_ = NumberValues(original_, plan_, merges_, constants_);
      MENDEL_ASSIGN_OR_RETURN(const std::vector<Mismatch> mismatches,
                              SelectMerges(/*no_cuts=*/false));
      if (mismatches.empty()) return absl::OkStatus();
      merges_.clear();
      numbering_ = NumberValues(original_, plan_, merges_, constants_);
    }
    for (const bool no_cuts : {false, true}) {
      MENDEL_ASSIGN_OR_RETURN(const std::vector<Mismatch> mismatches, SelectMerges(no_cuts));
      if (mismatches.empty()) return absl::OkStatus();
      if (no_cuts || std::none_of(partition_.segments.begin(), partition_.segments.end(),
                                  [](const Segment& segment) { return !segment.cuts.empty(); })) {
        return Different(mismatches.front());
      }
    }
    return InternalError("selection ended without an answer");
  }

  /// Evaluates what `numbering_` leaves to prove; adds merges when all of it holds.
  absl::StatusOr<std::vector<Mismatch>> SelectMerges(bool no_cuts) {
    using Content = std::pair<Hash128, DType>;
    partition_ = MakePartition(numbering_, {}, no_cuts);
    std::map<Content, std::vector<int32_t>> groups;
    const auto visit = [&](int32_t number, const FieldValue& value) {
      const DType dtype = numbering_.TypeOf(number).dtype;
      if (!IsFloat(dtype) || value.size() == 0) return;
      groups[{Fingerprint(value.scalars), dtype}].push_back(number);
    };
    MENDEL_ASSIGN_OR_RETURN(std::vector<Mismatch> mismatches, Test(0, visit));
    if (!mismatches.empty()) return mismatches;
    const double bits = std::log2(static_cast<double>(certificate_.draws.back().prime));
    for (auto& [content, numbers] : groups) {
      const auto elements = static_cast<double>(NumElements(numbering_.TypeOf(numbers[0])));
      if (elements * bits >= kLeastMergedBits) MergeGroup(numbers);
    }
    return mismatches;
  }

  /// The earliest number of the original stands for the others.
  void MergeGroup(std::vector<int32_t>& numbers) {
    std::sort(numbers.begin(), numbers.end());
    if (!numbering_.NodeOf(numbers[0]).in_original) return;
    const Origin& target = numbering_.values[static_cast<size_t>(numbers[0])].origin;
    for (size_t k = 1; k < numbers.size(); ++k) {
      const Node& node = *numbering_.NodeOf(numbers[k]).node;
      if (numbers[k] == numbers[k - 1] || IsInput(node) || IsConstant(node)) continue;
      merges_[numbering_.values[static_cast<size_t>(numbers[k])].origin] = target;
    }
  }

  absl::Status Different(const Mismatch& mismatch) const {
    const Claim& claim = numbering_.claims[partition_.segments[mismatch.segment].claim];
    return absl::FailedPreconditionError(
        Cat("output '", claim.output, "' is not provably equal: the formal expressions differ at ",
            ElementString(numbering_.TypeOf(claim.representative).shape, mismatch.element), ", ",
            DescribeNumber(numbering_, claim.representative), " against ",
            DescribeNumber(numbering_, claim.member)));
  }

  /// Draws fresh tests until the bound is reached; returns the mismatches of the first test that
  /// fails.
  absl::StatusOr<std::vector<Mismatch>> Prove(int round) {
    MENDEL_ASSIGN_OR_RETURN(const std::vector<SegmentBound> bounds,
                            BoundSegments(numbering_, partition_, options_.weights));
    Record(bounds, round);
    certificate_.draws.resize(1);
    const auto done = [&](int tests) {
      if (tests == 0) return false;
      if (exact_tests_ >= 0) return tests >= exact_tests_;
      return tests >= options_.min_tests && certificate_.bound_log2 <= options_.target_log2;
    };
    for (int tests = 0; !done(tests); ++tests) {
      if (tests >= std::max(options_.max_tests, options_.min_tests)) {
        return Unsupported("unproven: the bound after ", tests, " tests is only 2^",
                           certificate_.bound_log2);
      }
      MENDEL_ASSIGN_OR_RETURN(const std::vector<Mismatch> mismatches,
                              Test(static_cast<size_t>(tests) + 1, nullptr));
      if (!mismatches.empty()) return mismatches;
      double miss = -std::numeric_limits<double>::infinity();
      for (const SegmentBound& bound : bounds)
        miss = std::max(miss, bound.Log2Miss(certificate_.draws.back().prime));
      if (miss > 0) return Unsupported("unproven: the degree bound of a segment exceeds the field");
      certificate_.bound_log2 += miss;
    }
    return std::vector<Mismatch>();
  }

  /// Writes this partition into the certificate.
  void Record(const std::vector<SegmentBound>& bounds, int round) {
    certificate_.rounds = round;
    certificate_.bound_log2 = std::log2(round);
    certificate_.shared_nodes = numbering_.shared_nodes;
    certificate_.segments = static_cast<int64_t>(partition_.segments.size());
    certificate_.degree = certificate_.log2_norm = certificate_.oracle_operands = 0;
    certificate_.elements = 0;
    for (const SegmentBound& bound : bounds) {
      certificate_.degree = std::max(certificate_.degree, bound.degree);
      certificate_.log2_norm = std::max(certificate_.log2_norm, bound.log2_norm);
      certificate_.oracle_operands = std::max(certificate_.oracle_operands, bound.operands);
    }
    for (const Claim& claim : numbering_.claims)
      certificate_.elements += NumElements(numbering_.TypeOf(claim.member));
  }

  /// A claim may hold for the values that reach it and not for all, so its segment is merged with
  /// those before it. Without any cut left, a failed claim of the selection was a coincidence and
  /// is dropped; one of an output is false. The exception reads another failed claim's value, which
  /// may stand for an input and then is no cut.
  absl::Status RepairCuts(const std::vector<Mismatch>& mismatches) {
    const Mismatch* false_output = nullptr;
    bool repaired = false;
    for (const Mismatch& mismatch : mismatches) {
      const Segment& segment = partition_.segments[mismatch.segment];
      const Claim& claim = numbering_.claims[segment.claim];
      if (segment.cuts.empty() && !claim.output.empty()) {
        false_output = &mismatch;
        continue;
      }
      repaired = true;
      for (int32_t cut : segment.cuts)
        whole_.insert(numbering_.values[static_cast<size_t>(cut)].origin);
      if (segment.cuts.empty()) merges_.erase(claim.merge);
    }
    return repaired || false_output == nullptr ? absl::OkStatus() : Different(*false_output);
  }

  const Graph& original_;
  const Graph& plan_;
  const VerifierOptions& options_;
  const int exact_tests_;
  ConstantKeys constants_;
  std::map<Origin, Origin> merges_;
  std::set<Origin> whole_;
  Numbering numbering_;
  Partition partition_;
  Certificate certificate_;
};

}  // namespace

absl::Status CheckWhereDefined(const Graph& original, const Graph& plan,
                               const std::map<Origin, Origin>& merges,
                               const VerifierOptions& options) {
  ConstantKeys constants(options.weights);
  return CheckDefinedness(
      {original, plan, merges, constants, options.definedness == DefinednessCheck::kBoth});
}

absl::StatusOr<Certificate> CertifyPair(const Graph& original, const Graph& plan,
                                        const VerifierOptions& options, int exact_tests) {
  return Certifier(original, plan, options, exact_tests).Run();
}

}  // namespace mendel
