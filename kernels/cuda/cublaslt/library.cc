#include "kernels/cuda/cublaslt/library.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/status.h"

namespace mendel::cuda {
namespace {

constexpr char kCublasLt[] = "cublaslt";

/// Algorithms of one name, but for their index.
struct LtKind {
  std::string_view name;
  Numerics technique;
  bool keeps = false;  ///< what is added and the result in the operands' format, too

  bool is_tf32() const { return technique == Numerics::kTf32; }
  std::optional<DType> rounded() const {
    if (technique == Numerics::kF16) return DType::kF16;
    return technique == Numerics::kBf16 ? std::optional(DType::kBF16) : std::nullopt;
  }
};
constexpr LtKind kLtKinds[] = {
    {kCublasLt, Numerics::kStrict},     {"cublaslt-tf32", Numerics::kTf32},
    {"cublaslt-f16", Numerics::kF16},   {"cublaslt-f16-kept", Numerics::kF16, true},
    {"cublaslt-bf16", Numerics::kBf16}, {"cublaslt-bf16-kept", Numerics::kBf16, true}};

class LtHandle final : public LibraryHandle {
 public:
  explicit LtHandle(Owned<void*> handle) : handle_(std::move(handle)) {}
  void* get() const { return handle_.get(); }

 private:
  Owned<void*> handle_;
};

absl::StatusOr<Owned<void*>> MakeLtHandle(const CublasLt& lt) {
  void* made = nullptr;
  MENDEL_RETURN_IF_ERROR(lt.Check(lt.Create(&made), "cublasLtCreate"));
  return Owned<void*>(made, lt.Destroy);
}

class LoadedProduct final : public LoadedCall {
 public:
  LoadedProduct(const CublasLt& lt, void* handle, const LtProduct& product,
                const LtAlgorithm& algorithm, LtDescriptors descriptors, const CallSite& site)
      : lt_(lt),
        handle_(handle),
        product_(product),
        algorithm_(algorithm),
        descriptors_(std::move(descriptors)),
        workspace_(site.workspace),
        stream_(site.stream) {
    auto next = site.pointers.begin();
    operands_ = {*next++, *next++, product.residual ? *next++ : 0, product.bias ? *next++ : 0,
                 site.pointers.back()};
  }

  absl::Status SetBias() const {
    return product_.bias ? mendel::cuda::SetBias(lt_, descriptors_, operands_.bias)
                         : absl::OkStatus();
  }
  absl::Status Enqueue() override {
    return EnqueueProduct(lt_, handle_, product_, descriptors_, algorithm_, operands_, workspace_,
                          stream_);
  }

 private:
  const CublasLt& lt_;
  void* handle_;
  const LtProduct product_;
  const LtAlgorithm algorithm_;
  const LtDescriptors descriptors_;
  const uint64_t workspace_;
  DriverStream* stream_;
  LtOperands operands_;
};

class ProductCall final : public LibraryCall {
 public:
  ProductCall(const CublasLt& lt, std::string name, const LtProduct& product,
              const LtAlgorithm& algorithm)
      : lt_(lt), name_(std::move(name)), product_(product), algorithm_(algorithm) {}

  std::string name() const override { return name_; }
  int64_t workspace_bytes() const override { return algorithm_.workspace_bytes; }
  absl::StatusOr<std::unique_ptr<LoadedCall>> Load(const CallSite& site,
                                                   LibraryHandles& handles) const override {
    std::unique_ptr<LibraryHandle>& handle = handles[kCublasLt];
    if (handle == nullptr) {
      MENDEL_ASSIGN_OR_RETURN(Owned<void*> made, MakeLtHandle(lt_));
      handle = std::make_unique<LtHandle>(std::move(made));
    }
    MENDEL_ASSIGN_OR_RETURN(LtDescriptors descriptors, LtDescriptors::Make(lt_, product_));
    auto loaded =
        std::make_unique<LoadedProduct>(lt_, static_cast<const LtHandle&>(*handle).get(), product_,
                                        algorithm_, std::move(descriptors), site);
    MENDEL_RETURN_IF_ERROR(loaded->SetBias());
    return loaded;
  }

