// The reproduction bundle of a job whose worker died: the parts of a bug report, as one file.
// Own code instead of libarchive: docs/decisions/2026-11-26-libraries.md.
#ifndef MENDEL_SERVER_JOBS_BUNDLE_H_
#define MENDEL_SERVER_JOBS_BUNDLE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace mendel::server {

/// Writes a tar archive (POSIX ustar) of small files: names of at most 99 bytes, and texts.
absl::Status WriteTar(const std::string& path,
                      const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace mendel::server

#endif  // MENDEL_SERVER_JOBS_BUNDLE_H_
