#include "kernels/cuda/tiled/async_copies.h"

namespace mendel::cuda {

std::string_view AsyncCopiesText() {
  return R"(#ifndef MENDEL_ASYNC_COPIES
#define MENDEL_ASYNC_COPIES
namespace mendel_text {
template <class To, class From>
MENDEL_HERE void CopyAsync(To* to, const From* from, bool there) {
  static_assert(sizeof(To) == 16 && sizeof(From) == 16, "");
  asm volatile(
      "{.reg .u64 s, g; cvta.to.shared.u64 s, %0; cvta.to.global.u64 g, %1; cp.async.cg.shared.global [s], [g], 16, %2;}"
      :
      : "l"(to), "l"(from), "r"(there ? 16 : 0)
      : "memory");
}
MENDEL_HERE void AwaitCopies() { asm volatile("cp.async.wait_all;" : : : "memory"); }
}  // namespace mendel_text
#endif
)";
}

}  // namespace mendel::cuda
