#include "kernels/cuda/testing/fake/fake_cublaslt.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "kernels/cuda/testing/fake/fake_product.h"
#include "kernels/cuda/testing/fake/fake_state.h"

namespace mendel::cuda {
namespace {

using cublaslt::Algorithm;
using cublaslt::Proposal;

constexpr int kExecutionFailed = 13, kFakeLtInternalError = 14;
constexpr uint64_t kMark = 0x4d656e64656c4c74;
constexpr size_t kWorkspaces[] = {size_t{4} << 10, 0, size_t{1} << 20, size_t{64} << 20};

}  // namespace

struct FakeCublasLt::State {
  std::set<void*> handles;
  std::map<void*, FakeOperation> operations;
  std::map<void*, FakeLayout> layouts;
  std::map<void*, FakePreference> preferences;
  std::map<uint32_t, int> limits;                  // by epilogue
  std::set<std::pair<uint64_t, uint64_t>> loaded;  // algorithms of products
  int64_t products = 0, rounded = 0;

  static State* current;
};

FakeCublasLt::State* FakeCublasLt::State::current = nullptr;

namespace {

using LtState = FakeCublasLt::State;

template <class Part>
int MakePart(const char* entry, std::map<void*, Part> LtState::*parts, void** handle,
             const Part& part) {
  const FakeCall call(entry);
  if (call.code != 0) return call.code;
  *handle = call.state.NewHandle<void*>();
  (LtState::current->*parts)[*handle] = part;
  return 0;
}

template <class Part>
int RemovePart(const char* entry, std::map<void*, Part> LtState::*parts, void* handle) {
  const FakeCall call(entry);
  return (LtState::current->*parts).erase(handle) == 1 ? call.code : kFakeLtInvalidValue;
}

/// The address and the size of an attribute.
struct AttributePlace {
  void* at = nullptr;
  size_t bytes = 0;
};

AttributePlace PlaceOf(FakeOperation& operation, int attribute) {
  switch (attribute) {
    case cublaslt::kTransposeA:
      return {&operation.transpose_a, sizeof operation.transpose_a};
    case cublaslt::kTransposeB:
      return {&operation.transpose_b, sizeof operation.transpose_b};
    case cublaslt::kEpilogue:
      return {&operation.epilogue, sizeof operation.epilogue};
    case cublaslt::kBiasPointer:
      return {&operation.bias, sizeof operation.bias};
    default:
      return {};
  }
}

AttributePlace PlaceOf(FakeLayout& layout, int attribute) {
  if (attribute == cublaslt::kBatchCount) return {&layout.batch, sizeof layout.batch};
  if (attribute == cublaslt::kBatchStride)
    return {&layout.batch_stride, sizeof layout.batch_stride};
  return {};
}

AttributePlace PlaceOf(FakePreference& preference, int attribute) {
  if (attribute == cublaslt::kMaxWorkspaceBytes)
    return {&preference.workspace, sizeof preference.workspace};
  if (attribute == cublaslt::kReductionSchemes)
    return {&preference.schemes, sizeof preference.schemes};
  return {};
}

template <class Part>
int SetPart(const char* entry, std::map<void*, Part> LtState::*parts, void* handle, int attribute,
            const void* value, size_t bytes) {
  const FakeCall call(entry);
  if (call.code != 0) return call.code;
  const auto found = (LtState::current->*parts).find(handle);
  if (found == (LtState::current->*parts).end()) return kFakeLtInvalidValue;
  const AttributePlace place = PlaceOf(found->second, attribute);
  if (place.at == nullptr || place.bytes != bytes) return kFakeLtInvalidValue;
  std::memcpy(place.at, value, bytes);
  return 0;
}

/// The product of these handles; nullopt for handles that are none.
std::optional<FakeProduct> ProductOf(void* handle, void* operation, void* a, void* b, void* c,
                                     void* d) {
  const LtState& state = *LtState::current;
  const auto known = [&](void* layout) { return state.layouts.count(layout) != 0; };
  if (state.handles.count(handle) == 0 || state.operations.count(operation) == 0)
    return std::nullopt;
  if (!known(a) || !known(b) || !known(c) || !known(d)) return std::nullopt;
  return FakeProduct{state.operations.at(operation), state.layouts.at(a), state.layouts.at(b),
                     state.layouts.at(c), state.layouts.at(d)};
}

uint64_t HashOf(const FakeProduct& product) { return std::hash<std::string>()(product.Key()); }

int Propose(void* handle, void* operation, void* a, void* b, void* c, void* d, void* preference,
            int room, Proposal* proposals, int* count) {
  const FakeCall call("cublasLtMatmulAlgoGetHeuristic");
  if (call.code != 0) return call.code;
  const LtState& state = *LtState::current;
  const auto product = ProductOf(handle, operation, a, b, c, d);
  const auto wanted = state.preferences.find(preference);
  if (!product.has_value() || wanted == state.preferences.end() || room < 1)
    return kFakeLtInvalidValue;
  if (const int status = product->Check(); status != 0) return status;
  const bool has_aligned_bias = product->operation.bias != 0 && product->operation.bias % 256 == 0;
  if ((product->operation.epilogue & cublaslt::kBias) != 0 && !has_aligned_bias)
    return cublaslt::kNotSupported;
  if (wanted->second.schemes != cublaslt::kReductionInSums) return cublaslt::kNotSupported;
  const auto limit = state.limits.find(product->operation.epilogue);
  const int most = limit == state.limits.end() ? room : std::min(room, limit->second);
  if (most == 0) return cublaslt::kNotSupported;
  *count = 0;
  for (uint64_t k = 0; k < std::size(kWorkspaces) && *count < most; ++k) {
    if (kWorkspaces[k] > wanted->second.workspace) continue;
    proposals[(*count)++] = {Algorithm{{kMark, k, HashOf(*product)}}, kWorkspaces[k], 0, 1, {}};
  }
  return 0;
}

int Multiply(void* handle, void* operation, const void* alpha, const void* a, void* a_layout,
             const void* b, void* b_layout, const void* beta, const void* c, void* c_layout,
             void* d, void* d_layout, const Algorithm* algorithm, void* workspace,
             size_t workspace_bytes, DriverStream* stream) {
  const FakeCall call("cublasLtMatmul");
  if (call.code != 0) return call.code;
  const auto product = ProductOf(handle, operation, a_layout, b_layout, c_layout, d_layout);
  if (!product.has_value()) return kFakeLtInvalidValue;
  if (const int status = product->Check(); status != 0) return status;
  const uint64_t* data = algorithm->data;
  if (data[0] != kMark || data[1] >= std::size(kWorkspaces) || data[2] != HashOf(*product))
    return kFakeLtInvalidValue;
  const size_t needed = kWorkspaces[data[1]];
  const auto address = [](const void* pointer) { return reinterpret_cast<uint64_t>(pointer); };
  const uint64_t space = address(workspace);
  if (workspace_bytes < needed || space % 256 != 0) return kFakeLtInvalidValue;
  const FakeProduct::Operands operands{address(a),
                                       address(b),
                                       address(c),
                                       address(d),
                                       *static_cast<const float*>(alpha),
                                       *static_cast<const float*>(beta)};
  const bool is_first = LtState::current->loaded.emplace(data[1], data[2]).second;
  if (is_first && call.state.IsCapturing()) return kFakeLtInternalError;
  const int done = call.state.Do(stream, [&driver = call.state, product, operands, space, needed] {
    if (needed > 0) {
      if (driver.Find(space, needed) == nullptr) return static_cast<int>(kFakeIllegalAddress);
      std::memset(reinterpret_cast<void*>(space), 0xff, needed);  // whatever lay there is lost
    }
    ++LtState::current->products;
    LtState::current->rounded += product->Rounds() ? 1 : 0;
    return product->Compute(driver, operands);
  });
  return done == 0 ? 0 : kExecutionFailed;
}

const char* StatusName(int status) {
  switch (status) {
    case cublaslt::kAllocationFailed:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case kFakeLtInvalidValue:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case kExecutionFailed:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case cublaslt::kNotSupported:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
  }
}

void SetParts(CublasLt& table) {
  table.MatmulDescCreate = [](void** made, int compute, int scale_type) {
    return MakePart("cublasLtMatmulDescCreate", &LtState::operations, made, {compute, scale_type});
  };
  table.MatmulDescSetAttribute = [](void* operation, int attribute, const void* value,
                                    size_t bytes) {
    return SetPart("cublasLtMatmulDescSetAttribute", &LtState::operations, operation, attribute,
                   value, bytes);
  };
  table.MatmulDescDestroy = [](void* operation) {
    return RemovePart("cublasLtMatmulDescDestroy", &LtState::operations, operation);
  };
  table.MatrixLayoutCreate = [](void** made, int type, uint64_t rows, uint64_t columns,
                                int64_t leading) {
    return MakePart("cublasLtMatrixLayoutCreate", &LtState::layouts, made,
                    {type, rows, columns, leading});
  };
  table.MatrixLayoutSetAttribute = [](void* layout, int attribute, const void* value,
                                      size_t bytes) {
    return SetPart("cublasLtMatrixLayoutSetAttribute", &LtState::layouts, layout, attribute, value,
                   bytes);
  };
  table.MatrixLayoutDestroy = [](void* layout) {
    return RemovePart("cublasLtMatrixLayoutDestroy", &LtState::layouts, layout);
  };
  table.MatmulPreferenceCreate = [](void** made) {
    return MakePart("cublasLtMatmulPreferenceCreate", &LtState::preferences, made, {});
  };
  table.MatmulPreferenceSetAttribute = [](void* preference, int attribute, const void* value,
                                          size_t bytes) {
    return SetPart("cublasLtMatmulPreferenceSetAttribute", &LtState::preferences, preference,
                   attribute, value, bytes);
  };
  table.MatmulPreferenceDestroy = [](void* preference) {
    return RemovePart("cublasLtMatmulPreferenceDestroy", &LtState::preferences, preference);
  };
}

}  // namespace

FakeCublasLt::FakeCublasLt() : state_(std::make_unique<State>()) {
  MENDEL_CHECK(LtState::current == nullptr);
  LtState::current = state_.get();
  table_.path = "made up";
  table_.version = 130100;
  table_.GetVersion = [] { return size_t{130100}; };
  table_.GetStatusName = &StatusName;
  table_.GetStatusString = [](int) { return "refused by the fake cuBLASLt"; };
  table_.Create = [](void** handle) {
    const FakeCall call("cublasLtCreate");
    if (call.code != 0) return call.code;
    LtState::current->handles.insert(*handle = call.state.NewHandle<void*>());
    return 0;
  };
  table_.Destroy = [](void* handle) {
    const FakeCall call("cublasLtDestroy");
    return LtState::current->handles.erase(handle) == 1 ? call.code : kFakeLtInvalidValue;
  };
  SetParts(table_);
  table_.MatmulAlgoGetHeuristic = &Propose;
  table_.Matmul = &Multiply;
}

FakeCublasLt::~FakeCublasLt() { LtState::current = nullptr; }

void FakeCublasLt::LimitProposals(uint32_t epilogue, int most) { state_->limits[epilogue] = most; }
int64_t FakeCublasLt::Products() const { return state_->products; }
int64_t FakeCublasLt::RoundedProducts() const { return state_->rounded; }

std::string FakeCublasLt::Leaks() const {
  std::string leaks;
  const auto count = [&](const char* what, size_t number) {
    if (number != 0) leaks += Cat(leaks.empty() ? "" : ", ", number, " ", what);
  };
  count("handles", state_->handles.size());
  count("operations", state_->operations.size());
  count("layouts", state_->layouts.size());
  count("preferences", state_->preferences.size());
  return leaks;
}

}  // namespace mendel::cuda
