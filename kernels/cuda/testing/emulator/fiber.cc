#include "kernels/cuda/testing/emulator/fiber.h"

#include <sys/mman.h>

#include "base/check.h"

#if defined(__SANITIZE_ADDRESS__)
#define MENDEL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MENDEL_ASAN 1
#endif
#endif
#ifdef MENDEL_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#ifdef __x86_64__
// Saves the registers that a call must preserve, exchanges the stacks and restores. It is 20 times
// as fast as swapcontext, which makes a system call.
extern "C" void mendel_switch_stack(void** save, void* load);
extern "C" void mendel_enter_fiber();
asm(R"(
.text
.globl mendel_switch_stack
.hidden mendel_switch_stack
.type mendel_switch_stack, @function
mendel_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.globl mendel_enter_fiber
.hidden mendel_enter_fiber
.type mendel_enter_fiber, @function
mendel_enter_fiber:
  movq %r12, %rdi
  callq *%r13
  ud2
)");
#else
#include <ucontext.h>
#endif

namespace mendel::cuda {

#ifdef __x86_64__
using Registers = void*;  // all are on the stack that this points to
#else
using Registers = ucontext_t;
#endif

struct Fiber::Machine {
  Registers inside{};
  Registers outside{};
  Entry entry = nullptr;
  void* argument = nullptr;
  const void* outer_stack = nullptr;  // where Resume was called, for AddressSanitizer
  size_t outer_bytes = 0;

  /// The first function on the fiber's stack.
  static void Enter(void* self) {
    auto* machine = static_cast<Machine*>(self);
#ifdef MENDEL_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &machine->outer_stack, &machine->outer_bytes);
#endif
    machine->entry(machine->argument);
  }
};

Fiber::Fiber(size_t stack_bytes)
    : stack_(nullptr), stack_bytes_(stack_bytes), machine_(new Machine()) {
  void* memory = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  MENDEL_CHECK(memory != MAP_FAILED);
  stack_ = static_cast<std::byte*>(memory);
}

Fiber::~Fiber() {
#ifdef MENDEL_ASAN
  // An entry that was left in the middle has frames here; something else may be mapped here next.
  __asan_unpoison_memory_region(stack_, stack_bytes_);
#endif
  munmap(stack_, stack_bytes_);
  delete machine_;
}

void Fiber::Start(Entry entry, void* argument) {
#ifdef MENDEL_ASAN
  __asan_unpoison_memory_region(stack_, stack_bytes_);
#endif
  machine_->entry = entry;
  machine_->argument = argument;
#ifdef __x86_64__
  // The stack is as mendel_switch_stack leaves it: six registers and the address to go to. The call
  // in mendel_enter_fiber finds the stack aligned to 16.
  void** top = reinterpret_cast<void**>(stack_ + stack_bytes_) - 2;
  *--top = reinterpret_cast<void*>(&mendel_enter_fiber);
  *--top = nullptr;                                   // rbp
  *--top = nullptr;                                   // rbx
  *--top = machine_;                                  // r12
  *--top = reinterpret_cast<void*>(&Machine::Enter);  // r13
  *--top = nullptr;                                   // r14
  *--top = nullptr;                                   // r15
  machine_->inside = top;
#else
  getcontext(&machine_->inside);
  machine_->inside.uc_stack.ss_sp = stack_;
  machine_->inside.uc_stack.ss_size = stack_bytes_;
  machine_->inside.uc_link = nullptr;
  const auto address = reinterpret_cast<uintptr_t>(machine_);
  void (*enter)(unsigned, unsigned) = [](unsigned high, unsigned low) {
    Machine::Enter(reinterpret_cast<void*>(static_cast<uintptr_t>(high) << 32 | low));
  };
  makecontext(&machine_->inside, reinterpret_cast<void (*)()>(enter), 2,
              static_cast<unsigned>(address >> 32), static_cast<unsigned>(address));
#endif
}

void Fiber::Resume() {
#ifdef MENDEL_ASAN
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, stack_, stack_bytes_);
#endif
#ifdef __x86_64__
  mendel_switch_stack(&machine_->outside, machine_->inside);
#else
  swapcontext(&machine_->outside, &machine_->inside);
#endif
#ifdef MENDEL_ASAN
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
}

void Fiber::Yield() {
#ifdef MENDEL_ASAN
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, machine_->outer_stack, machine_->outer_bytes);
#endif
#ifdef __x86_64__
  mendel_switch_stack(&machine_->inside, machine_->outside);
#else
  swapcontext(&machine_->inside, &machine_->outside);
#endif
#ifdef MENDEL_ASAN
  __sanitizer_finish_switch_fiber(fake_stack, &machine_->outer_stack, &machine_->outer_bytes);
#endif
}

}  // namespace mendel::cuda
