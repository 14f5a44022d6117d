#include "verifier/certify/sweep.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "base/status.h"
#include "graph/op_helpers.h"
#include "verifier/axioms/axioms.h"
#include "verifier/axioms/canonical_pair.h"
#include "verifier/certify/axiom_domain.h"
#include "verifier/certify/certify_pair.h"
#include "verifier/certify/equivalence_candidates.h"
#include "verifier/certify/numbering.h"
#include "verifier/certify/redraw.h"
#include "verifier/field_evaluator.h"

namespace mendel {
namespace {

constexpr int kMaxRounds = 12;
/// With at least kManyCuts cuts, of which one in kManyFailing fails at once, the programs differ in
/// more than a few places.
constexpr size_t kManyCuts = 64;
constexpr size_t kManyFailing = 10;

/// Readers of the key read a free input of this name.
using Cuts = std::map<ValueId, std::string>;

/// No user's tensor has such a name: Protobuf strings from files hold no such byte by accident.
constexpr std::string_view kCutPrefix = "\x01 cut ";

std::string CutName(ValueId value) { return Cat(kCutPrefix, value.node, " ", value.output); }

std::string ObligationName(size_t k) { return Cat("\x01 obligation ", k); }

/// `graph` with its cuts as further inputs, in the order of `names`, and `obligations` as further
/// outputs, computed.
absl::StatusOr<Graph> CutGraph(const Graph& graph, const Cuts& cuts,
                               const std::map<std::string, TensorType>& names,
                               const std::vector<ValueId>& obligations) {
  GraphBuilder builder(graph.name());
  std::map<ValueId, ValueId> computed;
  for (int32_t id : graph.inputs())
    computed[{id, 0}] = builder.Input(InputName(graph.node(id)), graph.node(id).outputs[0]);
  std::map<std::string, ValueId> free;
  for (const auto& [name, type] : names) free[name] = builder.Input(name, type);
  const auto read = [&](ValueId value) {
    const auto cut = cuts.find(value);
    return cut != cuts.end() ? free.at(cut->second) : computed.at(value);
  };
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    const int32_t id = static_cast<int32_t>(i);
    if (IsInput(node)) continue;
    if (IsConstant(node)) {
      computed[{id, 0}] = builder.Constant(ConstantValue(node), SymbolName(node));
      continue;
    }
    std::vector<ValueId> inputs;
    for (ValueId input : node.inputs) inputs.push_back(read(input));
    MENDEL_ASSIGN_OR_RETURN(const int32_t copy, builder.CopyNode(node, std::move(inputs)));
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      const int32_t output = static_cast<int32_t>(k);
      computed[{id, output}] = {copy, output};
    }
  }
  for (const GraphOutput& output : graph.outputs()) builder.Output(output.name, read(output.value));
  for (size_t k = 0; k < obligations.size(); ++k)
    builder.Output(ObligationName(k), computed.at(obligations[k]));
  return builder.Build();
}

/// Hashes of the outputs' elements under one draw.
absl::StatusOr<std::vector<Hash128>> OutputHashes(const Graph& graph, const Draw& draw,
                                                  const VerifierOptions& options) {
  const PrimeField field(draw.prime);
  std::map<ValueId, Hash128> hashes;
  for (const GraphOutput& output : graph.outputs()) hashes[output.value] = {};
  MENDEL_RETURN_IF_ERROR(EvaluateValues(graph, draw, options.weights, InputNaming::kByName,
                                        options.deadline, [&](ValueId id, const FieldValue& value) {
                                          const auto wanted = hashes.find(id);
                                          if (wanted == hashes.end()) return;
                                          const FieldScope scope(field);
                                          KeyedHash hash({0, static_cast<uint64_t>(value.size())});
                                          for (int64_t i = 0; i < value.size(); ++i)
                                            hash.Add(value.At(i).value);
                                          wanted->second = hash.Finish();
                                        }));
  std::vector<Hash128> result;
  for (const GraphOutput& output : graph.outputs()) result.push_back(hashes[output.value]);
  return result;
}

/// Names of the cuts that output `k` is computed from.
std::set<std::string> CutsBehind(const Graph& graph, size_t k) {
  std::set<std::string> names;
  std::set<int32_t> seen;
  std::vector<int32_t> open = {graph.outputs()[k].value.node};
  while (!open.empty()) {
    const int32_t id = open.back();
    open.pop_back();
    if (!seen.insert(id).second) continue;
    const Node& node = graph.node(id);
    if (IsInput(node) && InputName(node).starts_with(kCutPrefix)) names.insert(InputName(node));
    for (ValueId input : node.inputs) open.push_back(input.node);
  }
  return names;
}

class Sweeper {
 public:
  Sweeper(const Graph& a, const Graph& b, const VerifierOptions& options,
          std::map<std::string, int>* used)
      : a_(a),
        b_(b),
        options_(options),
        used_(used),
        rng_(options.seed),
        deciding_a_(DecidingNodes(a)),
        deciding_b_(DecidingNodes(b)) {}

