// For the thread sanitizer only: in which order gRPC runs things, reported to a sanitizer that does
// not see into Debian's libgrpc (built without it, synchronized by atomics and futexes). Functions
// of libgrpc, libgrpc++ and Abseil are replaced by ours of the same names, which call them (by
// Debian 12's mangled names) and add these edges:
//
//   a batch of operations is started          -> its completion is reported
//   a call's last step, or its cancellation   -> OnDone, OnCancel
//   a message's bytes are sent                -> they are parsed (an in-process channel hands the
//   bytes themselves over) a lock of gRPC is let go                  -> it is taken again
//
// Nothing is said about our own data: what calls share with each other, with the hub, the pool and
// the stores is checked as everywhere.
#include <absl/synchronization/mutex.h>
#include <dlfcn.h>
#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/slice_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "server/rpc/thread_pool.h"

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}

// gRPC's headers define these for every program that includes them; private there.
void RunSuccess(grpc_completion_queue_functor* functor, int ok) __asm__(
    "_ZN4grpc8internal22CallbackWithSuccessTag9StaticRunEP29grpc_completion_queue_functori");
void RunStatus(grpc_completion_queue_functor* functor, int ok) __asm__(
    "_ZN4grpc8internal21CallbackWithStatusTag9StaticRunEP29grpc_completion_queue_functori");

namespace {

void AcquireAndRunSuccess(grpc_completion_queue_functor* functor, int ok) {
  __tsan_acquire(functor);
  RunSuccess(functor, ok);
}

void AcquireAndRunStatus(grpc_completion_queue_functor* functor, int ok) {
  __tsan_acquire(functor);
  RunStatus(functor, ok);
}

template <class Function>
Function* Real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

void ReleaseMessage(const grpc_byte_buffer* message) {
  if (message == nullptr || message->type != GRPC_BB_RAW) return;
  const grpc_slice_buffer& slices = message->data.raw.slice_buffer;
  for (size_t i = 0; i < slices.count; ++i) __tsan_release(GRPC_SLICE_START_PTR(slices.slices[i]));
}

grpc_event Acquired(grpc_event event) {
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(event.tag);
  return event;
}

}  // namespace

extern "C" {

grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* operations, size_t count,
                                      void* tag, void* reserved) {
  static auto* const real = Real<decltype(grpc_call_start_batch)>("grpc_call_start_batch");
  // The tag of a callback queue is a functor; of others an object whose first word is no such
  // function.
  auto* const functor = static_cast<grpc_completion_queue_functor*>(tag);
  if (functor->functor_run == &RunSuccess) functor->functor_run = &AcquireAndRunSuccess;
  if (functor->functor_run == &RunStatus) functor->functor_run = &AcquireAndRunStatus;
  __tsan_release(tag);
  for (size_t i = 0; i < count; ++i) {
    if (operations[i].op == GRPC_OP_SEND_MESSAGE)
      ReleaseMessage(operations[i].data.send_message.send_message);
  }
  return real(call, operations, count, tag, reserved);
}

int grpc_byte_buffer_reader_peek(grpc_byte_buffer_reader* reader, grpc_slice** slice) {
  static auto* const real =
      Real<decltype(grpc_byte_buffer_reader_peek)>("grpc_byte_buffer_reader_peek");
  const int some = real(reader, slice);
  if (some != 0) __tsan_acquire(GRPC_SLICE_START_PTR(**slice));
  return some;
}

grpc_event grpc_completion_queue_next(grpc_completion_queue* queue, gpr_timespec deadline,
                                      void* reserved) {
  static auto* const real =
      Real<decltype(grpc_completion_queue_next)>("grpc_completion_queue_next");
  return Acquired(real(queue, deadline, reserved));
}

grpc_event grpc_completion_queue_pluck(grpc_completion_queue* queue, void* tag,
                                       gpr_timespec deadline, void* reserved) {
  static auto* const real =
      Real<decltype(grpc_completion_queue_pluck)>("grpc_completion_queue_pluck");
  return Acquired(real(queue, tag, deadline, reserved));
}

}  // extern "C"

// gRPC's locks.
namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  static auto* const real = Real<void(Mutex*)>("_ZN4absl7debian35Mutex4LockEv");
  real(this);
  __tsan_acquire(this);
}

bool Mutex::TryLock() {
  static auto* const real = Real<bool(Mutex*)>("_ZN4absl7debian35Mutex7TryLockEv");
  const bool locked = real(this);
  if (locked) __tsan_acquire(this);
  return locked;
}

void Mutex::Unlock() {
  static auto* const real = Real<void(Mutex*)>("_ZN4absl7debian35Mutex6UnlockEv");
  __tsan_release(this);
  real(this);
}

void CondVar::Wait(Mutex* mutex) {
  static auto* const real =
      Real<void(CondVar*, Mutex*)>("_ZN4absl7debian37CondVar4WaitEPNS0_5MutexE");
  __tsan_release(mutex);
  real(this, mutex);
  __tsan_acquire(mutex);
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  return WaitWithDeadline(mutex, Now() + timeout);
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  using Function = bool(CondVar*, Mutex*, Time);
  static auto* const real =
      Real<Function>("_ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  __tsan_release(mutex);
  const bool over = real(this, mutex, deadline);
  __tsan_acquire(mutex);
  return over;
}

ABSL_NAMESPACE_END
}  // namespace absl

namespace grpc::internal {
namespace {

/// Stands for gRPC's executor; never ends.
mendel::server::ThreadPool& Executor() {
  static auto* const pool = new mendel::server::ThreadPool(4, 1 << 20);
  return *pool;
}

}  // namespace

void ServerCallbackCall::ScheduleOnDone(bool inline_ondone) {
  if (inline_ondone) return CallOnDone();
  Executor().Post([this] { CallOnDone(); });
}

void ServerCallbackCall::CallOnCancel(ServerReactor* reactor) {
  if (reactor->InternalInlineable()) return reactor->OnCancel();
  Ref();
  Executor().Post([this, reactor] {
    reactor->OnCancel();
    MaybeDone();
  });
}

}  // namespace grpc::internal
