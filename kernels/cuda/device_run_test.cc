// Runs on the device's own terms: with device memory on the caller's streams, timed, side by side, and after errors that stay.

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "kernels/cuda/backend/executable.h"
#include "kernels/cuda/device_case.h"
#include "kernels/cuda/fake/fake_driver.h"

namespace mendel::cuda {
namespace {

using testing::HasSubstr;

constexpr size_t kElements = 3 * 40;
constexpr size_t kBytes = 4 * kElements;

/// The input's memory is used again before the end.
Graph Chain() {
  auto graph = ParseGraph(R"(graph "chain" {
    %0 = Input() {name = "x", shape = [3, 40]}
    %1 = Softmax(%0) {axis = 1}
    %2 = Softmax(%1) {axis = 1}
    %3 = Softmax(%2) {axis = 0}
    return "y" = %3
  })");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

Tensor Input(int number) {
  std::vector<double> values;
  for (size_t k = 0; k < kElements; ++k) values.push_back(static_cast<double>((k * 7 + static_cast<size_t>(number)) % 11) / 4);
  return Tensor::FromDoubles({DType::kF32, {3, 40}}, values);
}

std::vector<float> Expected(int number) {
  const auto results = Evaluate(Chain(), std::vector<HostValue>{HostValue::FromTensor(Input(number))});
  const Tensor y = (*results)[0].ToTensor();
  return {y.As<float>().begin(), y.As<float>().end()};
}

void ExpectNear(const std::vector<float>& got, const std::vector<float>& wanted, const std::string& what = "") {
  for (size_t k = 0; k < wanted.size(); ++k) ASSERT_NEAR(got[k], wanted[k], 1e-6) << what << " element " << k;
}

void Prepare(FakeDriver& driver) {
  const absl::Status prepared = driver.Prepare(LowerToDevice(Chain())->ModuleText());
  ASSERT_TRUE(prepared.ok()) << prepared;
}

absl::StatusOr<std::unique_ptr<Executable>> Compile(const Driver& table) {
  MENDEL_ASSIGN_OR_RETURN(DeviceProgram program, LowerToDevice(Chain()));
  return MakeExecutable(table, std::move(program), &TextImage);
}

/// A caller with a stream and device memory of its own, as a program around Mendel has it.
struct Caller {
  explicit Caller(const Driver& driver, unsigned flags = 1) : table(driver) {
    EXPECT_EQ(table.StreamCreate(&stream, flags), 0);
    EXPECT_EQ(table.EventCreate(&ready, 0), 0);
    EXPECT_EQ(table.MemAlloc(&x, kBytes), 0);
    EXPECT_EQ(table.MemAlloc(&y, kBytes), 0);
    EXPECT_EQ(table.MemHostAlloc(&pinned, kBytes, 0), 0);
  }
  ~Caller() {
    table.StreamDestroy(stream);
    table.EventDestroy(ready);
    table.MemFree(x);
    table.MemFree(y);
    table.MemFreeHost(pinned);
  }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  void Fill(int number) {
    const Tensor input = Input(number);
    std::copy(input.As<float>().begin(), input.As<float>().end(), static_cast<float*>(pinned));
    EXPECT_EQ(table.MemcpyHtoDAsync(x, pinned, kBytes, stream), 0);
  }
  absl::Status Run(Executable& executable) const { return executable.RunOnDevice({{&x, 1}, {&y, 1}, stream, ready}); }
  std::vector<float> Result() {
    EXPECT_EQ(table.MemcpyDtoHAsync(pinned, y, kBytes, stream), 0);
    EXPECT_EQ(table.StreamSynchronize(stream), 0);
    const auto* begin = static_cast<const float*>(pinned);
    return {begin, begin + kElements};
  }

