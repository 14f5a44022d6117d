// Projects: every method, URL and metric against every role and project. A new method fails here
// until it has a row.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "base/hash.h"
#include "base/status.h"
#include "google/bytestream/bytestream.pb.h"
#include "google/longrunning/operations.pb.h"
#include "mendel/v1/jobs.pb.h"
#include "server/rpc/raw_call.h"
#include "server/rpc/request_project.h"
#include "server/rpc/test_server.h"
#include "server/store/project_name.h"
#include "server/web/web_page.h"

namespace mendel::server {
namespace {

constexpr char kNowhere[] = "01234567-89ab-cdef-0123-456789abcdef";

/// Principals: a role in "a", the same in "b", in "default", everywhere.
const std::map<std::string, std::string>& Principals() {
  static const auto* const principals =
      new std::map<std::string, std::string>{{"a-reader", "a:reader"},
                                             {"a-submitter", "a:submitter"},
                                             {"a-admin", "a:admin"},
                                             {"b-reader", "b:reader"},
                                             {"b-submitter", "b:submitter"},
                                             {"b-admin", "b:admin"},
                                             {"reader", "reader"},
                                             {"submitter", "submitter"},
                                             {"default-admin", "default:admin"},
                                             {"both", "a:reader,b:submitter"},
                                             {"admin", "admin"},
                                             {"all-reader", "*:reader"}};
  return *principals;
}

std::string DigestOf(const std::string& text) { return Sha256Hex(std::string_view(text)); }

/// A project's resources: one model with its file, one ended job with its plan.
struct Tenant {
  std::string project;
  std::string content;
  std::string model = {};
  std::string job = {};
  std::string plan = {};
  std::string In(const std::string& rest) const { return JoinName(project, rest); }
  std::string Blob() const { return Cat("blobs/", DigestOf(content), "/", content.size()); }
};

/// The text of every request: the fields that matter, in protobuf's text form. Rows are by method.
using Row = std::function<std::string(const Tenant&)>;
const std::map<std::string, Row>& Rows() {
  const auto name = [](const std::string Tenant::*member) {
    return [member](const Tenant& t) { return Cat("name: '", t.*member, "'"); };
  };
  const auto parent = [](const Tenant& t) {
    return Cat("parent: 'projects/", ProjectTitle(t.project), "'");
  };
  const auto digest = [](const Tenant& t) {
    return Cat("{ sha256: '", DigestOf(t.content), "' size_bytes: ", t.content.size(), " }");
  };
  static const auto* const rows = new std::map<std::string, Row>{
      {"/google.bytestream.ByteStream/QueryWriteStatus",
       [](const Tenant& t) {
         return Cat("resource_name: '", t.In(Cat("uploads/", kNowhere, "/", t.Blob())), "'");
       }},
      {"/google.bytestream.ByteStream/Read",
       [](const Tenant& t) { return Cat("resource_name: '", t.In(t.Blob()), "'"); }},
      {"/google.bytestream.ByteStream/Write",
       [](const Tenant& t) {
         return Cat("resource_name: '", t.In(Cat("uploads/", kNowhere, "/", t.Blob())), "' data: '",
                    t.content, "' finish_write: true");
       }},
      {"/google.longrunning.Operations/CancelOperation", name(&Tenant::job)},
      {"/google.longrunning.Operations/DeleteOperation", name(&Tenant::job)},
      {"/google.longrunning.Operations/GetOperation", name(&Tenant::job)},
      {"/google.longrunning.Operations/ListOperations",
       [](const Tenant& t) { return Cat("name: '", t.In("jobs"), "'"); }},
      {"/google.longrunning.Operations/WaitOperation", name(&Tenant::job)},
      {"/mendel.v1.Jobs/CancelJob", name(&Tenant::job)},
      {"/mendel.v1.Jobs/DeleteJob", name(&Tenant::job)},
      {"/mendel.v1.Jobs/GetJob", name(&Tenant::job)},
      {"/mendel.v1.Jobs/ListJobs", parent},
      {"/mendel.v1.Jobs/SubmitJob",
       [](const Tenant& t) { return Cat("spec { optimize { model: '", t.model, "' } }"); }},
      {"/mendel.v1.Jobs/WatchJob", name(&Tenant::job)},
      {"/mendel.v1.Models/CreateModel",
       [=](const Tenant& t) {
         return Cat(parent(t), " files { path: 'model.onnx' digest ", digest(t), " }");
       }},
      {"/mendel.v1.Models/DeleteModel", name(&Tenant::model)},
      {"/mendel.v1.Models/FindMissingBlobs",
       [=](const Tenant& t) { return Cat(parent(t), " digests ", digest(t)); }},
      {"/mendel.v1.Models/GetModel", name(&Tenant::model)},
      {"/mendel.v1.Models/ListModels", parent},
      {"/mendel.v1.Plans/DeletePlan", name(&Tenant::plan)},
      {"/mendel.v1.Plans/GetPlan", name(&Tenant::plan)},
      {"/mendel.v1.Plans/ListPlans", parent},
      {"/mendel.v1.Plans/RefitPlan",
       [](const Tenant& t) { return Cat("plan: '", t.plan, "' model: '", t.model, "'"); }},
      {"/mendel.v1.Verifier/ComparePair",
       [](const Tenant& t) { return Cat("model_a: '", t.model, "' model_b: '", t.model, "'"); }},
      {"/mendel.v1.Verifier/VerifyPlan",
       [](const Tenant& t) { return Cat("plan: '", t.plan, "' model: '", t.model, "'"); }},
  };
  return *rows;
}

const google::protobuf::MethodDescriptor* MethodOf(std::string_view path) {
  std::string name(path.substr(1));
  name[name.find('/')] = '.';
  return google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(name);
}

/// Methods of the whole server: health and debugging.
bool HasNoProject(const MethodRole& row) { return row.debug || row.role == Role::kNobody; }

class Tenancy : public ::testing::Test {
 protected:
  Tenancy()
      : server_([](ServerOptions& options) {
          options.auth_file = options.listen.substr(5) + ".auth";
          std::ofstream file(options.auth_file);
          for (const auto& [name, roles] : Principals()) file << AuthLine(name, roles);
        }) {
    for (const char* project : {"", "a", "b"}) tenants_.push_back(MakeTenant(project));
  }

