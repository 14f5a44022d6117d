#include "client/model_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "client/facts_context.h"
#include "onnx/model_builder.h"
#include "runtime/cpu_topology.h"

namespace mendel {
namespace {

std::string ReluOf(const std::string& rows) {
  ModelBuilder model;
  model.Input("x", {rows, "4"}).Output("y");
  model.Node("Relu", {"x"}, {"y"});
  return model.model().SerializeAsString();
}

int ThreadsOfFixed(int threads) {
  const std::string bytes = ReluOf("2");
  ModelOptions import;
  import.bytes = bytes;
  FactsContext context;
  SessionOptions options;
  options.threads = threads;
  const auto session = LoadModelSession("model", import, options, context);
  if (!session.ok()) return -1;
  const auto member = (*session)->Member(0);
  return member.ok() ? (*member)->threads() : -1;
}

int ThreadsOfOpen(int threads) {
  SessionOptions options;
  options.threads = threads;
  const auto model = OpenDynamicModel("model", ReluOf("rows"), options, {});
  if (!model.ok()) return -1;
  const auto session = (*model)->ForInputs({{"x", {3, 4}}}, {});
  return session.ok() ? (*session)->threads() : -1;
}

TEST(ModelSession, NoNumberOfThreadsMeansAllPhysicalCores) {
  EXPECT_EQ(ThreadsOfFixed(0), PhysicalCores());
  EXPECT_EQ(ThreadsOfOpen(0), PhysicalCores());
}

TEST(ModelSession, AGivenNumberOfThreadsStays) {
  const int other = PhysicalCores() + 1;
  EXPECT_EQ(ThreadsOfFixed(other), other);
  EXPECT_EQ(ThreadsOfOpen(other), other);
}

}  // namespace
}  // namespace mendel
