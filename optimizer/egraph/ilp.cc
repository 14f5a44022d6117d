#include "optimizer/egraph/ilp.h"

#include <coin/Cbc_C_Interface.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>

#include "base/status.h"

namespace mendel {
namespace {

// CBC queries a better solution to be better by 1e-4 and calls 1e-6 an integer: costs are scaled so
// that neither shows.
constexpr double kScaledSum = 1e6;
constexpr double kMinSeconds = 0.05;

struct DeleteModel {
  void operator()(Cbc_Model* model) const { Cbc_deleteModel(model); }
};

}  // namespace

absl::StatusOr<IlpResult> SolveBinary(const std::vector<double>& costs,
                                      const std::vector<IlpRow>& rows, double seconds) {
  const int columns = static_cast<int>(costs.size());
  const double largest = costs.empty() ? 0 : *std::max_element(costs.begin(), costs.end());
  const double scale = largest > 0 ? kScaledSum / largest : 1;
  std::vector<int> starts = {0}, indices;
  std::vector<double> values, lower;
  std::vector<std::vector<std::pair<int, double>>> by_column(costs.size());
  for (size_t row = 0; row < rows.size(); ++row) {
    for (const auto& [column, value] : rows[row].terms)
      by_column[static_cast<size_t>(column)].emplace_back(static_cast<int>(row), value);
    lower.push_back(rows[row].lower);
  }
  for (const auto& terms : by_column) {
    for (const auto& [row, value] : terms) {
      indices.push_back(row);
      values.push_back(value);
    }
    starts.push_back(static_cast<int>(indices.size()));
  }
  std::vector<double> objective(costs), ones(costs.size(), 1), zeros(costs.size(), 0),
      infinite(rows.size(), 1e30);
  for (double& value : objective) value *= scale;
  const std::unique_ptr<Cbc_Model, DeleteModel> model(Cbc_newModel());
  if (model == nullptr) return InternalError("CBC makes no model");
  Cbc_loadProblem(model.get(), columns, static_cast<int>(rows.size()), starts.data(),
                  indices.data(), values.data(), zeros.data(), ones.data(), objective.data(),
                  lower.data(), infinite.data());
  for (int column = 0; column < columns; ++column) Cbc_setInteger(model.get(), column);
  Cbc_setLogLevel(model.get(), 0);
  Cbc_setParameter(model.get(), "log", "0");
  Cbc_setParameter(model.get(), "timeMode",
                   "elapsed");  // else the process's threads spend it together
  Cbc_setParameter(model.get(), "sec", std::to_string(std::max(seconds, kMinSeconds)).c_str());
  Cbc_solve(model.get());
  IlpResult result;
  result.infeasible = Cbc_isProvenInfeasible(model.get()) != 0;
  if (result.infeasible) return result;
  result.optimal = Cbc_isProvenOptimal(model.get()) != 0;
  const double* solution = Cbc_bestSolution(model.get());
  if (solution == nullptr) {
    result.optimal = false;
  } else {
    for (int column = 0; column < columns; ++column)
      result.chosen.push_back(solution[column] > 0.5);
  }
  const double bound =
      result.optimal ? Cbc_getObjValue(model.get()) : Cbc_getBestPossibleObjValue(model.get());
  result.bound = std::max(0.0, bound / scale);
  return result;
}

}  // namespace mendel
