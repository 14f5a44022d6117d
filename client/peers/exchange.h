// Tensors on their way to and from other programs, as .npy files of a folder for one run.
#ifndef MENDEL_CLIENT_PEERS_EXCHANGE_H_
#define MENDEL_CLIENT_PEERS_EXCHANGE_H_

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "graph/tensor.h"

namespace mendel {

/// A folder of the system's temporary one, removed with its files at the end.
class ExchangeFolder {
 public:
  static absl::StatusOr<std::unique_ptr<ExchangeFolder>> Make();
  ExchangeFolder(const ExchangeFolder&) = delete;
  ExchangeFolder& operator=(const ExchangeFolder&) = delete;
  ~ExchangeFolder();

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  /// Adds "name": "path" to the object `files` for every tensor. Unimplemented for dtypes that
  /// NumPy does not have.
  absl::Status Write(const std::map<std::string, Tensor>& tensors, nlohmann::ordered_json& files);

 private:
  explicit ExchangeFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

}  // namespace mendel

#endif  // MENDEL_CLIENT_PEERS_EXCHANGE_H_