  const Driver& table;
  DriverStream* stream = nullptr;
  DriverEvent* ready = nullptr;
  uint64_t x = 0, y = 0;
  void* pinned = nullptr;
};

absl::StatusOr<std::vector<float>> Time(Executable& executable, int number, bool cold) {
  const Tensor x = Input(number);
  std::vector<float> y(kElements);
  const std::vector<std::span<const std::byte>> inputs = {x.bytes()};
  const std::vector<std::span<std::byte>> outputs = {std::as_writable_bytes(std::span(y))};
  std::function<void()> evict;
  if (cold) evict = [] { ADD_FAILURE() << "the host's caches do not matter"; };
  MENDEL_ASSIGN_OR_RETURN(const double seconds, executable.TimeRun(inputs, outputs, evict));
  if (!(seconds >= 0)) return InternalError(seconds, " seconds");
  return y;
}

/// A table that notes what is called: "H" a copy in, "D" out, "C" on the device, "M" a memset, "G" a replay, "E" an event recorded,
/// "W" a stream that waits, "!" what allocates or waits on the host.
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
    table.GraphLaunch = [](DriverGraphExec* exec, DriverStream* stream) { return Note("G", original.GraphLaunch(exec, stream)); };
    table.EventRecord = [](DriverEvent* event, DriverStream* stream) { return Note("E", original.EventRecord(event, stream)); };
    table.EventRecordWithFlags = [](DriverEvent* event, DriverStream* stream, unsigned flags) {
      return Note("E", original.EventRecordWithFlags(event, stream, flags));
    };
    table.LaunchKernel = [](DriverFunction* function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y,
                            unsigned block_z, unsigned shared, DriverStream* stream, void** arguments, void** extra) {
      return Note("L", original.LaunchKernel(function, x, y, z, block_x, block_y, block_z, shared, stream, arguments, extra));
    };
    table.StreamWaitEvent = [](DriverStream* stream, DriverEvent* event, unsigned flags) {
      return Note("W", original.StreamWaitEvent(stream, event, flags));
    };
    table.StreamSynchronize = [](DriverStream* stream) { return Note("!", original.StreamSynchronize(stream)); };
    table.MemAlloc = [](uint64_t* address, size_t bytes) { return Note("!", original.MemAlloc(address, bytes)); };
    table.EventCreate = [](DriverEvent** event, unsigned flags) { return Note("!", original.EventCreate(event, flags)); };
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
    EXPECT_GT(*std::min_element(seconds.begin(), seconds.end()), 0) << "the emulator takes its time";
    EXPECT_EQ(Noted::calls, number == 1 ? "W!!!!ELELELEHGD!" : "WHGD!");
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
    const absl::Status on_default = (*executable)->RunOnDevice({{&caller.x, 1}, {&caller.y, 1}, nullptr, nullptr});
    ASSERT_TRUE(on_default.ok()) << on_default;
    ASSERT_EQ(driver.table().StreamSynchronize(nullptr), 0);
    ExpectNear(caller.Result(), Expected(5));
  }
  EXPECT_EQ(driver.Leaks(), "");
}

