#include "client/peers/exchange.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/status.h"
#include "runtime/npy.h"

namespace mendel {

absl::StatusOr<std::unique_ptr<ExchangeFolder>> ExchangeFolder::Make() {
  std::error_code error;
  std::string path = std::filesystem::temp_directory_path(error) / "mendel-XXXXXX";
  if (error || mkdtemp(path.data()) == nullptr)
    return absl::ErrnoToStatus(errno, Cat("cannot create the folder ", path));
  return std::unique_ptr<ExchangeFolder>(new ExchangeFolder(path));
}

ExchangeFolder::~ExchangeFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

absl::Status ExchangeFolder::Write(const std::map<std::string, Tensor>& tensors,
                                   nlohmann::ordered_json& files) {
  for (const auto& [name, tensor] : tensors) {
    const std::string path = File(Cat("input", files.size(), ".npy"));
    MENDEL_RETURN_IF_ERROR(Annotate(WriteNpy(tensor, path), Cat("input '", name, "'")));
    files[name] = path;
  }
  return absl::OkStatus();
}

}  // namespace mendel
