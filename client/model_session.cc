#include "client/model_session.h"

#include <set>
#include <utility>
#include <vector>

#include "base/status.h"
#include "optimizer/normalize.h"
#include "runtime/numerics.h"
#include "runtime/quantized.h"

namespace mendel {

absl::StatusOr<std::unique_ptr<BundleSession>> LoadModelSession(const std::string& path,
                                                                const ModelOptions& import,
                                                                SessionOptions options,
                                                                Context& context) {
  MENDEL_ASSIGN_OR_RETURN(const ImportResult model, ImportModel(path, import, context));
  std::set<std::string> faults;
  std::vector<Plan> plans(1);
  MENDEL_ASSIGN_OR_RETURN(plans[0].graph, Normalize(model.graph, {}, faults));
  plans[0].info.mutable_target()->set_backend("cpu");
  plans[0].info.mutable_target()->set_numerics(
      std::string(NumericsName(NumericsFor(plans[0].graph, Numerics::kDefault))));
  options.retune = true;
  return BundleSession::Create(std::move(plans), options);
}

}  // namespace mendel
