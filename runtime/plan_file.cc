#include "runtime/plan_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/status/status.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "base/sha256_pair.h"
#include "base/status.h"

namespace mendel {
namespace {

constexpr char kPlanMagic[] = "MENDELPL";
constexpr size_t kFixedHeader = 48;
constexpr size_t kEntryBytes = 64;
constexpr size_t kNameBytes = 16;
constexpr size_t kChunk = size_t{4} << 20;

template <class T>
void Append(std::vector<std::byte>& out, T value) {
  const auto* raw = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), raw, raw + sizeof(T));
}

template <class T>
T Load(std::span<const std::byte> bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

Digest FromHex(const std::string& hex) {
  const auto nibble = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  Digest digest;
  for (size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<std::byte>(nibble(hex[2 * i]) * 16 + nibble(hex[2 * i + 1]));
  return digest;
}

/// True where chunks c and c + 1 of one piece were hashed side by side.
bool HashPair(std::span<const std::byte> piece, size_t c, std::vector<Digest>& chunks) {
  if (!HasSha256Pair() || (c + 2) * kChunk > piece.size()) return false;
  const auto digests =
      Sha256Pair(piece.subspan(c * kChunk, kChunk), piece.subspan((c + 1) * kChunk, kChunk));
  chunks[c] = digests[0];
  chunks[c + 1] = digests[1];
  return true;
}

/// SectionHash of the concatenation of `pieces`, without joining them.
Digest PiecesHash(const std::vector<std::span<const std::byte>>& pieces) {
  uint64_t total = 0;
  std::vector<uint64_t> starts;
  for (const auto& piece : pieces) {
    starts.push_back(total);
    total += piece.size();
  }
  std::vector<Digest> chunks((total + kChunk - 1) / kChunk);
  const auto hash_chunk = [&](size_t c) {
    uint64_t position = static_cast<uint64_t>(c) * kChunk;
    const uint64_t end = std::min(total, position + kChunk);
    Sha256 hash;
    size_t k = static_cast<size_t>(std::upper_bound(starts.begin(), starts.end(), position) -
                                   starts.begin()) -
               1;
    for (; position < end; ++k) {
      const uint64_t skip = position - starts[k];
      const uint64_t take = std::min(end - position, pieces[k].size() - skip);
      hash.Update(pieces[k].subspan(skip, take));
      position += take;
    }
    chunks[c] = FromHex(hash.HexDigest());
  };
  // Few chunks are better hashed one a thread.
  const bool pairs = pieces.size() == 1 && static_cast<int64_t>(chunks.size()) >= 2 * Parallelism();
  const size_t step = pairs ? 2 : 1;
  ParallelFor(static_cast<int64_t>((chunks.size() + step - 1) / step), [&](int64_t number) {
    const size_t c = static_cast<size_t>(number) * step;
    if (pairs && HashPair(pieces[0], c, chunks)) return;
    for (size_t k = c; k < std::min(chunks.size(), c + step); ++k) hash_chunk(k);
  });
  Sha256 root;
  for (const Digest& chunk : chunks) root.Update(std::span<const std::byte>(chunk));
  return FromHex(root.HexDigest());
}

absl::Status SystemError(std::string_view what, const std::string& path, int error) {
  return absl::ErrnoToStatus(error, Cat(what, " ", path));
}

/// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

absl::Status WriteAll(int fd, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), std::min(bytes.size(), size_t{1} << 30));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return SystemError("cannot write", path, errno);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

/// Their places are EncodeHeader's to fill in.
std::vector<SectionEntry> EntriesOf(const std::vector<SectionData>& sections) {
  std::vector<SectionEntry> entries;
  for (const SectionData& section : sections) {
    SectionEntry entry{section.name, 0, 0, PiecesHash(section.pieces)};
    for (const auto& piece : section.pieces) entry.size += piece.size();
    entries.push_back(std::move(entry));
  }
  return entries;
}

absl::Status WriteBody(int fd, const std::vector<SectionData>& sections, uint32_t version,
                       const std::string& path) {
  std::vector<SectionEntry> entries = EntriesOf(sections);
  const std::vector<std::byte> header = EncodeHeader(entries, version);
  MENDEL_RETURN_IF_ERROR(WriteAll(fd, header, path));
  uint64_t position = header.size();
  constexpr std::array<std::byte, kSectionAlignment> kZeros{};
  for (size_t i = 0; i < sections.size(); ++i) {
    MENDEL_RETURN_IF_ERROR(
        WriteAll(fd, std::span(kZeros).first(entries[i].offset - position), path));
    for (const auto& piece : sections[i].pieces) MENDEL_RETURN_IF_ERROR(WriteAll(fd, piece, path));
    position = entries[i].offset + entries[i].size;
  }
  return absl::OkStatus();
}

/// A new file in `folder` under a name that no other writer uses; -1 with errno. (mkstemp would
/// make the plan private.)
int CreateTemporary(const std::string& folder, std::string& name) {
  static std::atomic<int> counter = 0;
  while (true) {
    name = Cat(folder, "/.mendel-", ::getpid(), "-", counter++, ".tmp");
    const int fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
}

absl::Status SyncFolder(const std::string& folder) {
  const Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || ::fsync(fd.get()) != 0)
    return SystemError("cannot sync folder", folder, errno);
  return absl::OkStatus();
}

}  // namespace

