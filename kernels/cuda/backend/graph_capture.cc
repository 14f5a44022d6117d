#include "kernels/cuda/backend/graph_capture.h"

#include <cstdint>
#include <vector>

#include "base/status.h"

namespace mendel::cuda {
namespace {

// Constants of cuda.h.
constexpr int kOnlyThisThread = 1;        // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
constexpr unsigned kSetDependencies = 1;  // instead of adding to those that are there

/// Puts the pieces onto the stream that captures, each after `dependencies` of its own.
class Branches {
 public:
  Branches(const Driver& driver, DriverStream* stream, const Dependencies& dependencies)
      : driver_(driver), stream_(stream), dependencies_(dependencies), ends_(dependencies.size()) {}

  absl::Status Enqueue(size_t piece, const std::function<absl::Status(size_t)>& enqueue) {
    std::vector<DriverGraphNode*> nodes;
    DriverGraphNode* none = nullptr;  // an empty list is not a null one
    for (const size_t before : dependencies_[piece])
      nodes.insert(nodes.end(), ends_[before].begin(), ends_[before].end());
    MENDEL_RETURN_IF_ERROR(driver_.Check(
        driver_.StreamUpdateCaptureDependencies(stream_, nodes.empty() ? &none : nodes.data(),
                                                nodes.size(), kSetDependencies),
        "cuStreamUpdateCaptureDependencies"));
    MENDEL_RETURN_IF_ERROR(enqueue(piece));
    int status = 0;
    uint64_t id = 0;
    DriverGraph* graph = nullptr;
    DriverGraphNode* const* last = nullptr;  // what the stream's next work would wait for
    size_t count = 0;
    MENDEL_RETURN_IF_ERROR(
        driver_.Check(driver_.StreamGetCaptureInfo(stream_, &status, &id, &graph, &last, &count),
                      "cuStreamGetCaptureInfo"));
    ends_[piece].assign(last, last + count);
    return absl::OkStatus();
  }

 private:
  const Driver& driver_;
  DriverStream* stream_;
  const Dependencies& dependencies_;
  std::vector<std::vector<DriverGraphNode*>>
      ends_;  // ends of each piece: the nodes that nothing of it follows
};

absl::Status EnqueueAll(const Driver& driver, DriverStream* stream, size_t pieces,
                        const std::function<absl::Status(size_t)>& enqueue,
                        const Dependencies* dependencies) {
  if (dependencies == nullptr) {
    for (size_t k = 0; k < pieces; ++k) MENDEL_RETURN_IF_ERROR(enqueue(k));
    return absl::OkStatus();
  }
  Branches branches(driver, stream, *dependencies);
  for (size_t k = 0; k < pieces; ++k) MENDEL_RETURN_IF_ERROR(branches.Enqueue(k, enqueue));
  return absl::OkStatus();
}

}  // namespace

absl::Status CaptureGraph(const Driver& driver, DriverStream* stream, size_t pieces,
                          const std::function<absl::Status(size_t)>& enqueue,
                          const Dependencies* dependencies, Owned<DriverGraphExec*>& captured) {
  MENDEL_RETURN_IF_ERROR(
      driver.Check(driver.StreamBeginCapture(stream, kOnlyThisThread), "cuStreamBeginCapture"));
  const absl::Status enqueued = EnqueueAll(driver, stream, pieces, enqueue, dependencies);
  // The capture ends in any case: a capturing stream can do nothing else, not even be destroyed.
  DriverGraph* made_of = nullptr;
  const int ended = driver.StreamEndCapture(stream, &made_of);
  const Owned<DriverGraph*> graph(made_of, driver.GraphDestroy);
  MENDEL_RETURN_IF_ERROR(enqueued);
  MENDEL_RETURN_IF_ERROR(driver.Check(ended, "cuStreamEndCapture"));
  DriverGraphExec* exec = nullptr;
  const int made = driver.GraphInstantiate(&exec, graph.get(), 0);
  return Keep(driver, made, "cuGraphInstantiate", exec, driver.GraphExecDestroy, captured);
}

}  // namespace mendel::cuda
