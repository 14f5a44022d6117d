// ONNX Runtime's tables, checked, with errors as statuses.
#ifndef MENDEL_CLIENT_ONNXRUNTIME_RUNTIME_API_H_
#define MENDEL_CLIENT_ONNXRUNTIME_RUNTIME_API_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status.h"
#include "client/onnxruntime/abi.h"

namespace mendel::ort {

/// The tables of one loaded ONNX Runtime, which outlive it. Threads may share one.
class RuntimeApi {
 public:
  /// Checks the version (1.23 or newer) and, by calls without effect, that members are where this
  /// library expects them. The error names the version found and the member.
  static absl::StatusOr<RuntimeApi> Open(const ApiBase* base);

  const Table* main() const { return main_; }
  const Table* ep() const { return ep_; }
  const Table* editor() const { return editor_; }
  /// The second number of the version: 23 for 1.23.2.
  int minor() const { return minor_; }

  /// The error of `status`, which is released; null is OK.
  absl::Status Take(Status* status) const;
  /// `status` for ONNX Runtime; null when it is OK.
  Status* Give(const absl::Status& status) const;

  /// Calls `member`, whose last argument receives the result.
  template <class Out, class AnyMember, class... Arguments>
  absl::StatusOr<Out> Get(AnyMember member, Arguments... arguments) const {
    Out out = {};
    MENDEL_RETURN_IF_ERROR(Take(member(main_, arguments..., &out)));
    return out;
  }

  /// The items of `object`, counted by `count`.
  template <class Item, class Count, class Items, class Object>
  absl::StatusOr<std::vector<const Item*>> List(Count count, Items items, Object object) const {
    MENDEL_ASSIGN_OR_RETURN(const size_t size, Get<size_t>(count, object));
    std::vector<const Item*> list(size);
    if (size > 0) MENDEL_RETURN_IF_ERROR(Take(items(main_, object, list.data(), size)));
    return list;
  }

  /// Writes a line to the session's log; `level` as in abi.h.
  void Log(const Logger* logger, int level, const std::string& message) const;

 private:
  const Table* main_ = nullptr;
  const Table* ep_ = nullptr;
  const Table* editor_ = nullptr;
  int minor_ = 0;
};

/// The second number of a version such as "1.23.2"; negative if it is no version 1.
int MinorVersion(std::string_view version);

}  // namespace mendel::ort

#endif  // MENDEL_CLIENT_ONNXRUNTIME_RUNTIME_API_H_
