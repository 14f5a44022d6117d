// Runs on the device's own terms: with device memory on the caller's streams, timed, and side by
// side.

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cuda/replay_cost.h"
#include "kernels/cuda/testing/device_run_case.h"
#include "kernels/cuda/testing/fake/fake_driver.h"

namespace mendel::cuda {
namespace {

using device_run_case::Caller;
using device_run_case::Compile;
using device_run_case::Expected;
using device_run_case::ExpectNear;
using device_run_case::Input;
using device_run_case::kBytes;
using device_run_case::kElements;
using device_run_case::Prepare;
using device_run_case::Time;
using testing::HasSubstr;

/// A table that notes what is called: "H" a copy in, "D" out, "C" on the device, "M" a memset, "G"
/// a replay, "E" an event recorded, "W" a stream that waits, "!" what allocates or waits on the
/// host.
struct Noted {
  explicit Noted(const Driver& driver) : table(driver) {
    original = driver;
    calls.clear();
    table.MemcpyHtoDAsync = [](uint64_t to, const void* from, size_t bytes, DriverStream* stream) {
      return Note("H", original.MemcpyHtoDAsync(to, from, bytes, stream));
    };
    table.MemcpyDtoHAsync = [](void* to, uint64_t from, size_t bytes, DriverStream* stream) {
      return Note("D", original.MemcpyDtoHAsync(to, from, bytes, stream));
    };
    table.MemcpyDtoDAsync = [](uint64_t to, uint64_t from, size_t bytes, DriverStream* stream) {
      return Note("C", original.MemcpyDtoDAsync(to, from, bytes, stream));
    };
    table.MemsetD8Async = [](uint64_t to, unsigned char value, size_t bytes, DriverStream* stream) {
      written = bytes;
      return Note("M", original.MemsetD8Async(to, value, bytes, stream));
    };
    table.GraphLaunch = [](DriverGraphExec* exec, DriverStream* stream) {
      return Note("G", original.GraphLaunch(exec, stream));
    };
    table.EventRecord = [](DriverEvent* event, DriverStream* stream) {
      return Note("E", original.EventRecord(event, stream));
    };
    table.EventRecordWithFlags = [](DriverEvent* event, DriverStream* stream, unsigned flags) {
      return Note("E", original.EventRecordWithFlags(event, stream, flags));
    };
    table.LaunchKernel = [](DriverFunction* function, unsigned x, unsigned y, unsigned z,
                            unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                            DriverStream* stream, void** arguments, void** extra) {
      return Note("L", original.LaunchKernel(function, x, y, z, block_x, block_y, block_z, shared,
                                             stream, arguments, extra));
    };
    table.StreamWaitEvent = [](DriverStream* stream, DriverEvent* event, unsigned flags) {
      return Note("W", original.StreamWaitEvent(stream, event, flags));
    };
    table.StreamSynchronize = [](DriverStream* stream) {
      return Note("!", original.StreamSynchronize(stream));
    };
    table.MemAlloc = [](uint64_t* address, size_t bytes) {
      return Note("!", original.MemAlloc(address, bytes));
    };
    table.EventCreate = [](DriverEvent** event, unsigned flags) {
      return Note("!", original.EventCreate(event, flags));
    };
  }
  static int Note(const char* what, int result) {
    calls += what;
    return result;
  }
  static inline Driver original;
  static inline std::string calls;
  static inline size_t written = 0;
  Driver table;
};

TEST(TimeRun, EventsStandAroundAReplayOfTheLaunches) {
  FakeDriver driver;
  Prepare(driver);
  Noted noted(driver.table());
  const auto executable = Compile(noted.table);
  ASSERT_TRUE(executable.ok()) << executable.status();
  for (const bool first : {true, false}) {
    // Once: two events, and the graph of three launches between them.
    const std::string made = first ? "!!ELLLE" : "", filled = first ? "!" : "";
    Noted::calls.clear();
    const auto warm = Time(**executable, 1, false);
    ASSERT_TRUE(warm.ok()) << warm.status();
    ExpectNear(*warm, Expected(1));
    EXPECT_EQ(Noted::calls, "W" + made + "HGHGD!");
    Noted::calls.clear();
    const auto cold = Time(**executable, 2, true);
    ASSERT_TRUE(cold.ok()) << cold.status();
    ExpectNear(*cold, Expected(2));
    EXPECT_EQ(Noted::calls, "WH" + filled + "MGD!");
    EXPECT_EQ(Noted::written, size_t{2} << 16) << "twice the cache";
  }
}

TEST(TimeRun, StepsAreTimedInAGraphOfTheirOwn) {
  FakeDriver driver;
  Prepare(driver);
  Noted noted(driver.table());
  const auto executable = Compile(noted.table);
  ASSERT_TRUE(executable.ok()) << executable.status();
  const size_t steps = (*executable)->steps().size();
  for (const int number : {1, 2}) {
    const Tensor x = Input(number);
    std::vector<float> y(kElements);
    const std::vector<std::span<const std::byte>> inputs = {x.bytes()};
    const std::vector<std::span<std::byte>> outputs = {std::as_writable_bytes(std::span(y))};
    std::vector<double> seconds;
    Noted::calls.clear();
    const absl::Status status = (*executable)->RunTimed(inputs, outputs, seconds);
    ASSERT_TRUE(status.ok()) << status;
    ExpectNear(y, Expected(number));
    ASSERT_EQ(seconds.size(), steps);
    EXPECT_GT(*std::min_element(seconds.begin(), seconds.end()), 0)
        << "the emulator takes its time";
    EXPECT_EQ(Noted::calls, number == 1 ? "W!!!!!EELELELEHGD!" : "WHGD!");
  }
}

TEST(DeviceRun, IsPutOntoTheCallersStream) {
  FakeDriver driver;
  Prepare(driver);
  Noted noted(driver.table());
  {
    const auto executable = Compile(noted.table);
    ASSERT_TRUE(executable.ok()) << executable.status();
    EXPECT_EQ((*executable)->device(), "cuda:0");
    for (const unsigned flags : {0u, 1u}) {
      Caller caller(driver.table(), flags);
      for (int run = 1; run <= 3; ++run) {
        caller.Fill(run);
        Noted::calls.clear();
        const absl::Status status = caller.Run(**executable);
        ASSERT_TRUE(status.ok()) << status;
        EXPECT_EQ(Noted::calls, "WCGCEE") << "nothing waits, nothing is allocated";
        ExpectNear(caller.Result(), Expected(run));
      }
    }
    Caller caller(driver.table());
    caller.Fill(5);
    ASSERT_EQ(driver.table().StreamSynchronize(caller.stream), 0);
    const absl::Status on_default =
        (*executable)->RunOnDevice({{&caller.x, 1}, {&caller.y, 1}, nullptr, nullptr});
    ASSERT_TRUE(on_default.ok()) << on_default;
    ASSERT_EQ(driver.table().StreamSynchronize(nullptr), 0);
    ExpectNear(caller.Result(), Expected(5));
  }
  EXPECT_EQ(driver.Leaks(), "");
}

/// The fake driver finds memory that is used on two streams at once: the plan's by two runs, the
/// caller's where nobody waits.
TEST(DeviceRun, RunsOfOnePlanFollowEachOther) {
  FakeDriver driver;
  Prepare(driver);
  const auto executable = Compile(driver.table());
  ASSERT_TRUE(executable.ok()) << executable.status();
  Caller one(driver.table()), two(driver.table());
  one.Fill(1);
  two.Fill(2);
  ASSERT_TRUE(one.Run(**executable).ok());
  absl::Status status = two.Run(**executable);
  ASSERT_TRUE(status.ok()) << status;
  const auto host = Time(**executable, 3, true);  // on the plan's own stream
  ASSERT_TRUE(host.ok()) << host.status();
  ExpectNear(*host, Expected(3));
  ExpectNear(one.Result(), Expected(1));
  ExpectNear(two.Result(), Expected(2));
}

TEST(DeviceRun, TheReadyEventOrdersOtherStreams) {
  for (const bool waits : {true, false}) {
    FakeDriver driver;
    Prepare(driver);
    const auto executable = Compile(driver.table());
    ASSERT_TRUE(executable.ok()) << executable.status();
    Caller one(driver.table()), two(driver.table());
    one.Fill(1);
    ASSERT_TRUE(one.Run(**executable).ok());
    if (waits) {
      ASSERT_EQ(driver.table().StreamWaitEvent(two.stream, one.ready, 0), 0);
    }
    EXPECT_EQ(driver.table().MemcpyDtoDAsync(two.y, one.y, kBytes, two.stream), waits ? 0 : 700);
    if (waits) ExpectNear(two.Result(), Expected(1));
  }
}

TEST(DeviceRun, RefusesWhatItCannotUse) {
  FakeDriver driver;
  Prepare(driver);
  const auto executable = Compile(driver.table());
  ASSERT_TRUE(executable.ok()) << executable.status();
  Caller caller(driver.table());
  const auto refused = [&](std::vector<uint64_t> inputs, std::vector<uint64_t> outputs,
                           void* stream) {
    const absl::Status status = (*executable)->RunOnDevice({inputs, outputs, stream, nullptr});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  const uint64_t x = caller.x, y = caller.y;
  EXPECT_THAT(refused({}, {y}, caller.stream), HasSubstr("expected 1 inputs, not 0"));
  EXPECT_THAT(refused({x}, {y, y}, caller.stream), HasSubstr("expected 1 outputs, not 2"));
  EXPECT_THAT(refused({0}, {y}, caller.stream), HasSubstr("input 'x' is NULL"));
  EXPECT_THAT(refused({x + 2}, {y}, caller.stream), HasSubstr("input 'x' is not aligned"));
  EXPECT_THAT(refused({x}, {y + 1}, caller.stream), HasSubstr("output 'y' is not aligned"));
  EXPECT_THAT(refused({x + 4}, {y}, caller.stream),
              HasSubstr("input 'x' is not the address of 480 bytes that cuda:0 can reach"));
  EXPECT_THAT(refused({x}, {y + 8}, caller.stream), HasSubstr("output 'y' is not the address of"));
  EXPECT_THAT(refused({x}, {y}, driver.ForeignStream()), HasSubstr("another context"));
  ASSERT_EQ(driver.table().StreamBeginCapture(caller.stream, 1), 0);
  EXPECT_THAT(refused({x}, {y}, caller.stream), HasSubstr("being captured"));
  DriverGraph* graph = nullptr;
  ASSERT_EQ(driver.table().StreamEndCapture(caller.stream, &graph), 0);
  ASSERT_EQ(driver.table().GraphDestroy(graph), 0);
  caller.Fill(4);
  const absl::Status status = caller.Run(**executable);
  ASSERT_TRUE(status.ok()) << status;
  ExpectNear(caller.Result(), Expected(4));
  EXPECT_THAT(driver.Leaks(), testing::Not(HasSubstr("pushed")));
}

/// For ThreadSanitizer, and for the fake driver's view of which stream may touch what.
TEST(SideBySide, PlansOnTheirOwnStreams) {
  FakeDriver driver;
  Prepare(driver);
  {
    std::vector<std::thread> threads;
    for (int number = 1; number <= 4; ++number) {
      threads.emplace_back([&driver, number] {
        const auto executable = Compile(driver.table());
        ASSERT_TRUE(executable.ok()) << executable.status();
        const std::vector<float> expected = Expected(number);
        Caller caller(driver.table());
        for (int run = 0; run < 6; ++run) {
          caller.Fill(number);
          const absl::Status status = caller.Run(**executable);
          ASSERT_TRUE(status.ok()) << status;
          const auto timed = Time(**executable, number, run % 2 == 0);
          ASSERT_TRUE(timed.ok()) << timed.status();
          ExpectNear(*timed, expected, "on the host");
          ExpectNear(caller.Result(), expected, "on the device");
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(driver.Leaks(), "");
}

TEST(ReplayCost, CountsRunsAndGivesAllBack) {
  FakeDriver driver;
  Prepare(driver);
  {
    const Noted noted(driver.table());
    const auto executable = Compile(noted.table);
    noted.calls.clear();
    ASSERT_TRUE(executable.ok()) << executable.status();
    const auto cost = MeasureReplay(noted.table, **executable, device_run_case::Chain(), 3, 2, 1e9);
    ASSERT_TRUE(cost.ok()) << cost.status();
    EXPECT_EQ(std::count(noted.calls.begin(), noted.calls.end(), 'C'), (1 + 3 * 3) * 2)
        << "a copy in and one out, one run and three rounds of three";
    EXPECT_GT(cost->enqueue, 0);
    EXPECT_GE(cost->wall, cost->enqueue);
    EXPECT_THAT(ReplayText("a chain", {100, 3e-6, 10e-6, 8e-6}),
                testing::StartsWith(
                    "replay of a chain: enqueued in 3.00 us of the host's, 10.00 us a run"));
  }
  EXPECT_EQ(driver.Leaks(), "");
}

}  // namespace
}  // namespace mendel::cuda
