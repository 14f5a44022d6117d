// Bundles: plans of one model for several input shapes in one file, chosen when they run.
//
// A bundle is a container (plan_file.h) of format version 2 with these sections, in this order:
//
//   weights    the bytes that the tensors of all members refer to; equal tensors are there once
//   member.0   a plan as in its own file (plan.h) - graph, baseline, recipe, mended boxes, certificate, times - without weights
//   member.1   ...
//
// Members have the same input and output names and element types and are of the same model; their input shapes are distinct. What
// holds for a plan holds here: data only, same plans same bytes (the certificates' draws apart), a damaged or hostile file gives
// InvalidArgument. All readers here take a plan's own file for a bundle of one.
#ifndef MENDEL_RUNTIME_PLAN_BUNDLE_H_
#define MENDEL_RUNTIME_PLAN_BUNDLE_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/plan.h"

namespace mendel {

/// Replaces `path` atomically. InvalidArgument when a member would not be readable, members do not go together, or there are none
/// or more than kMaxMembers.
absl::Status WritePlanBundle(std::span<const Plan> members, const std::string& path);

/// A single plan as a file of its own (WritePlan), several as a bundle.
absl::Status WritePlans(std::span<const Plan> plans, const std::string& path);

/// As ReadPlan and ParsePlan, all members. Their tensors refer into one mapping: what members share is there once.
absl::StatusOr<std::vector<Plan>> ReadPlans(const std::string& path);
absl::StatusOr<std::vector<Plan>> ParsePlans(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

/// What `inspect` needs; no weights are read.
struct BundleHeader {
  /// Of the file; those of a member are in its header.
  std::vector<SectionEntry> sections;
  /// Over all but the certificates: equal for equal optimizations.
  std::string content_hash;
  /// With `inputs`.
  std::vector<PlanHeader> members;
};
/// InvalidArgument when the file is a single plan.
absl::StatusOr<BundleHeader> ReadBundleHeader(const std::string& path);
/// Whether the file begins as a bundle does; the error when it cannot be read.
absl::StatusOr<bool> IsBundleFile(const std::string& path);

/// InvalidArgument when a bundle cannot offer these: none, more than kMaxMembers, or the same twice.
absl::Status CheckOffer(std::span<const NamedShapes> offered);

/// "input:4x3x224x224,mask:4x128", a scalar as "x:scalar": what --shapes takes.
std::string ShapesText(const NamedShapes& shapes);

/// The member whose inputs have the shapes `wanted`; inputs that are not named may have any. InvalidArgument tells what is offered
/// when none has, or more than one.
absl::StatusOr<size_t> ChooseMember(std::span<const NamedShapes> offered, const NamedShapes& wanted);
std::vector<NamedShapes> OfferedShapes(std::span<const Plan> members);

}  // namespace mendel

#endif  // MENDEL_RUNTIME_PLAN_BUNDLE_H_
