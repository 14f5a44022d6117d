// Bundles: plans of one model for several input shapes in one file; a run's inputs choose one.
//
// A bundle is a container (plan_file.h) of format version 2 with these sections, in this order:
//
//   weights    the bytes that the tensors of all members refer to; equal tensors are stored once
//   member.0   a plan as in its own file (plan.h), without weights
//   member.1   ...
//
// Members have the same input and output names and element types and are of the same model; their
// input shapes are distinct. A bundle has the properties of a plan: data only, same plans same
// bytes (except the certificates' draws), InvalidArgument for a damaged or hostile file. All
// readers here accept a plan's own file as a bundle of one.
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

/// Replaces `path` atomically. InvalidArgument when a member would not be readable, members do not
/// go together, or their number is 0 or above kMaxMembers.
absl::Status WritePlanBundle(std::span<const Plan> members, const std::string& path);

/// A single plan as a file of its own (WritePlan), several as a bundle.
absl::Status WritePlans(std::span<const Plan> plans, const std::string& path);

/// ReadPlan and ParsePlan for all members. Their tensors refer into one mapping: shared content is
/// there once.
absl::StatusOr<std::vector<Plan>> ReadPlans(const std::string& path);
absl::StatusOr<std::vector<Plan>> ParsePlans(std::span<const std::byte> bytes,
                                             std::shared_ptr<const void> owner);

/// The part of a bundle that `inspect` needs; no weights are read.
struct BundleHeader {
  /// Sections of the file; those of a member are in its header.
  std::vector<SectionEntry> sections;
  /// A hash over all but the certificates: equal for equal optimizations.
  std::string content_hash;
  /// Headers of the members, with `inputs`.
  std::vector<PlanHeader> members;
};
/// InvalidArgument when the file is a single plan.
absl::StatusOr<BundleHeader> ReadBundleHeader(const std::string& path);
/// True where the file begins as a bundle does; the error when it cannot be read.
absl::StatusOr<bool> IsBundleFile(const std::string& path);

/// InvalidArgument when a bundle cannot offer these shapes: none, more than kMaxMembers, or the
/// same twice.
absl::Status CheckOffer(std::span<const NamedShapes> offered);

/// The syntax of --shapes: "input:4x3x224x224,mask:4x128", a scalar as "x:scalar".
std::string ShapesText(const NamedShapes& shapes);

/// The member whose inputs have the shapes `wanted`; other inputs may have any shape.
/// InvalidArgument lists the offered shapes when no member fits, or more than one.
absl::StatusOr<size_t> ChooseMember(std::span<const NamedShapes> offered,
                                    const NamedShapes& wanted);
std::vector<NamedShapes> OfferedShapes(std::span<const Plan> members);

}  // namespace mendel

#endif  // MENDEL_RUNTIME_PLAN_BUNDLE_H_
