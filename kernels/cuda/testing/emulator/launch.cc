#include "kernels/cuda/testing/emulator/launch.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "kernels/cuda/testing/emulator/fiber.h"

namespace mendel::cuda {
namespace {

constexpr size_t kStackBytes = 256 << 10;
constexpr size_t kWarp = 32;

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};
/// mendel_emulator_state of shim.h.
struct KernelState {
  Dim3 thread, block, block_dim, grid_dim;
  unsigned long stack_low = 0, stack_bytes = 0;
  void (*barrier)(int line) = nullptr;
  void (*access)(unsigned long address, unsigned long size, bool write, bool aligned) = nullptr;
  void (*keep)(unsigned long address) = nullptr;
  void (*exchange)(const void* mine, unsigned long size, void* all) = nullptr;
  void (*copy)(unsigned long to, unsigned long from, unsigned long size, bool there) = nullptr;
  void (*await)() = nullptr;
};

/// One launch. The compiled text calls back into the Run that executes it.
class Run {
 public:
  Run(const EmulatedKernel& kernel, const LaunchShape& launch, std::span<void*> arguments,
      std::span<const GlobalBuffer> buffers)
      : kernel_(kernel),
        launch_(launch),
        arguments_(arguments),
        memory_(kernel.shared, launch.shared, buffers),
        state_(*static_cast<KernelState*>(kernel.state)) {
    for (unsigned k = 0; k < launch.block; ++k)
      threads_.push_back({std::make_unique<Fiber>(kStackBytes)});
  }

  absl::Status Execute() {
    MENDEL_CHECK(current_ == nullptr);
    current_ = this;
    state_.block_dim = {launch_.block, 1, 1};
    state_.grid_dim = {launch_.grid, 1, 1};
    state_.barrier = [](int line) { current_->AtBarrier(line); };
    state_.access = [](unsigned long address, unsigned long size, bool write, bool aligned) {
      current_->AtAccess(address, size, write, aligned);
    };
    state_.keep = [](unsigned long address) { current_->memory_.Keep(address); };
    state_.exchange = [](const void* mine, unsigned long size, void* all) {
      current_->AtExchange(mine, size, all);
    };
    state_.copy = [](unsigned long to, unsigned long from, unsigned long size, bool there) {
      current_->AtCopy({to, there ? from : 0, size});
    };
    state_.await = [] { current_->AtAwait(); };
    for (unsigned block = 0; block < launch_.grid && fault_.empty(); ++block) ExecuteBlock(block);
    current_ = nullptr;
    return fault_.empty() ? absl::OkStatus() : absl::AbortedError(fault_);
  }

 private:
  enum class Place { kBarrier, kExchange, kEnd };
  struct Copy {
    uintptr_t to = 0, from = 0;  // from 0: zeros
    size_t size = 0;
  };
  struct Thread {
    std::unique_ptr<Fiber> fiber;
    Place place = Place::kBarrier;
    int line = 0;                // line of the barrier where it waits
    const void* mine = nullptr;  // what it exchanges, on its stack
    size_t size = 0;
    void* all = nullptr;
    std::vector<Copy> copies = {};  // that it has not awaited
  };

  void ExecuteBlock(unsigned block) {
    memory_.BeginBlock();
    block_ = block;
    for (Thread& thread : threads_) {
      thread.place = Place::kBarrier;
      thread.copies.clear();
      thread.fiber->Start([](void* self) { static_cast<Run*>(self)->Body(); }, this);
    }
    while (fault_.empty()) {
      for (size_t first = 0; first < threads_.size() && fault_.empty(); first += kWarp)
        ExecuteWarp(first);
      if (fault_.empty()) CheckSamePlace();
      if (fault_.empty()) fault_ = memory_.Barrier();
      if (threads_[0].place == Place::kEnd) return;
    }
  }

  /// Runs the threads from `first` on to the next barrier or their end.
  void ExecuteWarp(size_t first) {
    const size_t end = std::min(first + kWarp, threads_.size());
    do {
      for (running_ = first; running_ < end && fault_.empty(); ++running_) {
        if (threads_[running_].place != Place::kEnd) Resume();
      }
    } while (fault_.empty() &&
             Exchange({threads_.begin() + static_cast<ptrdiff_t>(first), end - first}));
  }

