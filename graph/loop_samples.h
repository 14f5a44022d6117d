// Random instances of Loop for tests: recurrences with a matrix, and gates over two states.
#ifndef MENDEL_GRAPH_LOOP_SAMPLES_H_
#define MENDEL_GRAPH_LOOP_SAMPLES_H_

#include "base/random.h"
#include "graph/op_definition.h"

namespace mendel {

/// One to four steps, in either direction. See OpDefinition::sample.
OpSample SampleLoop(Rng& rng);

}  // namespace mendel

#endif  // MENDEL_GRAPH_LOOP_SAMPLES_H_
