#include "bench/load_models.h"

#include <filesystem>
#include <fstream>

#include "base/status.h"
#include "onnx/model_builder.h"

namespace mendel {
namespace {

constexpr int kKinds = 4;
constexpr int kWrongPair = 1;
constexpr int kSearch = 3;

Tensor Weight(int variant, double changed) {
  std::vector<double> values;
  for (int i = 0; i < 12; ++i) values.push_back(i * 3 % 7 - 2.5 + variant);
  values.back() += changed;
  return Tensor::FromDoubles({DType::kF32, {3, 4}}, values);
}

/// y = x w + b
ModelBuilder Net(int variant, double changed) {
  ModelBuilder model;
  model.Input("x", {"2", "3"}).Initializer("w", Weight(variant, changed));
  model.Initializer("b",
                    Tensor::FromDoubles({DType::kF32, {4}}, std::vector<double>{1, 2, 3, 0.25}));
  model.Node("MatMul", {"x", "w"}, {"product"});
  model.Node("Add", {"product", "b"}, {"y"});
  model.Output("y");
  return model;
}

/// The same, transposed.
ModelBuilder Rewritten(int variant) {
  const std::vector<int64_t> swap = {1, 0};
  ModelBuilder model = Net(variant, 0);
  model.graph().clear_node();
  ModelBuilder::Set(model.Node("Transpose", {"x"}, {"xt"}), "perm", swap);
  ModelBuilder::Set(model.Node("Transpose", {"w"}, {"wt"}), "perm", swap);
  model.Node("MatMul", {"wt", "xt"}, {"product"});
  ModelBuilder::Set(model.Node("Transpose", {"product"}, {"back"}), "perm", swap);
  model.Node("Add", {"b", "back"}, {"y"});
  return model;
}

absl::StatusOr<std::string> Upload(ServiceClient& client, const ModelBuilder& model,
                                   const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  file << model.Bytes();
  file.close();
  if (!file) return absl::UnavailableError(Cat("cannot write ", path));
  MENDEL_ASSIGN_OR_RETURN(const v1::Model uploaded, client.Upload(path, {}));
  return uploaded.name();
}

}  // namespace

absl::StatusOr<std::vector<ModelTrio>> UploadTrios(ServiceClient& client, const std::string& folder,
                                                   int count) {
  std::vector<ModelTrio> trios(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    ModelTrio& trio = trios[static_cast<size_t>(i)];
    MENDEL_ASSIGN_OR_RETURN(trio.net, Upload(client, Net(i, 0), Cat(folder, "/net", i, ".onnx")));
    MENDEL_ASSIGN_OR_RETURN(trio.rewritten,
                            Upload(client, Rewritten(i), Cat(folder, "/rewritten", i, ".onnx")));
    MENDEL_ASSIGN_OR_RETURN(trio.wrong,
                            Upload(client, Net(i, 1), Cat(folder, "/wrong", i, ".onnx")));
  }
  return trios;
}

v1::JobSpec LoadSpec(int index, const std::vector<ModelTrio>& trios) {
  const ModelTrio& trio = trios[static_cast<size_t>(index / kKinds) % trios.size()];
  v1::JobSpec spec;
  if (index % kKinds == kSearch) {
    v1::OptimizeSpec& search = *spec.mutable_optimize();
    search.set_model(trio.net);
    search.set_threads(1);
    search.set_seed(static_cast<uint64_t>(index) + 1);
    search.mutable_budget()->mutable_time()->set_seconds(1);
    search.mutable_budget()->set_candidates(4);
    return spec;
  }
  v1::ComparePairSpec& pair = *spec.mutable_compare_pair();
  pair.set_model_a(trio.net);
  pair.set_model_b(index % kKinds == kWrongPair ? trio.wrong : trio.rewritten);
  pair.set_seed(static_cast<uint64_t>(index) + 1);
  return spec;
}

std::string WrongEnd(const v1::Job& job, int index) {
  if (job.state() != v1::JOB_STATE_SUCCEEDED) {
    return Cat(job.name(), " ended as ", v1::JobState_Name(job.state()), ": ",
               job.error().message());
  }
  if (job.attempts() != 1) return Cat(job.name(), " was begun ", job.attempts(), " times");
  if (index % kKinds == kSearch) return job.plan().empty() ? Cat(job.name(), " gave no plan") : "";
  const bool equivalent = job.verdict().kind() == v1::Verdict::KIND_EQUIVALENT;
  if (equivalent == (index % kKinds == kWrongPair)) {
    return Cat(job.name(), " has a false verdict: ", v1::Verdict::Kind_Name(job.verdict().kind()));
  }
  return "";
}

}  // namespace mendel
