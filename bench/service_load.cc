// Many clients and small jobs against a running server (bench/service starts one): checks that
// every acknowledged job ends exactly once and as it must, and prints how long calls took and what
// the server's memory did.
//
// usage: service_load --server ADDRESS --pid PID --metrics-port PORT --token-prefix WORD [--clients
// 64] [--jobs 2000]
//
// Client k sends the token WORD-k, and WORD-admin must be an admin's. Exit code 1 when a job was
// lost, doubled, wrong or stuck.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <thread>

#include "base/status.h"
#include "bench/load_client.h"
#include "bench/load_models.h"
#include "bench/process_facts.h"

namespace mendel {
namespace {

struct Options {
  std::string server;
  int pid = 0;
  int metrics_port = 0;
  std::string token_prefix;
  int clients = 64;
  int jobs = 2000;
  int warm_up = 256;
  int window = 8;
};

using Clients = std::vector<std::unique_ptr<ServiceClient>>;

absl::StatusOr<std::unique_ptr<ServiceClient>> ConnectAs(const Options& options,
                                                         const std::string& who) {
  ServiceOptions service;
  service.address = options.server;
  service.token = Cat(options.token_prefix, "-", who);
  service.call_seconds = 120;
  service.retry_seconds = 0;  // an error is a finding
  return ConnectService(service);
}

/// Runs jobs `first` to `first + count` by all clients at once and adds up their results.
LoadResult RunLoad(const Options& options, const Clients& clients,
                   const std::vector<ModelTrio>& trios, int first, int count) {
  std::vector<LoadResult> results(clients.size());
  std::vector<std::thread> threads;
  const int number = static_cast<int>(clients.size());
  for (int k = 0; k < number; ++k) {
    LoadShare share;
    share.first = first + count * k / number;
    share.count = first + count * (k + 1) / number - share.first;
    share.window = options.window;
    share.watches = k % 2 == 1;
    const auto at = static_cast<size_t>(k);
    threads.emplace_back(
        [&, share, at] { results[at] = RunLoadClient(*clients[at], trios, share); });
  }
  LoadResult all;
  for (size_t k = 0; k < results.size(); ++k) {
    threads[k].join();
    LoadResult& one = results[k];
    for (auto& [name, seconds] : one.seconds) {
      all.seconds[name].insert(all.seconds[name].end(), seconds.begin(), seconds.end());
    }
    for (const auto& [job, index] : one.acknowledged) {
      if (!all.acknowledged.emplace(job, index).second)
        all.errors.push_back(Cat(job, " was given to two clients"));
    }
    all.errors.insert(all.errors.end(), one.errors.begin(), one.errors.end());
  }
  return all;
}

/// Every acknowledged job is listed once, ended, and says in its journal that it was begun once and
/// ended once; there are no others.
void CheckJobs(ServiceClient& admin, const std::map<std::string, int>& acknowledged,
               std::vector<std::string>& errors) {
  JobQuery query;
  query.limit = 0;
  const auto jobs = admin.ListJobs(query);
  if (!jobs.ok()) return errors.push_back(jobs.status().ToString());
  std::set<std::string> listed;
  for (const v1::Job& job : *jobs) {
    if (!listed.insert(job.name()).second) errors.push_back(Cat(job.name(), " is listed twice"));
    if (!acknowledged.contains(job.name()))
      errors.push_back(Cat(job.name(), " was never acknowledged"));
    if (!HasEnded(job.state())) errors.push_back(Cat(job.name(), " has not ended"));
  }
  for (const auto& [name, index] : acknowledged) {
    if (!listed.contains(name)) errors.push_back(Cat(name, " is lost"));
    std::map<v1::JobState, int> entered;
    int64_t last = 0;
    const auto ended = admin.Watch(name, 0, [&, &job = name](const v1::JobEvent& event) {
      if (event.sequence() != ++last)
        errors.push_back(Cat(job, ": event ", event.sequence(), " follows ", last - 1));
      if (event.has_state()) ++entered[event.state()];
    });
    const bool once = entered == std::map<v1::JobState, int>{{v1::JOB_STATE_PENDING, 1},
                                                             {v1::JOB_STATE_RUNNING, 1},
                                                             {v1::JOB_STATE_SUCCEEDED, 1}};
    if (!ended.ok() || !once)
      errors.push_back(Cat(name, ": its journal does not say that it was begun and ended once"));
  }
}

void PrintCalls(std::map<std::string, std::vector<double>> calls) {
  std::printf(
      "| call | number | p50 ms | p90 ms | p99 ms | longest ms |\n|---|---|---|---|---|---|\n");
  for (auto& [name, seconds] : calls) {
    std::sort(seconds.begin(), seconds.end());
    const auto at = [&sorted = seconds](double share) {
      return 1e3 * sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))];
    };
    std::printf("| %s | %zu | %.1f | %.1f | %.1f | %.1f |\n", name.c_str(), seconds.size(), at(0.5),
                at(0.9), at(0.99), at(1));
  }
}

