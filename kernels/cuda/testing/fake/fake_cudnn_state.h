// The state of the fake cuDNN, and the guard with which its entries begin.
#ifndef MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_CUDNN_STATE_H_
#define MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_CUDNN_STATE_H_

#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/cuda/driver_table/driver.h"
#include "kernels/cuda/testing/fake/fake_cudnn.h"
#include "kernels/cuda/testing/fake/fake_operations.h"

namespace mendel::cuda {

// The error codes are those of cudnn_graph_v9.h.
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

  // The result of finalizing a graph, which heuristics, configurations and plans share.
  std::shared_ptr<const FakeOperations> operations;
  int engine = -1;
  bool is_loaded = false;  ///< of a plan: it has been executed

  /// The values of attribute `name`, of sizeof(T) each; empty if it was not set.
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
  /// Returns null if there is none.
  FakeDescriptor* Find(void* descriptor);
  /// The finalized descriptors that attribute `name` refers to; empty where one is not.
  std::vector<const FakeDescriptor*> Referred(const FakeDescriptor& descriptor, int name);
  /// Returns `code`; the next call for the last error returns `text`.
  int Refuse(int code, std::string text);

  /// The one state in this process.
  static State* current;
};

/// Checks a descriptor and derives its values; 0 or an error (fake_cudnn_finalize.cc).
int FinalizeFake(FakeCudnn::State& state, FakeDescriptor& descriptor);

/// Engines of the fake, by number.
struct FakeEngine {
  std::vector<int> notes;  ///< numerical
  bool compiled_at_run_time = false;
  bool is_possible = true;
  int64_t workspace_bytes = 0;
};
const std::vector<FakeEngine>& FakeEngines();

/// Locks the state for one call; `code` is the error that is injected into it.
class FakeCudnnCall {
 public:
  explicit FakeCudnnCall(const char* entry);
  FakeCudnn::State& state;
  int code = 0;

 private:
  std::lock_guard<std::recursive_mutex> lock_;
};

}  // namespace mendel::cuda

#endif  // MENDEL_KERNELS_CUDA_TESTING_FAKE_FAKE_CUDNN_STATE_H_
