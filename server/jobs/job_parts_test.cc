// The parts of a job that need no process: specs, keys, JSON, bundles, and the exchange of
// measurements.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <set>

#include "base/status.h"
#include "optimizer/profile/profile_cache.h"
#include "server/jobs/bundle.h"
#include "server/jobs/from_json.h"
#include "server/jobs/job_folder.h"
#include "server/jobs/job_test_support.h"
#include "server/jobs/profile_exchange.h"
#include "server/jobs/work_key.h"
#include "server/jobs/worker_command.h"

namespace mendel::server {
namespace {

const std::string kModel = "models/" + std::string(64, 'a');

TEST(CheckSpec, NamesTheFieldThatIsWrong) {
  RunnerOptions options;
  options.devices = {{"cpu", "a processor", "avx2"}};
  EXPECT_TRUE(CheckSpec(OptimizeJob(kModel, "input:1x3"), options).ok());
  const auto wrong = [&](const std::string& field,
                         const std::function<void(v1::OptimizeSpec&)>& change) {
    v1::JobSpec spec = OptimizeJob(kModel);
    change(*spec.mutable_optimize());
    const absl::Status status = CheckSpec(spec, options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << field;
    EXPECT_TRUE(std::string(status.message()).starts_with("spec.optimize." + field + ": "))
        << status;
  };
  wrong("model", [](auto& spec) { spec.set_model("models/../x"); });
  wrong("model", [](auto& spec) { spec.set_model("models/" + std::string(64, 'A')); });
  wrong("shapes", [](auto& spec) { spec.set_shapes("x:1\n--output=/etc/x"); });
  wrong("shapes", [](auto& spec) { spec.set_shapes(std::string(100'000, 'x')); });
  wrong("device", [](auto& spec) { spec.set_device("abacus"); });
  wrong("isa", [](auto& spec) { spec.set_isa("avx512"); });
  wrong("threads", [](auto& spec) { spec.set_threads(-1); });
  wrong("numerics", [](auto& spec) { spec.set_numerics("sloppy"); });
  wrong("weights", [](auto& spec) { spec.set_weights("approximate"); });
  wrong("budget.time",
        [](auto& spec) { spec.mutable_budget()->mutable_time()->set_seconds(3601); });
  wrong("budget.time", [](auto& spec) { spec.mutable_budget()->mutable_time()->set_nanos(-1); });
  wrong("budget.wall_time",
        [](auto& spec) { spec.mutable_budget()->mutable_wall_time()->set_seconds(-5); });
  wrong("budget.candidates", [](auto& spec) { spec.mutable_budget()->set_candidates(-1); });
  wrong("budget.memory_bytes",
        [](auto& spec) { spec.mutable_budget()->set_memory_bytes(int64_t{1} << 60); });
  wrong("disabled_rules", [](auto& spec) { spec.add_disabled_rules("a,b"); });
  wrong("max_weight_growth_bytes", [](auto& spec) { spec.set_max_weight_growth_bytes(-1); });
  wrong("target_bound_log2", [](auto& spec) { spec.set_target_bound_log2(1); });
  EXPECT_FALSE(CheckSpec({}, options).ok());
  v1::JobSpec elsewhere = OptimizeJob(kModel);
  elsewhere.mutable_optimize()->set_device("cuda");
  elsewhere.mutable_optimize()->set_isa("sm_90");
  EXPECT_FALSE(CheckSpec(elsewhere, options).ok());
  options.other_devices = {"cuda"};
  EXPECT_TRUE(CheckSpec(elsewhere, options).ok());
  EXPECT_FALSE(CheckDevice(elsewhere, options).ok()) << "not by this machine's workers";
  EXPECT_TRUE(CheckRebindDevice("", options).ok());
  EXPECT_TRUE(CheckRebindDevice("cuda", options).ok());
  EXPECT_EQ(std::string(CheckRebindDevice("cuda:sm_90", options).message()),
            "spec.refit_plan.plan: no worker has 'cuda:sm_90'");
  v1::JobSpec verify;
  verify.mutable_verify_plan()->set_plan("plans/" + std::string(64, '0'));
  verify.mutable_verify_plan()->set_model(kModel);
  EXPECT_TRUE(CheckSpec(verify, options).ok());
  verify.mutable_verify_plan()->set_plan(kModel);
  EXPECT_FALSE(CheckSpec(verify, options).ok());
}

TEST(WorkKey, DependsOnWhatTheResultDependsOn) {
  RunnerOptions options;
  options.devices = {{"cpu", "a processor", "avx2"}};
  const auto key = [&](const std::function<void(v1::OptimizeSpec&)>& change) {
    v1::JobSpec spec = OptimizeJob(kModel);
    change(*spec.mutable_optimize());
    return WorkKey(spec, options);
  };
  const std::string plain = key([](auto&) {});
  EXPECT_EQ(plain, key([](auto& spec) { spec.set_device("cpu"); }));
  EXPECT_EQ(plain, key([](auto& spec) { spec.set_numerics("default"); }));
  EXPECT_EQ(plain, key([](auto& spec) { spec.mutable_budget()->mutable_time()->set_seconds(60); }));
  EXPECT_EQ(plain, key([](auto& spec) { spec.mutable_budget()->set_memory_bytes(1 << 30); }));
  EXPECT_EQ(plain, key([](auto& spec) { spec.set_weights("symbolic"); }));
  EXPECT_NE(plain, key([](auto& spec) { spec.set_numerics("bf16"); }));
  EXPECT_NE(plain, key([](auto& spec) { spec.set_weights("exact"); }));
  EXPECT_NE(plain, key([](auto& spec) { spec.set_max_weight_growth_bytes(1); }));
  EXPECT_NE(plain, key([](auto& spec) { spec.set_seed(7); }));
  EXPECT_NE(plain, key([](auto& spec) { spec.set_shapes("x:2"); }));
  EXPECT_NE(plain, key([](auto& spec) { spec.add_disabled_rules("conv_merge"); }));
  EXPECT_NE(plain, key([](auto& spec) { spec.set_threads(3); }));
  options.devices[0].identity = "another processor";
  EXPECT_NE(plain, key([](auto&) {}));
  EXPECT_EQ(WorkKey({}, options), "");
}

TEST(WorkerCommand, SaysWhatTheSpecSays) {
  JobWorld world;
  RunnerOptions options;
  options.devices = {{"cpu", "a processor", "avx2"}, {"cuda:sm_90", "predicted", "sm_90", true}};
  v1::JobSpec spec = OptimizeJob(world.AddModel("m.onnx", "bytes"), "x:2");
  const auto has = [&](const std::string& word) {
    EXPECT_TRUE(CheckSpec(spec, options).ok());
    const auto command = MakeWorkerCommand(spec, options, world.jobs(), world.blobs());
    EXPECT_TRUE(command.ok()) << command.status();
    return command.ok() &&
           std::count(command->arguments.begin(), command->arguments.end(), word) == 1;
  };
  EXPECT_TRUE(has("--shapes=x:2"));
  EXPECT_TRUE(has("--weights=symbolic"));
  EXPECT_FALSE(has("--weights=exact") || has("--offline"));
  spec.mutable_optimize()->set_max_weight_growth_bytes(7);
  EXPECT_TRUE(has("--max-weight-growth=7"));
  spec.mutable_optimize()->set_weights("exact");
  spec.mutable_optimize()->set_device("cpu");
  EXPECT_TRUE(has("--weights=exact") && has("--backend=cpu") && !has("--offline"));
  spec.mutable_optimize()->set_device("cuda:sm_90");
  EXPECT_TRUE(has("--backend=cuda:sm_90") && has("--offline"));
}

TEST(FromJson, HostileTextIsLeftOut) {
  EXPECT_FALSE(PlanFromJson("").ok());
  EXPECT_FALSE(PlanFromJson("[1]").ok());
  EXPECT_FALSE(PlanFromJson(std::string(1'000'000, '[')).ok());
  EXPECT_FALSE(PlanFromJson("{\"speedup\": \xff\xfe}").ok());
  // Brackets in a text do not make up for those that nest.
  const std::string nested = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_FALSE(PlanFromJson("{\"a\": \"\\\"" + std::string(100'000, ']') +
                            "\", \"outputs\": " + nested + "}")
                   .ok());
  const auto plan = PlanFromJson(
      R"({"speedup": "fast", "target": 5, "baseline": [], "mutants": {"a": -3, "b": 1e300, "c": 2}})");
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->speedup(), 0);
  EXPECT_EQ(plan->mutants().at("a"), 0);
  EXPECT_EQ(plan->mutants().at("b"), 0);
  EXPECT_EQ(plan->mutants().at("c"), 2);
  EXPECT_FALSE(plan->unmeasured());
  EXPECT_FALSE(PlanFromJson(R"({"unmeasured": "yes"})")->unmeasured());
  EXPECT_TRUE(PlanFromJson(R"({"unmeasured": true})")->unmeasured());
  const auto line = ProgressFromJson(
      R"({"phase": 3, "seconds_left": -1, "warnings": ["w", 4], "candidates": 18446744073709551615})");
  ASSERT_TRUE(line.ok());
  EXPECT_FALSE(line->progress.has_time_left());
  EXPECT_EQ(line->progress.candidates(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(line->warnings.size(), 2U);
  EXPECT_EQ(ProgressFromJson("{\"phase\": \"" + std::string(100'000, 'x') + "\"}")
                ->progress.phase()
                .size(),
            4096U);
}

TEST(FromJson, VerdictsAndErrors) {
  EXPECT_EQ(VerdictFromJson(R"({"verdict": "partial"})")->kind(), v1::Verdict::KIND_PARTIAL);
  EXPECT_EQ(
      VerdictFromJson(R"({"error": {"code": "FAILED_PRECONDITION", "message": "m"}})")->reason(),
      "m");
  EXPECT_EQ(VerdictFromJson(R"({"error": {"code": "ABORTED", "message": "m"}})")->kind(),
            v1::Verdict::KIND_UNPROVEN);
  EXPECT_FALSE(VerdictFromJson(R"({"error": {"code": "INVALID_ARGUMENT", "message": "m"}})").ok());
  EXPECT_FALSE(VerdictFromJson("{}").ok());
  EXPECT_TRUE(ErrorFromJson("{}").ok());
  EXPECT_EQ(ErrorFromJson(R"({"error": {"code": "NOT_FOUND", "message": "m"}})").code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(ErrorFromJson(R"({"error": {"code": "OK"}})").code(), absl::StatusCode::kUnknown);
  std::string boxes;
  for (int i = 0; i < 9'000; ++i) boxes += "{\"begin\": [1], \"end\": [2]},";
  const std::string output = "{\"boxes\": [" + boxes + "{}]}";
  const auto verdict =
      VerdictFromJson("{\"verdict\": \"different\", \"outputs\": [" + output + "," + output + "]}");
  EXPECT_EQ(verdict->outputs(0).boxes_size() + verdict->outputs(1).boxes_size(), kMostBoxes);
}

class Profiles : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return world_.folder() + "/" + name; }
  JobWorld world_;
};

TEST_F(Profiles, MeasurementsAreSharedButNoCertificates) {
  {
    auto job = *ProfileCache::Open(Path("job"));
    ASSERT_TRUE(job->Put("timing", "a", "new").ok());
    ASSERT_TRUE(job->Put("timing", "b", "forged").ok());
    ASSERT_TRUE(job->Put("certificate", "c", "forged").ok());
    ASSERT_TRUE(job->Put("gate", "g", "forged").ok());
    ASSERT_TRUE(job->Put("timing", "huge", std::string(5 << 20, 'x')).ok());
    auto shared = *ProfileCache::Open(Path("shared"));
    ASSERT_TRUE(shared->Put("timing", "b", "known").ok());
  }
  EXPECT_EQ(*MergeProfiles(Path("job"), Path("shared")), 1);
  auto shared = *ProfileCache::Open(Path("shared"));
  EXPECT_EQ(shared->Get("timing", "a"), "new");
  EXPECT_EQ(shared->Get("timing", "b"), "known");
  EXPECT_FALSE(shared->Get("certificate", "c").has_value());
  EXPECT_FALSE(shared->Get("gate", "g").has_value());
  ASSERT_TRUE(CopyProfiles(Path("shared"), Path("copy")).ok());
  EXPECT_EQ((*ProfileCache::Open(Path("copy")))->Get("timing", "a"), "new");
  EXPECT_TRUE(CopyProfiles(Path("missing"), Path("other")).ok());
  EXPECT_FALSE(std::filesystem::exists(Path("other")));
}

TEST_F(Profiles, HostileFilesDoNothing) {
  std::ofstream(Path("garbage")) << std::string(10'000, 'x');
  EXPECT_FALSE(MergeProfiles(Path("garbage"), Path("shared")).ok());
  EXPECT_EQ(*MergeProfiles(Path("missing"), Path("shared")), 0);
  std::filesystem::create_symlink("/etc/passwd", Path("link"));
  EXPECT_EQ(*MergeProfiles(Path("link"), Path("shared")), 0);
  // A view in place of the table.
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(Path("view").c_str(), &db), SQLITE_OK);
  sqlite3_exec(db,
               "CREATE VIEW entry AS SELECT 'timing' AS kind, 'k' AS key, randomblob(9) AS value, "
               "'h' AS hash",
               nullptr, nullptr, nullptr);
  sqlite3_close(db);
  EXPECT_EQ(MergeProfiles(Path("view"), Path("shared")).value_or(0), 0);
}

TEST_F(Profiles, AFolderThatAnEarlierAttemptHoldsIsLeftToIt) {
  const std::string job = "jobs/00000000-0000-4000-8000-000000000001";
  auto held = JobFolder::Open(world_.folder(), job, 1);
  ASSERT_TRUE(held.ok()) << held.status();
  std::ofstream((*held)->path() + "/out/plan") << "half";
  auto beside = JobFolder::Open(world_.folder(), job, 3);
  ASSERT_TRUE(beside.ok()) << beside.status();
  EXPECT_EQ((*beside)->path(), (*held)->path() + ".3");
  EXPECT_TRUE((*held)->Delivered("plan").ok());
  EXPECT_FALSE((*beside)->Delivered("plan").ok());
  const std::string first = (*held)->path(), second = (*beside)->path();
  held->reset();
  beside->reset();
  std::vector<std::string> asked;
  std::set<std::string> left;
  SweepJobFolders(
      world_.folder(), [&](const std::string& name) { return asked.push_back(name), true; },
      [&](const std::string& folder) { left.insert(folder); });
  EXPECT_EQ(asked, (std::vector<std::string>{job, job}));
  EXPECT_EQ(left, (std::set<std::string>{first, second}));
  EXPECT_FALSE(std::filesystem::exists(first) || std::filesystem::exists(second));
}

TEST_F(Profiles, FoldersOfJobsInProjectsAreSweptByTheirNames) {
  const std::string uuid = "00000000-0000-4000-8000-000000000001";
  const std::vector<std::string> jobs = {"jobs/" + uuid, "projects/a/jobs/" + uuid,
                                         "projects/my-team-2/jobs/" + uuid};
  std::map<std::string, std::string> paths;
  for (const std::string& job : jobs) {
    const auto folder = JobFolder::Open(world_.folder(), job, 1);
    ASSERT_TRUE(folder.ok()) << folder.status();
    paths[job] = (*folder)->path();
    std::ofstream((*folder)->path() + "/out/plan") << job;
  }
  EXPECT_EQ(std::set<std::string>({paths[jobs[0]], paths[jobs[1]], paths[jobs[2]]}).size(), 3U)
      << "one uuid in three projects";
  std::string beside;
  {
    const auto held = JobFolder::Open(world_.folder(), jobs[1], 1);
    const auto second = JobFolder::Open(world_.folder(), jobs[1], 7);
    ASSERT_TRUE(held.ok() && second.ok());
    beside = (*second)->path();
    EXPECT_EQ(beside, paths[jobs[1]] + ".7");
    SweepJobFolders(
        world_.folder(), [](const std::string&) { return true; }, [](const std::string&) {});
    EXPECT_TRUE(std::filesystem::exists(paths[jobs[1]])) << "an attempt holds it";
    EXPECT_FALSE(std::filesystem::exists(paths[jobs[0]]));
  }
  for (const std::string& job : {jobs[0], jobs[2]})
    ASSERT_TRUE(JobFolder::Open(world_.folder(), job, 1).ok());
  std::multiset<std::string> asked;
  SweepJobFolders(
      world_.folder(),
      [&](const std::string& name) {
        asked.insert(name);
        return name == jobs[1];
      },
      [](const std::string&) {});
  EXPECT_EQ(asked, (std::multiset<std::string>{jobs[0], jobs[1], jobs[1], jobs[2]}));
  EXPECT_FALSE(std::filesystem::exists(paths[jobs[1]]) || std::filesystem::exists(beside));
  EXPECT_TRUE(std::filesystem::exists(paths[jobs[0]]));
  EXPECT_TRUE(std::filesystem::exists(paths[jobs[2]]));
  for (const char* bad : {"projects/a/jobs/../x", "projects/a/jobs/", "projects/a/plans/x"})
    EXPECT_FALSE(JobFolder::Open(world_.folder(), bad, 1).ok()) << bad;
}

TEST_F(Profiles, BundlesAreTarArchives) {
  ASSERT_TRUE(WriteTar(Path("a.tar"),
                       {{"one.txt", "first"}, {"two.txt", std::string(512, 'x')}, {"none", ""}})
                  .ok());
  EXPECT_EQ(std::filesystem::file_size(Path("a.tar")), 512U * 7);
  const std::string list = "tar -tf " + Path("a.tar") + " > " + Path("list") + " 2>&1";
  if (std::system("command -v tar >/dev/null") != 0) GTEST_SKIP() << "no tar";
  EXPECT_EQ(std::system(list.c_str()), 0);
  std::ifstream file(Path("list"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "one.txt\ntwo.txt\nnone\n");
}

}  // namespace
}  // namespace mendel::server
