#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "verifier/axioms/axioms.h"
#include "verifier/axioms/rewritten_pair.h"
#include "verifier/certify/certify_pair.h"
#include "verifier/certify/part_cuts.h"
#include "verifier/field_evaluator.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

/// More draws than any certificate has: replay's work must not depend on what a file claims.
constexpr size_t kMaxReplayedDraws = 257;
constexpr std::string_view kPartsOfValues = "parts of values";
/// A pair and what it is rewritten to: each attempt may accept a wrong plan.
constexpr double kSecondAttemptLog2 = 1;
constexpr double kThirdAttemptLog2 = 2;

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
                          CertifyPair(both.first, both.second, formal, exact_tests));
  if (options.definedness != DefinednessCheck::kNone)
    MENDEL_RETURN_IF_ERROR(CheckWhereDefined(original, plan, {}, options));
  certificate.bound_log2 += kSecondAttemptLog2;
  certificate.axioms = {std::string(kPartsOfValues)};
  return certificate;
}

double AttemptsLog2(PairForm form) {
  return form == kPairForms[0] ? kSecondAttemptLog2 : kThirdAttemptLog2;
}

/// The certificate of both programs rewritten, by `certify`; Unimplemented where that changes
/// neither.
template <class Certifier>
absl::StatusOr<Certificate> CertifyRewritten(PairForm form, const Graph& original,
                                             const Graph& plan, const VerifierOptions& options,
                                             const Certifier& certify) {
  MENDEL_ASSIGN_OR_RETURN(const auto both, RewriteBoth(form, original, plan, options.weights));
  if (!both.has_value()) return Unsupported("no axiom applies");
  VerifierOptions formal = options;
  formal.definedness = DefinednessCheck::kNone;
  formal.target_log2 -= AttemptsLog2(form);
  MENDEL_ASSIGN_OR_RETURN(Certificate certificate, certify(both->f, both->g, formal));
  if (options.definedness != DefinednessCheck::kNone)
    MENDEL_RETURN_IF_ERROR(CheckWhereDefined(original, plan, {}, options));
  certificate.bound_log2 += AttemptsLog2(form);
  certificate.axioms.insert(certificate.axioms.begin(), both->axioms.begin(), both->axioms.end());
  return certificate;
}

/// `certificate`, which may be of programs that these were rewritten to, as one of these.
Certificate Named(Certificate certificate, const Graph& original, const Graph& plan) {
  if (certificate.axioms.empty()) return certificate;
  certificate.original_hash = GraphHash(original, certificate.weights);
  certificate.plan_hash = GraphHash(plan, certificate.weights);
  return certificate;
}

bool AreKnown(const std::vector<std::string>& axioms) {
  return std::all_of(axioms.begin(), axioms.end(), [](const std::string& name) {
    const auto is_it = [&](const AxiomDescription& axiom) { return axiom.name == name; };
    return name == kPartsOfValues ||
           std::any_of(kPairForms.begin(), kPairForms.end(),
                       [&](PairForm one) { return PairFormName(one) == name; }) ||
           std::any_of(AllAxioms().begin(), AllAxioms().end(), is_it);
  });
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
                              : CertifyPair(a, b, formal, tests);
  };
  for (const PairForm form : kPairForms) {
    if (!axioms.empty() && axioms.front() == PairFormName(form))
      return CertifyRewritten(form, original, plan, options, certify);
  }
  return certify(original, plan, options);
}

}  // namespace

absl::StatusOr<Certificate> CertifyGiven(const Graph& original, const Graph& plan,
                                         const VerifierOptions& options) {
  auto whole = CertifyPair(original, plan, options, -1);
  if (!absl::IsUnimplemented(whole.status())) return whole;
  auto parts = CertifyByParts(original, plan, options, -1);
  const bool decides = parts.ok() || absl::IsDeadlineExceeded(parts.status());
  return decides ? parts : whole;
}

absl::StatusOr<Certificate> Certify(const Graph& original, const Graph& plan,
                                    const VerifierOptions& options) {
  MENDEL_RETURN_IF_ERROR(CheckGraph(original));
  MENDEL_RETURN_IF_ERROR(CheckGraph(plan));
  MENDEL_RETURN_IF_ERROR(CheckInterfaces(original, plan));
  MENDEL_RETURN_IF_ERROR(CheckDraws(options.fixed_draws));
  auto given = CertifyGiven(original, plan, options);
  if (given.ok()) return Named(*std::move(given), original, plan);
  if (!absl::IsFailedPrecondition(given.status())) return given;
  for (const PairForm form : kPairForms) {
    auto rewritten = CertifyRewritten(form, original, plan, options, CertifyGiven);
    if (rewritten.ok()) return Named(*std::move(rewritten), original, plan);
    if (absl::IsDeadlineExceeded(rewritten.status())) return rewritten;
  }
  return given;
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
  if (!AreKnown(certificate.axioms))
    return InvalidInput("the certificate uses axioms that this version does not know");
  MENDEL_ASSIGN_OR_RETURN(Certificate replayed,
                          CertifyAgain(original, plan, certificate.axioms, options, tests));
  replayed = Named(std::move(replayed), original, plan);
  if (!SameCertificate(replayed, certificate))
    return absl::FailedPreconditionError("the certificate states what its draws do not show");
  return absl::OkStatus();
}

}  // namespace mendel