/// The fake driver finds memory that is used on two streams at once: the plan's by two runs, the caller's where nobody waits.
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
  const auto refused = [&](std::vector<uint64_t> inputs, std::vector<uint64_t> outputs, void* stream) {
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
  EXPECT_THAT(refused({x + 4}, {y}, caller.stream), HasSubstr("input 'x' is not the address of 480 bytes that cuda:0 can reach"));
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

/// One executable's whole life.
absl::Status MakeTimeAndRun(const Driver& table, const Caller& caller) {
  MENDEL_ASSIGN_OR_RETURN(const auto executable, Compile(table));
  for (const bool cold : {false, true}) MENDEL_RETURN_IF_ERROR(Time(*executable, 1, cold).status());
  return caller.Run(*executable);
}

bool GivesBack(const std::string& entry) {
  return entry.find("Destroy") != std::string::npos || entry.find("Free") != std::string::npos || entry == "ModuleUnload" ||
         entry == "DevicePrimaryCtxRelease" || entry == "CtxPopCurrent";
}

TEST(DeviceRun, EveryCallMayFail) {
  FakeDriver driver;
  Prepare(driver);
  int64_t calls = 0;
  {
    Caller caller(driver.table());
    driver.FailAt(0);
    const absl::Status right = MakeTimeAndRun(driver.table(), caller);
    ASSERT_TRUE(right.ok()) << right;
    calls = driver.Calls();
  }
  ASSERT_EQ(driver.Leaks(), "");
  for (int64_t call = 1; call <= calls; ++call) {
    {
      Caller caller(driver.table());
      driver.FailAt(call, 999);
      const absl::Status status = MakeTimeAndRun(driver.table(), caller);
      ASSERT_TRUE(driver.HasFailed()) << call;
      const std::string entry = driver.FailedCall();
      // The destructor makes its context current and waits, too.
      const bool may_be_last = entry == "CtxSetCurrent" || entry == "EventSynchronize";
      EXPECT_TRUE(status.ok() == GivesBack(entry) || (may_be_last && status.ok())) << call << " " << entry;
      EXPECT_TRUE(status.ok() || status.message().find("cu" + entry) != absl::string_view::npos) << call << " " << status;
    }
    EXPECT_EQ(driver.Leaks(), "") << call << " " << driver.FailedCall();
  }
  EXPECT_TRUE(driver.table().CheckUsable().ok()) << "none of these stays";
}

/// The number of the first call of `entry` while `what` is done; 0: there was none.
int64_t CallOf(FakeDriver& driver, const std::string& entry, const std::function<void()>& what) {
  for (int64_t call = 1;; ++call) {
    driver.FailAt(call);
    what();
    if (!driver.HasFailed()) return 0;
    if (driver.FailedCall() == entry) return call;
  }
}

TEST(StickyErrors, AreNamedByEveryLaterCall) {
  for (const int error : {700, 214}) {
    const std::string text =
        error == 700 ? "an illegal memory access was encountered (700)" : "uncorrectable ECC error encountered (214)";
    const absl::StatusCode code = error == 700 ? absl::StatusCode::kInternal : absl::StatusCode::kUnavailable;
    FakeDriver driver;
    Prepare(driver);
    {
      const auto first = Compile(driver.table()), second = Compile(driver.table());
      ASSERT_TRUE(first.ok() && second.ok());
      Caller caller(driver.table());
      const auto host_run = [&](Executable& executable) { return Time(executable, 1, false).status(); };
      EXPECT_TRUE(host_run(**first).ok());  // what is made once is there
      const int64_t wait = CallOf(driver, "StreamSynchronize", [&] { (void)host_run(**first); });
      ASSERT_GT(wait, 0);
      driver.FailAt(wait, error);
      const auto told = [&](const absl::Status& status, const char* what) {
        EXPECT_EQ(status.code(), code) << what << status;
        EXPECT_THAT(std::string(status.message()), testing::AllOf(HasSubstr(text), HasSubstr("must be started again"))) << what;
      };
      const absl::Status failed = host_run(**first);
      told(failed, "the call itself");
      EXPECT_THAT(std::string(failed.message()), HasSubstr("cuStreamSynchronize"));
      told(host_run(**first), "the same plan");
      told(host_run(**second), "another plan");
      told(caller.Run(**second), "on a stream");
      told(Compile(driver.table()).status(), "a new plan");
      told(driver.table().CheckUsable(), "asked");
    }
    EXPECT_EQ(driver.Leaks(), "") << "what there was is given back all the same";
  }
}

TEST(StickyErrors, AKernelsFaultIsOne) {
  FakeDriver driver;
  std::atomic<int> planted = 0;
  const auto image = [&](const std::string& text) -> absl::StatusOr<std::vector<char>> {
    std::string wrong = text;
    const size_t at = wrong.find("k < 40");
    if (at == std::string::npos) return TextImage(text);
    ++planted;
    return TextImage(wrong.replace(at, 6, "k < 4000"));
  };
  const auto executable = MakeExecutable(driver.table(), *LowerToDevice(Chain(), {.reuse_memory = false}), image);
  ASSERT_TRUE(executable.ok()) << executable.status();
  ASSERT_GT(planted, 0) << "the text has changed";
  const auto failed = Time(**executable, 1, false);
  EXPECT_THAT(std::string(failed.status().message()), testing::AllOf(HasSubstr("out of bounds"), HasSubstr("started again")));
  EXPECT_THAT(std::string(Compile(driver.table()).status().message()), HasSubstr("a kernel failed earlier"));
}

TEST(DriverErrors, CodeForAnotherArchitectureOrANewerDriver) {
  FakeDriver driver;
  Prepare(driver);
  const int64_t load = CallOf(driver, "ModuleLoadData", [&] { (void)Compile(driver.table()); });
  ASSERT_GT(load, 0);
  for (const auto& [error, told] : {std::pair(209, "another architecture"), std::pair(222, "supports CUDA 13.0, is older")}) {
    driver.FailAt(load, error);
    const absl::Status status = Compile(driver.table()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), testing::AllOf(HasSubstr("cuModuleLoadData"), HasSubstr(told)));
    EXPECT_TRUE(driver.table().CheckUsable().ok());
  }
  EXPECT_EQ(driver.Leaks(), "");
}

TEST(DriverErrors, StartTellsWhyThereIsNoGpu) {
  FakeDriver fake;
  Driver driver = fake.table();
  driver.version = 0;
  EXPECT_TRUE(driver.Start().ok());
  EXPECT_EQ(driver.version, 13000);
  fake.FailAt(1, 999);
  EXPECT_EQ(driver.Start().code(), absl::StatusCode::kUnavailable) << "cuInit";
  fake.FailAt(3, 999);
  EXPECT_THAT(std::string(driver.Start().message()), HasSubstr("cuDeviceGetCount"));
  fake.FailAt(0);
  fake.SetVersion(11030);
  const absl::Status old = driver.Start();
  EXPECT_EQ(old.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(old.message()), HasSubstr("too old: it supports CUDA 11.3, and 11.4 is needed"));
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

}  // namespace
}  // namespace mendel::cuda