  absl::StatusOr<Certificate> Run() {
    MENDEL_ASSIGN_OR_RETURN(NumericComparison numeric,
                            CompareNumerically(a_, b_, options_.seed, options_.deadline));
    if (numeric.outputs_differ)
      return absl::FailedPreconditionError("the programs differ on a random input");
    candidates_ = std::move(numeric.candidates);
    for (int round = 1; round <= kMaxRounds; ++round) {
      MENDEL_RETURN_IF_ERROR(Cut());
      MENDEL_ASSIGN_OR_RETURN(const std::vector<size_t> failing, Failing());
      if (failing.empty()) {
        VerifierOptions verifier = options_;
        verifier.target_log2 -= std::log2(round);
        verifier.definedness = DefinednessCheck::kNone;  // below, without cuts
        MENDEL_ASSIGN_OR_RETURN(Certificate certificate, CertifyGiven(cut_a_, cut_b_, verifier));
        MENDEL_RETURN_IF_ERROR(CheckWithoutCuts());
        certificate.bound_log2 += std::log2(round);
        return certificate;
      }
      MENDEL_RETURN_IF_ERROR(RepairCuts(failing));
    }
    return absl::FailedPreconditionError(Cat(
        "no cut points between which axioms prove the programs equal in ", kMaxRounds, " rounds"));
  }

 private:
  /// Both programs between the cuts that are left, in canonical form.
  absl::Status Cut() {
    Cuts cuts_of_a;
    Cuts cuts_of_b;
    std::map<std::string, TensorType> names;
    std::vector<ValueId> obligations_of_a;
    std::vector<ValueId> obligations_of_b;
    std::set<std::string> deciding;
    for (const auto& [x, y] : candidates_) {
      if (deciding_a_[static_cast<size_t>(x.node)] || deciding_b_[static_cast<size_t>(y.node)])
        deciding.insert(ObligationName(obligations_of_a.size()));
      cuts_of_a[x] = cuts_of_b[y] = CutName(x);
      names[CutName(x)] = a_.type(x);
      obligations_of_a.push_back(x);
      obligations_of_b.push_back(y);
    }
    MENDEL_ASSIGN_OR_RETURN(const Graph a, CutGraph(a_, cuts_of_a, names, obligations_of_a));
    MENDEL_ASSIGN_OR_RETURN(const Graph b, CutGraph(b_, cuts_of_b, names, obligations_of_b));
    std::map<std::string, int> used;
    MENDEL_ASSIGN_OR_RETURN(std::tie(cut_a_, cut_b_),
                            CanonicalizePair(a, b, options_.weights, &used, deciding));
    if (used_ != nullptr) *used_ = std::move(used);
    return absl::OkStatus();
  }

  /// A cut is an output of the cut program, so there a partial function that A computes under a
  /// guard only (Where) would excuse the same one without a guard in B. The domain is therefore
  /// checked without cuts, the proven candidates merged.
  absl::Status CheckWithoutCuts() const {
    std::map<Origin, Origin> merges;
    for (const auto& [x, y] : candidates_) merges[{Side::kPlan, y}] = {Side::kOriginal, x};
    return CheckDomainOfAxioms(a_, b_, merges, options_);
  }

  /// Outputs of the cut programs that differ in one draw.
  absl::StatusOr<std::vector<size_t>> Failing() {
    return WithRedraws([&](int) -> absl::StatusOr<std::vector<size_t>> {
      const Draw draw = SeededDraw(rng_);
      MENDEL_ASSIGN_OR_RETURN(const auto of_a, OutputHashes(cut_a_, draw, options_));
      MENDEL_ASSIGN_OR_RETURN(const auto of_b, OutputHashes(cut_b_, draw, options_));
      std::vector<size_t> failing;
      for (size_t k = 0; k < of_a.size(); ++k) {
        if (!(of_a[k] == of_b[k])) failing.push_back(k);
      }
      return failing;
    });
  }

  /// A cut that fails is no cut: those who read it look behind it. An output that fails looks
  /// behind the cuts that it reads. Where many cuts fail, all that are computed from one go with
  /// it: level by level, each round would fail those of the next.
  absl::Status RepairCuts(const std::vector<size_t>& failing) {
    std::set<std::string> dropped;
    const size_t outputs = a_.outputs().size();
    for (size_t k : failing) {
      if (k >= outputs) {
        dropped.insert(CutName(candidates_[k - outputs].first));
        continue;
      }
      dropped.merge(CutsBehind(cut_a_, k));
      dropped.merge(CutsBehind(cut_b_, k));
    }
    if (candidates_.size() >= kManyCuts && failing.size() * kManyFailing >= candidates_.size())
      DropReaders(dropped);
    const size_t before = candidates_.size();
    std::erase_if(candidates_, [&](const CandidatePair& candidate) {
      return dropped.contains(CutName(candidate.first));
    });
    if (candidates_.size() < before) return absl::OkStatus();
    return absl::FailedPreconditionError(Cat("output '", a_.outputs()[failing.front()].name,
                                             "' differs as a formal expression, axioms applied"));
  }

  /// Adds every cut that is computed from one of `dropped`, at any distance. Twins are in B's
  /// order.
  void DropReaders(std::set<std::string>& dropped) const {
    const size_t outputs = a_.outputs().size();
    for (size_t k = 0; k < candidates_.size(); ++k) {
      const std::string name = CutName(candidates_[k].first);
      if (dropped.contains(name)) continue;
      const std::set<std::string> read = CutsBehind(cut_b_, outputs + k);
      if (std::any_of(read.begin(), read.end(),
                      [&](const std::string& cut) { return dropped.contains(cut); }))
        dropped.insert(name);
    }
  }

  const Graph& a_;
  const Graph& b_;
  const VerifierOptions& options_;
  std::map<std::string, int>* const used_;
  Rng rng_;
  const std::vector<bool> deciding_a_, deciding_b_;  ///< by node
  std::vector<CandidatePair> candidates_;
  Graph cut_a_;
  Graph cut_b_;
};

}  // namespace

absl::StatusOr<Certificate> CertifySwept(const Graph& a, const Graph& b,
                                         const VerifierOptions& options,
                                         std::map<std::string, int>* used) {
  return Sweeper(a, b, options, used).Run();
}

}  // namespace mendel
