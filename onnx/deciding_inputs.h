// Inputs that decide which branch of an If is taken, such as a sampling rate: a graph for one value
// of them contains the taken branch alone.
#ifndef MENDEL_ONNX_DECIDING_INPUTS_H_
#define MENDEL_ONNX_DECIDING_INPUTS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "graph/tensor.h"
#include "onnx/model.pb.h"
#include "onnx/model_reader.h"

namespace mendel {

/// The inputs that conditions of the main graph's If nodes are computed from, and nothing else but
/// stored tensors is: integral or Boolean, of one element.
std::map<std::string, TensorType> DecidingInputs(const onnx::GraphProto& graph);

/// The integers that conditions compare deciding inputs with: operands of Equal that are stored
/// tensors of one element, in ascending order. A rate that a model compares with 16000 is likely
/// 16000.
std::set<int64_t> ComparedIntegers(const ModelFile& file);

}  // namespace mendel

#endif  // MENDEL_ONNX_DECIDING_INPUTS_H_
