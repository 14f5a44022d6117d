// Access rights of callers, and the answers to hostile requests.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/util/json_util.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <atomic>
#include <climits>
#include <fstream>
#include <map>
#include <set>

#include "base/status.h"
#include "google/longrunning/operations.pb.h"
#include "google/rpc/error_details.pb.h"
#include "mendel/v1/jobs.grpc.pb.h"
#include "mendel/v1/models.grpc.pb.h"
#include "server/client_address.h"
#include "server/rpc/raw_call.h"
#include "server/rpc/test_server.h"

namespace mendel::server {
namespace {

void WriteText(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

/// RawCall under the name that the tests use.
constexpr auto Call = &RawCall;

/// The services that the server's own reflection lists.
std::set<std::string> ListServices(const std::shared_ptr<grpc::Channel>& channel,
                                   const std::string& token) {
  const auto* pool = google::protobuf::DescriptorPool::generated_pool();
  auto* factory = google::protobuf::MessageFactory::generated_factory();
  const auto message = [&](const std::string& name) {
    return std::unique_ptr<google::protobuf::Message>(
        factory->GetPrototype(pool->FindMessageTypeByName("grpc.reflection.v1alpha." + name))
            ->New());
  };
  const auto request = message("ServerReflectionRequest");
  EXPECT_TRUE(
      google::protobuf::util::JsonStringToMessage(R"({"list_services":"*"})", request.get()).ok());
  const auto [status, bytes] =
      Call(channel, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", token,
           request->SerializeAsString(), 10'000);
  EXPECT_TRUE(status.ok()) << status.error_message();
  const auto response = message("ServerReflectionResponse");
  EXPECT_TRUE(response->ParseFromString(bytes));
  std::string text = response->DebugString();
  std::set<std::string> names;
  for (size_t at = text.find("name: \""); at != std::string::npos;
       at = text.find("name: \"", at + 1)) {
    names.insert(text.substr(at + 7, text.find('"', at + 7) - at - 7));
  }
  return names;
}

class Roles : public ::testing::Test {
 protected:
  Roles()
      : server_([this](ServerOptions& options) {
          auth_ = options.listen.substr(5) + ".auth";
          WriteText(auth_, AuthLine("reader", "reader") + AuthLine("submitter", "submitter") +
                               AuthLine("other", "submitter") + AuthLine("admin", "admin"));
          options.auth_file = auth_;
        }) {}
  static std::string TokenOf(Role role) {
    return role == Role::kNobody ? "" : Cat("TOKEN-", RoleName(role));
  }

  std::string auth_;
  TestServer server_;
};

TEST_F(Roles, EveryMethodOfEveryServiceStandsInTheTable) {
  std::set<std::string> expected;
  for (const std::string& name : ListServices(server_.channel(), "TOKEN-admin")) {
    const auto* service =
        google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(name);
    ASSERT_NE(service, nullptr) << name;
    for (int i = 0; i < service->method_count(); ++i)
      expected.insert(Cat("/", name, "/", service->method(i)->name()));
  }
  std::set<std::string> actual;
  for (const MethodRole& row : MethodRoles()) actual.insert(std::string(row.method));
  EXPECT_EQ(actual, expected);
}

TEST_F(Roles, EveryMethodAsksForItsRole) {
  const auto channel = server_.channel();
  for (const MethodRole& row : MethodRoles()) {
    for (Role role : {Role::kNobody, Role::kReader, Role::kSubmitter, Role::kAdmin}) {
      const bool endless = row.method == "/grpc.health.v1.Health/Watch";
      const auto [status, bytes] =
          Call(channel, std::string(row.method), TokenOf(role), "", endless ? 200 : 10'000);
      const grpc::StatusCode code = status.error_code();
      const std::string what = Cat(row.method, " as ", RoleName(role), ": ", static_cast<int>(code),
                                   " ", status.error_message());
      if (role < row.role) {
        EXPECT_EQ(code, role == Role::kNobody ? grpc::UNAUTHENTICATED : grpc::PERMISSION_DENIED)
            << what;
        EXPECT_EQ(bytes, "") << what;
      } else {
        EXPECT_NE(code, grpc::UNAUTHENTICATED) << what;
        EXPECT_NE(code, grpc::PERMISSION_DENIED) << what;
        EXPECT_NE(code, grpc::UNIMPLEMENTED) << what;
        // gRPC's own channelz calls a missing argument an internal error.
        EXPECT_TRUE(code != grpc::INTERNAL || row.debug) << what;
      }
    }
  }
}

TEST_F(Roles, TokensAreReloadedAndUnknownOnesRefused) {
  const std::string method = "/mendel.v1.Jobs/ListJobs";
  EXPECT_EQ(Call(server_.channel(), method, "TOKEN-new", "", 10'000).first.error_code(),
            grpc::UNAUTHENTICATED);
  WriteText(auth_,
            AuthLine("new", "reader") +
                "# longer than before, and without the others ------------------------------\n");
  server_.env().authenticator.Refresh();
  EXPECT_TRUE(Call(server_.channel(), method, "TOKEN-new", "", 10'000).first.ok());
  EXPECT_EQ(Call(server_.channel(), method, "TOKEN-admin", "", 10'000).first.error_code(),
            grpc::UNAUTHENTICATED);
  WriteText(auth_, "broken\n");
  server_.env().authenticator.Refresh();
  EXPECT_TRUE(Call(server_.channel(), method, "TOKEN-new", "", 10'000).first.ok());
  EXPECT_NE(server_.log_text().find("auth file not reloaded"), std::string::npos);
  EXPECT_EQ(server_.log_text().find("TOKEN-"), std::string::npos);
}

TEST_F(Roles, JobsOfOthersCannotBeCancelled) {
  const std::string job = server_.SubmitSearch(server_.MakeModel("m"));
  v1::CancelJobRequest request;
  request.set_name(job);
  const std::string bytes = request.SerializeAsString();
  for (const std::string& method :
       std::vector<std::string>{"/mendel.v1.Jobs/CancelJob", "/mendel.v1.Jobs/DeleteJob"}) {
    EXPECT_EQ(Call(server_.channel(), method, "TOKEN-other", bytes, 10'000).first.error_code(),
              grpc::PERMISSION_DENIED);
  }
  EXPECT_TRUE(Call(server_.channel(), "/mendel.v1.Jobs/CancelJob", "TOKEN-admin", bytes, 10'000)
                  .first.ok());
}

/// The reason in the details of a status, and its first violated field.
std::pair<std::string, std::string> ReasonAndField(const grpc::Status& status) {
  google::rpc::Status details;
  google::rpc::ErrorInfo info;
  google::rpc::BadRequest bad;
  EXPECT_TRUE(details.ParseFromString(status.error_details()));
  for (const auto& detail : details.details()) {
    if (detail.Is<google::rpc::ErrorInfo>()) detail.UnpackTo(&info);
    if (detail.Is<google::rpc::BadRequest>()) detail.UnpackTo(&bad);
  }
  return {info.reason(), bad.field_violations().empty() ? "" : bad.field_violations(0).field()};
}

TEST(Hostile, Manifests) {
  TestServer server([](ServerOptions& options) { options.max_model_files = 3; });
  v1::Models::Stub models(server.channel());
  const auto create = [&](const std::vector<std::string>& paths, const std::string& main,
                          int64_t size) {
    v1::CreateModelRequest request;
    for (const std::string& path : paths) {
      v1::ModelFile& file = *request.add_files();
      file.set_path(path);
      file.mutable_digest()->set_sha256(std::string(64, 'a'));
      file.mutable_digest()->set_size_bytes(size);
    }
    request.set_main_file(main);
    grpc::ClientContext context;
    Prepare(context);
    v1::Model model;
    const grpc::Status status = models.CreateModel(&context, request, &model);
    EXPECT_FALSE(status.ok());
    return ReasonAndField(status);
  };
  using Pair = std::pair<std::string, std::string>;
  EXPECT_EQ(create({}, "", 1), Pair("BAD_FIELD", "files"));
  EXPECT_EQ(create({"a", "../../etc/passwd"}, "a", 1), Pair("BAD_FIELD", "files[1].path"));
  EXPECT_EQ(create({"a", "a"}, "a", 1), Pair("BAD_FIELD", "files"));
  EXPECT_EQ(create({"a", "a/b"}, "a", 1), Pair("BAD_FIELD", "files"));
  EXPECT_EQ(create({"a", "b", "c", "d"}, "a", 1), Pair("BAD_FIELD", "files"));
  EXPECT_EQ(create({"a"}, "b", 1), Pair("BAD_FIELD", "main_file"));
  EXPECT_EQ(create({"a"}, "a", -1), Pair("BAD_FIELD", "files[0].digest.size_bytes"));
  EXPECT_EQ(create({"a"}, "a", int64_t{1} << 62), Pair("BAD_FIELD", "files[0].digest.size_bytes"));
  EXPECT_EQ(create({"a"}, "a", 1), Pair("MISSING_BLOB", ""));
}

TEST(Hostile, NamesInEveryRequest) {
  TestServer server;
  for (const MethodRole& row : MethodRoles()) {
    if (row.method.substr(0, 10) != "/mendel.v1" && row.method.substr(0, 8) != "/google.") continue;
    if (row.method.find("/List") != std::string_view::npos ||
        row.method.find("FindMissing") != std::string_view::npos)
      continue;
    for (const std::string& name : std::vector<std::string>{
             "../../etc/passwd", "jobs/../../x", "uploads/../blobs/x/1", std::string(100'000, 'a'),
             "\x01\x02", "blobs/" + std::string(64, '0') + "/99999999999999999999"}) {
      v1::GetJobRequest request;  // field 1 is the name everywhere
      request.set_name(name);
      const auto status =
          Call(server.channel(), std::string(row.method), "", request.SerializeAsString(), 10'000)
              .first;
      EXPECT_FALSE(status.ok()) << row.method;
      // UNIMPLEMENTED is what gRPC itself says about bytes that are not the request's message.
      EXPECT_TRUE(status.error_code() == grpc::INVALID_ARGUMENT ||
                  status.error_code() == grpc::UNIMPLEMENTED)
          << row.method << " " << status.error_code();
      EXPECT_LT(status.error_message().size(), 1000u);
    }
  }
}

TEST(Hostile, LimitsHold) {
  TestServer server([](ServerOptions& options) {
    options.max_digests = 2;
    options.max_pending_jobs_per_client = 1;
    options.max_watchers_per_client = 1;
    options.max_message_bytes = 1 << 20;
    options.max_chunk_bytes = 1 << 19;
  });
  v1::Models::Stub models(server.channel());
  v1::FindMissingBlobsRequest blobs;
  for (int i = 0; i < 3; ++i) blobs.add_digests()->set_sha256(std::string(64, 'a'));
  grpc::ClientContext context;
  Prepare(context);
  v1::FindMissingBlobsResponse missing;
  EXPECT_EQ(models.FindMissingBlobs(&context, blobs, &missing).error_code(),
            grpc::INVALID_ARGUMENT);
  v1::GetJobRequest large;
  large.set_name(std::string(3 << 19, 'x'));
  grpc::ClientContext large_context;
  Prepare(large_context);
  v1::Job none;
  const grpc::Status too_large =
      v1::Jobs::Stub(server.channel(true)).GetJob(&large_context, large, &none);
  EXPECT_EQ(too_large.error_code(), grpc::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonAndField(too_large).first, "MESSAGE_SIZE");
  const std::string huge(3 << 20, 'x');
  EXPECT_EQ(
      Call(server.channel(true), "/mendel.v1.Jobs/GetJob", "", huge, 1'000).first.error_code(),
      grpc::RESOURCE_EXHAUSTED);

  const std::string model = server.MakeModel("m");
  v1::SubmitJobRequest submit;
  submit.mutable_spec()->mutable_optimize()->set_model(model);
  v1::Jobs::Stub jobs(server.channel());
  google::longrunning::Operation operation;
  for (const int priority : {11, -11, INT_MAX, INT_MIN}) {
    submit.set_priority(priority);
    grpc::ClientContext one;
    Prepare(one);
    EXPECT_EQ(jobs.SubmitJob(&one, submit, &operation).error_code(), grpc::INVALID_ARGUMENT)
        << priority;
  }
  submit.set_priority(0);
  for (int i = 0; i < 2; ++i) {
    submit.mutable_spec()->mutable_optimize()->set_seed(i + 1);
    grpc::ClientContext one;
    Prepare(one);
    const grpc::Status status = jobs.SubmitJob(&one, submit, &operation);
    EXPECT_EQ(status.error_code(), i == 0 ? grpc::OK : grpc::RESOURCE_EXHAUSTED);
    if (i == 1) {
      EXPECT_EQ(ReasonAndField(status).first, "QUEUE_FULL");
    }
  }
  v1::ListJobsRequest list;
  grpc::ClientContext all;
  Prepare(all);
  v1::ListJobsResponse page;
  ASSERT_TRUE(jobs.ListJobs(&all, list, &page).ok());
  ASSERT_EQ(page.jobs_size(), 1);
  v1::WatchJobRequest watch;
  watch.set_name(page.jobs(0).name());
  grpc::ClientContext first;
  Prepare(first);
  auto stream = jobs.WatchJob(&first, watch);
  v1::JobEvent event;
  ASSERT_TRUE(stream->Read(&event));
  grpc::ClientContext second;
  Prepare(second);
  auto refused = jobs.WatchJob(&second, watch);
  EXPECT_FALSE(refused->Read(&event));
  EXPECT_EQ(refused->Finish().error_code(), grpc::RESOURCE_EXHAUSTED);
  first.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::CANCELLED);
}

/// A clock that the test alone advances.
class StandingClock final : public Clock {
 public:
  int64_t WallMicros() const override { return SystemClock().WallMicros(); }
  int64_t SteadyMicros() const override { return micros; }
  std::atomic<int64_t> micros = 1'000'000;
};

TEST(Hostile, AnAddressThatGuessesTokensIsShutOut) {
  StandingClock clock;
  std::vector<std::string> shut_out;
  FailedLogins logins(3, clock, [&](const std::string& address) { shut_out.push_back(address); });
  ASSERT_TRUE(logins.Note("192.0.2.1", "early").ok());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(logins.Note("192.0.2.1", "").ok());
  EXPECT_EQ(shut_out, std::vector<std::string>{"192.0.2.1"});
  for (const char* caller : {"", "late"})
    EXPECT_TRUE(absl::IsResourceExhausted(logins.Note("192.0.2.1", caller))) << caller;
  EXPECT_TRUE(logins.Note("192.0.2.1", "early").ok()) << "let in before";
  EXPECT_TRUE(absl::IsResourceExhausted(logins.Note("192.0.2.1", "")));
  EXPECT_TRUE(logins.Note("2001:db8::/64", "late").ok()) << "from elsewhere";
  clock.micros += 20'000'000;  // a third of a minute
  EXPECT_TRUE(logins.Note("192.0.2.1", "late").ok());
  EXPECT_TRUE(logins.Note("192.0.2.1", "").ok());
  EXPECT_TRUE(absl::IsResourceExhausted(logins.Note("192.0.2.1", "")));
  EXPECT_EQ(shut_out.size(), 2u);
}

TEST(Hostile, GuessedTokensAreCountedByAddress) {
  std::string auth;
  const StandingClock clock;
  TestServer server(
      [&](ServerOptions& options) {
        auth = options.listen.substr(5) + ".auth";
        WriteText(auth, AuthLine("looker", "reader"));
        options.auth_file = auth;
        options.listen += ",127.0.0.1:0";
        options.max_failed_logins_per_minute_per_address = 3;
      },
      clock);
  const auto list = [&](const std::shared_ptr<grpc::Channel>& channel, const std::string& token) {
    v1::Jobs::Stub jobs(channel);
    grpc::ClientContext context;
    Prepare(context, token);
    v1::ListJobsResponse page;
    return jobs.ListJobs(&context, {}, &page);
  };
  const auto tcp = grpc::CreateChannel(Cat("127.0.0.1:", server.rpc().ports()[1]),
                                       grpc::InsecureChannelCredentials());
  for (int i = 0; i < 9; ++i)
    EXPECT_EQ(list(tcp, "").error_code(), grpc::StatusCode::UNAUTHENTICATED) << "no attempt";
  for (int i = 0; i < 9; ++i)
    EXPECT_EQ(list(server.channel(true), "x").error_code(), grpc::StatusCode::UNAUTHENTICATED);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(list(tcp, "x").error_code(), grpc::StatusCode::UNAUTHENTICATED) << i;
  for (const char* token : {"x", "TOKEN-looker"}) {
    const grpc::Status status = list(tcp, token);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << token;
    EXPECT_NE(status.error_details().find("FAILED_LOGINS"), std::string::npos);
  }
  EXPECT_TRUE(list(server.channel(true), "TOKEN-looker").ok()) << "unix sockets have no address";
  EXPECT_NE(server.log_text().find("\"address\":\"127.0.0.1\""), std::string::npos)
      << server.log_text();
  // The gates of reflection and the web page count alike.
  const std::string reflection = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
  EXPECT_EQ(Call(tcp, reflection, "x", "", 10'000).first.error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST(Hostile, AddressesStandForClients) {
  for (const auto& [peer, client] :
       std::map<std::string, std::string>{{"ipv4:192.0.2.7:1234", "192.0.2.7"},
                                          {"ipv6:%5B::ffff:192.0.2.7%5D:1", "192.0.2.7"},
                                          {"ipv6:[2001:db8:1:2:3:4:5:6]:1", "2001:db8:1:2::/64"},
                                          {"ipv6:%5Bfe80::1%25eth0%5D:1", "fe80::/64"},
                                          {"ipv6:%5B::1%5D:1", "::1"},
                                          {"ipv6:%5Bx%5D:1", ""},
                                          {"ipv6:", ""},
                                          {"unix:/run/mendel/socket", ""},
                                          {"unix:ipv4:1.2.3.4:5", ""},
                                          {"inproc", ""},
                                          {"", ""}}) {
    EXPECT_EQ(ClientOfPeer(peer), client) << peer;
  }
}

TEST(Hostile, CallRate) {
  const StandingClock clock;
  TestServer server([](ServerOptions& options) { options.max_rpcs_per_second_per_client = 3; },
                    clock);
  int refused = 0;
  for (int i = 0; i < 12; ++i) {
    const auto status = Call(server.channel(), "/mendel.v1.Jobs/ListJobs", "", "", 10'000).first;
    if (status.error_code() == grpc::RESOURCE_EXHAUSTED) ++refused;
  }
  EXPECT_EQ(refused, 9) << "three at once, and no time passes";
  EXPECT_EQ(static_cast<double>(refused),
            server.env().metrics.Value("mendel_rpcs_total", {{"method", "/mendel.v1.Jobs/ListJobs"},
                                                             {"code", "RESOURCE_EXHAUSTED"}}));
}

}  // namespace
}  // namespace mendel::server