  /// True if the whole warp waited at an exchange; each thread then has what the others have.
  bool Exchange(std::span<Thread> warp) {
    const auto waiting = std::count_if(
        warp.begin(), warp.end(), [](const Thread& one) { return one.place == Place::kExchange; });
    if (waiting == 0) return false;
    const bool alike = std::all_of(warp.begin(), warp.end(),
                                   [&](const Thread& one) { return one.size == warp[0].size; });
    if (waiting != kWarp || !alike) {
      fault_ = Cat("divergent warp: in block ", block_, " ", waiting, " of the ", kWarp,
                   " threads of a warp come to what it does as a whole");
      return false;
    }
    for (Thread& reader : warp) {
      for (size_t k = 0; k < warp.size(); ++k) {
        std::memcpy(static_cast<std::byte*>(reader.all) + k * reader.size, warp[k].mine,
                    reader.size);
      }
    }
    return true;
  }

  void Resume() {
    const Fiber& fiber = *threads_[running_].fiber;
    state_.thread = {static_cast<unsigned>(running_), 0, 0};
    state_.block = {block_, 0, 0};
    state_.stack_low = fiber.stack_low();
    state_.stack_bytes = fiber.stack_bytes();
    threads_[running_].fiber->Resume();
  }

  void CheckSamePlace() {
    for (size_t k = 1; k < threads_.size(); ++k) {
      if (threads_[k].place == threads_[0].place && threads_[k].line == threads_[0].line) continue;
      const auto place = [&](const Thread& thread) {
        return thread.place == Place::kEnd ? std::string("has ended")
                                           : Cat("waits at the barrier in line ", thread.line);
      };
      fault_ = Cat("divergent barrier: in block ", block_, " thread 0 ", place(threads_[0]),
                   ", thread ", k, " ", place(threads_[k]));
      return;
    }
  }

  // From here on the stack is a fiber's.
  void Body() {
    kernel_.call(arguments_.data());
    threads_[running_].place = Place::kEnd;
    threads_[running_].line = 0;
    threads_[running_].fiber->Yield();
  }
  void AtExchange(const void* mine, size_t size, void* all) {
    Thread& thread = threads_[running_];
    thread.place = Place::kExchange;
    thread.mine = mine;
    thread.size = size;
    thread.all = all;
    thread.fiber->Yield();
  }
  void AtCopy(const Copy& copy) {
    constexpr uintptr_t kAlignment = 16;  // whatever stands for the elements
    if (copy.from % kAlignment != 0 || copy.to % kAlignment != 0)
      Fail("misaligned: a copy from or to no multiple of 16 bytes");
    if (copy.from != 0) AtAccess(copy.from, copy.size, false, false);
    if (copy.to - reinterpret_cast<uintptr_t>(kernel_.shared) >= launch_.shared)
      Fail("out of bounds: a copy to no shared memory");
    AtAccess(copy.to, copy.size, true, false);
    memory_.BeginCopy(copy.to, copy.size);
    threads_[running_].copies.push_back(copy);
  }
  void AtAwait() {
    for (const Copy& copy : std::exchange(threads_[running_].copies, {})) {
      memory_.EndCopy(copy.to, copy.size);
      AtAccess(copy.to, copy.size, true, false);
      auto* const to = reinterpret_cast<std::byte*>(copy.to);
      if (copy.from == 0) {
        std::memset(to, 0, copy.size);
      } else {
        std::memcpy(to, reinterpret_cast<const std::byte*>(copy.from), copy.size);
      }
    }
  }
  void AtBarrier(int line) {
    threads_[running_].place = Place::kBarrier;
    threads_[running_].line = line;
    threads_[running_].fiber->Yield();
  }
  void AtAccess(uintptr_t address, size_t size, bool write, bool aligned) {
    if (address - reinterpret_cast<uintptr_t>(kernel_.state) < sizeof(KernelState)) return;
    const bool shared =
        address - reinterpret_cast<uintptr_t>(kernel_.shared) < kernel_.shared_bytes;
    if (!shared && !write && address >= kernel_.image_low && address < kernel_.image_high) return;
    const uint32_t thread = block_ * launch_.block + static_cast<uint32_t>(running_);
    std::string fault = memory_.Access(address, size, write, aligned, thread);
    if (!fault.empty()) Fail(std::move(fault));
  }
  void Fail(std::string fault) {
    fault_ = std::move(fault);
    threads_[running_].fiber->Yield();  // and is never resumed
  }

  const EmulatedKernel& kernel_;
  const LaunchShape& launch_;
  std::span<void*> arguments_;
  MemoryChecker memory_;
  KernelState& state_;
  std::vector<Thread> threads_;
  size_t running_ = 0;
  unsigned block_ = 0;
  std::string fault_;

  static inline Run* current_ = nullptr;
};

}  // namespace

absl::Status Emulate(const EmulatedKernel& kernel, const LaunchShape& launch,
                     std::span<void*> arguments, std::span<const GlobalBuffer> buffers) {
  return Run(kernel, launch, arguments, buffers).Execute();
}

}  // namespace mendel::cuda
