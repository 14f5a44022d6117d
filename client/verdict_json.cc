#include <cmath>
#include <nlohmann/json.hpp>

#include "client/verdict.h"

namespace mendel {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no infinity: null.
Json Number(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json WitnessJson(const PairVerdict& verdict, size_t output, size_t box) {
  const Witness& witness = *verdict.report.outputs[output].boxes[box].witness;
  Json json = {{"output", verdict.report.outputs[output].name},
               {"element", witness.element},
               {"value_a", Number(witness.value_f)},
               {"value_b", Number(witness.value_g)},
               {"error_a", Number(witness.error_f)},
               {"error_b", Number(witness.error_g)},
               {"gap", Number(witness.gap)},
               {"precision_bits", witness.precision_bits}};
  if (witness.undefined) json["undefined"] = std::isnan(witness.value_f) ? "a" : "b";
  const auto files = verdict.witness_files.find({output, box});
  if (files != verdict.witness_files.end()) json["inputs"] = files->second;
  return json;
}

Json OutputJson(const PairVerdict& verdict, size_t k) {
  const ComparedOutput& output = verdict.report.outputs[k];
  Json boxes = Json::array();
  for (size_t i = 0; i < output.boxes.size(); ++i) {
    const ComparedBox& box = output.boxes[i];
    Json one = {{"begin", box.box.begin},
                {"end", box.box.end},
                {"status", box.witness.has_value() ? "wrong" : "unproven"}};
    if (box.witness.has_value()) one["witness"] = WitnessJson(verdict, k, i);
    if (!box.witness.has_value() && !box.reason.empty()) one["reason"] = box.reason;
    boxes.push_back(std::move(one));
  }
  return {{"name", output.name},
          {"shape", output.shape},
          {"elements", output.elements},
          {"wrong_elements", output.wrong_elements},
          {"regions_known", output.regions_known},
          {"boxes", std::move(boxes)}};
}

Json RefitJson(const PairVerdict& verdict) {
  if (!verdict.refit.has_value()) return Json();
  const RefitReport& refit = *verdict.refit;
  Json tensors = Json::array();
  for (const RefitTensor& tensor : refit.tensors) {
    tensors.push_back({{"name", tensor.name},
                       {"type", TypeString(tensor.type)},
                       {"elements", tensor.elements},
                       {"replaced", tensor.replaced},
                       {"differing", tensor.differing},
                       {"largest_ulps", Number(tensor.largest_ulps)},
                       {"largest_value_ulps", Number(tensor.largest_value_ulps)},
                       {"expression", tensor.expression}});
  }
  Json errors = Json::array();
  for (const RefitError& error : refit.errors) {
    errors.push_back({{"output", error.output},
                      {"a_max", Number(error.a_max)},
                      {"a_p999", Number(error.a_p999)},
                      {"b_max", Number(error.b_max)},
                      {"b_p999", Number(error.b_p999)}});
  }
  return {{"applies", refit.applies},
          {"identical", refit.identical},
          {"reason", refit.reason},
          {"refitted", refit.refitted == RefitSide::kB ? "B" : "A"},
          {"tolerance_ulps", verdict.fold_tolerance},
          {"largest_ulps", Number(refit.largest_ulps)},
          {"tensors", std::move(tensors)},
          {"errors", std::move(errors)}};
}

Json DimensionJson(const ExplainedDimension& dim) {
  Json breaks = Json::array();
  for (const ExplainedBreak& one : dim.breaks) {
    breaks.push_back({{"at", one.at}, {"node", one.node}, {"op", one.op}, {"what", one.what}});
  }
  Json cause;
  if (dim.period != 1)
    cause = {{"node", dim.period_node}, {"op", dim.period_op}, {"what", dim.period_what}};
  return {{"extent", dim.extent},         {"breaks", std::move(breaks)},
          {"period", dim.period},         {"period_cause", std::move(cause)},
          {"classes", dim.displacements}, {"probed", dim.probed}};
}

Json RegionsJson(const std::vector<ExplainedOutput>& outputs) {
  Json json = Json::array();
  for (const ExplainedOutput& output : outputs) {
    Json dims = Json::array();
    for (const ExplainedDimension& dim : output.dims) dims.push_back(DimensionJson(dim));
    json.push_back({{"name", output.name},
                    {"shape", output.shape},
                    {"congruent", output.congruent},
                    {"by_regions", output.by_regions},
                    {"regions", Number(output.regions)},
                    {"probes", Number(output.probes)},
                    {"dimensions", std::move(dims)},
                    {"not_understood", output.reasons}});
  }
  return json;
}

/// The first witness of all, null when there is none.
Json FirstWitness(const PairVerdict& verdict) {
  for (size_t k = 0; k < verdict.report.outputs.size(); ++k) {
    const auto& boxes = verdict.report.outputs[k].boxes;
    for (size_t i = 0; i < boxes.size(); ++i) {
      if (boxes[i].witness.has_value()) return WitnessJson(verdict, k, i);
    }
  }
  return Json();
}

}  // namespace

Json VerdictJson(const PairVerdict& verdict) {
  const CompareReport& report = verdict.report;
  // A refit is proven by its own certificate, whose first draw selects cut points.
  const bool refitted = verdict.refit.has_value() && verdict.refit->applies;
  std::vector<Draw> draws = refitted ? verdict.refit->certificate.draws : report.draws;
  if (refitted && !draws.empty()) draws.erase(draws.begin());
  Json primes = Json::array();
  for (const Draw& draw : draws) primes.push_back(draw.prime);
  Json outputs = Json::array();
  for (size_t k = 0; k < report.outputs.size(); ++k) outputs.push_back(OutputJson(verdict, k));
  Json earliest = Json::array();
  for (const DivergentTensor& tensor : report.earliest) {
    earliest.push_back({{"name", tensor.name}, {"op", tensor.op}, {"shape", tensor.shape}});
  }
  Json differing = Json::array();
  for (const WeightDifference& weight : report.weights) {
    differing.push_back({{"name", weight.name},
                         {"elements", weight.elements},
                         {"differing", weight.differing},
                         {"largest_ulps", Number(weight.largest_ulps)}});
  }
  Json json = {{"schema", kVerdictSchema},
               {"a", verdict.file_a},
               {"b", verdict.file_b},
               {"verdict", VerdictWord(verdict)},
               {"reason", report.reason},
               {"lacking", report.lacking},
               {"weight_mode", verdict.weights == WeightMode::kExact ? "exact" : "symbolic"},
               {"bound_log2", refitted ? verdict.refit->certificate.bound_log2 : report.bound_log2},
               {"tests", draws.size()},
               {"primes", std::move(primes)},
               {"seed", verdict.seed},
               {"degree", refitted ? verdict.refit->certificate.degree : report.degree},
               {"segments", refitted ? verdict.refit->certificate.segments : report.segments},
               {"outputs", std::move(outputs)},
               {"witness", FirstWitness(verdict)},
               {"earliest", std::move(earliest)},
               {"weights", std::move(differing)},
               // The key keeps its old name for version 0.1: `axioms` replaces it.
               {"facts", report.axioms},
               {"refit", RefitJson(verdict)},
               {"notes", verdict.notes}};
  if (const int count = report.RoundedConstants(); count > 0)
    json["rounded_constants"] = {{"count", count}, {"largest_ulps", kRoundedUlps}};
  if (report.hidden_gap > 0) json["hidden_gap"] = report.hidden_gap;
  if (!verdict.sizes.empty()) json["sizes"] = verdict.sizes;
  if (verdict.regions.has_value()) json["regions"] = RegionsJson(*verdict.regions);
  return json;
}

}  // namespace mendel
