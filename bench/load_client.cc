#include "bench/load_client.h"

#include <chrono>
#include <deque>
#include <thread>
#include <utility>

#include "base/status.h"

namespace mendel {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPause = std::chrono::milliseconds(500);
constexpr int kRepeatEvery = 5;
constexpr int kMisuseEvery = 20;

class LoadClient {
 public:
  LoadClient(ServiceClient& client, const std::vector<ModelTrio>& trios, const LoadShare& share)
      : client_(client), trios_(trios), share_(share) {}

  LoadResult Run() {
    moved_ = Clock::now();
    for (int next = 0; result_.errors.empty() && (next < share_.count || !open_.empty());) {
      while (next < share_.count && static_cast<int>(open_.size()) < share_.window &&
             result_.errors.empty()) {
        SubmitJob(share_.first + next++);
      }
      share_.watches ? WatchOldest() : LookAtAll();
    }
    return std::move(result_);
  }

 private:
  template <class Call>
  auto Timed(const std::string& name, const Call& call) {
    const auto start = Clock::now();
    auto answer = call();
    result_.seconds[name].push_back(std::chrono::duration<double>(Clock::now() - start).count());
    if (!answer.ok()) Error(Cat(name, ": ", answer.status().ToString()));
    return answer;
  }

  void Error(std::string what) { result_.errors.push_back(std::move(what)); }

  void SubmitJob(int index) {
    const v1::JobSpec spec = LoadSpec(index, trios_);
    SubmitOptions options;
    options.request_id = Cat("load-", index);
    const auto name = Timed("Submit", [&] { return client_.Submit(spec, options); });
    if (!name.ok()) return;
    if (!result_.acknowledged.emplace(*name, index).second)
      return Error(Cat(*name, " was given twice"));
    open_.push_back(*name);
    if (index % kRepeatEvery == 0) {
      const auto again = Timed("Submit", [&] { return client_.Submit(spec, options); });
      if (again.ok() && *again != *name)
        Error(Cat("request ", options.request_id, " gave ", *name, " and ", *again));
    }
    if (index % kMisuseEvery == 0) {
      const auto other = client_.Submit(LoadSpec(index + 1, trios_), options);
      if (!absl::IsAlreadyExists(other.status()))
        Error(Cat(options.request_id, " for another job: ", other.status().ToString()));
    }
  }

  void End(const v1::Job& job) {
    const std::string wrong = WrongEnd(job, result_.acknowledged.at(job.name()));
    if (!wrong.empty()) Error(wrong);
    moved_ = Clock::now();
  }

  void WatchOldest() {
    if (open_.empty()) return;
    const auto job = client_.Watch(open_.front(), 0, {});
    if (!job.ok()) return Error(Cat("Watch: ", job.status().ToString()));
    End(*job);
    open_.pop_front();
  }

  void LookAtAll() {
    std::deque<std::string> still_open;
    for (const std::string& name : open_) {
      const auto job = Timed("Get", [&] { return client_.GetJob(name); });
      if (!job.ok()) return;
      if (HasEnded(job->state())) {
        End(*job);
      } else {
        still_open.push_back(name);
      }
    }
    const bool moved = still_open.size() < open_.size();
    open_ = std::move(still_open);
    JobQuery query;
    query.limit = 50;
    Timed("List", [&] { return client_.ListJobs(query); }).status().IgnoreError();
    if (std::chrono::duration<double>(Clock::now() - moved_).count() > share_.stuck_seconds &&
        !open_.empty()) {
      return Error(Cat(open_.front(), " and ", open_.size() - 1, " others are stuck"));
    }
    if (!moved) std::this_thread::sleep_for(kPause);
  }

  ServiceClient& client_;
  const std::vector<ModelTrio>& trios_;
  const LoadShare share_;
  LoadResult result_;
  std::deque<std::string> open_;
  Clock::time_point moved_;
};

}  // namespace

LoadResult RunLoadClient(ServiceClient& client, const std::vector<ModelTrio>& trios,
                         const LoadShare& share) {
  return LoadClient(client, trios, share).Run();
}

}  // namespace mendel