Digest SectionHash(std::span<const std::byte> bytes) {
  if (bytes.empty()) return PiecesHash({});
  return PiecesHash({bytes});
}

std::string DigestHex(const Digest& digest) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (std::byte b : digest) {
    text += kHex[std::to_integer<unsigned>(b) >> 4];
    text += kHex[std::to_integer<unsigned>(b) & 15];
  }
  return text;
}

std::vector<std::byte> EncodeHeader(std::vector<SectionEntry>& entries, uint32_t version) {
  MENDEL_CHECK(!entries.empty() && entries.size() <= MaxSections(version));
  std::vector<std::byte> table;
  uint64_t end = kFixedHeader + entries.size() * kEntryBytes;
  for (SectionEntry& entry : entries) {
    MENDEL_CHECK(!entry.name.empty() && entry.name.size() < kNameBytes);
    entry.offset = AlignSection(end);
    end = entry.offset + entry.size;
    std::array<char, kNameBytes> name{};
    std::copy(entry.name.begin(), entry.name.end(), name.begin());
    for (char c : name) Append(table, c);
    Append(table, entry.offset);
    Append(table, entry.size);
    table.insert(table.end(), entry.hash.begin(), entry.hash.end());
  }
  std::vector<std::byte> header;
  for (size_t i = 0; i < 8; ++i) Append(header, kPlanMagic[i]);
  Append(header, version);
  Append(header, static_cast<uint32_t>(entries.size()));
  const Digest hash = SectionHash(table);
  header.insert(header.end(), hash.begin(), hash.end());
  header.insert(header.end(), table.begin(), table.end());
  return header;
}

bool IsPlanFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, 8> magic{};
  return file.read(magic.data(), magic.size()) &&
         std::memcmp(magic.data(), kPlanMagic, magic.size()) == 0;
}

bool IsBundle(std::span<const std::byte> bytes) {
  return bytes.size() >= kFixedHeader && std::memcmp(bytes.data(), kPlanMagic, 8) == 0 &&
         Load<uint32_t>(bytes, 8) == kBundleFileVersion;
}

