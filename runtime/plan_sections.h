// The sections of one plan as bytes, and back: the shared part of plan files (plan.h) and bundles
// of plans (plan_bundle.h).
#ifndef MENDEL_RUNTIME_PLAN_SECTIONS_H_
#define MENDEL_RUNTIME_PLAN_SECTIONS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/tensor.h"
#include "mendel/plan.pb.h"
#include "runtime/plan.h"
#include "runtime/plan_file.h"

namespace mendel {

inline constexpr char kWeightsSection[] = "weights";

/// Collects tensor bytes for a weights section; equal tensors of any plans are stored
/// once.
class WeightWriter {
 public:
  void Add(const Tensor& tensor, plan::TensorEntry& entry);
  /// The section's bytes. They belong to the tensors, which must outlive them.
  std::vector<std::span<const std::byte>> TakePieces() { return std::move(pieces_); }

 private:
  uint64_t Place(const Tensor& tensor);

  std::map<std::pair<const std::byte*, size_t>, uint64_t> by_address_;
  std::map<std::string, uint64_t> by_content_;
  std::vector<std::span<const std::byte>> pieces_;
  uint64_t end_ = 0;
};

/// All sections of a plan without its weights; "" where there is none.
struct PlanTexts {
  std::string graph;
  std::string baseline;
  std::string tensors;
  std::string info;
  std::string engines;
  std::string kernels;
  std::string certificate;

  /// Sections in the order of the file; they refer into this object. `weights`: the section's
  /// bytes, if the plan has its own.
  std::vector<SectionData> Sections(
      std::optional<std::vector<std::span<const std::byte>>> weights) const;
};

/// Checks the plan (InvalidArgument when it would not be readable) and hands its tensors to
/// `weights`.
absl::StatusOr<PlanTexts> EncodePlan(const Plan& plan, WeightWriter& weights);

/// The buffers that a plan's tensors refer to.
struct PlanWeights {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

/// The plan in `bytes`, which are aligned to 64. `shared`: the bundle's weights; a weights section
/// of the plan's own is then an error. Otherwise the weights are in `bytes`, which `owner` keeps
/// alive. InvalidArgument names the fault.
absl::StatusOr<Plan> DecodePlan(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                                const std::optional<PlanWeights>& shared = std::nullopt);

/// The header of the plan in `bytes`, with `inputs`. `shared`, if given, may be unchecked: no
/// tensor is read.
absl::StatusOr<PlanHeader> DecodePlanHeader(
    std::span<const std::byte> bytes, const std::optional<PlanWeights>& shared = std::nullopt);

/// `bytes` and their owner where they are aligned for tensors, else a copy.
PlanWeights AlignedPlan(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

}  // namespace mendel

#endif  // MENDEL_RUNTIME_PLAN_SECTIONS_H_
