#include "kernels/cuda/backend/library_groups.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "base/status.h"
#include "graph/rewrite.h"

namespace mendel::cuda {
namespace {

std::string_view LibraryNameOf(std::string_view algorithm) {
  return algorithm.substr(0, algorithm.find_first_of(":-"));
}

absl::StatusOr<const CallLibrary*> LibraryOf(const Graph& graph, int32_t node,
                                             const std::string& algorithm,
                                             std::span<const CallLibrary* const> libraries) {
  const std::string_view name = LibraryNameOf(algorithm);
  std::string known;
  for (const CallLibrary* library : libraries) {
    if (library->name() == name) return library;
    known += Cat(known.empty() ? "" : ", ", library->Identity());
  }
  return InvalidInput("node '", graph.node(node).name, "' (", graph.node(node).op->name, " ", node,
                      ") is to be computed by '", algorithm,
                      "', and the libraries found here are: ", known.empty() ? "none" : known,
                      " ('mendel doctor' says what is missing)");
}

}  // namespace

std::string RankedName(std::string_view kind, size_t rank) {
  return rank == 0 ? std::string(kind) : Cat(kind, ":", rank);
}

int RankOf(std::string_view algorithm) {
  const size_t colon = algorithm.find(':');
  if (colon == std::string_view::npos) return 0;
  const std::string_view digits = algorithm.substr(colon + 1);
  int rank = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  return error == std::errc() && end == digits.data() + digits.size() && rank > 0 ? rank : -1;
}

absl::StatusOr<LibraryGroup> CallLibrary::GroupAgain(const GroupingScope& scope, int32_t node,
                                                     const std::string& algorithm, Numerics,
                                                     const StoredEngine& engine) const {
  return InvalidInput("node '", scope.graph.node(node).name, "' (", scope.graph.node(node).op->name,
                      " ", node, "), algorithm '", algorithm, "': the plan has an engine of '",
                      engine.library, "', and '", Identity(), "' takes none");
}

int32_t GroupingScope::OnlyUser(int32_t node) const {
  const std::vector<int32_t>& users = graph.users(node);
  if (users.size() != 1 || graph.IsOutput(node) || graph.node(node).outputs.size() != 1) return -1;
  const std::vector<ValueId>& read = graph.node(users[0]).inputs;
  return std::count(read.begin(), read.end(), ValueId{node, 0}) == 1 ? users[0] : -1;
}

absl::StatusOr<std::vector<LibraryGroup>> FindLibraryGroups(
    const Graph& graph, const std::vector<bool>& constant,
    const std::map<int32_t, std::string>& algorithms, Numerics numerics,
    std::span<const CallLibrary* const> libraries, std::vector<bool>& claimed,
    const EnginesByNode& engines) {
  std::vector<LibraryGroup> groups;
  const GroupingScope scope{graph, constant, claimed};
  for (const auto& [node, algorithm] : algorithms) {
    if (algorithm.empty() || claimed[static_cast<size_t>(node)]) continue;
    MENDEL_ASSIGN_OR_RETURN(const CallLibrary* library,
                            LibraryOf(graph, node, algorithm, libraries));
    const auto engine = engines.find(node);
    MENDEL_ASSIGN_OR_RETURN(
        LibraryGroup group,
        engine == engines.end()
            ? library->Group(scope, node, algorithm, numerics)
            : library->GroupAgain(scope, node, algorithm, numerics, engine->second));
    group.node = node;
    group.algorithm = algorithm;
    for (const int32_t member : group.nodes) claimed[static_cast<size_t>(member)] = true;
    groups.push_back(std::move(group));
  }
  std::sort(groups.begin(), groups.end(),
            [](const auto& a, const auto& b) { return a.result < b.result; });
  return groups;
}

absl::Status LibrariesSupport(Numerics numerics, int architecture,
                              std::span<const CallLibrary* const> libraries) {
  std::string known;
  bool multiplies = false;
  for (const CallLibrary* library : libraries) {
    multiplies = multiplies || library->Multiplies(numerics);
    known += Cat(known.empty() ? "" : ", ", library->Identity());
  }
  if (!multiplies) {
    return Unsupported("the backend 'cuda' has no kernels of the numerics class '",
                       NumericsName(numerics),
                       "' here; the libraries found are: ", known.empty() ? "none" : known);
  }
  constexpr int kAmpere = 80;  // the first with TF32 and bf16
  if (numerics == Numerics::kF16 || architecture >= kAmpere) return absl::OkStatus();
  return Unsupported("GPUs of sm_", architecture, " do not multiply in ", NumericsName(numerics),
                     ", those of sm_", kAmpere, " and newer do");
}

std::string LibraryAlgorithmKind(std::string_view algorithm,
                                 std::span<const CallLibrary* const> libraries) {
  for (const CallLibrary* library : libraries) {
    if (library->name() != LibraryNameOf(algorithm)) continue;
    const MemoryFormat form = library->FormRead(algorithm);
    const std::string format =
        form.rounded.has_value() ? std::string(DTypeName(*form.rounded)) : "";
    return form.channels_last ? Cat(format, format.empty() ? "" : " ", "channels last") : format;
  }
  return "";
}

std::vector<std::string> LibraryAlgorithms(const Graph& graph, int32_t node, Numerics numerics,
                                           std::span<const CallLibrary* const> libraries) {
  const std::vector<bool> constant = ConstantExpressions(graph);
  const std::vector<bool> claimed(constant.size(), false);
  std::vector<std::string> names;
  for (const CallLibrary* library : libraries) {
    for (std::string& name : library->Algorithms({graph, constant, claimed}, node, numerics))
      names.push_back(std::move(name));
  }
  return names;
}

}  // namespace mendel::cuda
