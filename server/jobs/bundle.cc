#include "server/jobs/bundle.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "base/status.h"

namespace mendel::server {
namespace {

constexpr size_t kBlock = 512;

/// The header's bytes before its checksum count the checksum as spaces.
std::array<char, kBlock> Header(const std::string& name, size_t size) {
  std::array<char, kBlock> header{};
  const auto put = [&](size_t at, const std::string& text) {
    std::memcpy(header.data() + at, text.data(), text.size());
  };
  std::array<char, 16> octal{};
  std::snprintf(octal.data(), octal.size(), "%011zo", size);
  put(0, name.substr(0, 99));
  put(100, "0000644");
  put(108, "0000000");
  put(116, "0000000");
  put(124, octal.data());
  put(136, "00000000000");
  put(148, "        ");
  put(156, "0");
  put(257, "ustar");
  put(263, "00");
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  std::snprintf(octal.data(), octal.size(), "%06o", sum);
  put(148, std::string(octal.data()) + '\0' + ' ');
  return header;
}

}  // namespace

absl::Status WriteTar(const std::string& path,
                      const std::vector<std::pair<std::string, std::string>>& files) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  const std::array<char, kBlock> zeros{};
  for (const auto& [name, text] : files) {
    const std::array<char, kBlock> header = Header(name, text.size());
    file.write(header.data(), kBlock);
    file << text;
    file.write(zeros.data(),
               static_cast<std::streamsize>((kBlock - text.size() % kBlock) % kBlock));
  }
  file.write(zeros.data(), kBlock);
  file.write(zeros.data(), kBlock);
  file.close();
  return file ? absl::OkStatus()
              : absl::UnavailableError("the reproduction bundle cannot be written");
}

}  // namespace mendel::server
