#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/hash.h"
#include "base/status.h"
#include "client/service/fake_channel.h"
#include "client/service/local_file.h"
#include "client/service/make_service_client.h"
#include "client/service/upload.h"
#include "onnx/model_builder.h"

namespace mendel {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

CallStatus Unavailable() { return {absl::UnavailableError("away"), {}}; }

class ServiceTest : public testing::Test {
 protected:
  ServiceTest() {
    fs::create_directories(folder_);
    fs::create_directories(server_.folder);
  }
  ~ServiceTest() override { fs::remove_all(folder_); }

  std::unique_ptr<ServiceClient> Client() {
    return MakeServiceClient(
        MakeFakeChannel(server_), RetryPolicy(),
        [this](double seconds) { slept_.push_back(seconds); },
        [this](const std::string& message) { reported_.push_back(message); });
  }

  /// Bytes that no piece of a file can be mistaken for another.
  static std::string Bytes(size_t size, uint64_t seed) {
    Rng rng(seed);
    std::string bytes(size, '\0');
    for (char& c : bytes) c = static_cast<char>(rng.Next());
    return bytes;
  }

  v1::Digest FileWith(const std::string& path, const std::string& bytes) {
    WriteAll(path, bytes);
    v1::Digest digest;
    digest.set_sha256(Sha256Hex(bytes));
    digest.set_size_bytes(static_cast<int64_t>(bytes.size()));
    return digest;
  }

  std::string AddPlan(const std::string& bytes) {
    v1::Plan plan;
    plan.set_name("plans/" + Sha256Hex(bytes));
    plan.set_blob(server_.AddBlob(bytes));
    server_.plans[plan.name()] = plan;
    return plan.name();
  }

  size_t Parts() const {
    size_t parts = 0;
    for (const auto& entry : fs::directory_iterator(folder_))
      parts += entry.path().extension() == ".part";
    return parts;
  }

  const std::string folder_ = testing::TempDir() + "/service-test-" + std::to_string(::getpid());
  FakeServer server_{folder_ + "/server"};
  std::vector<double> slept_;
  std::vector<std::string> reported_;
};

using RetryTest = ServiceTest;
using UploadTest = ServiceTest;
using DownloadTest = ServiceTest;
using WatchTest = ServiceTest;

TEST_F(RetryTest, OnlyWhatGrpcAllows) {
  for (int code = 1; code <= 16; ++code) {
    for (const bool info : {false, true}) {
      Retrier retrier(
          RetryPolicy(), 1, [](double) {}, nullptr);
      const CallStatus status{absl::Status(static_cast<absl::StatusCode>(code), ""),
                              info ? std::optional<double>(0.5) : std::nullopt};
      const bool wanted = status.status.code() == absl::StatusCode::kUnavailable ||
                          (info && status.status.code() == absl::StatusCode::kResourceExhausted);
      EXPECT_EQ(retrier.Again(status), wanted) << status.status << info;
    }
  }
}

TEST_F(RetryTest, WaitsGrowWithJitterAndEnd) {
  std::vector<double> waits;
  Retrier retrier(
      RetryPolicy(), 7, [&](double seconds) { waits.push_back(seconds); }, nullptr);
  while (retrier.Again(Unavailable())) {
  }
  ASSERT_GT(waits.size(), 8u);
  double sum = 0;
  double cap = 0.25;
  for (const double wait : waits) {
    EXPECT_GE(wait, 0.01);
    EXPECT_LE(wait, std::max(cap, 0.01));
    cap = std::min(2 * cap, 8.0);
    sum += wait;
  }
  EXPECT_LE(sum, 61);
  retrier.Progress();
  EXPECT_TRUE(retrier.Again(Unavailable())) << "progress starts anew";
}

TEST_F(RetryTest, TheServersWishIsALowerBound) {
  Retrier retrier(
      RetryPolicy(), 7, [this](double seconds) { slept_.push_back(seconds); }, nullptr);
  ASSERT_TRUE(retrier.Again({absl::ResourceExhaustedError("full"), 3.0}));
  EXPECT_GE(slept_[0], 3);
  EXPECT_FALSE(retrier.Again({absl::ResourceExhaustedError("full"), 3600.0}))
      << "longer than anybody waits";
}

TEST_F(RetryTest, ALostAnswerMakesNoSecondJob) {
  int calls = 0;
  server_.fault = [&](const std::string& call) {
    return call == "SubmitJob" && ++calls < 4 ? Unavailable() : CallStatus{};
  };
  const auto name = Client()->Submit({}, {});
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_EQ(server_.jobs.size(), 1u);
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(slept_.size(), 3u);
  EXPECT_THAT(reported_[0], HasSubstr("away; trying again in"));
}

TEST_F(UploadTest, GoesOnFromWhatIsCommitted) {
  const std::string bytes = Bytes(5 << 20, 1);
  const v1::Digest digest = FileWith(folder_ + "/file", bytes);
  server_.stream_fault = [](const std::string&, int64_t done) {
    return done >= 2 << 20 ? Unavailable() : CallStatus{};
  };
  const auto channel = MakeFakeChannel(server_);
  Retrier retrier(
      RetryPolicy(), 1, [](double) {}, nullptr);
  int64_t last = 0;
  ASSERT_TRUE(
      UploadBlob(*channel, retrier, folder_ + "/file", digest, [&](int64_t done, int64_t total) {
        last = done;
        EXPECT_LE(done, total);
      }).ok());
  EXPECT_EQ(ReadAll(server_.BlobPath(digest.sha256())), bytes);
  EXPECT_EQ(server_.received, 5 << 20) << "no byte travels twice";
  EXPECT_EQ(last, 5 << 20);
}

TEST_F(UploadTest, EmptyAndExactPieces) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1} << 20, (size_t{1} << 20) + 1}) {
    const v1::Digest digest = FileWith(folder_ + "/file", Bytes(size, size + 1));
    const auto channel = MakeFakeChannel(server_);
    Retrier retrier(
        RetryPolicy(), 1, [](double) {}, nullptr);
    ASSERT_TRUE(UploadBlob(*channel, retrier, folder_ + "/file", digest, nullptr).ok()) << size;
    EXPECT_TRUE(fs::exists(server_.BlobPath(digest.sha256()))) << size;
  }
}

