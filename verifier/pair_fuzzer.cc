// libFuzzer target of the verifier (configure with MENDEL_FUZZ): two programs in text form with a
// line
// "----" between them. Whatever parses must be verified or refused, never crash, and never end in
// an internal error; a program always equals itself.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/check.h"
#include "graph/text.h"
#include "verifier/compare.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

constexpr size_t kMaxNodes = 24;
constexpr int64_t kMaxElements = 512;
constexpr double kMaxFlops = 1e5;
constexpr double kSeconds = 2;

/// Small enough for thousands of executions a second.
bool IsSmall(const Graph& graph) {
  if (graph.nodes().size() > kMaxNodes || graph.outputs().empty()) return false;
  double flops = 0;
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node& node = graph.nodes()[i];
    for (const TensorType& type : node.outputs) {
      if (NumElements(type) > kMaxElements) return false;
    }
    if (IsInput(node)) continue;
    flops += WithView(graph, static_cast<int32_t>(i),
                      [&](const NodeView& view) { return CostOf(*node.op, view).flops; });
  }
  return flops <= kMaxFlops;
}

void CheckStatus(const absl::Status& status) {
  MENDEL_CHECK(status.code() != absl::StatusCode::kInternal);
}

void Verify(const Graph& a, const Graph& b, WeightMode weights) {
  VerifierOptions verifier;
  verifier.weights = weights;
  verifier.deadline = Deadline::After(kSeconds);
  const auto certificate = Certify(a, b, verifier);
  CheckStatus(certificate.status());
  const auto matched = MatchInterfaces(a, b, {});
  CheckStatus(matched.status());
  if (!matched.ok()) return;
  CompareOptions options;
  options.verifier = verifier;
  options.witness.deadline = verifier.deadline;
  options.witness.max_candidates = 4;
  options.witness.max_precision_bits = 256;
  const auto report = ComparePrograms(a, matched->graph, options);
  CheckStatus(report.status());
  if (certificate.ok() && report.ok())
    MENDEL_CHECK(report->verdict != Verdict::kDifferent && report->verdict != Verdict::kPartial);
}

}  // namespace
}  // namespace mendel

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const mendel::WeightMode weights =
      data[0] % 2 == 0 ? mendel::WeightMode::kSymbolic : mendel::WeightMode::kExact;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t seam = text.find("\n----\n");
  const auto a = mendel::ParseGraph(text.substr(0, seam));
  if (!a.ok() || !mendel::IsSmall(*a)) return 0;
  if (seam == std::string_view::npos) {
    mendel::Verify(*a, *a, weights);
    return 0;
  }
  const auto b = mendel::ParseGraph(text.substr(seam + 6));
  if (b.ok() && mendel::IsSmall(*b)) mendel::Verify(*a, *b, weights);
  return 0;
}
