#include "base/heap.h"

#include <malloc.h>
#include <sys/types.h>

#include <cstddef>
#include <string>

/// jemalloc's control function; null where the program uses another heap.
extern "C" int mallctl(const char* name, void* old_value, size_t* old_size, void* new_value,
                       size_t new_size) __attribute__((weak));

namespace mendel {
namespace {

constexpr size_t kAllArenas = 4096;  // MALLCTL_ARENAS_ALL of jemalloc 5

template <class T>
void SetInHeap(const std::string& name, T value) {
  mallctl(name.c_str(), nullptr, nullptr, &value, sizeof(value));
}

}  // namespace

void ReturnFreedMemory() {
  if (mallctl == nullptr) {
    malloc_trim(0);
    return;
  }
  mallctl(("arena." + std::to_string(kAllArenas) + ".purge").c_str(), nullptr, nullptr, nullptr, 0);
}

void KeepFreedMemory() {
  if (mallctl == nullptr) {
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    return;
  }
  constexpr ssize_t kNever = -1;
  SetInHeap("arenas.dirty_decay_ms", kNever);  // of arenas that do not exist yet
  unsigned arenas = 0;
  size_t size = sizeof(arenas);
  mallctl("arenas.narenas", &arenas, &size, nullptr, 0);
  for (unsigned k = 0; k < arenas; ++k)
    SetInHeap("arena." + std::to_string(k) + ".dirty_decay_ms", kNever);
}

}  // namespace mendel
