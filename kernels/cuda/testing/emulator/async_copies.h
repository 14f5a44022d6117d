// Asynchronous copies for the emulator, in place of the text of tiled/async_copies.h: the same
// functions without PTX. Part of shim.h, and like it no part of the program.
#ifndef MENDEL_KERNELS_CUDA_TESTING_EMULATOR_ASYNC_COPIES_H_
#define MENDEL_KERNELS_CUDA_TESTING_EMULATOR_ASYNC_COPIES_H_

#define MENDEL_ASYNC_COPIES

namespace mendel_text {

template <class To, class From>
MENDEL_UNSEEN inline void CopyAsync(To* to, const From* from, bool there) {
  static_assert(sizeof(To) == sizeof(From), "");
  mendel_emulator.copy(reinterpret_cast<unsigned long>(to), reinterpret_cast<unsigned long>(from),
                       sizeof(To), there);
}
MENDEL_UNSEEN inline void AwaitCopies() { mendel_emulator.await(); }

}  // namespace mendel_text

#endif  // MENDEL_KERNELS_CUDA_TESTING_EMULATOR_ASYNC_COPIES_H_
