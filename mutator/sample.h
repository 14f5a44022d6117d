// Random small graphs for the samplers of rules.
#ifndef MENDEL_MUTATOR_SAMPLE_H_
#define MENDEL_MUTATOR_SAMPLE_H_

#include <string>

#include "graph/emitter.h"

namespace mendel {

/// A weight of normal values.
ValueId SampleWeight(Emitter& e, Rng& rng, const Shape& shape, const std::string& name);

/// Convolutions one behind the other, each with Relu at random, on one input.
struct RegionSample {
  Shape input;
  Shape kernel;
  int64_t dilation = 1;
  int64_t first_stride = 1;  ///< first stride of the first convolution
  int links = 1;
  bool padded = true;    ///< pads that keep space
  bool residual = true;  ///< at random: the result of the first link is added behind the last
  bool pool = true;  ///< at random: an average or max pool that keeps space behind the first link
                     ///< (dilation 1 only)
  bool outputs = true;           ///< at random: the result of the first link is an output, too
  bool separate_inputs = false;  ///< the residual is an input of its own
};
absl::StatusOr<Graph> MakeRegionSample(Rng& rng, const RegionSample& sample);

/// Attributes of a window operator with `rank` equal windows.
Attributes WindowAttributes(size_t rank, int64_t stride, int64_t dilation, int64_t pad);

}  // namespace mendel

#endif  // MENDEL_MUTATOR_SAMPLE_H_
