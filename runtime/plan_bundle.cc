#include "runtime/plan_bundle.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "base/status.h"
#include "runtime/plan_sections.h"

namespace mendel {
namespace {

std::string MemberSection(size_t number) { return Cat("member.", number); }

/// Names and element types of inputs and outputs: what a caller of any member relies on.
std::string Interface(const Graph& graph) {
  std::string text;
  for (const int32_t id : graph.inputs())
    text +=
        Cat("input ", InputName(graph.node(id)), "\n", DTypeName(graph.type({id, 0}).dtype), "\n");
  for (const GraphOutput& output : graph.outputs())
    text += Cat("output ", output.name, "\n", DTypeName(graph.type(output.value).dtype), "\n");
  return text;
}

absl::Status CheckMembers(std::span<const Plan> members) {
  MENDEL_RETURN_IF_ERROR(CheckOffer(OfferedShapes(members)));
  for (size_t k = 1; k < members.size(); ++k) {
    if (Interface(members[k].graph) != Interface(members[0].graph)) {
      return InvalidInput("member ", k, " of the bundle has other inputs or outputs than member 0");
    }
    if (members[k].info.model_hash() != members[0].info.model_hash()) {
      return InvalidInput("member ", k, " of the bundle is of another model than member 0");
    }
  }
  return absl::OkStatus();
}

/// The weights and the members' bytes of a bundle whose header is sound.
struct BundleParts {
  std::vector<SectionEntry> entries;
  std::span<const std::byte> weights;
  std::vector<std::span<const std::byte>> members;
};

/// Members' hashes are checked, that of the weights only if wanted.
absl::StatusOr<BundleParts> TakeApart(std::span<const std::byte> bytes, bool check_weights) {
  BundleParts parts;
  MENDEL_ASSIGN_OR_RETURN(parts.entries, DecodeHeader(bytes, bytes.size(), kBundleFileVersion));
  for (size_t k = 0; k < parts.entries.size(); ++k) {
    const SectionEntry& entry = parts.entries[k];
    const std::string expected = k == 0 ? kWeightsSection : MemberSection(k - 1);
    if (entry.name != expected)
      return InvalidInput("damaged plan: section '", entry.name, "' of a bundle where '", expected,
                          "' must be");
    const auto section = bytes.subspan(entry.offset, entry.size);
    if (k > 0 || check_weights) MENDEL_RETURN_IF_ERROR(CheckSection(entry, section));
    if (k == 0) {
      parts.weights = section;
    } else {
      parts.members.push_back(section);
    }
  }
  if (parts.members.empty()) return InvalidInput("damaged plan: a bundle without members");
  return parts;
}

absl::StatusOr<BundleHeader> DecodeBundleHeader(const MappedPlan& file) {
  MENDEL_ASSIGN_OR_RETURN(const BundleParts parts, TakeApart(file.bytes, false));
  BundleHeader header;
  header.sections = parts.entries;
  Sha256 hash;
  hash.Update(Cat(kWeightsSection, "=", DigestHex(parts.entries[0].hash), "\n"));
  std::vector<NamedShapes> offered;
  for (const auto& bytes : parts.members) {
    auto member = DecodePlanHeader(bytes, PlanWeights{parts.weights, file.owner});
    if (!member.ok()) return Annotate(member.status(), Cat("member ", header.members.size()));
    hash.Update(member->content_hash + "\n");
    offered.push_back(member->inputs);
    header.members.push_back(*std::move(member));
  }
  MENDEL_RETURN_IF_ERROR(CheckOffer(offered));
  header.content_hash = hash.HexDigest();
  return header;
}

std::string Offers(std::span<const NamedShapes> offered) {
  std::string text;
  for (const NamedShapes& shapes : offered)
    text += Cat(text.empty() ? "" : "; ", ShapesText(shapes));
  return text;
}

}  // namespace

absl::Status WritePlanBundle(std::span<const Plan> members, const std::string& path) {
  MENDEL_RETURN_IF_ERROR(CheckMembers(members));
  WeightWriter weights;
  std::vector<std::vector<std::byte>> files;
  for (const Plan& member : members) {
    const auto texts = EncodePlan(member, weights);
    if (!texts.ok()) return Annotate(texts.status(), Cat("member ", files.size()));
    files.push_back(JoinSections(texts->Sections(std::nullopt)));
  }
  std::vector<SectionData> sections = {{kWeightsSection, weights.TakePieces()}};
  for (size_t k = 0; k < files.size(); ++k) sections.push_back({MemberSection(k), {files[k]}});
  return WriteSections(sections, path, kBundleFileVersion);
}

absl::Status WritePlans(std::span<const Plan> plans, const std::string& path) {
  return plans.size() == 1 ? WritePlan(plans[0], path) : WritePlanBundle(plans, path);
}

absl::StatusOr<std::vector<Plan>> ReadPlans(const std::string& path) {
  MENDEL_ASSIGN_OR_RETURN(const MappedPlan file, MapPlanFile(path));
  absl::StatusOr<std::vector<Plan>> plans = ParsePlans(file.bytes, file.owner);
  if (!plans.ok()) return Annotate(plans.status(), path);
  for (Plan& plan : *plans) plan.file = file.owner;
  return plans;
}

absl::StatusOr<std::vector<Plan>> ParsePlans(std::span<const std::byte> bytes,
                                             std::shared_ptr<const void> owner) {
  std::vector<Plan> members;
  if (!IsBundle(bytes)) {
    MENDEL_ASSIGN_OR_RETURN(Plan plan, ParsePlan(bytes, std::move(owner)));
    members.push_back(std::move(plan));
    return members;
  }
  const PlanWeights file = AlignedPlan(bytes, std::move(owner));
  MENDEL_ASSIGN_OR_RETURN(const BundleParts parts, TakeApart(file.bytes, true));
  for (const auto& member : parts.members) {
    auto plan = DecodePlan(member, file.owner, PlanWeights{parts.weights, file.owner});
    if (!plan.ok()) return Annotate(plan.status(), Cat("member ", members.size()));
    members.push_back(*std::move(plan));
  }
  MENDEL_RETURN_IF_ERROR(CheckMembers(members));
  return members;
}

absl::StatusOr<BundleHeader> ReadBundleHeader(const std::string& path) {
  MENDEL_ASSIGN_OR_RETURN(const MappedPlan file, MapPlanFile(path));
  absl::StatusOr<BundleHeader> header = DecodeBundleHeader(file);
  if (!header.ok()) return Annotate(header.status(), path);
  return header;
}

absl::StatusOr<bool> IsBundleFile(const std::string& path) {
  MENDEL_ASSIGN_OR_RETURN(const MappedPlan file, MapPlanFile(path));
  return IsBundle(file.bytes);
}

absl::Status CheckOffer(std::span<const NamedShapes> offered) {
  if (offered.empty() || offered.size() > kMaxMembers) {
    return InvalidInput("a bundle has 1 to ", kMaxMembers, " members, not ", offered.size());
  }
  for (size_t k = 0; k < offered.size(); ++k) {
    const auto same =
        std::find(offered.begin(), offered.begin() + static_cast<std::ptrdiff_t>(k), offered[k]);
    const size_t first = static_cast<size_t>(same - offered.begin());
    if (first != k) {
      return InvalidInput("members ", first, " and ", k,
                          " of the bundle have the same input shapes (", ShapesText(offered[k]),
                          ")");
    }
  }
  return absl::OkStatus();
}

std::string ShapesText(const NamedShapes& shapes) {
  std::string text;
  for (const auto& [name, shape] : shapes) {
    std::string extents;
    for (const int64_t extent : shape) extents += Cat(extents.empty() ? "" : "x", extent);
    text += Cat(text.empty() ? "" : ",", name, ":", extents.empty() ? "scalar" : extents);
  }
  return text;
}

absl::StatusOr<size_t> ChooseMember(std::span<const NamedShapes> offered,
                                    const NamedShapes& wanted) {
  std::vector<size_t> fitting;
  for (size_t k = 0; k < offered.size(); ++k) {
    const bool fits = std::all_of(wanted.begin(), wanted.end(), [&](const auto& input) {
      return std::find(offered[k].begin(), offered[k].end(), input) != offered[k].end();
    });
    if (fits) fitting.push_back(k);
  }
  if (fitting.size() == 1) return fitting[0];
  if (fitting.empty() && offered.size() == 1) {
    return InvalidInput("the plan is for ", ShapesText(offered[0]), ", not for ",
                        ShapesText(wanted));
  }
  if (fitting.empty())
    return InvalidInput("the bundle has no member for ", ShapesText(wanted), "; it offers ",
                        Offers(offered));
  return InvalidInput("the bundle has ", offered.size(),
                      " members, and the shapes of the inputs must choose one: ", Offers(offered));
}

std::vector<NamedShapes> OfferedShapes(std::span<const Plan> members) {
  std::vector<NamedShapes> offered;
  for (const Plan& member : members) offered.push_back(InputShapes(member.graph));
  return offered;
}

}  // namespace mendel
