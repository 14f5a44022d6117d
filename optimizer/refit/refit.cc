#include "optimizer/refit/refit.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/status.h"
#include "optimizer/refit/refit_assemble.h"
#include "optimizer/refit/refit_errors.h"
#include "optimizer/refit/refit_fold.h"
#include "optimizer/refit/refit_pair.h"

namespace mendel {
namespace {

/// One direction: constants of `folded` take values that `unfolded` folds to.
class Refitter {
 public:
  Refitter(const Graph& unfolded, const Graph& folded, const RefitOptions& options)
      : unfolded_(unfolded), folded_(folded), options_(options), folder_(terms_) {}

  absl::StatusOr<RefitReport> Run() {
    const std::vector<RefitTerm> wanted = AddProgram(unfolded_, true);
    const std::vector<RefitTerm> found = AddProgram(folded_, false);
    MENDEL_RETURN_IF_ERROR(Annotate(terms_.status(), "canonical form of a refit"));
    std::vector<std::pair<RefitTerm, RefitTerm>> outputs;
    for (size_t k = 0; k < wanted.size(); ++k)
      outputs.emplace_back(wanted[k], found[OutputNamed(unfolded_.outputs()[k].name)]);
    const std::set<RefitTerm> stored(folded_constants_.begin(), folded_constants_.end());
    const RefitPairing pairing = PairPrograms(terms_, outputs, stored, names_);
    report_.reason = pairing.mismatch;
    if (report_.reason.empty()) Assemble(pairing);
    if (!report_.reason.empty()) return std::move(report_);
    MENDEL_RETURN_IF_ERROR(Annotate(terms_.status(), "replacements of a refit"));
    MENDEL_RETURN_IF_ERROR(Prove());
    return std::move(report_);
  }

 private:
  size_t OutputNamed(const std::string& name) const {
    const auto& outputs = folded_.outputs();
    return static_cast<size_t>(
        std::find_if(outputs.begin(), outputs.end(),
                     [&](const GraphOutput& output) { return output.name == name; }) -
        outputs.begin());
  }

  /// Constants of the unfolded program are one weight when their bytes are equal; each of the
  /// folded program stands for itself.
  RefitTerm ConstantTerm(const Node& node, int32_t id, bool unfolded) {
    const Tensor& value = ConstantValue(node);
    const bool named = !SymbolName(node).empty();
    std::string symbol;
    if (unfolded && named) symbol = Cat("weight:", value.ContentHash());
    if (!unfolded && IsFloat(value.dtype())) symbol = Cat(kStored, id);
    const RefitTerm term = terms_.Constant(value, symbol);
    names_.try_emplace(term.node, named               ? SymbolName(node)
                                  : value.size() == 1 ? Cat(value.DoubleAt(0))
                                                      : "literal");
    return term;
  }

  std::vector<RefitTerm> AddProgram(const Graph& graph, bool unfolded) {
    std::vector<std::vector<RefitTerm>> values;
    std::vector<RefitTerm>& constants = unfolded ? unfolded_constants_ : folded_constants_;
    for (size_t id = 0; id < graph.nodes().size(); ++id) {
      const Node& node = graph.nodes()[id];
      std::vector<RefitTerm> inputs;
      for (ValueId input : node.inputs)
        inputs.push_back(
            values[static_cast<size_t>(input.node)][static_cast<size_t>(input.output)]);
      constants.emplace_back();
      if (IsInput(node)) {
        values.push_back({terms_.Input(InputName(node), node.outputs[0])});
      } else if (IsConstant(node)) {
        constants.back() = ConstantTerm(node, static_cast<int32_t>(id), unfolded);
        values.push_back({constants.back()});
      } else {
        values.push_back(folder_.Fold(node, inputs));
      }
      if (!terms_.status().ok()) return {};
    }
    std::vector<RefitTerm> outputs;
    for (const GraphOutput& output : graph.outputs())
      outputs.push_back(
          values[static_cast<size_t>(output.value.node)][static_cast<size_t>(output.value.output)]);
    return outputs;
  }

  void Assemble(const RefitPairing& pairing) {
    std::map<RefitTerm, std::vector<RefitCandidate>> by_constant;
    for (const RefitCandidate& candidate : pairing.candidates)
      by_constant[candidate.constant].push_back(candidate);
    for (const auto& [constant, candidates] : by_constant) {
      RefitReplacement replacement = AssembleReplacement(terms_, constant, candidates, names_);
      replacement.report.name = names_.at(constant.node);
      if (!replacement.failure.empty()) {
        report_.reason = Cat("constant '", replacement.report.name, "' faces ",
                             replacement.report.expression, ": ", replacement.failure);
        return;
      }
      replacements_[constant] = replacement.term;
      if (replacement.moved) continue;
      report_.largest_ulps = std::max(report_.largest_ulps, replacement.report.largest_ulps);
      report_.tensors.push_back(std::move(replacement.report));
    }
  }