  Tenant MakeTenant(const std::string& project) {
    Tenant tenant{project, Cat("secret of ", ProjectTitle(project))};
    tenant.model = server_.MakeModel(tenant.content, project);
    tenant.job = server_.SubmitSearch(tenant.model);
    tenant.plan = server_.WorkOnce(1);
    return tenant;
  }

  /// The status and the first answer of a method with the text as its request.
  std::pair<grpc::Status, std::string> Ask(const std::string& method, const std::string& principal,
                                           const std::string& text) {
    const auto* descriptor = MethodOf(method)->input_type();
    const std::unique_ptr<google::protobuf::Message> request(
        google::protobuf::MessageFactory::generated_factory()->GetPrototype(descriptor)->New());
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, request.get())) << text;
    return RawCall(server_.channel(), method, principal.empty() ? "" : "TOKEN-" + principal,
                   request->SerializeAsString(), 10'000);
  }

  TestServer server_;
  std::vector<Tenant> tenants_;
};

TEST_F(Tenancy, EveryMethodHasARowAndEveryTextFieldAKind) {
  std::function<void(const google::protobuf::Descriptor&, bool)> visit =
      [&](const google::protobuf::Descriptor& type, bool repeated) {
        for (int i = 0; i < type.field_count(); ++i) {
          const auto& field = *type.field(i);
          const bool many = repeated || field.is_repeated();
          if (field.type() == google::protobuf::FieldDescriptor::TYPE_STRING) {
            EXPECT_NE(KindOfText(field), TextField::kUnknown) << field.full_name();
            EXPECT_FALSE(many && KindOfText(field) == TextField::kName)
                << field.full_name() << ": TakeProject does not look into lists";
          }
          if (field.message_type() != nullptr) visit(*field.message_type(), many);
        }
      };
  for (const MethodRole& row : MethodRoles()) {
    if (HasNoProject(row)) continue;
    EXPECT_EQ(Rows().count(std::string(row.method)), 1U) << row.method << " has no row here";
    visit(*MethodOf(row.method)->input_type(), false);
  }
}

TEST_F(Tenancy, EveryMethodAsksForItsRoleInTheProject) {
  int cells = 0;
  for (const auto& [method, row] : Rows()) {
    const Role needed = FindMethod(method)->role;
    for (const Tenant& tenant : tenants_) {
      for (const auto& [principal, roles] : Principals()) {
        const bool may = ParseGrants(roles)->In(tenant.project) >= needed;
        // A deleted resource would be missing for the next principal.
        if (may && method.find("/Delete") != std::string::npos) continue;
        const auto [status, answer] = Ask(method, principal, row(tenant));
        const std::string cell =
            Cat(method, " in '", tenant.project, "' as ", principal, ": ", status.error_message());
        ++cells;
        // Jobs of others in a project are another matter.
        const bool owner = status.error_details().find("NOT_OWNER") != std::string::npos;
        EXPECT_EQ(status.error_code() == grpc::PERMISSION_DENIED && !owner, !may) << cell;
        if (may) {
          EXPECT_NE(status.error_code(), grpc::UNAUTHENTICATED) << cell;
          EXPECT_NE(status.error_code(), grpc::NOT_FOUND) << cell;
          continue;
        }
        EXPECT_EQ(answer, "") << cell;
        // The same answer where nothing is stored, and where there is no such project.
        Tenant none{"none", "never stored", "", "", ""};
        none.model = none.In("models/" + DigestOf("x"));
        none.plan = none.In("plans/" + DigestOf("x"));
        none.job = none.In(Cat("jobs/", kNowhere));
        if (ParseGrants(roles)->In("none") >= needed) continue;
        std::string message = Ask(method, principal, row(none)).first.error_message();
        if (const size_t at = message.find("'none'"); at != std::string::npos)
          message.replace(at, 6, Cat("'", ProjectTitle(tenant.project), "'"));
        EXPECT_EQ(message, status.error_message()) << cell;
      }
      EXPECT_EQ(Ask(method, "", row(tenant)).first.error_code(), grpc::UNAUTHENTICATED) << method;
    }
  }
  EXPECT_GT(cells, 800);
}

TEST_F(Tenancy, ContentOfOtherProjectsIsNotThere) {
  // The admin of "b" asks there for content that "a" stores.
  Tenant ask = tenants_[1];
  ask.project = "b";
  const Tenant& own = tenants_[2];
  const auto moved = [&](const std::string& name) { return JoinName("b", SplitName(name).rest); };
  ask.model = moved(ask.model);
  ask.plan = moved(ask.plan);
  ask.job = moved(ask.job);
  Tenant never{"b", "secret of nobody", own.In("models/" + DigestOf("x")), "", ""};
  never.plan = never.In("plans/" + DigestOf("x"));
  never.job = never.In(Cat("jobs/", kNowhere));
  for (const auto& [method, row] : Rows()) {
    if (method.find("/List") != std::string::npos || method.find("/Write") != std::string::npos)
      continue;
    const auto there = Ask(method, "b-admin", row(ask)),
               nowhere = Ask(method, "b-admin", row(never));
    EXPECT_EQ(there.first.error_code(), nowhere.first.error_code()) << method;
    EXPECT_TRUE(!there.first.ok() || method == "/mendel.v1.Models/FindMissingBlobs") << method;
    EXPECT_EQ(there.second.size(), nowhere.second.size()) << method;
  }
  const std::string find = "/mendel.v1.Models/FindMissingBlobs";
  EXPECT_NE(Ask(find, "b-admin", Rows().at(find)(ask)).second, "") << "missing in b";
  EXPECT_EQ(Ask(find, "a-admin", Rows().at(find)(tenants_[1])).second, "") << "there in a";
  // An upload of known bytes does not end early: a whole second copy is stored.
  const std::string upload =
      Cat("resource_name: '", ask.In(Cat("uploads/", kNowhere, "/", ask.Blob())), "' data: 's'");
  google::bytestream::WriteResponse response;
  const auto [status, answer] = Ask("/google.bytestream.ByteStream/Write", "b-admin", upload);
  ASSERT_TRUE(status.ok() && response.ParseFromString(answer)) << status.error_message();
  EXPECT_EQ(response.committed_size(), 1) << "one byte came, and one is kept";
}

TEST_F(Tenancy, ListsShowTheirProjectOnly) {
  for (const auto& [method, row] : Rows()) {
    if (method.find("/List") == std::string::npos) continue;
    for (const Tenant& tenant : tenants_) {
      const std::string answer = Ask(method, "admin", row(tenant)).second;
      EXPECT_NE(answer, "") << method << " " << tenant.project;
      for (const Tenant& other : tenants_) {
        for (const std::string& name : {other.model, other.plan, other.job}) {
          const std::string key = name.substr(name.rfind('/'));
          EXPECT_FALSE(other.project != tenant.project && answer.find(key) != std::string::npos)
              << method << " in '" << tenant.project << "' shows " << name;
        }
      }
    }
  }
}

TEST_F(Tenancy, SearchesOfOneModelInTwoProjectsAreTwo) {
  const std::string a = server_.MakeModel("the same", "a"), b = server_.MakeModel("the same", "b");
  const std::string submit = "/mendel.v1.Jobs/SubmitJob";
  const auto text = [](const std::string& model) {
    return Cat("spec { optimize { model: '", model, "' } } request_id: 'id'");
  };
  google::longrunning::Operation first, second;
  ASSERT_TRUE(first.ParseFromString(Ask(submit, "a-submitter", text(a)).second));
  server_.WorkOnce(1);
  ASSERT_TRUE(second.ParseFromString(Ask(submit, "b-submitter", text(b)).second));
  EXPECT_FALSE(second.done()) << "the plan of a answers nobody in b";
  EXPECT_EQ(ProjectOf(second.name()), "b");
  google::longrunning::Operation again;
  ASSERT_TRUE(again.ParseFromString(Ask(submit, "a-submitter", text(a)).second));
  EXPECT_EQ(again.name(), first.name());
  EXPECT_TRUE(again.done());
}

TEST_F(Tenancy, HostileProjects) {
  for (const std::string& name :
       {std::string("projects/"), std::string("projects//"), std::string("projects/../jobs/x"),
        std::string("projects/A/jobs/x"), Cat("projects/a/projects/b/jobs/", kNowhere),
        Cat("projects/a/../b/jobs/", kNowhere),
        Cat("projects/", std::string(64, 'a'), "/jobs/", kNowhere),
        Cat("projects/a%00/jobs/", kNowhere), Cat("projects/-/jobs/", kNowhere),
        Cat("projects/a-/jobs/", kNowhere), Cat("projects/*/jobs/", kNowhere)}) {
    for (const auto& [method, row] : Rows()) {
      const auto* input = MethodOf(method)->input_type();
      for (const char* field : {"name", "parent", "resource_name", "plan", "model_a"}) {
        if (input->FindFieldByName(field) == nullptr) continue;
        EXPECT_EQ(Ask(method, "admin", Cat(field, ": '", name, "'")).first.error_code(),
                  grpc::INVALID_ARGUMENT)
            << method << " " << field << " " << name;
      }
    }
  }
  const std::string both =
      Cat("model_a: '", tenants_[1].model, "' model_b: '", tenants_[2].model, "'");
  EXPECT_EQ(Ask("/mendel.v1.Verifier/ComparePair", "admin", both).first.error_code(),
            grpc::INVALID_ARGUMENT);
  const std::string spelled = Cat("name: 'projects/default/", tenants_[0].job, "'");
  v1::Job job;
  ASSERT_TRUE(job.ParseFromString(Ask("/mendel.v1.Jobs/GetJob", "reader", spelled).second));
  EXPECT_EQ(job.name(), tenants_[0].job) << "another spelling of the same name";
}

TEST_F(Tenancy, PageAndMetrics) {
  WebPage page(server_.env(), "1", {});
  const auto get = [&](const std::string& target, const std::string& principal) {
    const auto request =
        ParseHttpRequest(Cat("GET ", target, " HTTP/1.1\r\nHost: localhost\r\n",
                             "Authorization: Bearer TOKEN-", principal, "\r\n\r\n"));
    EXPECT_TRUE(request.ok());
    return page.Answer(*request);
  };
  for (const Tenant& tenant : tenants_) {
    const std::string base = Cat("/api/", tenant.In("jobs"));
    const std::string job = Cat("/api/", tenant.job);
    const std::string plan = Cat("/api/", tenant.plan);
    for (const std::string& target :
         {base, job, job + "/result", job + "/plan", job + "/log", job + "/report", job + "/bundle",
          Cat("/api/", tenant.In("models")), Cat("/api/", tenant.In("plans")), plan, plan + "/plan",
          plan + "/onnx", plan + "/html"}) {
      for (const auto& [principal, roles] : Principals()) {
        const bool may = ParseGrants(roles)->In(tenant.project) >= Role::kReader;
        const HttpResponse response = get(target, principal);
        EXPECT_EQ(response.code == 403, !may) << target << " as " << principal;
        EXPECT_FALSE(!may && response.body.find(tenant.plan) != std::string::npos);
      }
    }
  }
  EXPECT_EQ(get("/api/projects/../jobs", "admin").code, 400);
  EXPECT_EQ(get("/api/projects/A/jobs", "admin").code, 400);
  EXPECT_NE(get("/api/session", "both").body.find(R"([{"name":"a","role":"reader"},)"),
            std::string::npos);
  const std::string metrics = server_.env().metrics.Text();
  for (const char* private_text :
       {"projects/", "secret", "-submitter", "jobs/0", "models/", "plans/"})
    EXPECT_EQ(metrics.find(private_text), std::string::npos) << private_text;
}

}  // namespace
}  // namespace mendel::server
