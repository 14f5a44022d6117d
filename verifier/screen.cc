#include <utility>

#include "base/status.h"
#include "verifier/axioms/rewritten_pair.h"
#include "verifier/regions/probe.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

constexpr int kPositions = 5;  // of every output

/// Borders and middles, where wrong rewrites differ first.
int64_t Coordinate(Rng& rng, int64_t extent) {
  switch (rng.Below(6)) {
    case 0:
      return 0;
    case 1:
      return extent - 1;
    case 2:
      return extent / 2;
    case 3:
      return (extent - 1) / 2;
    default:
      return rng.Between(0, extent - 1);
  }
}

absl::StatusOr<bool> ProbesAgree(const Graph& f, const Graph& g, const VerifierOptions& options) {
  const auto joint = JoinPrograms(f, g, options.weights);
  if (joint.status().code() == absl::StatusCode::kInvalidArgument) return false;
  if (!joint.ok()) return joint.status();
  Rng rng(options.seed);
  std::vector<Probe> probes;
  const size_t count = f.outputs().size();
  for (size_t k = 0; k < count; ++k) {
    const ValueId value = joint->outputs()[k].value;
    const Shape& shape = joint->type(value).shape;
    if (value == joint->outputs()[count + k].value || NumElements(shape) == 0) continue;
    for (int position = 0; position < kPositions; ++position) {
      Box box = Box::Whole(shape);
      for (size_t d = 0; d < shape.size(); ++d) {
        box.begin[d] =
            position == 0 ? 0 : (position == 1 ? shape[d] - 1 : Coordinate(rng, shape[d]));
        box.end[d] = box.begin[d] + 1;
      }
      probes.push_back({static_cast<int>(k), std::move(box)});
    }
  }
  VerifierOptions once = options;
  once.max_tests = 1;
  MENDEL_ASSIGN_OR_RETURN(const ProbeResult result, RunProbes(*joint, probes, once, 0, rng));
  for (const std::vector<bool>& differs : result.differs) {
    for (bool differ : differs) {
      if (differ) return false;
    }
  }
  return true;
}

}  // namespace

absl::StatusOr<bool> ScreenedEqual(const Graph& f, const Graph& g, const VerifierOptions& options) {
  MENDEL_ASSIGN_OR_RETURN(const bool given, ProbesAgree(f, g, options));
  if (given) return true;
  for (const PairForm form : kPairForms) {
    MENDEL_ASSIGN_OR_RETURN(const auto both, RewriteBoth(form, f, g, options.weights));
    if (!both.has_value()) continue;
    MENDEL_ASSIGN_OR_RETURN(const bool equal, ProbesAgree(both->f, both->g, options));
    if (equal) return true;
  }
  return false;
}

}  // namespace mendel
