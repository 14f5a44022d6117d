#include "client/onnxruntime/compute.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "base/status.h"
#include "client/onnxruntime/tensor_facts.h"

namespace mendel::ort {
namespace {

struct Compute : ComputeInfo {
  const RuntimeApi* api = nullptr;
  std::unique_ptr<PartRunner> runner;
  Wiring wiring;
  bool park = false;
  std::atomic<int> pool_threads = 0;  ///< 0: not counted yet
};

/// The inputs of a call; `facts` owns the shapes.
absl::StatusOr<PartInputs> ReadInputs(const Compute& compute, const KernelContext* context,
                                      std::vector<TensorFacts>& facts) {
  PartInputs inputs;
  facts.reserve(compute.wiring.inputs.size());
  for (const size_t position : compute.wiring.inputs) {
    MENDEL_ASSIGN_OR_RETURN(
        const Value* const value,
        compute.api->Get<const Value*>(kKernelContextGetInput, context, position));
    if (value == nullptr) return InvalidInput("input ", position, " of a part is absent");
    MENDEL_ASSIGN_OR_RETURN(TensorFacts read, FactsOf(*compute.api, value));
    facts.push_back(std::move(read));
    MENDEL_ASSIGN_OR_RETURN(const void* const data,
                            compute.api->Get<const void*>(kGetTensorData, value));
    inputs.ranks.push_back(static_cast<int>(facts.back().shape.size()));
    inputs.shapes.push_back(facts.back().shape.data());
    inputs.data.push_back(data);
    inputs.types.push_back(facts.back().type);
  }
  return inputs;
}

int PoolThreads(Compute& compute, const KernelContext* context) {
  if (compute.pool_threads == 0) compute.pool_threads = CountThreads(*compute.api, context);
  return compute.pool_threads;
}

absl::Status RunPart(Compute& compute, KernelContext* context) {
  std::vector<TensorFacts> facts;
  MENDEL_ASSIGN_OR_RETURN(const PartInputs inputs, ReadInputs(compute, context, facts));
  absl::Status made;
  const auto make_output = [&](int index, std::span<const int64_t> shape) -> void* {
    const size_t position = compute.wiring.outputs[static_cast<size_t>(index)];
    Value* value = nullptr;
    made = compute.api->Take(kKernelContextGetOutput(compute.api->main(), context, position,
                                                     shape.data(), shape.size(), &value));
    if (!made.ok() || value == nullptr) return nullptr;
    const auto data = compute.api->Get<void*>(kGetTensorMutableData, value);
    return data.ok() ? *data : nullptr;
  };
  const absl::Status run = compute.runner->Run(
      inputs, [&] { return PoolThreads(compute, context); }, make_output);
  return made.ok() ? run : made;
}

/// The threads that run the steps of one loop. A step waits for other threads, for a while.
struct Crowd {
  std::mutex mutex;
  std::condition_variable changed;
  std::set<std::thread::id> threads;
  std::chrono::steady_clock::time_point until;
  size_t most = 0;

  static void Step(void* data, size_t) {
    auto& crowd = *static_cast<Crowd*>(data);
    std::unique_lock lock(crowd.mutex);
    crowd.threads.insert(std::this_thread::get_id());
    crowd.changed.notify_all();
    crowd.changed.wait_until(lock, crowd.until, [&] { return crowd.threads.size() >= crowd.most; });
  }
};

/// The caller runs a part in one step of a loop of the session's pool. The other threads of the
/// pool sleep in theirs meanwhile: while they wait for their next node they would spin on the
/// part's CPUs.
struct Parking {
  const std::thread::id caller = std::this_thread::get_id();
  const std::function<absl::Status()>& run;
  absl::Status result = {};
  bool ran = false;  ///< read and written by the caller only
  std::mutex mutex = {};
  std::condition_variable changed = {};
  bool over = false;

  static void Step(void* data, size_t) {
    auto& parking = *static_cast<Parking*>(data);
    if (std::this_thread::get_id() == parking.caller) {
      parking.RunOnce();
      return;
    }
    std::unique_lock lock(parking.mutex);
    parking.changed.wait(lock, [&] { return parking.over; });
  }
  void RunOnce() {
    if (ran) return;
    ran = true;
    result = run();
    const std::lock_guard lock(mutex);
    over = true;
    changed.notify_all();
  }
};

absl::Status RunWhileParked(const RuntimeApi& api, const KernelContext* context,
                            const std::function<absl::Status()>& run) {
  const size_t places = std::max(1u, std::thread::hardware_concurrency());
  Parking parking{.run = run};
  MENDEL_RETURN_IF_ERROR(
      api.Take(kParallelFor(api.main(), context, &Parking::Step, places, places, &parking)));
  parking.RunOnce();  // where the pool gave the caller no step
  return parking.result;
}

}  // namespace

int CountThreads(const RuntimeApi& api, const KernelContext* context) {
  Crowd crowd;
  crowd.most = std::max(1u, std::thread::hardware_concurrency());
  crowd.until = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  const absl::Status run = api.Take(
      kParallelFor(api.main(), context, &Crowd::Step, 4 * crowd.most, 4 * crowd.most, &crowd));
  return run.ok() ? static_cast<int>(std::max<size_t>(1, crowd.threads.size())) : 1;
}

ComputeInfo* NewCompute(const RuntimeApi& api, std::unique_ptr<PartRunner> runner, Wiring wiring,
                        bool park) {
  auto compute = std::make_unique<Compute>();
  compute->api = &api;
  compute->runner = std::move(runner);
  compute->wiring = std::move(wiring);
  compute->park = park;
  compute->create_state = [](ComputeInfo* self, ComputeContext*, void** state) -> Status* {
    *state = self;
    return nullptr;
  };
  compute->compute = [](ComputeInfo* self, void*, KernelContext* context) -> Status* {
    auto& part = *static_cast<Compute*>(self);
    const RuntimeApi& tables = *part.api;
    if (!part.park) return tables.Give(RunPart(part, context));
    PoolThreads(part, context);  // parked threads cannot be counted
    return tables.Give(RunWhileParked(tables, context, [&] { return RunPart(part, context); }));
  };
  compute->release_state = [](ComputeInfo*, void*) {};
  return compute.release();
}

void FreeCompute(ComputeInfo* info) { delete static_cast<Compute*>(info); }

}  // namespace mendel::ort
