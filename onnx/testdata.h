// ONNX's own operator tests (Debian: libonnx-testdata) as graphs with inputs and expected outputs,
// for tests of every backend.
#ifndef MENDEL_ONNX_TESTDATA_H_
#define MENDEL_ONNX_TESTDATA_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "graph/tensor.h"

namespace mendel {

/// An element may differ by absolute + relative * |expected|, as in NumPy's assert_allclose.
struct CaseTolerance {
  double relative = 0, absolute = 0;
};

struct OnnxTestCase {
  std::string name;  ///< folder and data set, "test_add/0"
  Graph graph;
  std::vector<Tensor> inputs;   ///< in the order of graph.inputs()
  std::vector<Tensor> outputs;  ///< expected, in the order of graph.outputs()
  CaseTolerance tolerance;      ///< that ONNX gives the case; zeros when unknown
};

/// Debian's package installs the cases here.
inline constexpr char kOnnxTestData[] = "/usr/share/libonnx-testdata/data";

/// Folders of all cases beneath `root`, sorted; empty when `root` does not exist.
std::vector<std::string> ListOnnxTestCases(const std::string& root);

/// The cases of one folder (model.onnx, test_data_set_*/input_*.pb, output_*.pb, optionally
/// `tolerance` with two numbers: relative, absolute). Inputs that the
/// language wants as attributes (shapes, axes, bounds) are bound to their values. The error is that
/// of the importer when it refuses the model.
absl::StatusOr<std::vector<OnnxTestCase>> LoadOnnxTestCases(const std::string& folder);

/// Empty when `actual` equals `expected` within what the dtype's rounding explains (times `slack`)
/// or within `given`, else what differs. Integers must be equal.
std::string CompareWithExpected(const Tensor& actual, const Tensor& expected, double slack = 1,
                                const CaseTolerance& given = {});

}  // namespace mendel

#endif  // MENDEL_ONNX_TESTDATA_H_
