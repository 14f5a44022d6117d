#include "bench/layer_rows.h"

#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mendel {
namespace {

using testing::HasSubstr;

class LayerRows : public testing::Test {
 protected:
  ~LayerRows() override { std::filesystem::remove(path_); }
  void Write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }
  std::string Text() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const std::string path_ = testing::TempDir() + "/" + std::to_string(::getpid()) + "-" +
                            testing::UnitTest::GetInstance()->current_test_info()->name() + ".tsv";
  const std::vector<MutantRow> one_ = {{1.5, 1.25, std::nullopt, 0, "one | first"},
                                       {1.5, 0.75, 0.8125, 0.125, "one | second"}};
  const std::vector<MutantRow> other_ = {{4, 2, 2.5, 0.25, "other | first"},
                                         {4, 8, std::nullopt, 0, ""}};
};

void ExpectRows(const RowFile& file, const std::string& key, const std::vector<MutantRow>& wanted) {
  const std::vector<MutantRow>* const rows = file.Find(key);
  ASSERT_NE(rows, nullptr) << key;
  ASSERT_EQ(rows->size(), wanted.size()) << key;
  const auto fields = [](const MutantRow& row) {
    return std::tie(row.direct, row.mutant, row.corrected, row.share, row.text);
  };
  for (size_t k = 0; k < wanted.size(); ++k)
    EXPECT_EQ(fields((*rows)[k]), fields(wanted[k])) << key << ", row " << k;
}

TEST_F(LayerRows, AnotherRunTakesWhatWasKept) {
  RowFile written;
  ASSERT_TRUE(written.Open(path_).ok()) << "there is no such file yet";
  ASSERT_TRUE(written.Keep("layer one", one_).ok());
  ASSERT_TRUE(written.Keep("layer other", other_).ok());
  RowFile read;
  ASSERT_TRUE(read.Open(path_).ok());
  for (const RowFile* file : {&written, &read}) {
    ExpectRows(*file, "layer one", one_);
    ExpectRows(*file, "layer other", other_);
    EXPECT_EQ(file->Find("layer"), nullptr);
  }
}

/// Wherever within a line the writing stopped: what was finished stays, the rest is measured and
/// kept once.
TEST_F(LayerRows, AHalfWrittenCombinationIsMeasuredAgain) {
  RowFile written;
  ASSERT_TRUE(written.Open(path_).ok());
  ASSERT_TRUE(written.Keep("layer one", one_).ok());
  const size_t finished = Text().size();
  ASSERT_TRUE(written.Keep("other layer", other_).ok());
  const std::string whole = Text();
  size_t cuts = 0;
  for (size_t size = finished + 1; size < whole.size(); ++size) {
    if (whole[size - 1] == '\n') continue;
    ++cuts;
    Write(whole.substr(0, size));
    RowFile again;
    ASSERT_TRUE(again.Open(path_).ok()) << size;
    EXPECT_EQ(again.Find("other layer"), nullptr) << size;
    ExpectRows(again, "layer one", one_);
    EXPECT_EQ(Text(), whole.substr(0, finished)) << size;
    ASSERT_TRUE(again.Keep("other layer", other_).ok());
    EXPECT_EQ(Text(), whole) << size;
  }
  EXPECT_GT(cuts, 40u);
}

TEST_F(LayerRows, OfTheFirstCombinationNothingIsLeft) {
  Write("layer one\t1.5 1.25 - 0\tone\nlayer one\t1.5 0.7");
  RowFile file;
  ASSERT_TRUE(file.Open(path_).ok());
  EXPECT_EQ(file.Find("layer one"), nullptr);
  EXPECT_EQ(Text(), "");
}

TEST_F(LayerRows, AWholeLineThatIsNoRowIsNamed) {
  for (const char* line :
       {"layer", "layer\t1.5 1.25 -", "layer\t1.5 x - 0\ttext", "layer\t1.5 1.25 - 0 text"}) {
    Write(std::string("layer one\t1.5 1.25 - 0\tone\n") + line + "\n");
    RowFile file;
    const absl::Status status = file.Open(path_);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_THAT(std::string(status.message()), HasSubstr("line 2: no row of a table of layers"))
        << line;
  }
}

TEST_F(LayerRows, WithoutAPathNothingIsWritten) {
  RowFile file;
  ASSERT_TRUE(file.Keep("layer one", one_).ok());
  ExpectRows(file, "layer one", one_);
  RowFile nowhere;
  ASSERT_TRUE(nowhere.Open(path_ + "/file").ok()) << "no such file either";
  EXPECT_EQ(nowhere.Keep("layer one", one_).code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace mendel