TEST_F(UploadTest, AnotherClientsUploadIsLeftAlone) {
  const v1::Digest digest = FileWith(folder_ + "/file", Bytes(2 << 20, 3));
  int writes = 0;
  server_.fault = [&](const std::string& call) {
    return call == "Write" && ++writes <= 5 ? CallStatus{absl::AbortedError("somebody writes"), {}}
                                            : CallStatus{};
  };
  const auto channel = MakeFakeChannel(server_);
  Retrier retrier(
      RetryPolicy(), 1, [](double) {}, nullptr);
  EXPECT_TRUE(UploadBlob(*channel, retrier, folder_ + "/file", digest, nullptr).ok());
  EXPECT_EQ(writes, 6) << "it has patience, and then a name of its own";
}

/// Runs `work` in a child process that is killed with SIGKILL (by the server's stream fault); true
/// when it was.
bool KilledInTheMiddle(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

TEST_F(UploadTest, AKilledClientsSuccessorGoesOn) {
  const std::string bytes = Bytes(8 << 20, 4);
  const v1::Digest digest = FileWith(folder_ + "/file", bytes);
  const auto upload = [&] {
    const auto channel = MakeFakeChannel(server_);
    Retrier retrier(
        RetryPolicy(), 1, [](double) {}, nullptr);
    return UploadBlob(*channel, retrier, folder_ + "/file", digest, nullptr);
  };
  server_.stream_fault = [](const std::string&, int64_t done) {
    if (done >= 4 << 20) kill(getpid(), SIGKILL);
    return CallStatus{};
  };
  ASSERT_TRUE(KilledInTheMiddle([&] { (void)upload(); }));
  EXPECT_FALSE(fs::exists(server_.BlobPath(digest.sha256())));
  server_.stream_fault = nullptr;
  ASSERT_TRUE(upload().ok());
  EXPECT_EQ(server_.received, 4 << 20) << "the second half only";
  EXPECT_EQ(ReadAll(server_.BlobPath(digest.sha256())), bytes);
}

TEST_F(DownloadTest, AKilledClientsSuccessorGoesOn) {
  const std::string bytes = Bytes(1 << 20, 5);
  const std::string plan = AddPlan(bytes);
  server_.stream_fault = [](const std::string&, int64_t done) {
    if (done >= 1 << 19) kill(getpid(), SIGKILL);
    return CallStatus{};
  };
  const std::string target = folder_ + "/m.plan";
  ASSERT_TRUE(KilledInTheMiddle([&] { (void)Client()->Download(plan, target, nullptr); }));
  EXPECT_FALSE(fs::exists(target)) << "half a plan must not be seen";
  EXPECT_EQ(Parts(), 1u);
  server_.stream_fault = nullptr;
  ASSERT_TRUE(Client()->Download(plan, target, nullptr).ok());
  EXPECT_EQ(server_.sent, 1 << 19) << "the second half only";
  EXPECT_EQ(ReadAll(target), bytes);
  EXPECT_EQ(Parts(), 0u);
}

TEST_F(DownloadTest, GoesOnAfterEveryFault) {
  const std::string bytes = Bytes(100'000, 6);
  const std::string plan = AddPlan(bytes);
  server_.stream_fault = [](const std::string&, int64_t done) {
    return done >= 9000 ? Unavailable() : CallStatus{};
  };
  ASSERT_TRUE(Client()->Download(plan, folder_ + "/m.plan", nullptr).ok());
  EXPECT_EQ(ReadAll(folder_ + "/m.plan"), bytes);
  EXPECT_EQ(server_.sent, 100'000);
}

TEST_F(DownloadTest, ADamagedPartIsReadAnew) {
  const std::string bytes = Bytes(50'000, 7);
  const std::string plan = AddPlan(bytes);
  const std::string target = folder_ + "/m.plan";
  WriteAll(Cat(target, ".", Sha256Hex(bytes).substr(0, 12), ".part"), Bytes(20'000, 8));
  ASSERT_TRUE(Client()->Download(plan, target, nullptr).ok());
  EXPECT_EQ(ReadAll(target), bytes);
}

TEST_F(DownloadTest, WrongBytesAreNotKept) {
  const std::string bytes = Bytes(50'000, 9);
  const std::string plan = AddPlan(bytes);
  WriteAll(server_.BlobPath(Sha256Hex(bytes)), Bytes(50'000, 10));
  WriteAll(folder_ + "/m.plan", "what was there");
  const auto result = Client()->Download(plan, folder_ + "/m.plan", nullptr);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ReadAll(folder_ + "/m.plan"), "what was there");
  EXPECT_EQ(Parts(), 0u);
}

TEST_F(DownloadTest, NotTwiceAtATime) {
  const std::string bytes = Bytes(5'000, 11);
  const std::string plan = AddPlan(bytes);
  const auto part =
      LocalFile::OpenPart(Cat(folder_, "/m.plan.", Sha256Hex(bytes).substr(0, 12), ".part"));
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(Client()->Download(plan, folder_ + "/m.plan", nullptr).status().code(),
            absl::StatusCode::kAborted);
}

TEST_F(DownloadTest, HostileBlobNames) {
  for (const char* blob : {"", "blobs/x/1", "blobs/../../../../etc/passwd", "x"}) {
    server_.plans["plans/1"].set_blob(blob);
    EXPECT_EQ(Client()->Download("plans/1", folder_ + "/m.plan", nullptr).status().code(),
              absl::StatusCode::kDataLoss)
        << blob;
  }
}

TEST_F(WatchTest, ResumesBySequence) {
  server_.jobs["jobs/1"].set_state(v1::JOB_STATE_SUCCEEDED);
  for (int k = 1; k <= 20; ++k) {
    v1::JobEvent& event = server_.events["jobs/1"].emplace_back();
    event.set_sequence(k);
    event.mutable_progress()->set_candidates(k);
  }
  server_.stream_fault = [](const std::string&, int64_t done) {
    return done == 3 ? Unavailable() : CallStatus{};
  };
  std::vector<int64_t> seen;
  const auto job = Client()->Watch(
      "jobs/1", 4, [&](const v1::JobEvent& event) { seen.push_back(event.sequence()); });
  ASSERT_TRUE(job.ok()) << job.status();
  std::vector<int64_t> wanted;
  for (int k = 5; k <= 20; ++k) wanted.push_back(k);
  EXPECT_EQ(seen, wanted);
  EXPECT_FALSE(slept_.empty());
}

TEST_F(WatchTest, AStreamThatEndsEarlyIsNoEnd) {
  server_.jobs["jobs/1"].set_state(v1::JOB_STATE_RUNNING);
  int watches = 0;
  server_.fault = [&](const std::string& call) {
    if (call == "Watch" && ++watches == 3)
      server_.jobs["jobs/1"].set_state(v1::JOB_STATE_CANCELLED);
    return CallStatus{};
  };
  const auto job = Client()->Watch("jobs/1", 0, nullptr);
  ASSERT_TRUE(job.ok());
  EXPECT_EQ(watches, 3);
  EXPECT_TRUE(absl::IsCancelled(OutcomeOf(*job)));
}

TEST_F(ServiceTest, PagesAreReadToTheEnd) {
  for (int k = 0; k < 2500; ++k) server_.jobs[Cat("jobs/", k)].set_name(Cat("jobs/", k));
  JobQuery query;
  query.limit = 0;
  EXPECT_EQ(Client()->ListJobs(query)->size(), 2500u);
  query.limit = 1200;
  EXPECT_EQ(Client()->ListJobs(query)->size(), 1200u);
}

/// A model with a weight in `location`.
void WriteModel(const std::string& path, const std::string& location) {
  ModelBuilder builder;
  builder.Input("x", {"2", "2"}).Output("y");
  builder.Node("Add", {"x", "w"}, {"y"});
  onnx::TensorProto& tensor = *builder.graph().add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(2);
  tensor.add_dims(2);
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  auto& entry = *tensor.add_external_data();
  entry.set_key("location");
  entry.set_value(location);
  WriteAll(path, builder.Bytes());
}

TEST_F(UploadTest, AModelTravelsWithItsExternalData) {
  fs::create_directories(folder_ + "/weights");
  WriteAll(folder_ + "/weights/w.bin", Bytes(16, 12));
  WriteModel(folder_ + "/m.onnx", "./weights/w.bin");
  const auto model = Client()->Upload(folder_ + "/m.onnx", nullptr);
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(model->files_size(), 2);
  EXPECT_EQ(model->files(0).path(), "m.onnx");
  EXPECT_EQ(model->files(1).path(), "weights/w.bin");
  const int64_t before = server_.received;
  EXPECT_EQ(Client()->Upload(folder_ + "/m.onnx", nullptr)->name(), model->name());
  EXPECT_EQ(server_.received, before) << "what is there does not travel";
}

TEST_F(UploadTest, ExternalDataOutsideIsRefused) {
  for (const char* location : {"../w.bin", "/etc/passwd", "a/../../w.bin", "none.bin"}) {
    WriteModel(folder_ + "/m.onnx", location);
    const auto model = Client()->Upload(folder_ + "/m.onnx", nullptr);
    EXPECT_TRUE(absl::IsInvalidArgument(model.status())) << location << model.status();
  }
}

TEST_F(UploadTest, LinksOutOfTheModelsFolderAreRefused) {
  fs::create_directories(folder_ + "/model/weights");
  WriteAll(folder_ + "/secret.bin", Bytes(16, 3));
  WriteAll(folder_ + "/model/weights/w.bin", Bytes(16, 12));
  fs::create_symlink("../secret.bin", folder_ + "/model/link.bin");
  fs::create_directory_symlink("..", folder_ + "/model/up");
  fs::create_symlink("weights/w.bin", folder_ + "/model/inner.bin");
  for (const char* location : {"link.bin", "up/secret.bin"}) {
    WriteModel(folder_ + "/model/m.onnx", location);
    const absl::Status status = Client()->Upload(folder_ + "/model/m.onnx", nullptr).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << location << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("secret.bin"));
  }
  WriteModel(folder_ + "/model/m.onnx", "inner.bin");
  EXPECT_TRUE(Client()->Upload(folder_ + "/model/m.onnx", nullptr).ok());
}

}  // namespace
}  // namespace mendel