absl::StatusOr<std::vector<SectionEntry>> DecodeHeader(std::span<const std::byte> bytes,
                                                       uint64_t file_size, uint32_t version) {
  if (bytes.size() < kFixedHeader || std::memcmp(bytes.data(), kPlanMagic, 8) != 0)
    return InvalidInput("not a Mendel plan; `mendel optimize` makes one of an ONNX model");
  const uint32_t found = Load<uint32_t>(bytes, 8);
  if (found == kBundleFileVersion && version == kPlanFileVersion) {
    return InvalidInput(
        "a bundle of plans for several input shapes, where a single plan is expected");
  }
  if (found != version) {
    return InvalidInput("plan format version ", found,
                        " is not supported (this program reads version ", kPlanFileVersion,
                        ", and ", kBundleFileVersion, " for bundles)");
  }
  const uint32_t count = Load<uint32_t>(bytes, 12);
  if (count == 0 || count > MaxSections(version))
    return InvalidInput("damaged plan: ", count, " sections");
  const size_t header_size = kFixedHeader + count * kEntryBytes;
  if (bytes.size() < header_size) return InvalidInput("damaged plan: the section table is cut off");
  const std::span<const std::byte> table = bytes.subspan(kFixedHeader, count * kEntryBytes);
  if (SectionHash(table) != Load<Digest>(bytes, 16))
    return InvalidInput("damaged plan: the section table does not have its hash");
  std::vector<SectionEntry> entries;
  uint64_t end = header_size;
  for (uint32_t i = 0; i < count; ++i) {
    const size_t at = i * kEntryBytes;
    const char* name = reinterpret_cast<const char*>(table.data() + at);
    SectionEntry entry{
        std::string(name, ::strnlen(name, kNameBytes)), Load<uint64_t>(table, at + kNameBytes),
        Load<uint64_t>(table, at + kNameBytes + 8), Load<Digest>(table, at + kNameBytes + 16)};
    const bool placed = entry.offset == AlignSection(end) && entry.offset <= file_size &&
                        entry.size <= file_size - entry.offset;
    const bool repeated =
        std::any_of(entries.begin(), entries.end(),
                    [&](const SectionEntry& other) { return other.name == entry.name; });
    if (!placed || repeated || entry.name.empty())
      return InvalidInput("damaged plan: section ", i, " is misplaced or cut off");
    end = entry.offset + entry.size;
    entries.push_back(std::move(entry));
  }
  if (end != file_size)
    return InvalidInput("damaged plan: ", file_size, " bytes where the sections end at ", end);
  return entries;
}

absl::Status CheckSection(const SectionEntry& entry, std::span<const std::byte> bytes) {
  if (SectionHash(bytes) == entry.hash) return absl::OkStatus();
  return InvalidInput("damaged plan: section '", entry.name, "' does not have its hash");
}

absl::StatusOr<MappedPlan> MapPlanFile(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return SystemError("cannot open", path, errno);
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return SystemError("cannot read", path, errno);
  if (!S_ISREG(info.st_mode)) return InvalidInput(path, " is not a regular file");
  const size_t size = static_cast<size_t>(info.st_size);
  if (size == 0) return MappedPlan{};
  void* base = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (base == MAP_FAILED) return SystemError("cannot map", path, errno);
  auto owner = std::make_shared<const FileMapping>(base, size);
  return MappedPlan{owner->bytes(), std::move(owner)};
}

FileMapping::~FileMapping() { ::munmap(const_cast<void*>(base_), size_); }

void FileMapping::ReleasePages() const {
  // Nothing was ever written to them, so that nothing is lost; a kernel that will not do it only
  // leaves the memory in use.
  ::madvise(const_cast<void*>(base_), size_, MADV_DONTNEED);
}

std::vector<std::byte> JoinSections(const std::vector<SectionData>& sections) {
  std::vector<SectionEntry> entries = EntriesOf(sections);
  std::vector<std::byte> file = EncodeHeader(entries);
  for (size_t i = 0; i < sections.size(); ++i) {
    file.resize(entries[i].offset);
    for (const auto& piece : sections[i].pieces)
      file.insert(file.end(), piece.begin(), piece.end());
  }
  return file;
}

absl::Status WriteSections(const std::vector<SectionData>& sections, const std::string& path,
                           uint32_t version) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const std::string folder = parent.empty() ? "." : parent;
  std::string temporary;
  const Descriptor fd(CreateTemporary(folder, temporary));
  if (fd.get() < 0) return SystemError("cannot create a file in", folder, errno);
  absl::Status status = WriteBody(fd.get(), sections, version, path);
  if (status.ok() && ::fsync(fd.get()) != 0) status = SystemError("cannot sync", path, errno);
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0)
    status = SystemError("cannot rename to", path, errno);
  if (!status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  return SyncFolder(folder);
}

}  // namespace mendel
