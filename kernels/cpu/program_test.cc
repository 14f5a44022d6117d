#include "kernels/cpu/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu/threads.h"

namespace mendel::cpu {
namespace {

constexpr int64_t kHugePage = int64_t{2} << 20;

bool IsZero(const AlignedBytes& bytes) {
  return std::all_of(bytes.data(), bytes.data() + bytes.size(),
                     [](std::byte b) { return b == std::byte{0}; });
}

bool IsAligned(const std::byte* address, int64_t to) {
  return reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(to) == 0;
}

TEST(AlignedBytes, AreAlignedZeroAndNoneLeadsToAnother) {
  for (const int64_t size : {int64_t{0}, int64_t{1}, int64_t{63}, int64_t{4097}, kHugePage - 1,
                             kHugePage, 3 * kHugePage + 5}) {
    SCOPED_TRACE(size);
    const AlignedBytes bytes(size);
    EXPECT_EQ(bytes.size(), size);
    EXPECT_TRUE(IsAligned(bytes.data(), size < kHugePage ? 64 : kHugePage));
    EXPECT_TRUE(IsZero(bytes));
    std::fill_n(bytes.data(), size, std::byte{0xff});
    const AlignedBytes next(size);  // not what was just written
    EXPECT_TRUE(IsZero(next));
  }
}

/// Returns the line "VmFlags: ..." of the mapping that contains `address`; empty when the kernel
/// does not report it.
std::string MappingFlags(const std::byte* address) {
  std::ifstream maps("/proc/self/smaps");
  bool within = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::istringstream header(line);
    if (header >> std::hex >> begin >> dash >> end && dash == '-') {
      const auto at = reinterpret_cast<uintptr_t>(address);
      within = begin <= at && at < end;
    }
    if (within && line.rfind("VmFlags:", 0) == 0) return line + " ";
  }
  return "";
}

TEST(AlignedBytes, LargeOnesRequestHugePages) {
  if (access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) != 0)
    GTEST_SKIP() << "SKIP: this kernel has no transparent huge pages";
  const AlignedBytes bytes(2 * kHugePage);
  const std::string flags = MappingFlags(bytes.data());
  if (flags.empty()) GTEST_SKIP() << "SKIP: this kernel does not report a mapping's flags";
  EXPECT_THAT(flags, testing::HasSubstr(" hg "));
  EXPECT_THAT(MappingFlags(bytes.data() + bytes.size() - 1), testing::HasSubstr(" hg "));
}

/// Records where its buffers lie.
class AddressKernel : public Kernel {
 public:
  explicit AddressKernel(std::vector<std::byte*>& addresses) : addresses_(addresses) {}
  absl::Status Run(const Bindings& bindings) override {
    addresses_ = bindings.buffers;
    return absl::OkStatus();
  }

 private:
  std::vector<std::byte*>& addresses_;
};

/// A program of steps that do nothing, whose buffers 0 and 1 are the caller's input and output.
class Merging {
 public:
  Merging() {
    Buffer input, output;
    input.kind = BufferKind::kInput;
    output.kind = BufferKind::kOutput;
    input.bytes = output.bytes = kBytes;
    program_.buffers = {input, output};
    program_.inputs = program_.outputs = {{DType::kF32, {kBytes / 4}}};
  }

  int Arena(int64_t bytes = kBytes) {
    Buffer buffer;
    buffer.bytes = bytes;
    program_.buffers.push_back(buffer);
    return static_cast<int>(program_.buffers.size()) - 1;
  }
  Merging& Step(std::vector<int> buffers,
                std::optional<std::pair<int, int>> in_place = std::nullopt) {
    ProgramStep step;
    step.kernel = std::make_unique<AddressKernel>(addresses_);
    step.buffers = std::move(buffers);
    step.in_place = in_place;
    program_.steps.push_back(std::move(step));
    return *this;
  }
  /// True when two buffers begin at one address.
  bool Shared(int a, int b) {
    if (executable_ == nullptr) Run();
    return addresses_[static_cast<size_t>(a)] == addresses_[static_cast<size_t>(b)];
  }
  int64_t ArenaBytes() {
    if (executable_ == nullptr) Run();
    return executable_->memory().arena_bytes;
  }

  static constexpr int64_t kBytes = 256;

