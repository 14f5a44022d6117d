// The team of threads and the kernels that divide their work among it; run under ThreadSanitizer
// too.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "kernels/cpu/kernels/winograd.h"
#include "kernels/cpu/simd/native_isa.h"
#include "kernels/cpu/testing/test_support.h"
#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

/// Plain numbers that all threads write and the caller reads. A missing order is a race, and a
/// number of calls other than one is a wrong count.
void CoverOnce(int64_t count, int64_t grain) {
  std::vector<int> calls(static_cast<size_t>(count), 0);
  std::atomic<int64_t> small{0};
  ParallelRange(count, grain, [&](int64_t begin, int64_t end) {
    if (end - begin < grain && end != count) ++small;
    for (int64_t i = begin; i < end; ++i) ++calls[static_cast<size_t>(i)];
  });
  EXPECT_EQ(small, 0) << "a range of less than a grain";
  EXPECT_EQ(std::count(calls.begin(), calls.end(), 1), count);
}

TEST(Threads, RangesCoverEverythingOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    const ThreadScope scope(threads);
    for (const int64_t count : {0, 1, 2, 3, 7, 8, 100, 1001}) {
      for (const int64_t grain : {1, 3, 64, 2000}) {
        SCOPED_TRACE(testing::Message() << threads << " threads, " << count << " by " << grain);
        CoverOnce(count, grain);
      }
    }
  }
}

TEST(Threads, TasksAreDoneOnceAndSeen) {
  for (const int threads : {1, 2, 3, 8}) {
    const ThreadScope scope(threads);
    for (const int64_t count : {0, 1, 2, 7, 300}) {
      SCOPED_TRACE(testing::Message() << threads << " threads, " << count);
      std::vector<int> calls(static_cast<size_t>(count), 0);
      for (int round = 0; round < 10; ++round) {
        ParallelTasks(count, [&](int64_t number) { ++calls[static_cast<size_t>(number)]; });
      }
      EXPECT_EQ(std::count(calls.begin(), calls.end(), 10), count);
    }
  }
}

/// A call within a task stays in the task's thread: it is not divided again, and its writes are
/// visible to the task.
TEST(Threads, CallsInsideATaskRunInline) {
  for (const int threads : {1, 2, 3}) {
    const ThreadScope scope(threads);
    EXPECT_EQ(TeamThreads(), threads);
    std::vector<int> calls(20 * 500, 0);
    std::atomic<int> divided{0};
    ParallelTasks(20, [&](int64_t task) {
      if (threads > 1 && TeamThreads() != 1) ++divided;
      const std::thread::id mine = std::this_thread::get_id();
      ParallelRange(500, 1, [&](int64_t begin, int64_t end) {
        if (std::this_thread::get_id() != mine || end - begin != (threads > 1 ? 500 : end - begin))
          ++divided;
        for (int64_t i = begin; i < end; ++i) ++calls[static_cast<size_t>(task * 500 + i)];
      });
    });
    EXPECT_EQ(divided, 0);
    EXPECT_EQ(std::count(calls.begin(), calls.end(), 1), 20 * 500);
  }
}

/// Loops of the evaluator run on the team too and start no threads of their own.
TEST(Threads, ParallelForRunsOnTheTeam) {
  const int before = Parallelism();
  SetParallelism(8);
  const ThreadScope scope(2);
  std::mutex mutex;
  std::set<std::thread::id> team, callers;
  const auto note = [&](std::set<std::thread::id>& ids) {
    const std::lock_guard<std::mutex> lock(mutex);
    ids.insert(std::this_thread::get_id());
  };
  ParallelRange(2, 1, [&](int64_t, int64_t) { note(team); });
  std::vector<int> calls(1000, 0);
  ParallelFor(1000, [&](int64_t i) {
    note(callers);
    ++calls[static_cast<size_t>(i)];
  });
  EXPECT_EQ(std::count(calls.begin(), calls.end(), 1), 1000);
  EXPECT_TRUE(std::includes(team.begin(), team.end(), callers.begin(), callers.end()));
  SetParallelism(before);
}

/// Each call reads elements that another thread wrote in the call before, without synchronization
/// in between.
TEST(Threads, CallsAreOrdered) {
  const ThreadScope scope(3);
  constexpr int64_t kCount = 300;
  std::vector<int64_t> a(kCount, 0), b(kCount, 0);
  for (int round = 0; round < 200; ++round) {
    ParallelRange(kCount, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        b[static_cast<size_t>(i)] = a[static_cast<size_t>(kCount - 1 - i)] + 1;
    });
    ParallelRange(kCount, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        a[static_cast<size_t>(i)] = b[static_cast<size_t>((i + 101) % kCount)];
    });
  }
  for (const int64_t value : a) ASSERT_EQ(value, 200);
}

