// The container of plans and of bundles of plans: a versioned header, then named sections whose
// hashes the header holds. Data only.
//
//   offset 0   magic "MENDELPL"
//          8   u32 format version (1: a plan, 2: a bundle), u32 number of sections (1 to
//          MaxSections of the version)
//         16   SHA-256 of the table that follows (32 bytes)
//         48   table, one entry a section: name (16 bytes, zero-padded), u64 offset, u64 size,
//         section hash (32 bytes)
//
// Sections follow in table order, each at the next multiple of 64 bytes (padding is zero when
// written and ignored when read); the file ends with the last one. All numbers are little-endian. A
// section hash is the SHA-256 of the SHA-256 digests of the section's chunks of 4 MiB, so that
// large sections are hashed on several threads.
#ifndef MENDEL_RUNTIME_PLAN_FILE_H_
#define MENDEL_RUNTIME_PLAN_FILE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace mendel {

inline constexpr uint32_t kPlanFileVersion = 1;
inline constexpr uint32_t kBundleFileVersion = 2;
inline constexpr size_t kSectionAlignment = 64;
/// Members of a bundle; its sections are these and the weights.
inline constexpr size_t kMaxMembers = 64;
constexpr size_t MaxSections(uint32_t version) {
  return version == kBundleFileVersion ? kMaxMembers + 1 : 16;
}

using Digest = std::array<std::byte, 32>;

/// Tree hash of `bytes` as above; uses ParallelFor.
Digest SectionHash(std::span<const std::byte> bytes);
/// 64 lower-case hexadecimal digits.
std::string DigestHex(const Digest& digest);

struct SectionEntry {
  std::string name;
  uint64_t offset = 0;
  uint64_t size = 0;
  Digest hash{};
};

/// Offset of the first byte at or after `offset` that a section may start at.
inline uint64_t AlignSection(uint64_t offset) {
  return (offset + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
}

/// A section to be written: its bytes are those of `pieces` one after the other (not copied; they
/// must outlive the call).
struct SectionData {
  std::string name;
  std::vector<std::span<const std::byte>> pieces;
};

/// Header and table for sections of these sizes and hashes, in order; fills in the offsets.
std::vector<std::byte> EncodeHeader(std::vector<SectionEntry>& entries,
                                    uint32_t version = kPlanFileVersion);

/// Reads and checks header and table of a file of `file_size` bytes that starts with `bytes`:
/// magic, version, table hash, names, order and bounds. Does not hash the sections. InvalidArgument
/// says what is wrong, another version than `version` included.
absl::StatusOr<std::vector<SectionEntry>> DecodeHeader(std::span<const std::byte> bytes,
                                                       uint64_t file_size,
                                                       uint32_t version = kPlanFileVersion);

/// True when `bytes` begin as a bundle does; whether it is one, DecodeHeader reports.
bool IsBundle(std::span<const std::byte> bytes);

/// InvalidArgument naming the section when its bytes do not have the hash of `entry` (a damaged
/// file).
absl::Status CheckSection(const SectionEntry& entry, std::span<const std::byte> bytes);

/// Pages of a file, mapped for reading until the object ends.
class FileMapping {
 public:
  /// Takes over a private, read-only mapping.
  FileMapping(const void* base, size_t size) : base_(base), size_(size) {}
  ~FileMapping();
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;

  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(base_), size_}; }
  /// Takes the pages out of the process; whoever reads one gets it from the file again.
  /// Thread-safe.
  void ReleasePages() const;

 private:
  const void* base_;
  size_t size_;
};

/// A file mapped for reading. The file must not be truncated while it is mapped (replace plans by
/// rename, as WriteSections does). NotFound, PermissionDenied or InvalidArgument (not a regular
/// file).
struct MappedPlan {
  std::span<const std::byte> bytes;
  std::shared_ptr<const FileMapping> owner;  ///< null: the file is empty
};
absl::StatusOr<MappedPlan> MapPlanFile(const std::string& path);

/// True where the file can be read and begins as plans and bundles do.
bool IsPlanFile(const std::string& path);

/// Writes `sections` to `path`: a temporary file beside it, fsync, rename, fsync of the folder.
/// Either the old or the whole new file is at `path`, whatever happens meanwhile. Same sections,
/// same bytes.
absl::Status WriteSections(const std::vector<SectionData>& sections, const std::string& path,
                           uint32_t version = kPlanFileVersion);

/// The file that WriteSections would write, in memory: small plans without weights.
std::vector<std::byte> JoinSections(const std::vector<SectionData>& sections);

}  // namespace mendel

#endif  // MENDEL_RUNTIME_PLAN_FILE_H_
