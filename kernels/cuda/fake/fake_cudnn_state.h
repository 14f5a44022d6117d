// What the fake cuDNN remembers, and how its entries begin.
#ifndef MENDEL_KERNELS_CUDA_FAKE_FAKE_CUDNN_STATE_H_
#define MENDEL_KERNELS_CUDA_FAKE_FAKE_CUDNN_STATE_H_

#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/cuda/driver_table/driver.h"
#include "kernels/cuda/fake/fake_cudnn.h"
#include "kernels/cuda/fake/fake_operations.h"

namespace mendel::cuda {

// As in cudnn_graph_v9.h.
enum FakeCudnnError {
  kFakeSerializationVersion = 1003,
  kFakeBadParam = 2000,
  kFakeNotFinalized = 2004,
  kFakeWrongType = 2012,
  kFakeNotSupported = 3000,
  kFakeNoSuchPattern = 3001,
  kFakeExecutionFailed = 5000,
  kFakeDriverFailed = 5001,
};

struct FakeDescriptor {
  struct Value {
    int type = 0;
    int64_t count = 0;
    std::vector<std::byte> bytes;
  };
  int type = 0;
  bool is_final = false;
  std::map<int, Value> values;

  // What finalizing makes of a graph, and hands on to heuristics, configurations and plans.
  std::shared_ptr<const FakeOperations> operations;
  int engine = -1;
  bool is_loaded = false;  ///< of a plan: it has been executed

  /// Those of attribute `name`, of sizeof(T) each; empty where it was not set.
  template <class T>
  std::vector<T> All(int name) const {
    const auto found = values.find(name);
    if (found == values.end()) return {};
    std::vector<T> all(found->second.bytes.size() / sizeof(T));
    if (!all.empty()) std::memcpy(all.data(), found->second.bytes.data(), all.size() * sizeof(T));
    return all;
  }
};

struct FakeCudnn::State {
  mutable std::recursive_mutex mutex;
  int64_t calls = 0, fail_at = 0, tf32_convolutions = 0;
  std::map<DType, int64_t> convolutions;
  int fail_with = 0, version = 91900;
  std::string failed_call, fault;
  std::map<void*, FakeDescriptor> descriptors;
  std::map<void*, DriverStream*> handles;
  uintptr_t next = 0;

  void* NewHandle() { return reinterpret_cast<void*>(++next * 16); }
  /// Null where there is none.
  FakeDescriptor* Find(void* descriptor);
  /// The finalized descriptors that attribute `name` refers to; empty where one is not.
  std::vector<const FakeDescriptor*> Referred(const FakeDescriptor& descriptor, int name);
  /// `code`, told as `text` by the next question for the last error.
  int Refuse(int code, std::string text);

  /// The one in this process.
  static State* current;
};

/// What finalizing a descriptor checks and makes; 0 or an error (fake_cudnn_finalize.cc).
int FinalizeFake(FakeCudnn::State& state, FakeDescriptor& descriptor);

/// Engines of the fake, by number.
struct FakeEngine {
  std::vector<int> notes;  ///< numerical
  bool compiled_at_run_time = false;
  bool is_possible = true;
  int64_t workspace_bytes = 0;
};
const std::vector<FakeEngine>& FakeEngines();

/// Holds the state for one call; `code` is the error that was to be injected into it.
class FakeCudnnCall {
 public:
  explicit FakeCudnnCall(const char* entry);
  FakeCudnn::State& state;
  int code = 0;

 private:
  std::lock_guard<std::recursive_mutex> lock_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_FAKE_FAKE_CUDNN_STATE_H_
