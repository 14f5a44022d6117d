#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "base/status.h"
#include "verifier/axioms/masked_softmax.h"
#include "verifier/certify/guesses.h"
#include "verifier/certify/numbering.h"
#include "verifier/certify/part_cuts.h"
#include "verifier/certify/redraw.h"
#include "verifier/definedness/definedness.h"
#include "verifier/regions/segments.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

/// Rounds that repair the partition where it failed; the next ones use no cuts at all.
constexpr int kRepairRounds = 4;
constexpr int kMaxRounds = 64;
/// Values whose elements hold fewer random bits in all are not merged: they agree by chance too
/// often.
constexpr double kLeastMergedBits = 19;
/// More draws than any certificate has: replay's work must not depend on what a file claims.
constexpr size_t kMaxReplayedDraws = 257;
/// Bound of a plan that congruence alone proves: no probability enters.
constexpr double kProvenLog2 = -1024;
constexpr std::string_view kMaskedSoftmax = "masked softmax";
constexpr std::string_view kPartsOfValues = "parts of values";
/// A program pair and what it is rewritten to: each attempt may accept a wrong plan.
constexpr double kSecondAttemptLog2 = 1;

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

std::map<std::string, TensorType> InputTypesByName(const Graph& graph) {
  std::map<std::string, TensorType> types;
  for (int32_t id : graph.inputs()) types[InputName(graph.node(id))] = graph.node(id).outputs[0];
  return types;
}

std::map<std::string, TensorType> OutputTypesByName(const Graph& graph) {
  std::map<std::string, TensorType> types;
  for (const GraphOutput& output : graph.outputs()) types[output.name] = graph.type(output.value);
  return types;
}

/// Both have the same inputs and outputs by name, names are not repeated and a symbol has one type.
absl::Status CheckInterfaces(const Graph& original, const Graph& plan) {
  for (const Graph* graph : {&original, &plan}) {
    if (InputTypesByName(*graph).size() != graph->inputs().size())
      return InvalidInput("two inputs have the same name");
    if (OutputTypesByName(*graph).size() != graph->outputs().size())
      return InvalidInput("two outputs have the same name");
  }
  if (InputTypesByName(original) != InputTypesByName(plan))
    return InvalidInput("the graphs differ in names or types of inputs");
  if (OutputTypesByName(original) != OutputTypesByName(plan))
    return InvalidInput("the graphs differ in names or types of outputs");
  return absl::OkStatus();
}

