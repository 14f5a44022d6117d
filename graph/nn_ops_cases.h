// Numbers of operators of neural networks, from ONNX's reference evaluator.
#ifndef MENDEL_GRAPH_NN_OPS_CASES_H_
#define MENDEL_GRAPH_NN_OPS_CASES_H_

#include <string>
#include <vector>

#include "graph/evaluate.h"

namespace mendel {

/// A node, whose inputs nn_ops_test.cc fills, and what it yields.
struct NnOpCase {
  std::string label, op;
  std::vector<Shape> inputs;
  Attributes attrs;
  Shape shape;
  std::vector<double> values;
};

/// Pools, reductions, norms and products.
std::vector<NnOpCase> PlainNnOpCases();
std::vector<NnOpCase> ResizeCases();

}  // namespace mendel

#endif  // MENDEL_GRAPH_NN_OPS_CASES_H_
