// The backend "cpu": oneDNN for convolutions, matrix products, pools and normalizations, own
// kernels for the rest.

#include "runtime/backend.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <utility>

#include "base/status.h"
#include "kernels/cpu/kernels/low_precision.h"
#include "kernels/cpu/kernels/winograd.h"
#include "kernels/cpu/lowering/code_function.h"
#include "kernels/cpu/lowering/conv_layout.h"
#include "kernels/cpu/lowering/fold_cache.h"
#include "kernels/cpu/lowering/integer_product.h"
#include "kernels/cpu/lowering/layout_regions.h"
#include "kernels/cpu/lowering/lower.h"
#include "kernels/cpu/lowering/lower_attention.h"
#include "kernels/cpu/lowering/lower_depthwise.h"
#include "kernels/cpu/lowering/lower_direct.h"
#include "kernels/cpu/lowering/strip_claims.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

bool HasEmptyTensor(const Graph& graph, int32_t node) {
  const auto empty = [](const TensorType& type) { return NumElements(type) == 0; };
  const std::vector<TensorType> inputs = graph.InputTypes(node);
  const std::vector<TensorType>& outputs = graph.node(node).outputs;
  return std::any_of(inputs.begin(), inputs.end(), empty) ||
         std::any_of(outputs.begin(), outputs.end(), empty);
}

absl::Status LowerAlone(Lowering& lowering, int32_t node) {
  const LowerNode special = FindLowering(lowering.graph().node(node).op->name);
  if (special != nullptr && !HasEmptyTensor(lowering.graph(), node)) {
    MENDEL_ASSIGN_OR_RETURN(const bool done, special(lowering, node));
    if (done) return absl::OkStatus();
  }
  return LowerDefinition(lowering, node);
}

/// Lowers the members of a group one by one, when they could not be lowered together.
absl::Status LowerSingly(Lowering& lowering, const Group& group) {
  for (int32_t node : group.nodes) {
    MENDEL_ASSIGN_OR_RETURN(const bool done, LowerElementwise(lowering, std::span(&node, 1)));
    if (!done) MENDEL_RETURN_IF_ERROR(LowerAlone(lowering, node));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Program> LowerGraph(const Graph& graph, const CompileOptions& options) {
  Lowering lowering(graph, options);
  std::set<int32_t> unread;
  std::vector<std::optional<Group>> groups = FindGroups(graph, lowering.folded(), options, unread);
  std::vector<bool> grouped(graph.nodes().size(), false);
  for (const std::optional<Group>& group : groups) {
    if (!group.has_value()) continue;
    for (int32_t node : group->nodes) grouped[static_cast<size_t>(node)] = true;
  }
  const StripClaims claims = FindStripClaims(lowering, groups);
  PrepareSources(lowering, claims.nodes, groups);  // their nodes stay marked as grouped
  std::set<int32_t> claimed = ClaimAttention(lowering, claims.nodes, groups);
  claimed.merge(ClaimExpansions(lowering, claims.nodes, groups));
  claimed.merge(unread);
  claimed.merge(ClaimMeans(lowering, claims.nodes, groups));
  MarkNarrow(lowering, claims.nodes, groups);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const int32_t id = static_cast<int32_t>(i);
    if (lowering.folded().IsConstant({id, 0}) || IsInput(graph.node(id)) ||
        claims.nodes.count(id) != 0)
      continue;
    if (claimed.count(id) != 0) continue;
    if (const auto patch = claims.by_patch.find(id);
        patch != claims.by_patch.end() && !HasEmptyTensor(graph, id)) {
      LowerPatch(lowering, id, patch->second);
      continue;
    }
    if (!groups[i].has_value()) {
      if (!grouped[i]) MENDEL_RETURN_IF_ERROR(LowerAlone(lowering, id));
      continue;
    }
    if (groups[i]->function != nullptr) {
      MENDEL_RETURN_IF_ERROR(LowerCodeFunction(lowering, *groups[i]));
      continue;
    }
    absl::StatusOr<bool> done = groups[i]->contraction
                                    ? LowerContraction(lowering, *groups[i])
                                    : LowerElementwise(lowering, groups[i]->nodes);
    MENDEL_RETURN_IF_ERROR(done.status());
    if (!*done) MENDEL_RETURN_IF_ERROR(LowerSingly(lowering, *groups[i]));
  }
  return lowering.Finish();
}

namespace {

std::string CpuModel() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(':');
    if (line.compare(0, 10, "model name") == 0 && colon != std::string::npos)
      return line.substr(std::min(line.size(), colon + 2));
  }
  return "unknown";
}