absl::Status CheckDraws(const std::vector<Draw>& draws) {
  for (const Draw& draw : draws) {
    if (draw.prime <= 2 || draw.prime >= uint64_t{1} << 60 || !IsPrime(draw.prime)) {
      return InvalidInput("draw has ", draw.prime, ", which is no prime between 2 and 2^60");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckWhereDefined(const Graph& original, const Graph& plan,
                               const std::map<Origin, Origin>& merges,
                               const VerifierOptions& options) {
  ConstantKeys constants(options.weights);
  return CheckDefinedness(
      {original, plan, merges, constants, options.definedness == DefinednessCheck::kBoth});
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

bool SameCertificate(const Certificate& a, const Certificate& b) {
  return a.verifier_version == b.verifier_version && a.original_hash == b.original_hash &&
         a.plan_hash == b.plan_hash && a.weights == b.weights && a.draws == b.draws &&
         a.degree == b.degree && a.log2_norm == b.log2_norm &&
         a.oracle_operands == b.oracle_operands && a.elements == b.elements &&
         a.segments == b.segments && a.shared_nodes == b.shared_nodes && a.rounds == b.rounds &&
         a.bound_log2 == b.bound_log2 && a.axioms == b.axioms;
}

/// The certificate of both programs, cut where the plan computes parts of the original's values
/// (part_cuts.h). Unimplemented where there are none.
absl::StatusOr<Certificate> CertifyByParts(const Graph& original, const Graph& plan,
                                           const VerifierOptions& options, int exact_tests) {
  MENDEL_ASSIGN_OR_RETURN(const auto cuts, FindPartCuts(original, plan, options));
  if (cuts.empty()) return Unsupported("the plan computes no part of a value");
  MENDEL_ASSIGN_OR_RETURN(const auto both, WithPartCuts(original, plan, cuts));
  VerifierOptions formal = options;
  formal.definedness = DefinednessCheck::kNone;
  formal.target_log2 -= kSecondAttemptLog2;
  MENDEL_ASSIGN_OR_RETURN(Certificate certificate,
                          Certifier(both.first, both.second, formal, exact_tests).Run());
  if (options.definedness != DefinednessCheck::kNone)
    MENDEL_RETURN_IF_ERROR(CheckWhereDefined(original, plan, {}, options));
  certificate.bound_log2 += kSecondAttemptLog2;
  certificate.axioms = {std::string(kPartsOfValues)};
  return certificate;
}

/// The certificate of both programs as they are, or cut at parts where their degrees are too large.
absl::StatusOr<Certificate> CertifyAsGiven(const Graph& original, const Graph& plan,
                                           const VerifierOptions& options) {
  auto whole = Certifier(original, plan, options, -1).Run();
  if (!absl::IsUnimplemented(whole.status())) return whole;
  auto parts = CertifyByParts(original, plan, options, -1);
  const bool decides = parts.ok() || absl::IsDeadlineExceeded(parts.status());
  return decides ? parts : whole;
}

/// The certificate of both programs without masked scores, by `certify`; Unimplemented where they
/// have none.
template <class CertifyPair>
absl::StatusOr<Certificate> CertifyUnmasked(const Graph& original, const Graph& plan,
                                            const VerifierOptions& options,
                                            const CertifyPair& certify) {
  MENDEL_ASSIGN_OR_RETURN(const auto unmasked,
                          BothWithoutMaskedScores(original, plan, options.weights));
  if (!unmasked.has_value()) return Unsupported("neither program masks scores");
  VerifierOptions formal = options;
  formal.definedness = DefinednessCheck::kNone;
  formal.target_log2 -= kSecondAttemptLog2;
  MENDEL_ASSIGN_OR_RETURN(Certificate certificate,
                          certify(unmasked->first, unmasked->second, formal));
  if (options.definedness != DefinednessCheck::kNone)
    MENDEL_RETURN_IF_ERROR(CheckWhereDefined(original, plan, {}, options));
  certificate.bound_log2 += kSecondAttemptLog2;
  certificate.axioms.insert(certificate.axioms.begin(), std::string(kMaskedSoftmax));
  return certificate;
}

/// `certificate`, which may be of programs that these were rewritten to, as one of these.
Certificate Named(Certificate certificate, const Graph& original, const Graph& plan) {
  if (certificate.axioms.empty()) return certificate;
  certificate.original_hash = GraphHash(original, certificate.weights);
  certificate.plan_hash = GraphHash(plan, certificate.weights);
  return certificate;
}

/// The certificate that these axioms, draws and this many tests give.
absl::StatusOr<Certificate> CertifyAgain(const Graph& original, const Graph& plan,
                                         const std::vector<std::string>& axioms,
                                         const VerifierOptions& options, int tests) {
  const auto by = [&](std::string_view axiom) {
    return std::find(axioms.begin(), axioms.end(), axiom) != axioms.end();
  };
  const auto certify = [&](const Graph& a, const Graph& b, const VerifierOptions& formal) {
    return by(kPartsOfValues) ? CertifyByParts(a, b, formal, tests)
                              : Certifier(a, b, formal, tests).Run();
  };
  return by(kMaskedSoftmax) ? CertifyUnmasked(original, plan, options, certify)
                            : certify(original, plan, options);
}

}  // namespace

absl::StatusOr<Certificate> Certify(const Graph& original, const Graph& plan,
                                    const VerifierOptions& options) {
  MENDEL_RETURN_IF_ERROR(CheckGraph(original));
  MENDEL_RETURN_IF_ERROR(CheckGraph(plan));
  MENDEL_RETURN_IF_ERROR(CheckInterfaces(original, plan));
  MENDEL_RETURN_IF_ERROR(CheckDraws(options.fixed_draws));
  auto given = CertifyAsGiven(original, plan, options);
  if (given.ok()) return Named(*std::move(given), original, plan);
  if (!absl::IsFailedPrecondition(given.status())) return given;
  auto unmasked = CertifyUnmasked(original, plan, options, CertifyAsGiven);
  if (unmasked.ok()) return Named(*std::move(unmasked), original, plan);
  return absl::IsDeadlineExceeded(unmasked.status()) ? unmasked : given;
}

absl::Status Replay(const Graph& original, const Graph& plan, const Certificate& certificate) {
  if (certificate.verifier_version != kVerifierVersion) {
    return InvalidInput("certificate of verifier version ", certificate.verifier_version,
                        ", this is version ", kVerifierVersion);
  }
  MENDEL_RETURN_IF_ERROR(CheckGraph(original));
  MENDEL_RETURN_IF_ERROR(CheckGraph(plan));
  MENDEL_RETURN_IF_ERROR(CheckInterfaces(original, plan));
  if (certificate.original_hash != GraphHash(original, certificate.weights)) {
    return InvalidInput("the certificate is about another original graph");
  }
  if (certificate.plan_hash != GraphHash(plan, certificate.weights))
    return InvalidInput("the certificate is about another plan");
  if (certificate.draws.size() > kMaxReplayedDraws)
    return InvalidInput("the certificate has ", certificate.draws.size(), " draws");
  MENDEL_RETURN_IF_ERROR(CheckDraws(certificate.draws));
  for (const Draw& draw : certificate.draws) {
    const bool selects = &draw == &certificate.draws.front() && draw == SelectionDraw(draw.key);
    if (!selects && !FollowsFromKey(draw))
      return InvalidInput("a draw's prime does not follow from its key");
  }
  VerifierOptions options;
  options.weights = certificate.weights;
  options.fixed_draws = certificate.draws;
  options.max_tests = std::numeric_limits<int>::max();
  const int tests = std::max(0, static_cast<int>(certificate.draws.size()) - 1);
  for (const std::string& axiom : certificate.axioms) {
    if (axiom != kMaskedSoftmax && axiom != kPartsOfValues)
      return InvalidInput("the certificate uses axioms that this version does not know");
  }
  MENDEL_ASSIGN_OR_RETURN(Certificate replayed,
                          CertifyAgain(original, plan, certificate.axioms, options, tests));
  replayed = Named(std::move(replayed), original, plan);
  if (!SameCertificate(replayed, certificate))
    return absl::FailedPreconditionError("the certificate states what its draws do not show");
  return absl::OkStatus();
}

}  // namespace mendel
