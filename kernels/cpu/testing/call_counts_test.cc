// Counting versions of the C library's functions (call_counts.h). The dynamic linker gives the
// executable's versions to every library.

#include "kernels/cpu/testing/call_counts.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <new>
#include <ostream>
#include <thread>

#include "oneapi/dnnl/dnnl.h"

extern "C" {
void* __libc_malloc(size_t bytes);
void __libc_free(void* block);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* block, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
}

namespace mendel::cpu {
namespace {

struct Counters {
  std::atomic<int64_t> allocations{0}, frees{0}, mappings{0}, locks{0}, threads{0};
  CallCounts Take() {
    return {allocations.exchange(0), frees.exchange(0), mappings.exchange(0), locks.exchange(0),
            threads.exchange(0)};
  }
};
constinit Counters own, onednn;
constinit std::atomic<bool> watching{false};
constinit std::atomic<int> in_onednn{0};  ///< calls; loops side by side have several
constinit std::atomic<int64_t> primitives{0};

void Count(std::atomic<int64_t> Counters::*what) {
  if (!watching.load(std::memory_order_relaxed)) return;
  Counters& counters = in_onednn.load(std::memory_order_relaxed) > 0 ? onednn : own;
  (counters.*what).fetch_add(1, std::memory_order_relaxed);
}

/// Returns the definition after the executable's. The first call may allocate, since dlsym does.
template <class Function>
Function* Next(const char* name, std::atomic<Function*>& found) {
  Function* function = found.load(std::memory_order_relaxed);
  if (function == nullptr) {
    function = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
    found.store(function, std::memory_order_relaxed);
  }
  return function;
}

using Lock = int(pthread_mutex_t*);
using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
using Execute = dnnl_status_t(const_dnnl_primitive_t, dnnl_stream_t, int, const dnnl_exec_arg_t*);
constinit std::atomic<Lock*> next_lock{nullptr};
constinit std::atomic<Create*> next_create{nullptr};
constinit std::atomic<Execute*> next_execute{nullptr};

void Start() {
  Next("dnnl_primitive_execute", next_execute);
  own.Take();
  onednn.Take();
  primitives = 0;
  watching = true;
}

WatchedCalls Stop() {
  watching = false;
  return {own.Take(), onednn.Take(), primitives};
}

/// Keeps the compiler from removing `block` as unread.
void* Kept(void* block) {
  asm volatile("" : "+r"(block));
  return block;
}

constexpr CallWatch kWatch = {&Start, &Stop};
[[maybe_unused]] const bool registered = (call_watch = &kWatch, true);

}  // namespace

TEST(CallCounts, SeesEveryKind) {
  Start();
  ::operator delete(Kept(::operator new(4)));
  ::operator delete(Kept(::operator new(64, std::align_val_t(64))), std::align_val_t(64));
  std::free(Kept(std::malloc(100)));
  std::free(Kept(std::calloc(10, 10)));
  std::free(Kept(std::realloc(nullptr, 10)));
  std::free(Kept(std::aligned_alloc(64, 64)));
  EXPECT_EQ(Stop().own, (CallCounts{.allocations = 6, .frees = 6}));
  Start();
  munmap(mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
  EXPECT_EQ(Stop().own, (CallCounts{.mappings = 2}));
  std::mutex mutex;
  Start();
  { const std::lock_guard<std::mutex> lock(mutex); }
  EXPECT_EQ(Stop().own, (CallCounts{.locks = 1}));
  Start();
  std::thread([] {}).join();
  EXPECT_EQ(Stop().own.threads, 1);
}

}  // namespace mendel::cpu

extern "C" {

void* malloc(size_t bytes) {
  mendel::cpu::Count(&mendel::cpu::Counters::allocations);
  return __libc_malloc(bytes);
}
void free(void* block) {
  if (block != nullptr) mendel::cpu::Count(&mendel::cpu::Counters::frees);
  __libc_free(block);
}
void* calloc(size_t count, size_t bytes) {
  mendel::cpu::Count(&mendel::cpu::Counters::allocations);
  return __libc_calloc(count, bytes);
}
void* realloc(void* block, size_t bytes) {
  mendel::cpu::Count(&mendel::cpu::Counters::allocations);
  return __libc_realloc(block, bytes);
}
void* memalign(size_t alignment, size_t bytes) {
  mendel::cpu::Count(&mendel::cpu::Counters::allocations);
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** block, size_t alignment, size_t bytes) {
  *block = memalign(alignment, bytes);
  return *block == nullptr ? ENOMEM : 0;
}
void* mmap(void* address, size_t bytes, int protection, int flags, int file,
           off_t offset) noexcept {
  mendel::cpu::Count(&mendel::cpu::Counters::mappings);
  return reinterpret_cast<void*>(
      syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}
int munmap(void* address, size_t bytes) noexcept {
  mendel::cpu::Count(&mendel::cpu::Counters::mappings);
  return static_cast<int>(syscall(SYS_munmap, address, bytes));
}
int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  mendel::cpu::Count(&mendel::cpu::Counters::locks);
  return mendel::cpu::Next("pthread_mutex_lock", mendel::cpu::next_lock)(mutex);
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) noexcept {
  mendel::cpu::Count(&mendel::cpu::Counters::threads);
  return mendel::cpu::Next("pthread_create", mendel::cpu::next_create)(thread, attributes, start,
                                                                       argument);
}
dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive, dnnl_stream_t stream,
                                     int count, const dnnl_exec_arg_t* arguments) {
  auto* execute = mendel::cpu::Next("dnnl_primitive_execute", mendel::cpu::next_execute);
  mendel::cpu::primitives.fetch_add(1, std::memory_order_relaxed);
  ++mendel::cpu::in_onednn;
  const dnnl_status_t status = execute(primitive, stream, count, arguments);
  --mendel::cpu::in_onednn;
  return status;
}

}  // extern "C"
