#include "client/bundle.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/status.h"
#include "client/version.h"

namespace mendel {
namespace {

constexpr uintmax_t kLargestCopy = uintmax_t{64} << 20;

}  // namespace

absl::StatusOr<std::string> WriteBundle(const std::string& parent,
                                        const std::vector<std::string>& command_line,
                                        const std::vector<std::string>& inputs,
                                        const absl::Status& error) {
  const std::filesystem::path folder =
      std::filesystem::path(parent) / Cat("mendel-bundle-", ::getpid());
  std::error_code code;
  std::filesystem::create_directory(folder, code);
  if (code) return absl::ErrnoToStatus(code.value(), Cat("cannot create ", folder.string()));
  std::ofstream report(folder / "report.txt");
  report << VersionText() << "\ncommand:";
  for (const std::string& word : command_line) report << " '" << word << "'";
  report << "\nerror: " << error.ToString() << "\n";
  for (const std::string& input : inputs) {
    const uintmax_t size = std::filesystem::file_size(input, code);
    report << "input: " << input << " (" << (code ? 0 : size) << " bytes)\n";
    if (code || size > kLargestCopy) continue;
    std::filesystem::copy_file(input, folder / std::filesystem::path(input).filename(), code);
  }
  report.close();
  if (!report) return absl::DataLossError(Cat("cannot write ", folder.string()));
  return folder.string();
}

}  // namespace mendel
