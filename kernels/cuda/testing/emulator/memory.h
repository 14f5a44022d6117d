// Shadow of the memory that a launch may touch: who read and wrote what since the last barrier.
#ifndef MENDEL_KERNELS_CUDA_TESTING_EMULATOR_MEMORY_H_
#define MENDEL_KERNELS_CUDA_TESTING_EMULATOR_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mendel::cuda {

/// Global memory of a launch.
struct GlobalBuffer {
  std::string name;
  std::span<std::byte> bytes;
  bool writable = false;
  size_t granule = 2;  ///< bytes that are watched as one
};

/// Checks accesses of one launch. A barrier orders everything before it in a block before
/// everything after it; blocks are not ordered. So what the checker reports does not depend on the
/// order in which threads happen to run.
class MemoryChecker {
 public:
  MemoryChecker(unsigned char* shared, size_t shared_bytes, std::span<const GlobalBuffer> buffers);

  /// A new block: its shared memory contains nothing.
  void BeginBlock();
  /// All threads of the block have passed a barrier, or have ended: the fault that is certain now,
  /// empty when there is none.
  std::string Barrier();
  /// Shared memory from this address on may be read more than one barrier after it was written,
  /// until the block ends.
  void Keep(uintptr_t address);
  /// This shared memory, which was written just now, contains nothing until the copy has ended; its
  /// use is a fault.
  void BeginCopy(uintptr_t address, size_t size) { MarkCopy(address, size, true); }
  void EndCopy(uintptr_t address, size_t size) { MarkCopy(address, size, false); }
  /// The fault of this access by `thread` (its number in the grid), empty when there is none.
  std::string Access(uintptr_t address, size_t size, bool write, bool aligned, uint32_t thread);

 private:
  struct Word {                        // of shared memory
    uint32_t written = 0, writer = 0;  // epoch and thread; epoch 0: never
    uint32_t read = 0, reader = 0;
    bool copied = false;  // to where a copy is under way
  };
  struct Shadow {  // of a granule of global memory; threads count from 1
    uint32_t writer = 0, reader = 0;
  };
  struct Global {
    GlobalBuffer buffer;
    std::vector<Shadow> shadow;  // shadow of writable buffers
  };

  void Suspect(std::string fault);
  void MarkCopy(uintptr_t address, size_t size, bool under_way);
  std::string AccessShared(size_t begin, size_t size, bool write, uint32_t thread);
  std::string AccessGlobal(Global& global, size_t begin, size_t size, bool write, uint32_t thread);

  unsigned char* shared_;
  std::vector<Word> words_;
  size_t kept_ = 0;  // number of the first word that is kept
  std::vector<Global> globals_;
  std::string suspicion_;  // a fault unless a race explains it
  uint32_t epoch_ = 0;
  uint32_t block_epoch_ = 0;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_EMULATOR_MEMORY_H_
