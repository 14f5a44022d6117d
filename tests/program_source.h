// Program sources: the programs for the tests of the verifier.
#ifndef MENDEL_TESTS_PROGRAM_SOURCE_H_
#define MENDEL_TESTS_PROGRAM_SOURCE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "graph/graph.h"

namespace mendel {

/// The number in environment variable `name`, or `otherwise`.
uint64_t NumberFromEnvironment(const char* name, uint64_t otherwise);

/// Paths of the .onnx files in the folder that environment variable MENDEL_MODELS names, sorted;
/// empty when it is not set.
std::vector<std::string> ModelPaths();
/// The model at `path` with symbolic dimensions of 1. CHECK-fails when it cannot be imported.
Graph LoadModel(const std::string& path);

/// One to eight neighboring nodes of `model` as a program of at most `max_flops`; larger ones are
/// cut down to a small box of an output. Nullopt when the draw has no run-time node, or its inputs
/// and weights are too large for repeated draws.
std::optional<Graph> RandomPart(Rng& rng, const Graph& model, double max_flops);

/// A small program: grown at random, or one operator of the registry with its operands.
Graph RandomProgram(Rng& rng);

}  // namespace mendel

#endif  // MENDEL_TESTS_PROGRAM_SOURCE_H_
