// Faults: a process that submits, claims, finishes and uploads is killed at random moments; disks
// are full or read-only. Acknowledged data must be there afterwards, and no partial write may be
// visible.
//
// MENDEL_FAULT_MOMENTS (20) and MENDEL_FAULT_SEED (1) choose the number and the moments.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "base/hash.h"
#include "base/random.h"
#include "base/status.h"
#include "server/store/blob_store.h"
#include "server/store/conformance.h"

namespace mendel::server {
namespace {

using Code = absl::StatusCode;
using std::chrono::steady_clock;

int64_t Setting(const char* name, int64_t usual) {
  const char* text = std::getenv(name);
  return text == nullptr ? usual : std::atoll(text);
}

std::string RandomBytes(size_t size, Rng& rng) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(rng.Next());
  return bytes;
}

std::string NewUuid(Rng& rng) {
  std::string uuid = "xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx";
  for (char& c : uuid) c = c == 'x' ? "0123456789abcdef"[rng.Below(16)] : c;
  return uuid;
}

struct Stores {
  std::unique_ptr<JobStore> jobs;
  std::unique_ptr<BlobStore> blobs;
};

absl::StatusOr<Stores> OpenStores(const std::string& folder, const Clock& clock) {
  Stores stores;
  MENDEL_ASSIGN_OR_RETURN(stores.jobs, OpenSqliteStore(folder + "/jobs.sqlite", clock));
  MENDEL_ASSIGN_OR_RETURN(stores.blobs, OpenBlobStore(folder, {}, clock));
  return stores;
}

/// The process that will be killed. It reports every acknowledgement of a store at once, one line
/// each, in a single write.
class Victim {
 public:
  Victim(const std::string& folder, const Clock& clock, uint64_t seed, int acknowledgements)
      : stores_(*OpenStores(folder, clock)), folder_(folder), rng_(seed), out_(acknowledgements) {}

  [[noreturn]] void Run() {
    for (;;) {
      switch (rng_.Below(4)) {
        case 0:
          Submit();
          break;
        case 1:
          Upload();
          break;
        default:
          Work();
          break;
      }
    }
  }

