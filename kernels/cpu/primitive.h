// oneDNN primitives as kernels.
#ifndef MENDEL_KERNELS_CPU_PRIMITIVE_H_
#define MENDEL_KERNELS_CPU_PRIMITIVE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cpu/kernels/kernel.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace mendel::cpu {

/// The process's CPU engine.
const dnnl::engine& Engine();

/// Descriptor of a layout; rank 0 becomes one dimension of extent one.
dnnl::memory::desc DescOf(const Shape& shape, const Layout& layout,
                          dnnl::memory::data_type type = dnnl::memory::data_type::f32);
/// nullopt when the format is more than one block in one dimension.
std::optional<Layout> LayoutOf(const dnnl::memory::desc& desc);

struct PrimitiveArgument {
  int index = 0;  ///< DNNL_ARG_...
  dnnl::memory::desc desc;
  Place place;
};

/// Attributes with a scratchpad that the caller provides.
dnnl::primitive_attr UserScratchpad();

/// The primitive that `desc` describes (made with the kernel's Create), with its arguments.
/// `sum_source` is copied into the destination first when it does not lie there already, because
/// the sum post-op adds to its destination. `destination` is then the argument number of the
/// output.
std::unique_ptr<Kernel> MakePrimitiveKernel(dnnl::primitive_desc_base desc,
                                            std::vector<PrimitiveArgument> arguments,
                                            dnnl::memory::desc scratchpad,
                                            std::optional<Place> sum_source = std::nullopt);

/// True when the name of an implementation says that it is oneDNN's slow reference code.
bool IsReference(const std::string& implementation);
bool IsGemm(const std::string& implementation);

}  // namespace mendel::cpu

#endif  // MENDEL_KERNELS_CPU_PRIMITIVE_H_
