// A model ready to run for any input shapes: the inputs of a run bind its symbolic dimensions, and
// the plan for these shapes is made at their first use and kept.
#ifndef MENDEL_RUNTIME_DYNAMIC_SESSION_H_
#define MENDEL_RUNTIME_DYNAMIC_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/plan_bundle.h"
#include "runtime/session.h"

namespace mendel {

/// Bounds of the plans that are kept. The plan that was used last stays, whatever its size.
struct DynamicLimits {
  size_t plans = 16;
  /// Limit on the memory of the plans. It counts activations and scratch of each plan. It counts
  /// weights once, for the largest plan, because plans share packed weights.
  int64_t bytes = int64_t{1} << 30;
};

struct DynamicUse {
  size_t plans = 0;  ///< kept now
  int64_t bytes = 0;
  int64_t hits = 0;  ///< calls that found a plan
  int64_t made = 0;
  int64_t dropped = 0;
};

/// Not thread-safe.
class DynamicSession {
 public:
  using Values = std::map<std::string, Tensor>;
  struct Specialized {
    Plan plan;
    std::set<std::string> bound;  ///< deciding inputs that are constants of the plan
  };
  /// Makes the plan for these input shapes and values of deciding inputs; its errors name the input
  /// and the dimension.
  using Specialize =
      std::function<absl::StatusOr<Specialized>(const NamedShapes&, const Values& deciding)>;
  struct Model {
    std::vector<std::string> inputs;  ///< names, in order
    std::string hash;                 ///< as in a plan's info
    /// Inputs of one element that decide which branches of the model are taken.
    std::map<std::string, TensorType> deciding = {};
    Specialize specialize;
  };

  DynamicSession(Model model, SessionOptions options, DynamicLimits limits);

  const std::vector<std::string>& inputs() const { return model_.inputs; }
  const std::map<std::string, TensorType>& deciding() const { return model_.deciding; }
  /// The session for these shapes, which is compiled if it is not kept. An input that is not named
  /// has the shape that the model gives it. `values` are those of the deciding inputs, or empty.
  /// Deciding inputs that are constants of the plan are no inputs of the session. The session lives
  /// until the next non-const call. Errors: those of `specialize` and of Session::Create.
  absl::StatusOr<Session*> ForInputs(const NamedShapes& shapes, const Values& values);
  /// Compiles `plan`, the result of a search. It replaces the plan for its input shapes. The
  /// session drops adopted plans last. InvalidArgument for a plan of
  /// another model or with other inputs.
  absl::Status Adopt(const Plan& plan);
  DynamicUse use() const;

 private:
  using Key = std::map<std::string, Shape>;
  struct Kept {
    Key key;
    Values bound;  ///< values of the inputs that the plan contains as constants
    std::unique_ptr<Session> session;
    bool adopted = false;
  };

  std::list<Kept>::iterator Find(const Key& key, const Values& values);
  /// Puts `kept` at the front and drops what exceeds the limits.
  Session* Keep(Kept kept);
  int64_t Bytes() const;

  Model model_;
  SessionOptions options_;
  DynamicLimits limits_;
  std::list<Kept> kept_;  // the most recently used first
  DynamicUse counts_;
};

}  // namespace mendel

#endif  // MENDEL_RUNTIME_DYNAMIC_SESSION_H_
