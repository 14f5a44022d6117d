// Models that lie in several files, are large, or are damaged.

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/random.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "graph/text.h"
#include "gtest/gtest.h"
#include "onnx/import.h"
#include "onnx/import_case.h"
#include "onnx/model_builder.h"

namespace mendel {
namespace {

using testing::HasSubstr;
using Builder = ModelBuilder;

/// x + w with w in external data at `location`.
Builder External(const std::string& location, const std::string& offset = "",
                 const std::string& length = "") {
  Builder model;
  model.Input("x", {"4"}).Output("y").Node("Add", {"x", "w"}, {"y"});
  auto& tensor = *model.graph().add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(4);
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] :
       {std::pair{"location", location}, {"offset", offset}, {"length", length}}) {
    if (value.empty()) continue;
    auto& entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
  return model;
}

TEST(Import, ExternalDataIsReadBeneathTheFolderOnly) {
  const Folder folder;
  std::filesystem::create_directory(folder / "model");
  Write(folder / "secret.bin", std::string(64, 'x'));
  Write(folder / "model/w.bin", std::string(32, '\0'));
  std::filesystem::create_symlink("w.bin", folder / "model/symlink.bin");
  std::filesystem::create_symlink("..", folder / "model/up");
  std::filesystem::create_directory(folder / "model/x");
  Write(folder / "model/linked.bin", std::string(32, '\0'));
  std::filesystem::create_hard_link(folder / "model/linked.bin", folder / "model/hard.bin");
  ASSERT_EQ(mkfifo((folder / "model/pipe").c_str(), 0600), 0);
  const auto import = [&](const Builder& model) {
    Write(folder / "model/m.onnx", model.Bytes());
    return ImportOnnxFile((folder / "model/m.onnx").string()).status();
  };
  EXPECT_TRUE(import(External("w.bin")).ok());
  EXPECT_TRUE(import(External("x/../w.bin", "16", "16")).ok());
  EXPECT_TRUE(import(External("w.bin", "3", "16")).ok()) << "misaligned data are copied";
  const Builder attacks[] = {External("../secret.bin"),
                             External("x/../../secret.bin"),
                             External((folder / "secret.bin").string()),
                             External("up/secret.bin"),
                             External("symlink.bin"),
                             External("hard.bin"),
                             External("pipe"),
                             External("x"),
                             External("missing.bin"),
                             External(""),
                             External("w.bin", "17"),
                             External("w.bin", "-1"),
                             External("w.bin", "9223372036854775807"),
                             External("w.bin", "0", "15"),
                             External("w.bin", "0", "9223372036854775807"),
                             External("w.bin", "0x0")};
  for (const Builder& attack : attacks) {
    const absl::Status status = import(attack);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << attack.Bytes();
    EXPECT_EQ(Message(status).find(folder.string() + "/model"), std::string::npos)
        << "no server paths: " << status;
  }
  EXPECT_FALSE(ImportOnnxBytes(External("w.bin").Bytes(), "").ok());
}

TEST(Import, LargeSparseFile) {
  // 2.2 GB of raw weights in one file that takes no space: 550 million zeros.
  const Folder folder;
  const uint64_t count = uint64_t{550} << 20;
  Builder model;
  model.Input("x", {"1"}).Output("y").Node("Gather", {"w", "index"}, {"y"});
  model.graph().mutable_input(0)->set_name("unused");
  model.Initializer("index", Tensor::Ints({5}));
  model.model().set_producer_name("aligned");
  // A second piece of the same GraphProto (protobuf merges them) that contains the initializer,
  // written by hand.
  const auto varint = [](uint64_t value) {
    std::string text;
    for (; value >= 0x80; value >>= 7) text.push_back(static_cast<char>(value | 0x80));
    text.push_back(static_cast<char>(value));
    return text;
  };
  const std::string tensor_head =
      "\x08" + varint(count) + "\x10\x01\x42\x01w\x4a" + varint(4 * count);
  const uint64_t tensor_size = tensor_head.size() + 4 * count;
  const std::string graph_head = "\x2a" + varint(tensor_size);
  std::string bytes;
  do {  // aligned data are shared with the mapping, not copied
    model.model().mutable_producer_name()->push_back('!');
    bytes =
        model.Bytes() + "\x3a" + varint(graph_head.size() + tensor_size) + graph_head + tensor_head;
  } while (bytes.size() % 4 != 0);
  const std::string path = (folder / "large.onnx").string();
  Write(path, bytes);
  std::filesystem::resize_file(path, bytes.size() + 4 * count);
  const auto result = ImportOnnxFile(path);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->graph.nodes().size(), 4u);
  for (const Node& node : result->graph.nodes()) {
    if (!IsConstant(node) || SymbolName(node) != "w") continue;
    EXPECT_EQ(ConstantValue(node).size(), static_cast<int64_t>(count));
  }
}

TEST(Import, DamagedFilesNeverCrash) {
  const std::string bytes = Varied().Bytes();
  ASSERT_TRUE(ImportOnnxBytes(bytes, "").ok()) << ImportOnnxBytes(bytes, "").status();
  for (size_t length = 0; length < bytes.size(); ++length)
    (void)ImportOnnxBytes(bytes.substr(0, length), "").ok();
  constexpr uint64_t kSeed = 1;
  Rng rng(kSeed);
  int survived = 0;
  for (int k = 0; k < 3000; ++k) {
    std::string damaged = bytes;
    for (int64_t flips = rng.Between(1, 3); flips > 0; --flips) {
      damaged[rng.Below(damaged.size())] ^= static_cast<char>(1 << rng.Below(8));
    }
    const auto result = ImportOnnxBytes(damaged, "");
    if (result.ok()) {
      ++survived;
    } else {
      EXPECT_NE(result.status().code(), absl::StatusCode::kInternal)
          << "seed " << kSeed << " round " << k << ": " << result.status();
    }
  }
  EXPECT_GT(survived, 0) << "flips in names do not matter";
  EXPECT_FALSE(ImportOnnxFile("/dev/null").ok());
  EXPECT_FALSE(ImportOnnxFile("/nowhere.onnx").ok());
}

}  // namespace
}  // namespace mendel
