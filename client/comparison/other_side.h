// Values of a model's graph as another program computes them from the same inputs: a plan, another
// model, or ONNX Runtime.
#ifndef MENDEL_CLIENT_COMPARISON_OTHER_SIDE_H_
#define MENDEL_CLIENT_COMPARISON_OTHER_SIDE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/tensor.h"
#include "onnx/import.h"
#include "runtime/plan.h"
#include "runtime/session.h"

namespace mendel {

/// The model that others are compared with.
struct ComparedModel {
  std::string path;
  /// With every value as an output (ImportOptions::every_value) where layers are compared.
  ImportResult imported;
  size_t outputs = 0;  ///< of the model itself; they come first in the graph's
  std::map<std::string, Tensor> inputs;
  std::map<std::string, Tensor> bindings;  ///< inputs of the file that are constants of the graph
  bool layers = false;
};

struct SideValue {
  std::string name;         ///< the model's
  std::string counterpart;  ///< the other program's
  Tensor value;
};

struct SideValues {
  std::string runtime;  ///< what computed them
  std::vector<SideValue> values;
  std::vector<std::string> notes;
};

/// The outputs, by name, of the plan as it is. With layers: values of the plan that look equal to a
/// value of the model in doubles (CompareNumerically with `seed`), from a run of their own, since a
/// value that is an output is not fused into the next operator.
absl::StatusOr<SideValues> ValuesOfPlan(const ComparedModel& model, const Plan& plan,
                                        const SessionOptions& session, uint64_t seed);

/// Outputs by name, or by position where no name is the same; with layers, values of equal names
/// and types.
absl::StatusOr<SideValues> ValuesOfModel(const ComparedModel& model, const ImportResult& other,
                                         size_t outputs, const SessionOptions& session);

/// Runs the file in ONNX Runtime on `threads` threads. `python`: FindPython's path. 16-bit brain
/// floats are left out, since NumPy does not have them.
absl::StatusOr<SideValues> ValuesOfOnnxRuntime(const ComparedModel& model, int threads,
                                               const std::string& python);

/// `graph` with other outputs: a graph and, by old number, the new numbers of its nodes. Values
/// refer to `graph`.
struct Rewired {
  Graph graph;
  std::map<int32_t, int32_t> nodes;
};
absl::StatusOr<Rewired> WithOutputs(const Graph& graph, const std::vector<GraphOutput>& outputs);

}  // namespace mendel

#endif  // MENDEL_CLIENT_COMPARISON_OTHER_SIDE_H_