std::string InstructionSet() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
      return "sse41";
    case dnnl::cpu_isa::avx:
      return "avx";
    case dnnl::cpu_isa::avx2:
      return "avx2";
    case dnnl::cpu_isa::avx2_vnni:
      return "avx2_vnni";
    case dnnl::cpu_isa::avx512_core:
      return "avx512_core";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "avx512_core_bf16";
    case dnnl::cpu_isa::avx512_core_amx:
      return "avx512_core_amx";
    default:
      return Cat("isa ", static_cast<int>(dnnl::get_effective_cpu_isa()));
  }
}

class CpuBackend : public Backend {
 public:
  std::string_view name() const override { return "cpu"; }

  absl::Status Probe() const override {
    try {
      Engine();
      return absl::OkStatus();
    } catch (const dnnl::error& error) {
      return absl::UnavailableError(Cat("oneDNN: ", error.what()));
    }
  }

  std::string Identity() const override {
    const dnnl_version_t* version = dnnl_version();
    std::string identity = Cat("cpu; ", CpuModel(), "; ", InstructionSet(), "; oneDNN ",
                               version->major, ".", version->minor, ".", version->patch);
    // This version changes with the speed of the kernels, because their measurements are stored.
    if (const WinogradIsa* isa = WinogradIsaHere(); isa != nullptr)
      identity +=
          Cat("; winograd ", isa->name, " 5; strips 1; direct 7; attention 2; operators 16");
    for (const char* variable : {"OMP_PROC_BIND", "OMP_PLACES", "OMP_WAIT_POLICY",
                                 "GOMP_CPU_AFFINITY", "GOMP_SPINCOUNT", "OMP_DYNAMIC"}) {
      if (const char* value = std::getenv(variable); value != nullptr)
        identity += Cat("; ", variable, "=", value);
    }
    return identity;
  }

  std::string Isa() const override { return InstructionSet(); }
  std::shared_ptr<void> KeepWeights() const override { return KeepFoldedValues(); }
  bool ThreadsCanBePinned() const override { return true; }

  absl::Status Supports(Numerics numerics) const override {
    if (numerics == Numerics::kInt8) {
      if (MultipliesInt8()) return absl::OkStatus();
      return Unsupported("this machine does not multiply in int8 (", InstructionSet(),
                         "; AVX2 is needed)");
    }
    if (numerics != Numerics::kBf16 && numerics != Numerics::kHigh)
      return Backend::Supports(numerics);
    if (MultipliesBf16()) return absl::OkStatus();
    return Unsupported("this machine does not multiply in bf16 (", InstructionSet(),
                       "; AVX512_BF16 or AMX is needed)");
  }

  std::vector<std::string> Algorithms(const Graph& graph, int32_t node,
                                      Numerics numerics) const override {
    try {
      return ConvAlgorithms(graph, node, numerics);
    } catch (const dnnl::error&) {
      return {};
    }
  }

  /// Algorithms form kinds by layout. Calls of one kind follow each other without conversions and
  /// compute parts of concatenations in place. They may win together where each alone only ties.
  std::string AlgorithmKind(std::string_view algorithm) const override {
    return LayoutKind(algorithm);
  }
  std::vector<std::vector<int32_t>> KindRegions(const Graph& graph,
                                                const std::set<int32_t>& nodes) const override {
    return LayoutRegions(graph, nodes);
  }

  absl::StatusOr<std::unique_ptr<Executable>> Compile(
      const Graph& graph, const CompileOptions& options) const override {
    if (options.threads < 1)
      return InvalidInput("threads must be at least 1, not ", options.threads);
    if (!options.cpus.empty() && options.cpus.size() != static_cast<size_t>(options.threads)) {
      return InvalidInput(options.cpus.size(), " CPUs are named for ", options.threads, " threads");
    }
    const ThreadScope threads(options.threads);  // scratchpads depend on the number of threads
    try {
      MENDEL_ASSIGN_OR_RETURN(Program program, LowerGraph(graph, options));
      return MakeExecutable(std::move(program));
    } catch (const dnnl::error& error) {
      return InternalError("cpu backend: oneDNN: ", error.what(), " (", error.status, ")");
    }
  }
};

const Backend* Make() { return new CpuBackend; }

MENDEL_REGISTER_BACKEND(&Make);

}  // namespace
}  // namespace mendel::cpu
