// Tests without a server: names, files, options, errors, metrics.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/status.h"
#include "google/rpc/error_details.pb.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/options.h"
#include "server/rpc/authenticator.h"
#include "server/rpc/errors.h"
#include "server/rpc/names.h"

namespace mendel::server {
namespace {

std::string ReadDocument(const std::string& name) {
  std::ifstream file(std::string(MENDEL_DOCS) + "/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Names, HostilePathsAreRefused) {
  for (const std::string& path : std::vector<std::string>{
           "", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/.", "a/", "a\\b", "a\nb",
           std::string("a\0b", 3), "\x7f", "\xc0\xae\xc0\xae/x", "\xed\xa0\x80", "\xff",
           "\xf5\x80\x80\x80", std::string(1025, 'a'), std::string(256, 'a'),
           "a/" + std::string(256, 'b')}) {
    EXPECT_FALSE(CheckModelPath("files[0].path", path, 1024).ok()) << Quoted(path);
  }
  std::string deep = "a";
  for (int i = 0; i < 32; ++i) deep += "/a";
  EXPECT_FALSE(CheckModelPath("p", deep, 1024).ok());
  for (const std::string& path :
       std::vector<std::string>{"model.onnx", "a/b/c.bin", "..a", "a..", "gr\xc3\xbc\xc3\x9f",
                                "\xf0\x9f\x98\x80", "a b"}) {
    EXPECT_TRUE(CheckModelPath("files[0].path", path, 1024).ok()) << path;
  }
}

TEST(Names, Resources) {
  const std::string hash(64, 'a');
  EXPECT_TRUE(CheckModelName("name", "models/" + hash).ok());
  for (const std::string& name : std::vector<std::string>{
           "", "models/", hash, "models/" + std::string(64, 'A'), "models/" + hash + "/",
           "plans/" + hash, "models/../" + hash, " models/" + hash}) {
    EXPECT_FALSE(CheckModelName("name", name).ok()) << name;
  }
  EXPECT_TRUE(CheckJobName("name", "jobs/01234567-89ab-cdef-0123-456789abcdef").ok());
  EXPECT_FALSE(CheckJobName("name", "jobs/01234567-89ab-cdef-0123-456789abcdeg").ok());
  EXPECT_FALSE(CheckJobName("name", "jobs/0123456789abcdef0123456789abcdef----").ok());
}

TEST(Errors, DetailsAndNoPaths) {
  EXPECT_EQ(WithoutPaths("cannot open '/var/lib/x': denied (/a/b, c=/d)"),
            "cannot open '(path)': denied ((path), c=(path))");
  EXPECT_EQ(WithoutPaths("a / b, files/x and 1/2"), "a / b, files/x and 1/2");
  const google::rpc::Status hidden = ToRpcStatus(InternalError("secret at /srv"), "r7");
  EXPECT_EQ(hidden.message(), "internal error; the server's log reports more under r7");
  const google::rpc::Status store = ToRpcStatus(
      absl::UnavailableError("job store: connection to server at \"10.0.0.5\" failed"), "r8");
  EXPECT_EQ(store.message(),
            "the job store did not answer; the server's log reports more under r8");
  const google::rpc::Status field =
      ToRpcStatus(FieldErrorOf(InvalidInput("spec.optimize.isa: unknown")), "");
  google::rpc::BadRequest bad;
  google::rpc::ErrorInfo info;
  for (const auto& detail : field.details()) {
    detail.UnpackTo(&bad);
    detail.UnpackTo(&info);
  }
  ASSERT_EQ(bad.field_violations_size(), 1);
  EXPECT_EQ(bad.field_violations(0).field(), "spec.optimize.isa");
  EXPECT_EQ(info.reason(), "BAD_FIELD");
  EXPECT_EQ(info.domain(), "mendel");
  EXPECT_EQ(ToRpcStatus(absl::UnavailableError("x"), "").details_size(),
            2);  // ErrorInfo and RetryInfo
}

TEST(Options, PasswordsOfUrlsAreNotPrinted) {
  EXPECT_EQ(WithoutPassword("postgresql://u:secret@h:5/db?x=1"), "postgresql://u:***@h:5/db?x=1");
  EXPECT_EQ(WithoutPassword("postgresql://u:a@b@h/db"), "postgresql://u:***@h/db");
  EXPECT_EQ(WithoutPassword("postgresql://h:5/db?password=secret&x=1&password=s"),
            "postgresql://h:5/db?password=***&x=1&password=***");
  for (const char* text : {"postgresql://u@h:5/db", "127.0.0.1:8470", "unix:/a@b", ""})
    EXPECT_EQ(WithoutPassword(text), text);
}

TEST(AuthFile, RolesByProject) {
  const auto grants = ParseGrants("vision:submitter,default:reader,x-1:none");
  ASSERT_TRUE(grants.has_value());
  EXPECT_EQ(grants->In("vision"), Role::kSubmitter);
  EXPECT_EQ(grants->In(""), Role::kReader);
  EXPECT_EQ(grants->In("other"), Role::kNobody);
  EXPECT_EQ(grants->Highest(), Role::kSubmitter);
  EXPECT_EQ(ParseGrants("submitter")->In(""), Role::kSubmitter);
  EXPECT_EQ(ParseGrants("submitter")->In("other"), Role::kNobody);
  EXPECT_EQ(ParseGrants("admin")->In("other"), Role::kAdmin);
  EXPECT_EQ(ParseGrants("default:admin")->In("other"), Role::kNobody);
  EXPECT_EQ(ParseGrants("*:reader,a:admin")->In("a"), Role::kAdmin);
  for (const char* bad :
       {"", ",", "a:", ":reader", "a:reader,", "a:reader,,b:reader", "A:reader", "a:reader,a:admin",
        "a:owner", "reader,a:reader", "a:reader:b", "../a:reader"})
    EXPECT_FALSE(ParseGrants(bad).has_value()) << bad;
}

TEST(AuthFile, Lines) {
  const std::string hash(64, '0');
  const auto table =
      ParseAuthFile(Cat("# comment\n\n a reader sha256:", hash, "\nb admin cert:some name\n"));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->at("sha256:" + hash).name, "a");
  EXPECT_EQ(table->at("cert:some name").grants.everywhere, Role::kAdmin);
  for (const std::string& text : std::vector<std::string>{
           "a", "a reader", "a god sha256:" + hash, "a reader md5:1", "a reader sha256:12",
           "a/b reader sha256:" + hash, "a reader sha256:" + hash + "\nb reader sha256:" + hash}) {
    const auto bad = ParseAuthFile(text);
    ASSERT_FALSE(bad.ok()) << text;
    EXPECT_EQ(std::string(bad.status().message()).find(hash), std::string::npos);
  }
}

TEST(Options, FlagsWinOverVariablesOverFile) {
  const auto variable = [](const std::string& name) {
    return name == "MENDEL_LISTEN" || name == "MENDEL_DATA" ? std::optional<std::string>("unix:/v")
                                                            : std::nullopt;
  };
  const auto file = ParseConfig("# c\nlisten = unix:/f\n\ndata=/f\nmax-blob-bytes = 4GiB\n");
  ASSERT_TRUE(file.ok());
  const auto options = ResolveOptions({{"listen", "unix:/flag"}}, variable, *file);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->listen, "unix:/flag");
  EXPECT_EQ(options->data, "unix:/v");
  EXPECT_EQ(options->max_blob_bytes, int64_t{4} << 30);
}

TEST(Options, MistakesAreNamed) {
  const auto none = [](const std::string&) { return std::optional<std::string>(); };
  EXPECT_FALSE(ParseConfig("listen").ok());
  EXPECT_FALSE(ParseConfig("a = 1\na = 2").ok());
  const std::vector<std::map<std::string, std::string>> bad = {
      {{"listen", "0.0.0.0:1"}},
      {{"listen", "0.0.0.0:1"}, {"insecure-bind", "true"}},
      {{"grpc-use-ssl", "true"}},
      {{"grpc-use-ssl", "yes"}},
      {{"max-blob-bytes", "12x"}},
      {{"max-blob-bytes", "99999999TiB"}},
      {{"rpc-threads", "0"}},
      {{"anonymous-role", "god"}},
      {{"metrics-listen", "0.0.0.0:1"}},
      {{"nonsense", "1"}}};
  for (const auto& values : bad) {
    const auto options = ResolveOptions({}, none, values);
    EXPECT_TRUE(absl::IsInvalidArgument(options.status())) << values.begin()->first;
  }
  EXPECT_TRUE(
      ResolveOptions(
          {}, none,
          {{"listen", "0.0.0.0:1"}, {"insecure-bind", "true"}, {"anonymous-role", "reader"}})
          .ok());
}

TEST(Options, EveryLimitIsDocumentedWithItsDefault) {
  const std::string text = ReadDocument("limits.md");
  ServerOptions options;
  for (const OptionSpec& option : OptionTable(options)) {
    const std::string line = option.limit
                                 ? Cat("| `--", option.name, "` | ", ValueText(option), " |")
                                 : Cat("--", option.name);
    EXPECT_NE((option.limit ? text : text + ReadDocument("service.md")).find(line),
              std::string::npos)
        << line;
  }
}

TEST(Metrics, TextFormat) {
  Metrics metrics;
  metrics.Add("mendel_rpcs_total", {{"method", "a\"b"}, {"code", "OK"}}, 3);
  metrics.Observe("mendel_rpc_seconds", {{"method", "m"}}, 0.003);
  metrics.AddCollector(
      [](Metrics& all) { all.Set("process_start_time_seconds", {}, 1700000000.25); });
  const std::string text = metrics.Text();
  EXPECT_NE(text.find("mendel_rpcs_total{method=\"a\\\"b\",code=\"OK\"} 3\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("mendel_rpc_seconds_bucket{method=\"m\",le=\"0.0025\"} 0\n"),
            std::string::npos);
  EXPECT_NE(text.find("mendel_rpc_seconds_bucket{method=\"m\",le=\"+Inf\"} 1\n"),
            std::string::npos);
  EXPECT_NE(text.find("process_start_time_seconds 1700000000.25\n"), std::string::npos);
  const std::string document = ReadDocument("service.md");
  for (const std::string& name : MetricNames())
    EXPECT_NE(document.find("`" + name + "`"), std::string::npos) << name;
}

TEST(Log, LinesAreJson) {
  std::string line;
  Logger log(LogLevel::kInfo, SystemClock(), [&](const std::string& text) { line = text; });
  log.Log(LogLevel::kDebug, "hidden");
  EXPECT_EQ(line, "");
  log.Log(LogLevel::kError, "a\"b\n", {{"job", "jobs/1"}, {"n", int64_t{3}}, {"bad", "\xff"}});
  EXPECT_NE(line.find(R"("level":"error","event":"a\"b\n","job":"jobs/1","n":3,"bad":)"),
            std::string::npos)
      << line;
}

}  // namespace
}  // namespace mendel::server