 private:
  const CublasLt& lt_;
  const std::string name_;
  const LtProduct product_;
  const LtAlgorithm algorithm_;
};

/// Null where `numerics` does not allow it, or there is none of this name.
const LtKind* LtKindOf(std::string_view algorithm, Numerics numerics) {
  const std::string_view name = algorithm.substr(0, algorithm.find(':'));
  for (const LtKind& kind : kLtKinds) {
    if (kind.name == name && Allows(numerics, kind.technique)) return &kind;
  }
  return nullptr;
}

/// The ways to compute a MatMul by algorithms of a kind.
std::vector<ProductMatch> MatchesOf(const GroupingScope& scope, int32_t node, const LtKind& kind,
                                    Numerics numerics) {
  const std::optional<DType> rounded = kind.rounded();
  const auto rounding =
      rounded.has_value() ? std::optional(ProductRounding{*rounded, kind.keeps}) : std::nullopt;
  std::vector<ProductMatch> matches = MatchProduct(scope, node, numerics, rounding);
  if (!kind.is_tf32() || matches.empty()) return matches;
  if (matches[0].product.dtype != DType::kF32) return {};
  for (ProductMatch& match : matches) match.product.tf32 = true;
  return matches;
}

LibraryGroup ProductGroup(const Graph& graph, const ProductMatch& match,
                          std::shared_ptr<const LibraryCall> call) {
  LibraryGroup group{match.result, match.nodes, {}, std::move(call)};
  const auto add = [&](ValueId value) {
    group.operands.push_back({value, {}, graph.type(value).dtype});
  };
  add(match.left);
  add(match.right);
  if (match.product.residual) add(match.residual);
  if (match.product.bias) add(match.bias);
  const LtProduct& product = match.product;
  const DType dtype = graph.type(match.result).dtype;
  if (product.operands != dtype) {
    group.forms.resize(group.operands.size());
    group.forms[0].rounded = group.forms[1].rounded = product.operands;
  }
  if (product.dtype != dtype) {
    for (MemoryFormat& form : group.forms) form.rounded = product.dtype;
    group.result_form.rounded = product.dtype;
  }
  return group;
}

}  // namespace

CublasLtLibrary::~CublasLtLibrary() {
  if (context_ == nullptr) return;
  driver_.CtxSetCurrent(context_);  // nothing can be done about an error here
  handle_ = {};
  driver_.DevicePrimaryCtxRelease(device_);
}

MemoryFormat CublasLtLibrary::FormRead(std::string_view algorithm) const {
  const std::string_view name = algorithm.substr(0, algorithm.find(':'));
  for (const LtKind& kind : kLtKinds) {
    if (kind.name == name) return {.channels_last = false, .rounded = kind.rounded()};
  }
  return {};
}

std::string CublasLtLibrary::Identity() const {
  return Cat("cublaslt ", CublasLtVersionText(lt_.version), ", workspace ", workspace_bytes_ >> 20,
             " MiB");
}

std::vector<std::string> CublasLtLibrary::Algorithms(const GroupingScope& scope, int32_t node,
                                                     Numerics numerics) const {
  std::vector<std::string> names;
  for (const LtKind& kind : kLtKinds) {
    if (!Allows(numerics, kind.technique)) continue;
    const auto proposed = Propose(MatchesOf(scope, node, kind, numerics));
    if (!proposed.ok() || proposed->empty() || !proposed->back().match.product.IsAlone()) continue;
    size_t count = proposed->front().algorithms.size();
    for (const Proposed& one : *proposed) count = std::min(count, one.algorithms.size());
    for (size_t k = 0; k < std::min(count, offered_); ++k)
      names.push_back(RankedName(kind.name, k));
  }
  return names;
}

absl::StatusOr<LibraryGroup> CublasLtLibrary::Group(const GroupingScope& scope, int32_t node,
                                                    const std::string& algorithm,
                                                    Numerics numerics) const {
  const int index = RankOf(algorithm);
  const std::string description = Cat("node '", scope.graph.node(node).name, "' (",
                                      scope.graph.node(node).op->name, " ", node, ")");
  const LtKind* kind = LtKindOf(algorithm, numerics);
  if (kind == nullptr) {
    return InvalidInput(description, " has no algorithm '", algorithm, "' under numerics ",
                        NumericsName(numerics), ": ", Identity());
  }
  std::vector<ProductMatch> matches = MatchesOf(scope, node, *kind, numerics);
  if (matches.empty())
    return InvalidInput(description, " is no product that cuBLASLt makes, as '", algorithm,
                        "' says");
  MENDEL_ASSIGN_OR_RETURN(const std::vector<Proposed> proposed, Propose(std::move(matches)));
  if (proposed.empty())
    return InvalidInput(Identity(), " has no algorithm for ", description, ", as '", algorithm,
                        "' says");
  const auto& [match, algorithms] = proposed.front();
  if (index < 0 || static_cast<size_t>(index) >= algorithms.size()) {
    return InvalidInput(Identity(), " has ", algorithms.size(), " algorithms for ", description,
                        ": '", algorithm, "' is none of them");
  }
  auto call = std::make_shared<ProductCall>(lt_, Cat(algorithm, EpilogueName(match.product)),
                                            match.product, algorithms[static_cast<size_t>(index)]);
  return ProductGroup(scope.graph, match, std::move(call));
}

std::vector<std::string> CublasLtLibrary::FormNames(const GroupingScope& scope, int32_t node,
                                                    Numerics numerics) {
  std::vector<std::string> names;
  for (const LtKind& kind : kLtKinds) {
    if (Allows(numerics, kind.technique) && !MatchesOf(scope, node, kind, numerics).empty())
      names.emplace_back(kind.name);
  }
  return names;
}

absl::StatusOr<LibraryGroup> CublasLtLibrary::FormOf(const GroupingScope& scope, int32_t node,
                                                     const std::string& algorithm,
                                                     Numerics numerics) {
  const LtKind* kind = LtKindOf(algorithm, numerics);
  std::vector<ProductMatch> matches;
  if (kind != nullptr && RankOf(algorithm) >= 0) matches = MatchesOf(scope, node, *kind, numerics);
  if (matches.empty())
    return InvalidInput("cuBLASLt has no form '", algorithm, "' for it, numerics ",
                        NumericsName(numerics));
  return ProductGroup(scope.graph, matches.front(), nullptr);
}

absl::StatusOr<std::vector<CublasLtLibrary::Proposed>> CublasLtLibrary::Propose(
    std::vector<ProductMatch> matches) const {
  std::vector<Proposed> proposed;
  if (matches.empty()) return proposed;
  const std::lock_guard lock(mutex_);
  MENDEL_RETURN_IF_ERROR(Open());
  for (ProductMatch& match : matches) {
    auto algorithms = AlgorithmsFor(match.product);
    const bool shorter =
        !match.product.IsAlone() && !absl::IsResourceExhausted(algorithms.status());
    if (!algorithms.ok() && shorter) continue;
    MENDEL_RETURN_IF_ERROR(algorithms.status());
    if (!algorithms->empty()) proposed.push_back({std::move(match), *std::move(algorithms)});
  }
  return proposed;
}

absl::StatusOr<std::vector<LtAlgorithm>> CublasLtLibrary::AlgorithmsFor(
    const LtProduct& product) const {
  if (const auto known = known_.find(product); known != known_.end()) return known->second;
  MENDEL_ASSIGN_OR_RETURN(std::vector<LtAlgorithm> algorithms,
                          ProposeAlgorithms(lt_, handle_.get(), product, workspace_bytes_,
                                            static_cast<int>(kMostOffered)));
  return known_[product] = std::move(algorithms);
}

absl::Status CublasLtLibrary::Open() const {
  if (context_ == nullptr) {
    MENDEL_RETURN_IF_ERROR(driver_.Check(driver_.DeviceGet(&device_, 0), "cuDeviceGet"));
    MENDEL_RETURN_IF_ERROR(driver_.Check(driver_.DevicePrimaryCtxRetain(&context_, device_),
                                         "cuDevicePrimaryCtxRetain"));
  }
  MENDEL_RETURN_IF_ERROR(driver_.Check(driver_.CtxSetCurrent(context_), "cuCtxSetCurrent"));
  if (!handle_) {
    MENDEL_ASSIGN_OR_RETURN(handle_, MakeLtHandle(lt_));
  }
  return absl::OkStatus();
}

}  // namespace mendel::cuda
