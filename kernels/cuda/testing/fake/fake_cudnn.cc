#include "kernels/cuda/testing/fake/fake_cudnn.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "kernels/cuda/testing/fake/fake_cudnn_state.h"
#include "kernels/cuda/testing/fake/fake_state.h"

namespace mendel::cuda {
namespace {

using State = FakeCudnn::State;

int Create(int type, void** descriptor) {
  const FakeCudnnCall call("BackendCreateDescriptor");
  if (call.code != 0) return call.code;
  *descriptor = call.state.NewHandle();
  call.state.descriptors[*descriptor].type = type;
  return 0;
}

int Destroy(void* descriptor) {
  const FakeCudnnCall call("BackendDestroyDescriptor");
  const size_t erased = call.state.descriptors.erase(descriptor);
  return call.code != 0 ? call.code : (erased == 1 ? 0 : kFakeBadParam);
}

int Finalize(void* descriptor) {
  const FakeCudnnCall call("BackendFinalize");
  if (call.code != 0) return call.code;
  FakeDescriptor* it = call.state.Find(descriptor);
  if (it == nullptr || it->is_final)
    return call.state.Refuse(kFakeBadParam, "no descriptor, or a finalized one");
  const int code = FinalizeFake(call.state, *it);
  it->is_final = code == 0;
  return code;
}

size_t SizeOf(int type) {
  switch (type) {
    case cudnn::kBoolean:
    case cudnn::kChar:
      return 1;
    case cudnn::kInt64:
    case cudnn::kPointer:
    case cudnn::kDescriptor:
      return 8;
    default:
      return 4;
  }
}

int Set(void* descriptor, int name, int type, int64_t count, const void* values) {
  const FakeCudnnCall call("BackendSetAttribute");
  if (call.code != 0) return call.code;
  FakeDescriptor* it = call.state.Find(descriptor);
  if (it == nullptr || it->is_final)
    return call.state.Refuse(kFakeBadParam, "no descriptor, or a finalized one");
  FakeDescriptor::Value value{type, count, {}};
  value.bytes.resize(static_cast<size_t>(count) * SizeOf(type));
  if (count > 0) std::memcpy(value.bytes.data(), values, value.bytes.size());
  it->values[name] = std::move(value);
  if (type == cudnn::kDescriptor && call.state.Referred(*it, name).empty())
    return call.state.Refuse(kFakeNotFinalized, "refers to what is not finalized");
  return 0;
}

/// Writes the engines that the heuristics list into configurations that exist already.
int64_t ListEngines(State& state, const FakeDescriptor& heuristics, int64_t room, void* values) {
  const bool fallback =
      heuristics.All<int>(cudnn::kHeuristicModeOf) == std::vector<int>{cudnn::kModeFallback};
  std::vector<int> engines =
      fallback ? std::vector<int>{0, 7} : std::vector<int>{0, 1, 2, 3, 4, 5, 6, 8, 9, 10};
  if (heuristics.operations->NeedFusion()) engines = {12, 6};
  int64_t count = 0;
  for (const int engine : engines) {
    if (count == room) break;
    FakeDescriptor* config = state.Find(static_cast<void**>(values)[count++]);
    if (config == nullptr || config->type != cudnn::kEngineConfig) return -1;
    config->engine = engine;
    config->operations = heuristics.operations;
    config->is_final = true;
  }
  return count;
}

template <class T>
int Give(const std::vector<T>& all, int64_t room, int64_t* count, void* values) {
  *count = static_cast<int64_t>(all.size());
  const size_t given = std::min(all.size(), static_cast<size_t>(room));
  if (given > 0) std::memcpy(values, all.data(), given * sizeof(T));
  return 0;
}

int Get(void* descriptor, int name, int type, int64_t room, int64_t* count, void* values) {
  const FakeCudnnCall call("BackendGetAttribute");
  if (call.code != 0) return call.code;
  FakeDescriptor* it = call.state.Find(descriptor);
  if (it == nullptr || !it->is_final)
    return call.state.Refuse(kFakeNotFinalized, "asked before it is finalized");
  if (name == cudnn::kHeuristicResults) {
    *count = ListEngines(call.state, *it, room, values);
    return *count < 0 ? call.state.Refuse(kFakeWrongType, "room for configurations") : 0;
  }
  if (name == cudnn::kConfigEngine) {
    FakeDescriptor* engine = call.state.Find(*static_cast<void**>(values));
    if (engine == nullptr || engine->type != cudnn::kEngine)
      return call.state.Refuse(kFakeWrongType, "room for an engine");
    engine->engine = it->engine;
    engine->is_final = true;
    return Give<int>({}, room, count, values);
  }
  if (name == cudnn::kGraphEngineCount && it->type == cudnn::kGraph)
    return Give<int64_t>({static_cast<int64_t>(FakeEngines().size())}, room, count, values);
  if (name == cudnn::kDeviceJson || name == cudnn::kPlanJson)
    return Give(it->All<char>(name), room, count, values);
  if (it->engine < 0)
    return call.state.Refuse(kFakeBadParam, Cat("no attribute ", name, " of type ", type));
  const FakeEngine& engine = FakeEngines()[static_cast<size_t>(it->engine)];
  if (name == cudnn::kEngineIndex) return Give<int64_t>({it->engine}, room, count, values);
  if (name == cudnn::kEngineNotes) return Give(engine.notes, room, count, values);
  if (name == cudnn::kPlanWorkspace)
    return Give<int64_t>({engine.workspace_bytes}, room, count, values);
  if (name != cudnn::kEngineBehavior)
    return call.state.Refuse(kFakeBadParam, Cat("no attribute ", name, " of type ", type));
  return Give(engine.compiled_at_run_time ? std::vector<int>{cudnn::kCompiledAtRunTime}
                                          : std::vector<int>{},
              room, count, values);
}

int CreateHandle(void** handle) {
  const FakeCudnnCall call("Create");
  if (call.code != 0) return call.code;
  *handle = call.state.NewHandle();
  call.state.handles[*handle] = nullptr;
  return 0;
}

int DestroyHandle(void* handle) {
  const FakeCudnnCall call("Destroy");
  const size_t erased = call.state.handles.erase(handle);
  return call.code != 0 ? call.code : (erased == 1 ? 0 : kFakeBadParam);
}

int SetStream(void* handle, DriverStream* stream) {
  const FakeCudnnCall call("SetStream");
  if (call.code != 0) return call.code;
  const auto found = call.state.handles.find(handle);
  if (found == call.state.handles.end()) return kFakeBadParam;
  found->second = stream;
  return 0;
}

/// Executes the operations when their turn on the stream comes; 0 or an error of the driver.
int Work(const FakeOperations& operations, const FakeEngine& engine,
         const std::map<int64_t, uint64_t>& memory, std::map<int64_t, float> by_value,
         uint64_t workspace) {
  const size_t bytes = static_cast<size_t>(engine.workspace_bytes);
  FakeDriver::State& driver = *FakeDriver::State::current;
  for (const auto& [id, address] : memory) {
    const FakeTensor& tensor = operations.tensors.at(id);
    if (address % 16 == 0 && driver.Find(address, static_cast<size_t>(tensor.Bytes())) != nullptr)
      continue;
    driver.fault = Cat("tensor ", id, " of a convolution is in no allocation");
    return kFakeIllegalAddress;
  }
  if (bytes > 0) {
    if (driver.Find(workspace, bytes) == nullptr) {
      driver.fault = "the workspace of a convolution is in no allocation";
      return kFakeIllegalAddress;
    }
    std::memset(reinterpret_cast<void*>(workspace), 0x7f, bytes);
  }
  const bool tensor_cores =
      std::count(engine.notes.begin(), engine.notes.end(), cudnn::kTensorCores) > 0;
  const DType dtype = operations.tensors.at(operations.operations[0].x).dtype;
  const bool tf32 = tensor_cores && dtype == DType::kF32;
  const auto place = [&](int64_t id) {
    const auto number = by_value.find(id);
    return number != by_value.end() ? reinterpret_cast<std::byte*>(&number->second)
                                    : reinterpret_cast<std::byte*>(memory.at(id));
  };
  const absl::Status run = operations.Run(place, tf32);
  State::current->tf32_convolutions += tf32 ? 1 : 0;
  ++State::current->convolutions[dtype];
  if (run.ok()) return 0;
  driver.fault = std::string(run.message());
  return kFakeIllegalAddress;
}

int Execute(void* handle, void* plan, void* pack) {
  const FakeCudnnCall call("BackendExecute");
  if (call.code != 0) return call.code;
  State& state = call.state;
  const auto found = state.handles.find(handle);
  FakeDescriptor* const made = state.Find(plan);
  const FakeDescriptor* const with = state.Find(pack);
  if (found == state.handles.end() || made == nullptr || with == nullptr || !made->is_final ||
      !with->is_final)
    return state.Refuse(kFakeNotFinalized, "what is executed is not finalized");
  FakeDriver::State& driver = *FakeDriver::State::current;
  const std::lock_guard lock(driver.mutex);
  if (!made->is_loaded && driver.IsCapturing())
    return state.Refuse(kFakeDriverFailed, "loads kernels while it is captured");
  made->is_loaded = true;
  const auto ids = with->All<int64_t>(cudnn::kPackIds);
  const auto pointers = with->All<uint64_t>(cudnn::kPackPointers);
  std::map<int64_t, uint64_t> memory;
  for (size_t k = 0; k < ids.size(); ++k) memory[ids[k]] = pointers[k];
  for (const auto& [id, tensor] : made->operations->tensors) {
    if (tensor.is_virtual == (memory.count(id) > 0))
      return state.Refuse(kFakeBadParam, Cat("no memory for tensor ", id));
  }
  // Numbers are taken along now; memory is read when the stream comes to it.
  std::map<int64_t, float> by_value;
  for (const auto& [id, tensor] : made->operations->tensors) {
    if (!tensor.is_by_value) continue;
    std::memcpy(&by_value[id], reinterpret_cast<const void*>(memory.at(id)), sizeof(float));
    memory.erase(id);
  }
  const FakeEngine& engine = FakeEngines()[static_cast<size_t>(made->engine)];
  const uint64_t workspace = with->All<uint64_t>(cudnn::kPackWorkspace)[0];
  const int code = driver.Do(found->second,
                             [operations = made->operations, &engine, memory, by_value, workspace] {
                               return Work(*operations, engine, memory, by_value, workspace);
                             });
  return code == 0 ? 0 : state.Refuse(kFakeExecutionFailed, driver.fault);
}

void Report(char* text, size_t size) {
  const State& state = *State::current;
  std::snprintf(text, size, "%s\nand more", state.fault.c_str());
}

}  // namespace

State* State::current = nullptr;

FakeDescriptor* State::Find(void* descriptor) {
  const auto found = descriptors.find(descriptor);
  return found == descriptors.end() ? nullptr : &found->second;
}

std::vector<const FakeDescriptor*> State::Referred(const FakeDescriptor& descriptor, int name) {
  std::vector<const FakeDescriptor*> referred;
  for (void* handle : descriptor.All<void*>(name)) {
    referred.push_back(Find(handle));
    if (referred.back() == nullptr || !referred.back()->is_final) return {};
  }
  return referred;
}

int State::Refuse(int code, std::string text) {
  fault = std::move(text);
  return code;
}

FakeCudnnCall::FakeCudnnCall(const char* entry) : state(*State::current), lock_(state.mutex) {
  if (++state.calls != state.fail_at) return;
  code = state.Refuse(state.fail_with, "injected");
  state.failed_call = entry;
}

FakeCudnn::FakeCudnn() : state_(std::make_unique<State>()) {
  MENDEL_CHECK(State::current == nullptr);
  State::current = state_.get();
  table_.GetVersion = [] { return static_cast<size_t>(State::current->version); };
  table_.GetLastErrorString = &Report;
  table_.CreateDescriptor = &Create;
  table_.DestroyDescriptor = &Destroy;
  table_.Finalize = &Finalize;
  table_.SetAttribute = &Set;
  table_.GetAttribute = &Get;
  table_.CreateHandle = &CreateHandle;
  table_.DestroyHandle = &DestroyHandle;
  table_.SetStream = &SetStream;
  table_.Execute = &Execute;
  table_.path = "fake";
  table_.version = state_->version;
}

FakeCudnn::~FakeCudnn() { State::current = nullptr; }

void FakeCudnn::FailAt(int64_t call, int error) {
  state_->calls = 0;
  state_->fail_at = call;
  state_->fail_with = error;
  state_->failed_call.clear();
}

std::string FakeCudnn::FailedCall() const { return state_->failed_call; }
int64_t FakeCudnn::Calls() const { return state_->calls; }
int64_t FakeCudnn::Tf32Convolutions() const { return state_->tf32_convolutions; }
int64_t FakeCudnn::ConvolutionsOf(DType dtype) const { return state_->convolutions[dtype]; }
void FakeCudnn::SetVersion(int version) { table_.version = state_->version = version; }

std::string FakeCudnn::Leaks() const {
  std::string leaks;
  if (!state_->descriptors.empty()) leaks = Cat(state_->descriptors.size(), " descriptors");
  if (!state_->handles.empty())
    leaks += Cat(leaks.empty() ? "" : ", ", state_->handles.size(), " handles");
  return leaks;
}

}  // namespace mendel::cuda
