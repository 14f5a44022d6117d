// libFuzzer target of the service (configure with MENDEL_FUZZ): the bytes are a list of calls, each
// a method and its request, of all RPCs, and of what a worker does in between. They run one after
// another in process, against real stores that are empty again after each list. No call may crash,
// be answered with INTERNAL or report a path, and the stores must be consistent afterwards.
//
// The mutator parses the list and changes fields of its requests. Texts "$0", "$1" and so on stand
// for names that the service has given out before in the same list.
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/wrappers.pb.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "server/rpc/fuzz_world.h"
#include "server/rpc/message_mutator.h"

namespace mendel::server {
namespace {

using google::protobuf::Message;
using google::protobuf::StringValue;

constexpr size_t kMostCalls = 24;

struct Method {
  const Message& prototype;
  std::function<void(World&, const Message&)> run;
};

template <class Request, class Response>
Method Unary(absl::Status (*handler)(Environment&, const Caller&, const Request&, Response&),
             std::string_view method) {
  return {Request::default_instance(), [handler, method](World& world, const Message& given) {
            Request request = static_cast<const Request&>(given);
            const std::optional<Caller> caller = world.Enter(method, request);
            if (!caller) return;
            Response response;
            const absl::Status status = handler(world.env(), *caller, request, response);
            world.CheckStatus(status);
            // Also serialized: texts that are not UTF-8 would end the call in gRPC.
            if (status.ok()) MENDEL_CHECK(Response().ParseFromString(response.SerializeAsString()));
            if (status.ok()) world.Learn(response);
          }};
}

template <class Request>
Method Other(void (World::*call)(const Request&)) {
  return {Request::default_instance(), [call](World& world, const Message& request) {
            (world.*call)(static_cast<const Request&>(request));
          }};
}

const std::vector<Method>& Methods() {
  static const auto* const methods = new std::vector<Method>{
      Unary(handlers::FindMissingBlobs, "/mendel.v1.Models/FindMissingBlobs"),
      Unary(handlers::CreateModel, "/mendel.v1.Models/CreateModel"),
      Unary(handlers::GetModel, "/mendel.v1.Models/GetModel"),
      Unary(handlers::ListModels, "/mendel.v1.Models/ListModels"),
      Unary(handlers::DeleteModel, "/mendel.v1.Models/DeleteModel"),
      Unary(handlers::SubmitJob, "/mendel.v1.Jobs/SubmitJob"),
      Unary(handlers::GetJob, "/mendel.v1.Jobs/GetJob"),
      Unary(handlers::ListJobs, "/mendel.v1.Jobs/ListJobs"),
      Unary(handlers::CancelJob, "/mendel.v1.Jobs/CancelJob"),
      Unary(handlers::DeleteJob, "/mendel.v1.Jobs/DeleteJob"),
      Unary(handlers::GetPlan, "/mendel.v1.Plans/GetPlan"),
      Unary(handlers::ListPlans, "/mendel.v1.Plans/ListPlans"),
      Unary(handlers::RefitPlan, "/mendel.v1.Plans/RefitPlan"),
      Unary(handlers::DeletePlan, "/mendel.v1.Plans/DeletePlan"),
      Unary(handlers::VerifyPlan, "/mendel.v1.Verifier/VerifyPlan"),
      Unary(handlers::ComparePair, "/mendel.v1.Verifier/ComparePair"),
      Unary(handlers::GetOperation, "/google.longrunning.Operations/GetOperation"),
      Unary(handlers::ListOperations, "/google.longrunning.Operations/ListOperations"),
      Unary(handlers::CancelOperation, "/google.longrunning.Operations/CancelOperation"),
      Unary(handlers::DeleteOperation, "/google.longrunning.Operations/DeleteOperation"),
      Unary(handlers::QueryWriteStatus, "/google.bytestream.ByteStream/QueryWriteStatus"),
      Other(&World::Write),
      Other(&World::Read),
      Other(&World::Watch),
      Other(&World::Wait),
      Other(&World::Work),
      Other(&World::Answer),
      {StringValue::default_instance(), [](World& world, const Message&) { world.StopWriting(); }},
  };
  return *methods;
}

/// One byte: the method, and in its two upper bits who calls; two bytes: the length of the request,
/// little-endian; the request.
struct Call {
  uint8_t head = 0;
  std::string request;
  const Method& method() const { return Methods()[(head & 63U) % Methods().size()]; }
};

std::vector<Call> ReadCalls(std::string_view bytes) {
  std::vector<Call> calls;
  while (bytes.size() >= 3 && calls.size() < kMostCalls) {
    const size_t length = static_cast<unsigned char>(bytes[1]) +
                          (static_cast<size_t>(static_cast<unsigned char>(bytes[2])) << 8U);
    calls.push_back({static_cast<uint8_t>(bytes[0]), std::string(bytes.substr(3, length))});
    bytes.remove_prefix(std::min(bytes.size(), length + 3));
  }
  return calls;
}

std::string WriteCalls(const std::vector<Call>& calls, size_t most) {
  std::string bytes;
  for (const Call& call : calls) {
    const size_t length = call.request.size();
    if (length > 65535 || bytes.size() + length + 3 > most) continue;
    bytes += {static_cast<char>(call.head), static_cast<char>(length & 255U),
              static_cast<char>(length >> 8U)};
    bytes += call.request;
  }
  return bytes;
}

const std::vector<std::string>& Words() {
  static const auto* const words = [] {
    auto* list = new std::vector<std::string>{
        "",
        "$0",
        "$1",
        "$2",
        "$3",
        "$4",
        "$5",
        "$6",
        "$7",
        "$8",
        "../../etc/passwd",
        "jobs/",
        "models/",
        "plans/",
        "projects/x",
        "projects/default",
        "projects/x/$0",
        "a/b",
        "x",
        "x:1x3",
        "strict",
        "default",
        "exact",
        "symbolic",
        "cpu",
        "avx2",
        "rule_1",
        "\xC3\xA4",
        R"({"error":{"code":"ABORTED","message":"/etc/x"}})",
        R"({"verdict":"equivalent","outputs":[{"name":"y","shape":[2],"boxes":[{"begin":[0],"end":[1]}]}]})",
        R"({"plan":"m.plan","speedup":1e999,"mutants":{"a":1},"weights":"symbolic"})",
        std::string(64, 'a'),
        std::string(300, '[')};
    for (const char* content : kFuzzContents) {
      const BlobId blob = BlobOf(content);
      list->insert(list->end(), {content, blob.sha256, BlobName(blob),
                                 "uploads/01234567-89ab-cdef-0123-456789abcdef/" + BlobName(blob),
                                 "plans/" + blob.sha256});
    }
    return list;
  }();
  return *words;
}

template <class Request>
Call CallOf(const Request& request) {
  for (size_t i = 0; i < Methods().size(); ++i) {
    if (Methods()[i].prototype.GetDescriptor() == Request::descriptor())
      return {static_cast<uint8_t>(i), request.SerializeAsString()};
  }
  return {};
}

/// A list that goes through: uploads, models, jobs of all kinds, a plan.
const std::vector<Call>& GoodCalls() {
  static const auto* const calls = [] {
    auto* list = new std::vector<Call>;
    v1::CreateModelRequest model;
    for (size_t i = 0; i < 2; ++i) {
      google::bytestream::WriteRequest write;
      const BlobId blob = BlobOf(kFuzzContents[i + 1]);
      write.set_resource_name("uploads/01234567-89ab-cdef-0123-456789abcdef/" + BlobName(blob));
      write.set_data(kFuzzContents[i + 1]);
      write.set_finish_write(true);
      list->push_back(CallOf(write));
      v1::ModelFile& file = *model.add_files();
      file.set_path(Cat("folder/file", i));
      file.mutable_digest()->set_sha256(blob.sha256);
      file.mutable_digest()->set_size_bytes(blob.size);
    }
    model.set_main_file("folder/file0");
    list->push_back(CallOf(model));  // $0 is its name
    v1::SubmitJobRequest submit;
    submit.mutable_spec()->mutable_optimize()->set_model("$0");
    list->push_back(CallOf(submit));
    v1::JobEvent event;
    event.mutable_progress()->set_phase("search");
    list->push_back(CallOf(event));
    StringValue answer;
    answer.set_value(Words()[30]);
    list->push_back(CallOf(answer));
    v1::RefitPlanRequest rebind;
    rebind.set_plan("plans/" + BlobOf(kFuzzContents[1]).sha256);
    rebind.set_model("$0");
    list->push_back(CallOf(rebind));
    v1::ComparePairRequest pair;
    pair.set_model_a("$0");
    pair.set_model_b("$0");
    list->push_back(CallOf(pair));
    return list;
  }();
  return *calls;
}

void MutateCall(Call& call, Rng& rng) {
  const std::unique_ptr<Message> message(call.method().prototype.New());
  if (!message->ParseFromString(call.request)) message->Clear();
  for (uint64_t i = rng.Below(4) + 1; i > 0; --i) MutateMessage(*message, Words(), rng);
  call.request = message->SerializePartialAsString();
}

void MutateCalls(std::vector<Call>& calls, Rng& rng) {
  const auto any = [&](size_t bound) { return static_cast<std::ptrdiff_t>(rng.Below(bound)); };
  if (calls.empty()) calls = GoodCalls();
  Call& call = calls[rng.Below(calls.size())];
  switch (rng.Below(10)) {
    case 0: {
      Call added{static_cast<uint8_t>(rng.Next()), ""};
      MutateCall(added, rng);
      calls.insert(calls.begin() + any(calls.size() + 1), added);
      break;
    }
    case 1: {
      const auto place = calls.begin() + any(calls.size() + 1);
      calls.insert(place, Call(GoodCalls()[rng.Below(GoodCalls().size())]));
      break;
    }
    case 2:
      calls.erase(calls.begin() + any(calls.size()));
      break;
    case 3:
      calls.insert(calls.begin() + any(calls.size() + 1), Call(call));
      break;
    case 4:
      call.head ^= static_cast<uint8_t>(64U << rng.Below(2));
      break;
    case 5:
      std::swap(call, calls[rng.Below(calls.size())]);
      break;
    default:
      MutateCall(call, rng);
  }
}

}  // namespace
}  // namespace mendel::server

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  using namespace mendel::server;  // NOLINT: two functions that C names
  if (seed % 16 == 0) return LLVMFuzzerMutate(data, size, max_size);
  mendel::Rng rng(seed);
  std::vector<Call> calls = ReadCalls({reinterpret_cast<const char*>(data), size});
  MutateCalls(calls, rng);
  const std::string bytes = WriteCalls(calls, max_size);
  std::copy(bytes.begin(), bytes.end(), data);
  return bytes.size();
}

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  // It reports each text that is not UTF-8.
  google::protobuf::SetLogHandler(nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::array callers = {
      mendel::server::Principal{"one",
                                *mendel::server::ParseGrants("default:submitter,x:submitter")},
      mendel::server::Principal{"admin", *mendel::server::ParseGrants("admin")},
      mendel::server::Principal{"two", *mendel::server::ParseGrants("x:submitter")},
      mendel::server::Principal{"reader", *mendel::server::ParseGrants("reader")}};
  static mendel::server::World world;
  for (const mendel::server::Call& call :
       mendel::server::ReadCalls({reinterpret_cast<const char*>(data), size})) {
    const std::unique_ptr<google::protobuf::Message> request(call.method().prototype.New());
    if (!request->ParseFromString(call.request)) continue;
    world.Resolve(*request);
    world.principal = callers[call.head >> 6U];
    call.method().run(world, *request);
  }
  world.Clear();
  return 0;
}
