#include "mendel/v1/models.grpc.pb.h"
#include "server/rpc/services.h"
#include "server/rpc/unary.h"

namespace mendel::server {
namespace {

class ModelsService final : public v1::Models::CallbackService {
 public:
  static constexpr std::string_view kService = "mendel.v1.Models";
  explicit ModelsService(Environment& env) : env_(env) {}
  MENDEL_UNARY(FindMissingBlobs, v1::FindMissingBlobsRequest, v1::FindMissingBlobsResponse)
  MENDEL_UNARY(CreateModel, v1::CreateModelRequest, v1::Model)
  MENDEL_UNARY(GetModel, v1::GetModelRequest, v1::Model)
  MENDEL_UNARY(ListModels, v1::ListModelsRequest, v1::ListModelsResponse)
  MENDEL_UNARY(DeleteModel, v1::DeleteModelRequest, google::protobuf::Empty)

 private:
  Environment& env_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeModelsService(Environment& env) {
  return std::make_unique<ModelsService>(env);
}

}  // namespace mendel::server