void PrintMemory(const std::vector<std::pair<std::string, ProcessFacts>>& moments) {
  std::printf(
      "\n| server | heap in use, KiB | anonymous, KiB | resident, KiB | threads "
      "|\n|---|---|---|---|---|\n");
  for (const auto& [when, facts] : moments) {
    std::printf("| %s | %.0f | %lld | %lld | %lld |\n", when.c_str(), facts.heap_bytes / 1024,
                static_cast<long long>(facts.anonymous_kib),
                static_cast<long long>(facts.resident_kib), static_cast<long long>(facts.threads));
  }
}

absl::StatusOr<std::vector<std::string>> Run(const Options& options) {
  Clients clients;
  for (int k = 0; k < options.clients; ++k) {
    MENDEL_ASSIGN_OR_RETURN(clients.emplace_back(), ConnectAs(options, Cat(k)));
  }
  MENDEL_ASSIGN_OR_RETURN(const auto admin, ConnectAs(options, "admin"));
  const std::string folder =
      std::filesystem::temp_directory_path() / Cat("mendel-load-", options.pid);
  std::filesystem::create_directories(folder);
  const auto trios = UploadTrios(*clients[0], folder, 8);
  std::filesystem::remove_all(folder);
  MENDEL_RETURN_IF_ERROR(trios.status());
  const auto look = [&] { return FactsOf(options.pid, options.metrics_port); };
  std::vector<std::pair<std::string, ProcessFacts>> moments = {{"before the first job", look()}};
  LoadResult warm = RunLoad(options, clients, *trios, 0, options.warm_up);
  moments.emplace_back(Cat("after ", options.warm_up, " jobs"), look());
  const auto start = std::chrono::steady_clock::now();
  LoadResult result = RunLoad(options, clients, *trios, options.warm_up, options.jobs);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  moments.emplace_back(Cat("after ", options.jobs, " more"), look());
  PrintCalls(result.seconds);
  PrintMemory(moments);
  const ProcessFacts& before = moments[1].second;
  const ProcessFacts& after = moments[2].second;
  std::printf(
      "\n%d jobs by %d clients in %.1f s: %.1f a second. CPU of the server itself: %.1f ms a "
      "job.\n",
      options.jobs, options.clients, seconds, options.jobs / seconds,
      1e3 * (after.cpu_seconds - before.cpu_seconds) / options.jobs);
  std::printf("Heap after / before: %.3f; anonymous memory after / before: %.3f.\n",
              after.heap_bytes / before.heap_bytes,
              static_cast<double>(after.anonymous_kib) / static_cast<double>(before.anonymous_kib));
  std::vector<std::string> errors = std::move(warm.errors);
  errors.insert(errors.end(), result.errors.begin(), result.errors.end());
  result.acknowledged.merge(warm.acknowledged);
  if (static_cast<int>(result.acknowledged.size()) != options.warm_up + options.jobs)
    errors.emplace_back("some were not submitted");
  CheckJobs(*admin, result.acknowledged, errors);
  std::printf("Acknowledged: %zu; lost, doubled, stuck or wrong: %zu.\n",
              result.acknowledged.size(), errors.size());
  return errors;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("Many clients and small jobs against a server");
  app.add_option("--server", options.server)->required();
  app.add_option("--pid", options.pid)->required();
  app.add_option("--metrics-port", options.metrics_port)->required();
  app.add_option("--token-prefix", options.token_prefix)->required();
  app.add_option("--clients", options.clients)->check(CLI::PositiveNumber);
  app.add_option("--jobs", options.jobs)->check(CLI::PositiveNumber);
  app.add_option("--warm-up", options.warm_up, "Jobs before the first look at the memory")
      ->check(CLI::PositiveNumber);
  app.add_option("--window", options.window, "Jobs that a client has open at once")
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  const auto errors = Run(options);
  if (!errors.ok()) {
    std::fprintf(stderr, "%s\n", errors.status().ToString().c_str());
    return 1;
  }
  for (size_t i = 0; i < std::min<size_t>(errors->size(), 20); ++i)
    std::fprintf(stderr, "%s\n", (*errors)[i].c_str());
  return errors->empty() ? 0 : 1;
}

}  // namespace
}  // namespace mendel

int main(int argc, char** argv) { return mendel::Main(argc, argv); }
