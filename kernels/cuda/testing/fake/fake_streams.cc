// Copies, launches, streams and events of the fake driver.

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "base/status.h"
#include "kernels/cuda/testing/fake/fake_state.h"

namespace mendel::cuda {
namespace {

using State = FakeDriver::State;

constexpr unsigned kNonBlocking = 1, kExternal = 1;  // of cuda.h

int CopyIn(State& state, uint64_t to, const void* from, size_t bytes) {
  if (state.Find(to, bytes) == nullptr) return kFakeIllegalAddress;
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return 0;
}

int CopyOut(State& state, void* to, uint64_t from, size_t bytes) {
  if (state.Find(from, bytes) == nullptr) return kFakeIllegalAddress;
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return 0;
}

int CopyWithin(uint64_t to, uint64_t from, size_t bytes, DriverStream* stream) {
  const FakeCall call("MemcpyDtoDAsync");
  if (call.code != 0) return call.code;
  if (call.state.Find(to, bytes) == nullptr || call.state.Find(from, bytes) == nullptr)
    return kFakeInvalidValue;
  return call.state.Do(stream, [&state = call.state, to, from, bytes] {
    if (state.FindOrdered(from, bytes, false) == nullptr ||
        state.FindOrdered(to, bytes, true) == nullptr) {
      return static_cast<int>(kFakeIllegalAddress);
    }
    std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    return 0;
  });
}

int Fill(uint64_t to, unsigned char value, size_t bytes, DriverStream* stream) {
  const FakeCall call("MemsetD8Async");
  if (call.code != 0) return call.code;
  if (call.state.Find(to, bytes) == nullptr) return kFakeInvalidValue;
  return call.state.Do(stream, [&state = call.state, to, value, bytes] {
    if (state.FindOrdered(to, bytes, true) == nullptr) return static_cast<int>(kFakeIllegalAddress);
    std::memset(reinterpret_cast<void*>(to), value, bytes);
    return 0;
  });
}

/// Asynchronous copies need pinned memory; from other memory a graph would read whatever is there
/// when it is replayed.
bool IsPinned(const State& state, const void* address) {
  const uintptr_t at = reinterpret_cast<uintptr_t>(address);
  return std::any_of(state.host_memory.begin(), state.host_memory.end(), [&](const auto& entry) {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(entry.first);
    return at >= begin && at < begin + entry.second.size() - 256;
  });
}

int Launch(DriverFunction* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
           unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
           DriverStream* stream, void** arguments, void** extra) {
  const FakeCall call("LaunchKernel");
  if (call.code != 0) return call.code;
  const auto found = call.state.functions.find(function);
  if (found == call.state.functions.end()) return kFakeInvalidHandle;
  if (grid_y != 1 || grid_z != 1 || block_y != 1 || block_z != 1 || grid_x == 0 || block_x == 0 ||
      extra != nullptr) {
    return kFakeInvalidValue;
  }
  const EmulatedModule& texts = *found->second.module->entries.at(found->second.name);
  const bool too_large = block_x > static_cast<unsigned>(texts.MostThreads(found->second.name)) ||
                         grid_x > 0x7fffffffu || shared_bytes > found->second.most_shared;
  if (too_large) return kFakeInvalidValue;
  const int arity = texts.Arity(found->second.name);
  std::vector<uint64_t> pointers;
  for (int k = 0; k < arity; ++k) pointers.push_back(*static_cast<const uint64_t*>(arguments[k]));
  const LaunchShape shape{grid_x, block_x, shared_bytes};
  return call.state.Do(stream, [&state = call.state, launched = found->second, shape, pointers] {
    return state.Launch(launched, shape, pointers);
  });
}

int MakeStream(DriverStream** stream, unsigned flags) {
  const FakeCall call("StreamCreate");
  if (call.code != 0) return call.code;
  *stream = call.state.NewHandle<DriverStream*>();
  const bool waits = (flags & kNonBlocking) == 0;
  call.state.streams[*stream].waits = waits;
  call.state.order.AddStream(*stream, waits);
  return 0;
}

int MakeEvent(DriverEvent** event, unsigned) {
  const FakeCall call("EventCreate");
  if (call.code != 0) return call.code;
  *event = call.state.NewHandle<DriverEvent*>();
  call.state.events[*event] = {};
  return 0;
}

int RecordNow(State& state, DriverEvent* event, DriverStream* stream) {
  if (state.events.count(event) == 0) return kFakeInvalidHandle;
  return state.Do(stream, [&state, event] {
    state.events[event] = std::chrono::steady_clock::now();
    state.order.Record(event, state.running);
    return 0;
  });
}

int Record(DriverEvent* event, DriverStream* stream) {
  const FakeCall call("EventRecord");
  if (call.code != 0) return call.code;
  const auto found = call.state.streams.find(stream);
  // A capture does not make this record a part of its graph.
  if (found != call.state.streams.end() && found->second.captures) return kFakeCaptureUnsupported;
  return RecordNow(call.state, event, stream);
}

/// In a capture, only the record of an external event is work of the graph. Other records order
/// streams that capture together.
int RecordWithFlags(DriverEvent* event, DriverStream* stream, unsigned flags) {
  const FakeCall call("EventRecordWithFlags");
  if (call.code != 0) return call.code;
  return flags == kExternal ? RecordNow(call.state, event, stream)
                            : static_cast<int>(kFakeInvalidValue);
}

int WaitForEvent(DriverStream* stream, DriverEvent* event, unsigned) {
  const FakeCall call("StreamWaitEvent");
  if (call.code != 0) return call.code;
  if (call.state.events.count(event) == 0) return kFakeInvalidHandle;
  return call.state.Do(stream, [&state = call.state, event] {
    state.order.Wait(state.running, event);
    return 0;
  });
}

int Elapsed(float* milliseconds, DriverEvent* from, DriverEvent* to) {
  const FakeCall call("EventElapsedTime");
  if (call.code != 0) return call.code;
  if (call.state.events.count(from) == 0 || call.state.events.count(to) == 0)
    return kFakeInvalidHandle;
  *milliseconds =
      std::chrono::duration<float, std::milli>(call.state.events[to] - call.state.events[from])
          .count();
  return 0;
}

/// Waits, which a capture forbids. Streams have no work under way; `order` records what the host
/// has waited for.
template <class Order>
int Synchronize(const char* entry, Order order) {
  const FakeCall call(entry);
  if (call.code != 0) return call.code;
  if (call.state.IsCapturing()) return kFakeCaptureUnsupported;
  order(call.state.order);
  return 0;
}

int SynchronizeAll() {
  const int code = Synchronize("CtxSynchronize", [](FakeOrder& order) { order.HostWaitsForAll(); });
  return code != 0 ? code : FakeDriver::State::current->Finish();
}

/// Pageable memory is copied first to a buffer from which the device copies it. The call returns
/// before that copy ends.
int CopyPageable(uint64_t to, const void* from, size_t bytes) {
  const FakeCall call("MemcpyHtoD");
  if (call.code != 0) return call.code;
  if (call.state.IsCapturing()) return kFakeCaptureUnsupported;
  if (call.state.Find(to, bytes) == nullptr) return kFakeIllegalAddress;
  const auto* begin = static_cast<const std::byte*>(from);
  call.state.under_way.push_back(
      [&state = call.state, to, staged = std::vector<std::byte>(begin, begin + bytes)] {
        return CopyIn(state, to, staged.data(), staged.size());
      });
  return 0;
}

int CopyBack(void* to, uint64_t from, size_t bytes) {
  const FakeCall call("MemcpyDtoH");
  if (call.code != 0) return call.code;
  if (call.state.IsCapturing()) return kFakeCaptureUnsupported;
  const int finished = call.state.Finish();
  return finished != 0 ? finished : CopyOut(call.state, to, from, bytes);
}

}  // namespace

std::vector<std::byte>* State::Find(uint64_t address, size_t bytes, size_t* offset) {
  auto found = memory.upper_bound(address);
  if (found == memory.begin()) return nullptr;
  --found;
  if (address + bytes > found->first + found->second.size() - 256) return nullptr;
  if (offset != nullptr) *offset = address - found->first;
  return &found->second;
}

std::vector<std::byte>* State::FindOrdered(uint64_t address, size_t bytes, bool writes,
                                           size_t* offset) {
  size_t begin = 0;
  std::vector<std::byte>* found = Find(address, bytes, &begin);
  if (found == nullptr) return nullptr;
  if (!order.Access(address - begin, running, writes)) {
    fault = "memory is accessed on two streams that nothing orders";
    return nullptr;
  }
  if (offset != nullptr) *offset = begin;
  return found;
}

bool State::IsCapturing() const {
  return std::any_of(streams.begin(), streams.end(), [](const auto& stream) {
    const std::thread::id forbids = stream.second.forbids;
    return stream.second.captures &&
           (forbids == std::thread::id() || forbids == std::this_thread::get_id());
  });
}

int State::Finish() {
  int first = 0;
  for (const FakeWork& work : std::exchange(under_way, {})) {
    if (const int code = work(); first == 0) first = code;
  }
  return first;
}

int State::Do(DriverStream* stream, FakeWork work) {
  const auto found = streams.find(stream);
  if (found == streams.end() && stream != nullptr) return kFakeInvalidHandle;
  const bool captures = stream != nullptr && found->second.captures;
  if (!captures) {
    const bool waits = stream == nullptr || found->second.waits;
    if (const int code = waits ? Finish() : 0; code != 0) return code;
    order.Begin(stream);
    running = stream;
    const int code = work();
    if (code == kFakeIllegalAddress) sticky = code;
    return code;
  }
  FakeStream& capturing = found->second;
  capturing.recorded.push_back({std::move(work), capturing.last});
  capturing.last = {capturing.recorded.size() - 1};
  return 0;
}

int State::Launch(const FakeFunction& function, const LaunchShape& shape,
                  const std::vector<uint64_t>& pointers) {
  std::vector<Argument> arguments;
  for (size_t k = 0; k < pointers.size(); ++k) {
    size_t offset = 0;
    fault = Cat(function.name, ": argument ", k, " is in no allocation");
    std::vector<std::byte>* allocation = FindOrdered(pointers[k], 1, true, &offset);
    if (allocation == nullptr) return kFakeIllegalAddress;
    fault.clear();
    const uint64_t begin = pointers[k] - offset;
    arguments.push_back({Cat("argument ", k),
                         {reinterpret_cast<std::byte*>(begin), allocation->size() - 256},
                         true,
                         offset,
                         1});
  }
  const absl::Status status =
      function.module->entries.at(function.name)->Launch(function.name, shape, arguments);
  if (status.ok()) return 0;
  fault = std::string(status.message());
  return kFakeIllegalAddress;
}

std::string State::Leaks() const {
  std::string leaks;
  const auto count = [&](const char* what, size_t number) {
    if (number != 0) leaks += Cat(leaks.empty() ? "" : ", ", number, " ", what);
  };
  count("contexts", static_cast<size_t>(contexts));
  count("pushed contexts", static_cast<size_t>(pushed));
  count("allocations", memory.size());
  count("host allocations", host_memory.size());
  count("modules", modules.size());
  count("streams", streams.size());
  count("events", events.size());
  count("graphs", graphs.size());
  count("executable graphs", execs.size());
  return leaks;
}

void SetStreamEntries(Driver& table) {
  table.MemcpyHtoD = &CopyPageable;
  table.MemcpyDtoH = &CopyBack;
  table.MemcpyHtoDAsync = [](uint64_t to, const void* from, size_t bytes, DriverStream* stream) {
    const FakeCall call("MemcpyHtoDAsync");
    if (call.code != 0) return call.code;
    // Pageable memory is read at once, which is impossible for a captured copy.
    const auto found = call.state.streams.find(stream);
    const bool captures = found != call.state.streams.end() && found->second.captures;
    if (captures && !IsPinned(call.state, from)) return static_cast<int>(kFakeInvalidValue);
    return call.state.Do(stream, [&state = call.state, to, from, bytes] {
      const bool ordered = state.FindOrdered(to, bytes, true) != nullptr;
      return ordered ? CopyIn(state, to, from, bytes) : static_cast<int>(kFakeIllegalAddress);
    });
  };
  table.MemcpyDtoHAsync = [](void* to, uint64_t from, size_t bytes, DriverStream* stream) {
    const FakeCall call("MemcpyDtoHAsync");
    if (call.code != 0) return call.code;
    if (!IsPinned(call.state, to)) return static_cast<int>(kFakeInvalidValue);
    return call.state.Do(stream, [&state = call.state, to, from, bytes] {
      const bool ordered = state.FindOrdered(from, bytes, false) != nullptr;
      return ordered ? CopyOut(state, to, from, bytes) : static_cast<int>(kFakeIllegalAddress);
    });
  };
  table.MemcpyDtoDAsync = &CopyWithin;
  table.MemsetD8Async = &Fill;
  table.LaunchKernel = &Launch;
  table.CtxSynchronize = &SynchronizeAll;
  table.StreamCreate = &MakeStream;
  table.StreamDestroy = [](DriverStream* stream) {
    const FakeCall call("StreamDestroy");
    call.state.order.RemoveStream(stream);
    return call.state.streams.erase(stream) == 1 ? 0 : static_cast<int>(kFakeInvalidHandle);
  };
  table.StreamSynchronize = [](DriverStream* stream) {
    return Synchronize("StreamSynchronize",
                       [stream](FakeOrder& order) { order.HostWaits(stream); });
  };
  table.StreamWaitEvent = &WaitForEvent;
  table.StreamGetCtx = [](DriverStream* stream, DriverContext** context) {
    const FakeCall call("StreamGetCtx");
    if (call.code != 0) return call.code;
    const auto found = call.state.streams.find(stream);
    if (stream != nullptr && found == call.state.streams.end())
      return static_cast<int>(kFakeInvalidHandle);
    *context = stream == nullptr ? FakePrimaryContext() : found->second.context;
    return 0;
  };
  table.EventCreate = &MakeEvent;
  table.EventDestroy = [](DriverEvent* event) {
    const FakeCall call("EventDestroy");
    call.state.order.Forget(event);
    return call.state.events.erase(event) == 1 ? 0 : static_cast<int>(kFakeInvalidHandle);
  };
  table.EventRecord = &Record;
  table.EventRecordWithFlags = &RecordWithFlags;
  table.EventSynchronize = [](DriverEvent* event) {
    return Synchronize("EventSynchronize", [event](FakeOrder& order) { order.HostWaits(event); });
  };
  table.EventElapsedTime = &Elapsed;
}

}  // namespace mendel::cuda
