// The epilogue is the text after the sums of a tiled product. Kernels that sum and kernels that
// total divided sums share it.
#ifndef MENDEL_KERNELS_CUDA_TILED_EPILOGUE_H_
#define MENDEL_KERNELS_CUDA_TILED_EPILOGUE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "kernels/cuda/fusion/kernel_code.h"
#include "kernels/cuda/fusion/operator_text.h"
#include "kernels/cuda/tiled/chain.h"

namespace mendel::cuda {

/// The expression of a product's sum (its number in TiledChain::products) at element `lane` of
/// those that are stored together.
using SumAtLane = std::function<std::string(size_t product, const std::string& lane)>;

/// Elements of the result that one access stores, no more than `most`, a power of two, where they
/// lie in rows of `run` elements.
inline int ResultLanes(int most, int64_t run) { return run % most == 0 ? most : 1; }

/// Stores `lanes` elements of the chain's result that lie side by side. The text has the names
/// `row` and `column`: of the products, where the first of them is.
void WriteResults(KernelCode& code, const TiledChain& chain, const ProductPlaces& places, int lanes,
                  const SumAtLane& sum);

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TILED_EPILOGUE_H_
