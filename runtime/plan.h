// Plans: the delivered artefact. What the file holds besides its container format (plan_file.h):
//
//   graph        the chosen graph in text form (graph/text.h); tensors above 16 elements as @index
//   baseline     the unmodified (normalised) graph in the same form, for `bench --baseline`; may be absent
//   tensors      plan::TensorTable: type and place of each @index; both graphs share bytes where tensors are equal
//   weights      raw row-major tensor bytes, each tensor at a multiple of 64
//   info         plan::PlanInfo
//   engines      plan::EngineTable: what algorithms of libraries stood for (plan_engines.h); absent where the names alone say it
//   kernels      plan::KernelTable: what mends the graph's wrong boxes, as text (plan_kernels.h); absent where nothing is mended
//   certificate  plan::CertificateProto (verifier/); may be absent. Its draws are fresh each time, so that "same inputs, same
//                bytes" holds for the other sections only: see PlanHeader::content_hash
//
// Protobuf sections are serialised deterministically. Plans are data: reading one executes nothing, and a damaged or hostile
// file gives InvalidArgument.
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
  /// Same input and output names and types as `graph`; a graph without nodes where the plan carries none.
  Graph baseline;
  plan::PlanInfo info;
  /// Of `graph`: for nodes that info.algorithms names.
  StoredEngines engines;
  std::vector<PlanKernel> kernels;
  /// A serialised plan::CertificateProto; empty: not certified.
  std::string certificate_bytes;
  /// The file that the tensors refer into; null: they lie in memory.
  std::shared_ptr<const FileMapping> file = nullptr;
};

/// What `inspect` needs: no weights are read.
struct PlanHeader {
  std::vector<SectionEntry> sections;
  /// SHA-256 over names and hashes of all sections but the certificate: equal for equal optimizations.
  std::string content_hash;
  plan::PlanInfo info;
  std::vector<PlanKernel> kernels;
  std::string certificate_bytes;
  std::string graph_text;
  /// Members of bundles only (plan_bundle.h).
  NamedShapes inputs;
};

/// Atomically replaces `path` (see WriteSections). Sets info.format_version in the file. InvalidArgument when the plan would
/// not be readable (baseline of other types, algorithms, engines or kernels of nodes that are not there).
absl::Status WritePlan(const Plan& plan, const std::string& path);

/// Maps the file, verifies every section hash, parses and checks both graphs. Tensors refer into the mapping, which lives as
/// long as one of them. NotFound and the like for the file, InvalidArgument for its content, a bundle's (plan_bundle.h) included.
absl::StatusOr<Plan> ReadPlan(const std::string& path);
/// The same of bytes in memory, kept alive by `owner` and aligned to 64 bytes (a copy is made of unaligned ones).
absl::StatusOr<Plan> ParsePlan(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

/// Header, info, kernels and certificate; verifies the hashes of the sections it reads.
absl::StatusOr<PlanHeader> ReadPlanHeader(const std::string& path);

/// InvalidArgument naming both when the plan was made for another backend or another machine (instruction set, library
/// versions) than `backend` on this one.
absl::Status CheckTarget(const plan::PlanInfo& info, const Backend& backend);

}  // namespace mendel

#endif  // MENDEL_RUNTIME_PLAN_H_
