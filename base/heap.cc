#include "base/heap.h"

#include <malloc.h>
#include <sys/types.h>

#include <cstddef>
#include <string>

#include "base/check.h"

/// jemalloc's control function; null where the program uses another heap.
extern "C" int mallctl(const char* name, void* old_value, size_t* old_size, void* new_value,
                       size_t new_size) __attribute__((weak));

namespace mendel {
namespace {

constexpr size_t kAllArenas = 4096;  // MALLCTL_ARENAS_ALL of jemalloc 5

/// A name that this version of jemalloc lacks would change nothing and report nothing.
void Control(const std::string& name, ssize_t* value = nullptr) {
  MENDEL_CHECK(
      mallctl(name.c_str(), nullptr, nullptr, value, value == nullptr ? 0 : sizeof(*value)) == 0);
}

}  // namespace

void ReturnFreedMemory() {
  if (mallctl == nullptr) {
    malloc_trim(0);
    return;
  }
  Control("arena." + std::to_string(kAllArenas) + ".purge");
}

void KeepFreedMemory() {
  if (mallctl == nullptr) {
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    return;
  }
  ssize_t never = -1;
  Control("arenas.dirty_decay_ms", &never);  // of arenas that do not exist yet
  Control("arena.0.dirty_decay_ms", &never);
}

}  // namespace mendel