 private:
  void Report(const std::string& line) const {
    const std::string text = line + "\n";
    if (write(out_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) _exit(4);
  }
  static void Demand(const absl::Status& status) {
    if (!status.ok()) _exit(5);
  }

  void Submit() {
    const v1::JobSpec spec = SpecOf(rng_.Next());
    const std::string client = Cat("client", rng_.Below(3));
    const auto job = stores_.jobs->Submit(spec, client, NewUuid(rng_), 0, {});
    Demand(job.status());
    Report("job " + job->job.name());
  }

  void Upload() {
    const std::string bytes = RandomBytes(rng_.Below(200'000), rng_);
    const BlobId blob = {Sha256Hex(bytes), static_cast<int64_t>(bytes.size())};
    const std::string name = Cat("uploads/", NewUuid(rng_), "/", BlobName(blob));
    const auto writer = stores_.blobs->OpenUpload(*ParseUploadName(name), 0);
    Demand(writer.status());
    while ((*writer)->offset() < blob.size) {
      Demand((*writer)->Append(
          bytes.substr(static_cast<size_t>((*writer)->offset()), 1 + rng_.Below(60'000))));
      Demand((*writer)->Commit());
      Report(Cat("committed ", name, " ", (*writer)->offset()));
    }
    Demand((*writer)->Finish());
    Report(Cat("blob ", BlobName(blob)));
    v1::Model model;
    model.set_name("models/" + blob.sha256);
    model.add_files()->mutable_digest()->set_sha256(blob.sha256);
    model.mutable_files(0)->mutable_digest()->set_size_bytes(blob.size);
    Demand(stores_.jobs->PutModel(model).status());
    Report("model " + model.name() + " " + BlobName(blob));
  }

  void Work() {
    const auto claimed = stores_.jobs->Claim("victim", 1, {});
    Demand(claimed.status());
    if (!claimed->has_value()) return Submit();
    const std::string name = (*claimed)->job.name();
    const int64_t fence = (*claimed)->fence;
    v1::JobEvent event;
    event.mutable_progress()->set_candidates(static_cast<int64_t>(rng_.Below(100)));
    Demand(stores_.jobs->AppendEvent(name, fence, event));
    if (rng_.Below(5) == 0) return Demand(stores_.jobs->Release(name, fence, false));
    std::ofstream(folder_ + "/made", std::ios::binary) << RandomBytes(rng_.Below(50'000), rng_);
    const auto blob = stores_.blobs->Adopt(folder_ + "/made", "");
    Demand(blob.status());
    Outcome outcome;
    outcome.state = v1::JOB_STATE_SUCCEEDED;
    outcome.plan.emplace();
    outcome.plan->set_name("plans/" + blob->sha256);
    outcome.plan->set_blob(BlobName(*blob));
    Demand(stores_.jobs->Finish(name, fence, outcome));
    Report("plan " + outcome.plan->name() + " " + BlobName(*blob) + " " + name);
  }

  Stores stores_;
  const std::string folder_;
  Rng rng_;
  const int out_;
};

/// Runs a victim until a random moment; returns its reports.
std::vector<std::string> KillAtRandom(const std::string& folder, const Clock& clock, Rng& rng) {
  std::array<int, 2> ends = {};
  EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const uint64_t seed = rng.Next();
  const int pid = InChild([&]() -> int { Victim(folder, clock, seed, ends[1]).Run(); });
  close(ends[1]);
  // The victim is killed a random moment after a number of acknowledgements, however long they
  // take; one in eight is killed while it opens the stores.
  const auto wanted = static_cast<int64_t>(rng.Below(8) == 0 ? 0 : 1 + rng.Below(40));
  std::string description;
  std::array<char, 65536> buffer;
  ssize_t got = 1;
  while (got > 0 && std::count(description.begin(), description.end(), '\n') < wanted) {
    got = read(ends[0], buffer.data(), buffer.size());
    description.append(buffer.data(), static_cast<size_t>(std::max<ssize_t>(got, 0)));
  }
  std::this_thread::sleep_for(std::chrono::microseconds(rng.Below(5'000)));
  kill(pid, SIGKILL);
  while ((got = read(ends[0], buffer.data(), buffer.size())) > 0)
    description.append(buffer.data(), static_cast<size_t>(got));
  close(ends[0]);
  EXPECT_EQ(WaitForChild(pid), -SIGKILL) << "the process ended by itself, by a refusal of a store";
  std::vector<std::string> lines;
  std::istringstream stream(description);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Compares one acknowledged line with the stores.
void ExpectKept(const std::string& line, Stores& stores) {
  std::istringstream words(line);
  std::string kind;
  std::string name;
  std::string more;
  std::string job;
  words >> kind >> name >> more >> job;
  if (kind == "job") {
    EXPECT_TRUE(stores.jobs->GetJob(name).ok()) << line;
  } else if (kind == "blob") {
    EXPECT_TRUE(stores.blobs->Contains(*ParseBlobName(name))) << line;
  } else if (kind == "committed") {
    const auto status = stores.blobs->Status(*ParseUploadName(name));
    EXPECT_TRUE(status.ok() && status->committed >= std::stoll(more))
        << line << ": " << status.status();
  } else {
    EXPECT_TRUE(kind == "model" ? stores.jobs->GetModel(name).ok()
                                : stores.jobs->GetPlan(name).ok())
        << line;
    EXPECT_TRUE(stores.blobs->Contains(*ParseBlobName(more))) << line;
    EXPECT_TRUE(job.empty() || stores.jobs->GetJob(job)->job.state() == v1::JOB_STATE_SUCCEEDED)
        << line;
  }
}

TEST(Faults, KilledAtAnyMomentNothingIsLost) {
  const int64_t moments = Setting("MENDEL_FAULT_MOMENTS", 20);
  const int64_t seed = Setting("MENDEL_FAULT_SEED", 1);
  Rng rng(static_cast<uint64_t>(seed));
  const TestClock clock;
  std::optional<TestFolder> folder;
  std::vector<std::string> acknowledged;
  size_t kept = 0;
  double slowest = 0;
  for (int64_t moment = 0; moment < moments; ++moment) {
    // A folder serves for several kills. All its content is checked after each, so it must not grow
    // forever.
    if (moment % 10 == 0) {
      folder.emplace();
      kept += std::exchange(acknowledged, {}).size();
    }
    const std::string where = Cat("MENDEL_FAULT_SEED=", seed, ", moment ", moment);
    SCOPED_TRACE(where);
    for (std::string& line : KillAtRandom(folder->path(), clock, rng))
      acknowledged.push_back(std::move(line));
    const auto start = steady_clock::now();
    auto stores = OpenStores(folder->path(), clock);
    ASSERT_TRUE(stores.ok()) << stores.status();
    ASSERT_TRUE(stores->jobs->ExpireLeases(clock.WallMicros(), 1'000'000).ok());
    slowest = std::max(slowest, std::chrono::duration<double>(steady_clock::now() - start).count());
    EXPECT_EQ(*stores->jobs->Check(), std::vector<std::string>());
    EXPECT_EQ(*stores->blobs->Check(), std::vector<std::string>());
    for (const std::string& line : acknowledged) ExpectKept(line, *stores);
    if (testing::Test::HasFailure()) return;
  }
  kept += acknowledged.size();
  std::printf("%lld moments, %zu acknowledged writes kept, slowest recovery %.3f s\n",
              static_cast<long long>(moments), kept, slowest);
  EXPECT_GT(static_cast<int64_t>(kept), moments) << "the victims did next to nothing";
}

/// Mounts a tiny file system of this process alone. False where that is not allowed.
bool MountTiny(const std::string& folder, const char* size) {
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return mount("tmpfs", folder.c_str(), "tmpfs", 0, size) == 0;
}

/// Fills the disk through both stores, frees it again and continues. Returns 0, or the number of
/// the failed step.
int FillTheDisk(const std::string& folder, const std::function<void()>& free_space) {
  const TestClock clock;
  auto stores = OpenStores(folder, clock);
  if (!stores.ok()) return 10;
  Rng rng(1);
  const std::string bytes = RandomBytes(3'000'000, rng);
  const UploadId upload = {NewUuid(rng), {Sha256Hex(bytes), static_cast<int64_t>(bytes.size())}};
  auto writer = stores->blobs->OpenUpload(upload, 0);
  if (!writer.ok()) return 11;
  const absl::Status full = (*writer)->Append(bytes);
  if (full.code() != Code::kResourceExhausted) return 12;
  // Bytes written so far stay.
  const int64_t written = (*writer)->offset();
  if (!(*writer)->Commit().ok() || stores->blobs->Status(upload)->committed != written ||
      written == 0)
    return 13;
  std::vector<std::string> names;
  absl::Status refused;
  for (int i = 0; i < 20'000 && refused.ok(); ++i) {
    const auto job = stores->jobs->Submit(SpecOf(1), std::string(2'000, 'c'), "", 0, {});
    refused = job.status();
    if (job.ok()) names.push_back(job->job.name());
  }
  if (refused.code() != Code::kResourceExhausted) return 14;
  for (const std::string& name : names) {
    if (!stores->jobs->GetJob(name).ok()) return 15;
  }
  free_space();
  if (!stores->jobs->Submit(SpecOf(1), "c", "", 0, {}).ok()) return 16;
  if (!(*writer)->Append(std::string_view(bytes).substr(static_cast<size_t>(written))).ok() ||
      !(*writer)->Finish().ok())
    return 17;
  stores = OpenStores(folder, clock);
  if (!stores.ok()) return 18;
  if (!stores->jobs->Check()->empty() || !stores->blobs->Check()->empty() ||
      !stores->blobs->Contains(upload.blob))
    return 19;
  const auto counts = stores->jobs->CountJobs();
  return counts.ok() && counts->at(v1::JOB_STATE_PENDING) == static_cast<int64_t>(names.size()) + 1
             ? 0
             : 20;
}

TEST(Faults, FullDiskLosesNothing) {
  const TestFolder folder;
  constexpr int kCannotMount = 77;
  const int code = WaitForChild(InChild([&] {
    if (!MountTiny(folder.path(), "size=5m")) return kCannotMount;
    const std::string filler = folder.path() + "/filler";
    std::ofstream(filler) << std::string(3'500'000, 'f');
    return FillTheDisk(folder.path(), [&] { std::filesystem::remove(filler); });
  }));
  if (code == kCannotMount)
    GTEST_SKIP()
        << "SKIP: this machine lets nobody mount a tmpfs; the file size limit is tested alone";
  EXPECT_EQ(code, 0);
}

TEST(Faults, FileSizeLimitLosesNothing) {
  const TestFolder folder;
  EXPECT_EQ(WaitForChild(InChild([&] {
              std::signal(SIGXFSZ, SIG_IGN);
              rlimit limit = {};
              getrlimit(RLIMIT_FSIZE, &limit);
              const rlim_t before = limit.rlim_cur;
              limit.rlim_cur = 1'000'000;
              setrlimit(RLIMIT_FSIZE, &limit);
              return FillTheDisk(folder.path(), [&] {
                limit.rlim_cur = before;
                setrlimit(RLIMIT_FSIZE, &limit);
              });
            })),
            0);
}

TEST(Faults, ReadOnlyFolderIsRefused) {
  const TestFolder folder;
  const TestClock clock;
  ASSERT_TRUE(OpenBlobStore(folder.path() + "/old", {}, clock).ok());
  ASSERT_EQ(chmod((folder.path() + "/old").c_str(), 0555), 0);
  ASSERT_EQ(chmod(folder.path().c_str(), 0555), 0);
  EXPECT_EQ(WaitForChild(InChild([&] {
              if (geteuid() == 0 && setuid(65534) != 0) return 3;
              return int{OpenBlobStore(folder.path() + "/new", {}, clock).status().code() !=
                         Code::kPermissionDenied} +
                     2 * int{OpenBlobStore(folder.path() + "/old", {}, clock).status().code() !=
                             Code::kPermissionDenied};
            })),
            0);
  ASSERT_EQ(chmod(folder.path().c_str(), 0700), 0);
}

}  // namespace
}  // namespace mendel::server