 private:
  void Run() {
    auto made = MakeExecutable(std::move(program_));
    ASSERT_TRUE(made.ok()) << made.status();
    executable_ = *std::move(made);
    const std::span<const std::byte> input(input_);
    const std::span<std::byte> output(output_);
    ASSERT_TRUE(executable_->Run({&input, 1}, {&output, 1}).ok());
  }

  Program program_;
  std::vector<std::byte*> addresses_;
  std::unique_ptr<Executable> executable_;
  alignas(64) std::array<std::byte, kBytes> input_{};
  alignas(64) std::array<std::byte, kBytes> output_{};
};

TEST(MakeExecutable, ChainsInPlaceShareOneBuffer) {
  Merging program;
  const int a = program.Arena(), b = program.Arena(), c = program.Arena();
  program.Step({0, a}).Step({a, b}, {{b, a}}).Step({b, c}, {{c, b}}).Step({c, 1});
  EXPECT_TRUE(program.Shared(a, b));
  EXPECT_TRUE(program.Shared(b, c));
  EXPECT_EQ(program.ArenaBytes(), Merging::kBytes);
}

TEST(MakeExecutable, WithoutLeaveBuffersThatMeetAreApart) {
  Merging program;
  const int a = program.Arena(), b = program.Arena();
  program.Step({0, a}).Step({a, b}).Step({b, 1});
  EXPECT_FALSE(program.Shared(a, b));
  EXPECT_EQ(program.ArenaBytes(), 2 * Merging::kBytes);
}

TEST(MakeExecutable, AnInputThatIsReadLaterIsNotOverwritten) {
  Merging program;
  const int a = program.Arena(), b = program.Arena();
  program.Step({0, a}).Step({a, b}, {{b, a}}).Step({a, b, 1});
  EXPECT_FALSE(program.Shared(a, b));
}

TEST(MakeExecutable, AChainEndsWhereItsFirstBufferIsReadLater) {
  Merging program;
  const int a = program.Arena(), b = program.Arena(), c = program.Arena();
  program.Step({0, a}).Step({a, b}, {{b, a}}).Step({b, c}, {{c, b}}).Step({b, c, 1});
  EXPECT_TRUE(program.Shared(a, b));
  EXPECT_FALSE(program.Shared(b, c));
}

TEST(MakeExecutable, OutputsThatWereBegunOrHaveAnotherSizeStayApart) {
  Merging begun;
  const int a = begun.Arena(), b = begun.Arena();
  begun.Step({0, a, b}).Step({a, b}, {{b, a}}).Step({b, 1});
  EXPECT_FALSE(begun.Shared(a, b));

  Merging larger;
  const int small = larger.Arena(), large = larger.Arena(2 * Merging::kBytes);
  larger.Step({0, small}).Step({small, large}, {{large, small}}).Step({large, 1});
  EXPECT_FALSE(larger.Shared(small, large));
}

TEST(MakeExecutable, TheCallersBuffersAreNeverMerged) {
  Merging program;
  const int a = program.Arena();
  program.Step({0, a}, {{a, 0}}).Step({a, 1}, {{1, a}});
  EXPECT_FALSE(program.Shared(0, a));
  EXPECT_FALSE(program.Shared(1, a));
}

/// Fails to be created.
class Uncreated : public AddressKernel {
 public:
  Uncreated(std::vector<std::byte*>& addresses, std::string why)
      : AddressKernel(addresses), why_(std::move(why)) {}
  absl::Status Create() override { return absl::InternalError(why_); }

 private:
  std::string why_;
};

TEST(MakeExecutable, OfStepsThatCannotBeCreatedTheFirstIsNamed) {
  std::vector<std::byte*> addresses;
  for (int round = 0; round < 20; ++round) {
    Program program;
    for (int s = 0; s < 40; ++s) {
      ProgramStep step;
      step.info.name = "step " + std::to_string(s);
      if (s % 7 == 3) {
        step.kernel = std::make_unique<Uncreated>(addresses, "no code " + std::to_string(s));
      } else {
        step.kernel = std::make_unique<AddressKernel>(addresses);
      }
      program.steps.push_back(std::move(step));
    }
    const ThreadScope scope(3);
    const auto made = MakeExecutable(std::move(program));
    ASSERT_EQ(made.status().code(), absl::StatusCode::kInternal);
    EXPECT_EQ(made.status().message(), "step 3: no code 3");
  }
}

}  // namespace
}  // namespace mendel::cpu