  using Replacements = std::map<RefitTerm, RefitTerm>;

  /// `graph` with the constants' terms, and what replaces them, in place of its constants.
  absl::StatusOr<Graph> Rebuild(const Graph& graph, const std::vector<RefitTerm>& constants,
                                const Replacements& replacements) const {
    GraphBuilder builder(graph.name());
    RefitCopier copier(terms_, builder);
    std::vector<ValueId> where;
    const auto map = [&](ValueId value) {
      const ValueId at = where[static_cast<size_t>(value.node)];
      return ValueId{at.node, at.output + value.output};
    };
    for (size_t id = 0; id < graph.nodes().size(); ++id) {
      const Node& node = graph.nodes()[id];
      if (!IsConstant(node)) {
        std::vector<ValueId> inputs;
        for (ValueId input : node.inputs) inputs.push_back(map(input));
        MENDEL_ASSIGN_OR_RETURN(const int32_t copy, builder.CopyNode(node, std::move(inputs)));
        where.push_back({copy, 0});
        continue;
      }
      const auto replaced = replacements.find(constants[id]);
      if (replaced == replacements.end() &&
          SymbolName(terms_.node(constants[id])).starts_with(kStored)) {
        // A constant without a proposal is exactly what is stored.
        where.push_back(builder.Constant(ConstantValue(node)));
        continue;
      }
      MENDEL_ASSIGN_OR_RETURN(
          const ValueId copy,
          copier.Copy(replaced == replacements.end() ? constants[id] : replaced->second));
      where.push_back(copy);
    }
    for (const GraphOutput& output : graph.outputs())
      builder.Output(output.name, map(output.value));
    return builder.Build();
  }

  absl::Status Prove() {
    MENDEL_ASSIGN_OR_RETURN(report_.original, Rebuild(unfolded_, unfolded_constants_, {}));
    MENDEL_ASSIGN_OR_RETURN(report_.refitted_graph,
                            Rebuild(folded_, folded_constants_, replacements_));
    VerifierOptions verifier = options_.verifier;
    verifier.weights = WeightMode::kSymbolic;
    verifier.definedness = DefinednessCheck::kBoth;
    auto certificate = Certify(report_.original, report_.refitted_graph, verifier);
    if (absl::IsFailedPrecondition(certificate.status()) ||
        absl::IsUnimplemented(certificate.status())) {
      report_.reason = Cat("not identical after refit: ", certificate.status().message());
      return absl::OkStatus();
    }
    MENDEL_RETURN_IF_ERROR(certificate.status());
    report_.certificate = *std::move(certificate);
    report_.identical = true;
    report_.applies = report_.largest_ulps <= options_.tolerance_ulps;
    if (report_.applies) return absl::OkStatus();
    const auto worst = std::max_element(
        report_.tensors.begin(), report_.tensors.end(),
        [](const auto& a, const auto& b) { return a.largest_ulps < b.largest_ulps; });
    report_.reason =
        Cat("constant '", worst->name, "' is ", worst->largest_ulps, " ulps from ",
            worst->expression, ", more than the tolerance of ", options_.tolerance_ulps);
    return absl::OkStatus();
  }

  static constexpr std::string_view kStored = "stored:";

  const Graph& unfolded_;
  const Graph& folded_;
  const RefitOptions& options_;
  RefitTerms terms_;
  RefitFolder folder_;
  RefitNames names_;
  std::vector<RefitTerm> unfolded_constants_;  // by node id; only those of Constant nodes are set
  std::vector<RefitTerm> folded_constants_;
  Replacements replacements_;
  RefitReport report_;
};

absl::Status CheckInterfaces(const Graph& a, const Graph& b) {
  const auto types = [](const Graph& graph) {
    std::map<std::string, TensorType> all;
    for (int32_t id : graph.inputs())
      all["input " + InputName(graph.node(id))] = graph.node(id).outputs[0];
    for (const GraphOutput& output : graph.outputs())
      all["output " + output.name] = graph.type(output.value);
    return all;
  };
  if (types(a) == types(b)) return absl::OkStatus();
  return InvalidInput("the programs differ in names or types of inputs or outputs");
}

}  // namespace

absl::StatusOr<RefitReport> Refit(const Graph& a, const Graph& b, const RefitOptions& options) {
  MENDEL_RETURN_IF_ERROR(CheckInterfaces(a, b));
  MENDEL_ASSIGN_OR_RETURN(RefitReport report, Refitter(a, b, options).Run());
  if (!report.identical) {
    MENDEL_ASSIGN_OR_RETURN(RefitReport reversed, Refitter(b, a, options).Run());
    reversed.refitted = RefitSide::kA;
    if (reversed.identical) report = std::move(reversed);
  }
  if (report.identical && options.measure_errors) {
    MENDEL_ASSIGN_OR_RETURN(report.errors, MeasureRefitErrors(a, b, options));
  }
  return report;
}

}  // namespace mendel
