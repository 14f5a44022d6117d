// Plans: the delivered artifact. A file has these sections (container format: plan_file.h):
//
//   graph        the chosen graph as text (graph/text.h); tensors above 16 elements as @index
//   baseline     the unmodified (normalized) graph as text, for `bench --baseline`; optional
//   tensors      plan::TensorTable: type and place of each @index; equal tensors share bytes
//   weights      raw row-major tensor bytes, each tensor at a multiple of 64
//   info         plan::PlanInfo
//   engines      plan::EngineTable: engines behind names of algorithms (plan_engines.h); optional
//   kernels      plan::KernelTable: kernels of corrected boxes as text (plan_kernels.h); optional
//   certificate  plan::CertificateProto (verifier/); optional
//
// Protobuf sections are serialized deterministically: the same inputs give the same bytes. The
// certificate is an exception, since its draws are fresh each time (see PlanHeader::content_hash).
//
// Plans are data: reading one executes nothing. A damaged or hostile file gives InvalidArgument.
#ifndef MENDEL_RUNTIME_PLAN_H_
#define MENDEL_RUNTIME_PLAN_H_

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/graph.h"
#include "mendel/plan.pb.h"
#include "runtime/plan_engines.h"
#include "runtime/plan_file.h"
#include "runtime/plan_kernels.h"

namespace mendel {

/// Names and shapes of a program's inputs, in its order.
using NamedShapes = std::vector<std::pair<std::string, Shape>>;
NamedShapes InputShapes(const Graph& graph);

/// Version of PlanInfo's meaning that this program writes and reads.
inline constexpr int kPlanInfoVersion = 1;

struct Plan {
  Graph graph;
  /// Same input and output names and types as `graph`; a graph without nodes if the plan has no
  /// baseline.
  Graph baseline;
  plan::PlanInfo info;
  /// Engines of `graph`: for nodes that info.algorithms names.
  StoredEngines engines;
  std::vector<PlanKernel> kernels;
  /// A serialized plan::CertificateProto; empty: not certified.
  std::string certificate_bytes;
  /// The file that the tensors refer into; null: they are in memory.
  std::shared_ptr<const FileMapping> file = nullptr;
};

/// The part of a plan that `inspect` needs: no weights are read.
struct PlanHeader {
  std::vector<SectionEntry> sections;
  /// SHA-256 over names and hashes of all sections but the certificate: equal for equal
  /// optimizations.
  std::string content_hash;
  plan::PlanInfo info;
  std::vector<PlanKernel> kernels;
  std::string certificate_bytes;
  std::string graph_text;
  /// Members of bundles only (plan_bundle.h).
  NamedShapes inputs;
};

/// Atomically replaces `path` (see WriteSections). Sets info.format_version in the file.
/// InvalidArgument when the plan would not be readable (baseline of other types; algorithms,
/// engines or kernels of missing nodes).
absl::Status WritePlan(const Plan& plan, const std::string& path);

/// Maps the file, verifies every section hash, parses and checks both graphs. Tensors refer into
/// the mapping, which lives as long as one of them. NotFound and similar errors for the file;
/// InvalidArgument for its content, also for a bundle's (plan_bundle.h).
absl::StatusOr<Plan> ReadPlan(const std::string& path);
/// The same for bytes in memory, which `owner` keeps alive. Bytes that are not aligned to 64 are
/// copied.
absl::StatusOr<Plan> ParsePlan(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

/// Header, info, kernels and certificate; verifies the hashes of the sections it reads.
absl::StatusOr<PlanHeader> ReadPlanHeader(const std::string& path);

/// InvalidArgument when the plan was made for another backend or another machine (instruction set,
/// library versions) than `backend` on this one. The message names both.
absl::Status CheckTarget(const plan::PlanInfo& info, const Backend& backend);

}  // namespace mendel

#endif  // MENDEL_RUNTIME_PLAN_H_
