// Graphs of the fake driver: captured from streams, and replayed in any order that their nodes
// allow.

#include <algorithm>
#include <thread>
#include <utility>

#include "kernels/cuda/testing/fake/fake_state.h"

namespace mendel::cuda {
namespace {

using FakeStream = FakeDriver::State::FakeStream;

/// A node's handle is its number, from 1.
DriverGraphNode* NodeHandle(size_t number) {
  return reinterpret_cast<DriverGraphNode*>((number + 1) * 16);
}
size_t NumberOf(const DriverGraphNode* node) { return reinterpret_cast<uintptr_t>(node) / 16 - 1; }

/// Null when the stream captures nothing.
FakeStream* Capturing(FakeDriver::State& state, DriverStream* stream) {
  const auto found = state.streams.find(stream);
  return found == state.streams.end() || !found->second.captures ? nullptr : &found->second;
}

int BeginCapture(DriverStream* stream, int mode) {
  const FakeCall call("StreamBeginCapture");
  if (call.code != 0) return call.code;
  const auto found = call.state.streams.find(stream);
  if (found == call.state.streams.end() || found->second.captures) return kFakeInvalidHandle;
  constexpr int kGlobal = 0, kThreadLocal = 1;
  if (mode != kGlobal && mode != kThreadLocal) return kFakeInvalidHandle;
  found->second.captures = true;
  found->second.forbids = mode == kGlobal ? std::thread::id() : std::this_thread::get_id();
  found->second.recorded.clear();
  found->second.last.clear();
  return 0;
}

int EndCapture(DriverStream* stream, DriverGraph** graph) {
  const FakeCall call("StreamEndCapture");
  FakeStream* const capturing = Capturing(call.state, stream);
  if (capturing == nullptr) return kFakeInvalidHandle;
  capturing->captures = false;
  if (call.code != 0) return call.code;
  *graph = call.state.NewHandle<DriverGraph*>();
  call.state.graphs[*graph] = std::exchange(capturing->recorded, {});
  return 0;
}

/// The nodes stay readable until the next call for the stream.
int GetCaptureInfo(DriverStream* stream, int* status, uint64_t* id, DriverGraph** graph,
                   DriverGraphNode* const** dependencies, size_t* count) {
  const FakeCall call("StreamGetCaptureInfo");
  if (call.code != 0) return call.code;
  FakeStream* const capturing = Capturing(call.state, stream);
  *status = capturing == nullptr ? 0 : 1;
  if (capturing == nullptr) return 0;
  capturing->handles.clear();
  for (const size_t number : capturing->last) capturing->handles.push_back(NodeHandle(number));
  *id = 1;
  *graph = nullptr;
  *dependencies = capturing->handles.data();
  *count = capturing->handles.size();
  return 0;
}

int UpdateDependencies(DriverStream* stream, DriverGraphNode** dependencies, size_t count,
                       unsigned flags) {
  const FakeCall call("StreamUpdateCaptureDependencies");
  if (call.code != 0) return call.code;
  FakeStream* const capturing = Capturing(call.state, stream);
  constexpr unsigned kAdd = 0, kSet = 1;
  if (capturing == nullptr || dependencies == nullptr || flags > kSet) return kFakeInvalidValue;
  std::vector<size_t> last = flags == kAdd ? capturing->last : std::vector<size_t>();
  for (size_t k = 0; k < count; ++k) {
    if (NumberOf(dependencies[k]) >= capturing->recorded.size()) return kFakeInvalidValue;
    last.push_back(NumberOf(dependencies[k]));
  }
  capturing->last = std::move(last);
  return 0;
}

int Instantiate(DriverGraphExec** exec, DriverGraph* graph, unsigned long long) {
  const FakeCall call("GraphInstantiate");
  if (call.code != 0) return call.code;
  const auto found = call.state.graphs.find(graph);
  if (found == call.state.graphs.end()) return kFakeInvalidHandle;
  *exec = call.state.NewHandle<DriverGraphExec*>();
  call.state.execs[*exec] = found->second;
  return 0;
}

/// The nodes in an order that is drawn among those that the dependencies allow.
std::vector<size_t> DrawnOrder(const FakeGraph& graph, Rng& rng) {
  std::vector<std::vector<size_t>> then(graph.size());
  std::vector<size_t> waits(graph.size(), 0), ready, order;
  for (size_t k = 0; k < graph.size(); ++k) {
    for (const size_t before : graph[k].after) then[before].push_back(k);
    waits[k] = graph[k].after.size();
    if (waits[k] == 0) ready.push_back(k);
  }
  while (!ready.empty()) {
    std::swap(ready[static_cast<size_t>(rng.Below(ready.size()))], ready.back());
    order.push_back(ready.back());
    ready.pop_back();
    for (const size_t next : then[order.back()]) {
      if (--waits[next] == 0) ready.push_back(next);
    }
  }
  return order;
}

int LaunchGraph(DriverGraphExec* exec, DriverStream* stream) {
  const FakeCall call("GraphLaunch");
  if (call.code != 0) return call.code;
  const auto found = call.state.execs.find(exec);
  if (found == call.state.execs.end() ||
      (stream != nullptr && call.state.streams.count(stream) == 0))
    return kFakeInvalidHandle;
  for (const size_t node : DrawnOrder(found->second, call.state.orders)) {
    if (const int code = call.state.Do(stream, found->second[node].work); code != 0) return code;
  }
  return 0;
}

template <class Handle>
int Destroy(const char* entry, std::map<Handle, FakeGraph> FakeDriver::State::*all, Handle handle) {
  const FakeCall call(entry);
  return (call.state.*all).erase(handle) == 1 ? 0 : kFakeInvalidHandle;
}

}  // namespace

void SetGraphEntries(Driver& table) {
  table.StreamIsCapturing = [](DriverStream* stream, int* status) {
    const FakeCall call("StreamIsCapturing");
    if (call.code != 0) return call.code;
    const auto found = call.state.streams.find(stream);
    if (stream != nullptr && found == call.state.streams.end())
      return static_cast<int>(kFakeInvalidHandle);
    *status = stream != nullptr && found->second.captures ? 1 : 0;
    return 0;
  };
  table.StreamBeginCapture = &BeginCapture;
  table.StreamEndCapture = &EndCapture;
  table.StreamGetCaptureInfo = &GetCaptureInfo;
  table.StreamUpdateCaptureDependencies = &UpdateDependencies;
  table.GraphInstantiate = &Instantiate;
  table.GraphLaunch = &LaunchGraph;
  table.GraphExecDestroy = [](DriverGraphExec* exec) {
    return Destroy("GraphExecDestroy", &FakeDriver::State::execs, exec);
  };
  table.GraphDestroy = [](DriverGraph* graph) {
    return Destroy("GraphDestroy", &FakeDriver::State::graphs, graph);
  };
}

}  // namespace mendel::cuda
