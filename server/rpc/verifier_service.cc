#include "mendel/v1/verifier.grpc.pb.h"
#include "server/rpc/services.h"
#include "server/rpc/unary.h"

namespace mendel::server {
namespace {

class VerifierService final : public v1::Verifier::CallbackService {
 public:
  static constexpr std::string_view kService = "mendel.v1.Verifier";
  explicit VerifierService(Environment& env) : env_(env) {}
  MENDEL_UNARY(VerifyPlan, v1::VerifyPlanRequest, google::longrunning::Operation)
  MENDEL_UNARY(ComparePair, v1::ComparePairRequest, google::longrunning::Operation)

 private:
  Environment& env_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeVerifierService(Environment& env) {
  return std::make_unique<VerifierService>(env);
}

}  // namespace mendel::server
