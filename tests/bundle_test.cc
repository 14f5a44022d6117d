// A network for three batch sizes: optimized once, one file, run with each batch against float64,
// every certificate replayed.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "graph/emitter.h"
#include "graph/evaluate.h"
#include "optimizer/certificate_proto.h"
#include "optimizer/optimize_bundle.h"
#include "runtime/bundle_session.h"
#include "runtime/measure.h"

namespace mendel {
namespace {

/// Convolutions, one of them dilated, a residual add, a pool and a product; the weights outweigh
/// everything else in a plan.
Graph Network(int64_t batch) {
  Emitter e("net");
  Rng rng(21);
  const auto weight = [&](const Shape& shape, const std::string& name) {
    std::vector<double> values(static_cast<size_t>(NumElements(shape)));
    for (double& value : values) value = rng.Normal() / 8;
    return e.Constant(Tensor::FromDoubles({DType::kF32, shape}, values), name);
  };
  const auto conv = [&](ValueId x, int64_t dilation, const std::string& name) {
    return e.Op("Conv", {x, weight({24, 24, 3, 3}, "w" + name)},
                {{"strides", Ints{1, 1}},
                 {"dilations", Ints{dilation, dilation}},
                 {"pads", Ints(4, dilation)}},
                name);
  };
  const ValueId x = e.Input("x", {DType::kF32, {batch, 24, 10, 10}});
  const ValueId y = e.Op("Relu", {conv(x, 1, "first")}, {}, "active");
  const ValueId z = e.Add(y, conv(y, 2, "dilated"));
  const ValueId pooled = e.Reshape(e.Op("ReduceMean", {z}, {{"axes", Ints{2, 3}}}), {batch, 24});
  e.Output("y", e.MatMul(pooled, weight({24, 512}, "classes")));
  auto graph = e.Finish();
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

/// Largest difference, relative to the largest element of the float64 reference.
double Error(const Graph& graph, const Tensor& x, const Tensor& y) {
  const auto reference = Evaluate(graph, std::vector<HostValue>{HostValue::FromTensor(x)});
  EXPECT_TRUE(reference.ok()) << reference.status();
  const std::vector<double> wanted = (*reference)[0].ToTensor().ToDoubles(), got = y.ToDoubles();
  EXPECT_EQ(wanted.size(), got.size());
  double largest = 0, difference = 0;
  for (size_t k = 0; k < wanted.size(); ++k) {
    largest = std::max(largest, std::abs(wanted[k]));
    difference = std::max(difference, std::abs(wanted[k] - got[k]));
  }
  return difference / largest;
}

class Bundle : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/bundle_" + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
    for (const int64_t batch : {4, 1, 16}) graphs_.push_back(Network(batch));
    options_.search.max_candidates = 4;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void RunEveryBatch(const std::string& path);
  static std::vector<Plan> PlansOf(const std::vector<OptimizeResult>& results) {
    std::vector<Plan> plans;
    for (const OptimizeResult& result : results) plans.push_back(result.plan);
    return plans;
  }

  std::string folder_;
  std::vector<Graph> graphs_;
  OptimizeOptions options_;
};

/// With the file alone: every member chosen by its input, run, and its certificate replayed.
void Bundle::RunEveryBatch(const std::string& path) {
  const auto session = BundleSession::Load(path, {});
  ASSERT_TRUE(session.ok()) << session.status();
  const auto read = ReadPlans(path);
  ASSERT_TRUE(read.ok()) << read.status();
  for (size_t k = 0; k < graphs_.size(); ++k) {
    const Tensor x = RandomInputs(graphs_[k], 31 + k)[0];
    const auto member = (*session)->Choose({{"x", x.shape()}});
    ASSERT_TRUE(member.ok()) << member.status();
    EXPECT_EQ(*member, k);
    const auto compiled = (*session)->Member(*member);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    const auto y = (*compiled)->Run({{"x", x}});
    ASSERT_TRUE(y.ok()) << y.status();
    EXPECT_LT(Error(graphs_[k], x, (*y)[0]), 1e-5) << ShapeString(x.shape());
    const auto certificate = ParseCertificate((*read)[k].certificate_bytes);
    ASSERT_TRUE(certificate.ok()) << certificate.status();
    EXPECT_LE(certificate->bound_log2, -80);
    EXPECT_TRUE(Replay(graphs_[k], (*read)[k].graph, *certificate).ok());
    EXPECT_FALSE(Replay(graphs_[(k + 1) % 3], (*read)[k].graph, *certificate).ok());
  }
  EXPECT_EQ((*session)->Choose({{"x", {2, 24, 10, 10}}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(Bundle, IsOptimizedOnceAndRunsForEveryBatch) {
  const auto cache = ProfileCache::Open(folder_ + "/cache.sqlite");
  ASSERT_TRUE(cache.ok()) << cache.status();
  const auto results = OptimizeBundle(graphs_, options_, **cache);
  ASSERT_TRUE(results.ok()) << results.status();
  const std::vector<Plan> plans = PlansOf(*results);
  const std::string path = folder_ + "/bundle.plan", single = folder_ + "/single.plan",
                    again = folder_ + "/again.plan";
  ASSERT_TRUE(WritePlanBundle(plans, path).ok());

  // The same cache: nothing is measured, and all but the certificates is the same.
  options_.error_on_cache_miss = true;
  const auto warm = OptimizeBundle(graphs_, options_, **cache);
  ASSERT_TRUE(warm.ok()) << warm.status();
  ASSERT_TRUE(WritePlanBundle(PlansOf(*warm), again).ok());
  EXPECT_EQ(ReadBundleHeader(path)->content_hash, ReadBundleHeader(again)->content_hash);

  // Weights once: two more members cost less than the weights do.
  ASSERT_TRUE(WritePlan(plans[0], single).ok());
  const auto bundle_size = std::filesystem::file_size(path),
             single_size = std::filesystem::file_size(single);
  const auto weight_bytes = size_t{4} * (2 * 24 * 24 * 9 + 24 * 512);
  EXPECT_LT(bundle_size, single_size + weight_bytes / 2)
      << "a single plan has " << single_size << " bytes";

  RunEveryBatch(path);
}

}  // namespace
}  // namespace mendel
