// The state of the fake driver, and the guard with which its entries begin.
#ifndef MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_STATE_H_
#define MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_STATE_H_

#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "kernels/cuda/testing/emulator/device.h"
#include "kernels/cuda/testing/fake/fake_driver.h"
#include "kernels/cuda/testing/fake/fake_order.h"

namespace mendel::cuda {

// The errors are those of cuda.h.
enum FakeError : int {
  kFakeSuccess = 0,
  kFakeInvalidValue = 1,
  kFakeOutOfMemory = 2,
  kFakeEccUncorrectable = 214,
  kFakeInvalidImage = 200,
  kFakeNoBinaryForGpu = 209,
  kFakeInvalidHandle = 400,
  kFakeNotFound = 500,
  kFakeIllegalAddress = 700,
  kFakeInvalidContext = 201,
  kFakeCaptureUnsupported = 900,
};

/// The handle of the device's primary context.
inline DriverContext* FakePrimaryContext() {
  return reinterpret_cast<DriverContext*>(uintptr_t{1});
}

/// The work that a stream does, now or in a graph.
using FakeWork = std::function<int()>;
/// Work of a graph, and the numbers of the earlier nodes that it waits for.
struct FakeNode {
  FakeWork work;
  std::vector<size_t> after;
};
using FakeGraph = std::vector<FakeNode>;

struct FakeDriver::State {
  using Texts = std::shared_ptr<EmulatedModule>;
  struct FakeModule {
    std::map<std::string, Texts> entries;
  };
  struct FakeFunction {
    const FakeModule* module = nullptr;
    std::string name;
    unsigned most_shared = 48 << 10;  ///< FuncSetAttribute changes it
  };
  struct FakeStream {
    bool waits = true;  ///< for what is under way on no stream
    DriverContext* context = FakePrimaryContext();
    bool captures = false;
    std::thread::id forbids = {};  ///< whose calls that a capture forbids; no thread's: everybody's
    FakeGraph recorded;
    std::vector<size_t> last;               ///< of recorded: what the next work will wait for
    std::vector<DriverGraphNode*> handles;  ///< handles of these, while a caller reads them
  };

  // The mutex is recursive: launches that a graph replays call the same entries as others.
  mutable std::recursive_mutex mutex;
  int64_t calls = 0, fail_at = 0;
  int fail_with = 0;
  std::string fail_entry;  // whose calls count; empty: all do
  std::string failed_call;
  std::string fault;  // fault of the last kernel that had one
  int sticky = 0;     // the error that every call answers from now on

  int version = 13000;
  int architecture = 90;
  int contexts = 0;
  int pushed = 0;  // contexts, by all threads
  std::map<uint64_t, std::vector<std::byte>> memory;
  size_t most_memory = std::numeric_limits<size_t>::max();
  std::map<void*, std::vector<std::byte>> host_memory;
  std::map<DriverModule*, std::unique_ptr<FakeModule>> modules;
  std::map<DriverFunction*, FakeFunction> functions;
  std::map<DriverStream*, FakeStream> streams;
  std::vector<FakeWork> under_way;  // copies of pageable memory, whose calls have returned
  std::map<DriverEvent*, std::chrono::steady_clock::time_point> events;
  std::map<DriverGraph*, FakeGraph> graphs;
  std::map<DriverGraphExec*, FakeGraph> execs;
  Rng orders{1};                          ///< draws the order in which a graph is replayed
  std::map<std::string, Texts> prepared;  // by entry
  uintptr_t next_handle = 0;
  FakeOrder order;
  DriverStream* running = nullptr;  // the stream whose work is being done

  /// A handle that no memory lies at.
  template <class Handle>
  Handle NewHandle() {
    return reinterpret_cast<Handle>(++next_handle * 16);
  }
  /// The allocation that contains [address, address + bytes); null if none does.
  std::vector<std::byte>* Find(uint64_t address, size_t bytes, size_t* offset = nullptr);
  /// The same for an access by the work that is being done. It is a fault if an access of another
  /// stream is not ordered with it.
  std::vector<std::byte>* FindOrdered(uint64_t address, size_t bytes, bool writes,
                                      size_t* offset = nullptr);
  bool IsCapturing() const;
  /// Ends the copies that are under way; returns the first error.
  int Finish();
  /// Does `work` on the stream, now or when what it captures is replayed.
  int Do(DriverStream* stream, FakeWork work);
  int Launch(const FakeFunction& function, const LaunchShape& shape,
             const std::vector<uint64_t>& pointers);
  std::string Leaks() const;

  /// The one state in this process.
  static State* current;
};

/// The entries that copy, launch and record events (fake_streams.cc), those that capture and replay
/// (fake_graphs.cc), and all others (fake_driver.cc).
void SetStreamEntries(Driver& table);
void SetGraphEntries(Driver& table);

/// Locks the state for one call; `code` is the error that is injected into it, or the one that
/// sticks.
class FakeCall {
 public:
  explicit FakeCall(const char* entry);
  FakeDriver::State& state;
  int code = 0;

 private:
  std::lock_guard<std::recursive_mutex> lock_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_STATE_H_
