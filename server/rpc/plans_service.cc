#include "mendel/v1/plans.grpc.pb.h"
#include "server/rpc/services.h"
#include "server/rpc/unary.h"

namespace mendel::server {
namespace {

class PlansService final : public v1::Plans::CallbackService {
 public:
  static constexpr std::string_view kService = "mendel.v1.Plans";
  explicit PlansService(Environment& env) : env_(env) {}
  MENDEL_UNARY(GetPlan, v1::GetPlanRequest, v1::Plan)
  MENDEL_UNARY(ListPlans, v1::ListPlansRequest, v1::ListPlansResponse)
  MENDEL_UNARY(RefitPlan, v1::RefitPlanRequest, google::longrunning::Operation)
  MENDEL_UNARY(DeletePlan, v1::DeletePlanRequest, google::protobuf::Empty)

 private:
  Environment& env_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakePlansService(Environment& env) {
  return std::make_unique<PlansService>(env);
}

}  // namespace mendel::server