TEST(Threads, AScopeEndsWhereItStands) {
  const auto team = [] {
    std::atomic<int> ranges{0};
    ParallelRange(1000, 1, [&](int64_t, int64_t) { ++ranges; });
    return ranges.load();
  };
  const ThreadScope outer(2);
  EXPECT_EQ(team(), 2);
  {
    const ThreadScope inner(1);
    EXPECT_EQ(team(), 1);
  }
  EXPECT_EQ(team(), 2);
}

TEST(Threads, CallersHaveTeamsOfTheirOwn) {
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([] {
      const ThreadScope scope(2);
      for (int round = 0; round < 50; ++round) CoverOnce(500, 1);
    });
  }
  for (std::thread& caller : callers) caller.join();
}

/// One convolution in blocks of channels, 3x3, without padding.
struct Convolution {
  WinogradPlan plan;
  std::vector<float> src, weights, bias;

  Convolution(const WinogradIsa& isa, int64_t channels, int64_t size, int threads, Rng& rng) {
    plan.isa = &isa;
    for (int k = 0; k < isa.transform_count; ++k) {
      const WinogradTransforms& t = isa.transforms[k];
      if (t.r[0] == 1 && t.r[1] == 3 && t.r[2] == 3 && t.m[1] == 4 && t.m[2] == 4)
        plan.transforms = &t;
    }
    plan.channels_in = plan.problem.channels_out = channels;
    const int64_t in = size + 2, lanes = isa.lanes;
    plan.problem.in[0] = plan.problem.out[0] = 1;
    plan.problem.in[1] = plan.problem.in[2] = in;
    plan.problem.out[1] = plan.problem.out[2] = size;
    for (int64_t& step : plan.problem.step) step = 1;
    plan.problem.src = {channels * in * in, lanes * in * in, {0, in * lanes, lanes}};
    plan.problem.dst = {channels * size * size, lanes * size * size, {0, size * lanes, lanes}};
    CutIntoTiles(plan, threads);
    for (int64_t i = 0; i < channels * in * in; ++i)
      src.push_back(static_cast<float>(rng.Uniform(-1, 1)));
    std::vector<double> taps;
    for (int64_t i = 0; i < channels * channels * 9; ++i) taps.push_back(rng.Uniform(-1, 1));
    weights.resize(static_cast<size_t>(plan.WeightFloats()));
    bias.resize(static_cast<size_t>(channels));
    const ThreadScope scope(threads);
    PackWinogradWeights(plan, taps, {}, weights.data());
  }

  std::vector<float> Run(int threads) const {
    const ThreadScope scope(threads);
    std::vector<float> dst(static_cast<size_t>(plan.problem.dst.n));
    std::vector<float> scratch(static_cast<size_t>(plan.ScratchBytes()) / sizeof(float) + 16);
    void* aligned = scratch.data();
    size_t space = scratch.size() * sizeof(float);
    WinogradEpilogue epilogue{};
    epilogue.bias = bias.data();
    RunWinograd(plan, src.data(), weights.data(), epilogue, dst.data(),
                static_cast<float*>(
                    std::align(64, static_cast<size_t>(plan.ScratchBytes()), aligned, space)));
    return dst;
  }
};

class WinogradThreads : public IsaTest {};
TEST_P(WinogradThreads, GiveTheBitsOfOne) {
  const WinogradIsa& isa = Kernels(&WinogradAvx2, &WinogradAvx512);
  bool shared_tiles = false, shared_channels = false;
  for (const auto& [channels, size] :
       {std::pair(int64_t{32}, int64_t{40}), std::pair(int64_t{256}, int64_t{6})}) {
    for (const int threads : {2, 3}) {
      Rng one(1), many(1);
      const Convolution alone(isa, channels, size, 1, one),
          divided(isa, channels, size, threads, many);
      (divided.plan.share_channels ? shared_channels : shared_tiles) = true;
      const std::vector<float> want = alone.Run(1);
      for (int round = 0; round < 2; ++round)
        EXPECT_EQ(divided.Run(threads), want) << channels << " channels, " << threads << " threads";
    }
  }
  EXPECT_TRUE(shared_tiles && shared_channels);
}
MENDEL_FOR_ISAS(WinogradThreads, NativeIsa::kAvx2, NativeIsa::kAvx512);

}  // namespace
}  // namespace mendel::cpu
