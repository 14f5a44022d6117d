// Small cases of operators that move elements, with results of ONNX's reference evaluator (opset
// 21).
#ifndef MENDEL_GRAPH_MOVEMENT_CASES_H_
#define MENDEL_GRAPH_MOVEMENT_CASES_H_

#include <vector>

namespace mendel {

struct MovementOpCase {
  const char* name;
  const char* input;  ///< its elements are 0, 1, 2, ...
  const char* nodes;
  const char* shape;
  std::vector<double> expected;
};

std::vector<MovementOpCase> MovementOpCases();

}  // namespace mendel

#endif  // MENDEL_GRAPH_MOVEMENT_CASES_H_
