#include "server/store/blob_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/status/status.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/status.h"
#include "server/store/conformance.h"

namespace mendel::server {
namespace {

using Code = absl::StatusCode;

std::string Bytes(size_t size, uint64_t seed) {
  Rng rng(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(rng.Next());
  return bytes;
}

BlobId IdOf(const std::string& bytes) {
  return {Sha256Hex(bytes), static_cast<int64_t>(bytes.size())};
}

UploadId UploadOf(const std::string& bytes, int number = 0) {
  return {Cat("00000000-0000-4000-8000-00000000000", number), IdOf(bytes)};
}

class Blobs : public testing::Test {
 protected:
  void SetUp() override { Reopen({}); }
  void Reopen(const BlobLimits& limits) {
    blobs_.reset();
    auto opened = OpenBlobStore(root_, limits, clock_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    blobs_ = *std::move(opened);
  }
  absl::Status Put(const std::string& bytes) {
    MENDEL_ASSIGN_OR_RETURN(const auto writer, blobs_->OpenUpload(UploadOf(bytes), 0));
    MENDEL_RETURN_IF_ERROR(writer->Append(bytes));
    return writer->Finish();
  }
  std::string Get(const BlobId& blob) {
    const auto reader = blobs_->OpenBlob(blob);
    EXPECT_TRUE(reader.ok()) << reader.status();
    if (!reader.ok()) return "";
    std::string bytes(static_cast<size_t>((*reader)->size()), '\0');
    EXPECT_EQ((*reader)->Read(0, bytes.data(), (*reader)->size()).value_or(-1), (*reader)->size());
    return bytes;
  }

  TestClock clock_;
  TestFolder folder_;
  std::string root_ = folder_.path() + "/data";
  std::unique_ptr<BlobStore> blobs_;
};

TEST(BlobNames, HaveOneSpelling) {
  const std::string digest(64, 'a');
  EXPECT_EQ(BlobName(*ParseBlobName(Cat("blobs/", digest, "/12"))), Cat("blobs/", digest, "/12"));
  for (const std::string& bad :
       {std::string(), Cat("blobs/", digest), Cat("blobs/", digest, "/"),
        Cat("blobs/", digest, "/-1"), Cat("blobs/", digest, "/+1"), Cat("blobs/", digest, "/01"),
        Cat("blobs/", digest, "/1/"), Cat("blobs/", std::string(64, 'A'), "/1"),
        Cat("blobs/", std::string(63, 'a'), "./1"), Cat("blobs/../", digest, "/1"),
        Cat("blobs/", digest, "/99999999999999999999"), Cat("/blobs/", digest, "/1"),
        std::string("blobs/\0", 7)}) {
    EXPECT_EQ(ParseBlobName(bad).status().code(), Code::kInvalidArgument) << bad;
  }
  const std::string uuid = "01234567-89ab-4cde-8f01-23456789abcd";
  EXPECT_EQ(ParseUploadName(Cat("uploads/", uuid, "/blobs/", digest, "/1"))->uuid, uuid);
  for (const std::string& bad : {Cat("uploads/", uuid, "/blobs/", digest),
                                 Cat("uploads/../../etc/passwd/blobs/", digest, "/1"),
                                 Cat("uploads/", std::string(36, 'a'), "/blobs/", digest, "/1"),
                                 Cat("blobs/", digest, "/1")}) {
    EXPECT_EQ(ParseUploadName(bad).status().code(), Code::kInvalidArgument) << bad;
  }
}

TEST_F(Blobs, AppearWhenTheyAreWhole) {
  const std::string bytes = Bytes(300'000, 1);
  const UploadId upload = UploadOf(bytes);
  EXPECT_EQ(blobs_->Status(upload).status().code(), Code::kNotFound);
  auto writer = blobs_->OpenUpload(upload, 0);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Append(bytes.substr(0, 200'000)).ok());
  EXPECT_EQ(blobs_->Status(upload)->committed, 0) << "not synced yet";
  ASSERT_TRUE((*writer)->Commit().ok());
  EXPECT_EQ(blobs_->Status(upload)->committed, 200'000);
  EXPECT_FALSE(blobs_->Contains(upload.blob));
  EXPECT_EQ((*writer)->Append(std::string(100'001, 'x')).code(), Code::kOutOfRange);
  ASSERT_TRUE((*writer)->Append(bytes.substr(200'000)).ok());
  ASSERT_TRUE((*writer)->Finish().ok());
  EXPECT_TRUE(blobs_->Contains(upload.blob));
  EXPECT_FALSE(blobs_->Contains({upload.blob.sha256, 5})) << "the size belongs to the name";
  EXPECT_TRUE(blobs_->Status(upload)->complete);
  EXPECT_EQ(Get(upload.blob), bytes);
  EXPECT_EQ(blobs_->OpenUpload(upload, 0).status().code(), Code::kAlreadyExists);
  EXPECT_EQ(blobs_->OpenBlob({upload.blob.sha256, 5}).status().code(), Code::kNotFound);
  EXPECT_EQ(*blobs_->Check(), std::vector<std::string>());
}

TEST_F(Blobs, EmptyOnesToo) {
  ASSERT_TRUE(Put("").ok());
  EXPECT_EQ(Get(IdOf("")), "");
}

TEST_F(Blobs, UploadsGoOnAfterARestart) {
  const std::string bytes = Bytes(100'000, 2);
  const UploadId upload = UploadOf(bytes);
  for (int64_t at = 0; at < 100'000; at += 25'000) {
    if (at == 50'000) Reopen({});  // hashed from the start again; otherwise the hash goes on
    const auto status = blobs_->Status(upload);
    EXPECT_EQ(status.ok() ? status->committed : 0, at);
    EXPECT_EQ(blobs_->OpenUpload(upload, at + 1).status().code(), Code::kOutOfRange);
    auto writer = blobs_->OpenUpload(upload, at);
    ASSERT_TRUE(writer.ok()) << writer.status();
    EXPECT_EQ((*writer)->offset(), at);
    ASSERT_TRUE((*writer)->Append(bytes.substr(static_cast<size_t>(at), 25'000)).ok());
    EXPECT_EQ(at < 75'000 || (*writer)->Finish().ok(), true);
  }
  EXPECT_EQ(Get(upload.blob), bytes);
}

TEST_F(Blobs, OneWriterAnUpload) {
  const std::string bytes = Bytes(10, 3);
  const auto writer = blobs_->OpenUpload(UploadOf(bytes), 0);
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ(blobs_->OpenUpload(UploadOf(bytes), 0).status().code(), Code::kAborted);
  const auto other = blobs_->OpenUpload(UploadOf(bytes, 1), 0);
  ASSERT_TRUE(other.ok()) << "another upload of the same bytes is fine";
  for (const auto* upload : {&writer, &other}) {
    ASSERT_TRUE((**upload)->Append(bytes).ok());
    ASSERT_TRUE((**upload)->Finish().ok());
  }
  EXPECT_EQ(Get(IdOf(bytes)), bytes);
}

TEST_F(Blobs, WrongBytesAreThrownAway) {
  UploadId upload = UploadOf("right");
  auto writer = blobs_->OpenUpload(upload, 0);
  ASSERT_TRUE((*writer)->Append("wrong").ok());
  EXPECT_EQ((*writer)->Finish().code(), Code::kDataLoss);
  EXPECT_EQ((*writer)->Append("x").code(), Code::kFailedPrecondition);
  writer->reset();
  EXPECT_EQ(blobs_->Status(upload).status().code(), Code::kNotFound);
  writer = blobs_->OpenUpload(upload, 0);
  ASSERT_TRUE((*writer)->Append("rig").ok());
  EXPECT_EQ((*writer)->Finish().code(), Code::kDataLoss) << "too few";
  EXPECT_EQ(*blobs_->TotalBytes(), 0);
}

TEST_F(Blobs, LimitsHold) {
  Reopen({.max_blob_bytes = 100, .max_total_bytes = 150});
  EXPECT_EQ(blobs_->OpenUpload(UploadOf(Bytes(101, 4)), 0).status().code(),
            Code::kResourceExhausted);
  ASSERT_TRUE(Put(Bytes(100, 5)).ok());
  EXPECT_EQ(Put(Bytes(51, 6)).code(), Code::kResourceExhausted);
  ASSERT_TRUE(Put(Bytes(50, 7)).ok()) << "what was refused is not counted";
  EXPECT_EQ(*blobs_->TotalBytes(), 150);
}

TEST_F(Blobs, OpenUploadsReserveTheirSize) {
  Reopen({.max_blob_bytes = 1000, .max_total_bytes = 100});
  const std::string first = Bytes(60, 9), second = Bytes(60, 10);
  {
    const auto open = blobs_->OpenUpload(UploadOf(first), 0);
    ASSERT_TRUE(open.ok()) << open.status();
    ASSERT_TRUE((*open)->Append(first.substr(0, 10)).ok());
    EXPECT_EQ(blobs_->OpenUpload(UploadOf(first), 10).status().code(), Code::kAborted)
        << "the same upload needs no more room";
    const absl::Status refused = blobs_->OpenUpload(UploadOf(second), 0).status();
    EXPECT_EQ(refused.code(), Code::kResourceExhausted);
    EXPECT_EQ(*blobs_->TotalBytes(), 10) << "what was refused leaves nothing";
    ASSERT_TRUE((*open)->Append(first.substr(10)).ok());
    ASSERT_TRUE((*open)->Finish().ok());
  }
  EXPECT_EQ(Put(Bytes(41, 11)).code(), Code::kResourceExhausted);
  EXPECT_TRUE(Put(Bytes(40, 12)).ok()) << "a closed upload reserves no more";
}

TEST_F(Blobs, AnUploadThatTheDiskCannotHoldIsRefusedAtItsStart) {
  const int64_t bytes = blobs_->FreeBytes();
  ASSERT_GT(bytes, 0);
  Reopen({.max_blob_bytes = bytes * 4, .min_free_bytes = 1});
  BlobId large = IdOf("x");
  large.size = bytes * 2;
  const UploadId upload{UploadOf("x").uuid, large};
  const absl::Status refused = blobs_->OpenUpload(upload, 0).status();
  EXPECT_EQ(refused.code(), Code::kResourceExhausted);
  EXPECT_NE(refused.message().find("disk is full"), std::string::npos) << refused;
  EXPECT_EQ(*blobs_->TotalBytes(), 0);
}

TEST_F(Blobs, HostileNamesAndLinksAreRefused) {
  const std::string bytes = Bytes(20, 8);
  const BlobId blob = IdOf(bytes);
  EXPECT_FALSE(blobs_->Contains({"../../../etc/passwd", 1}));
  EXPECT_EQ(blobs_->OpenBlob({"..", 1}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(blobs_->Path({std::string(64, '/'), 1}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(blobs_->OpenUpload({"../x", blob}, 0).status().code(), Code::kInvalidArgument);
  // Links where blobs and uploads would be.
  const std::string secret = folder_.path() + "/secret";
  std::ofstream(secret) << bytes;
  std::filesystem::create_directories(root_ + "/blobs/" + blob.sha256.substr(0, 2));
  const std::string place = root_ + "/blobs/" + blob.sha256.substr(0, 2) + "/" + blob.sha256;
  std::filesystem::create_symlink(secret, place);
  EXPECT_FALSE(blobs_->Contains(blob));
  EXPECT_EQ(blobs_->OpenBlob(blob).status().code(), Code::kNotFound);
  std::filesystem::create_symlink(
      secret, root_ + "/uploads/" + UploadOf(bytes).uuid + "." + blob.sha256 + ".20");
  EXPECT_FALSE(blobs_->OpenUpload(UploadOf(bytes), 0).ok());
  EXPECT_FALSE(blobs_->Adopt(place, "").ok());
  EXPECT_EQ(blobs_->Check()->size(), 1U) << "and reported";
  std::filesystem::remove(place);
  std::filesystem::create_hard_link(secret, place);
  EXPECT_FALSE(blobs_->OpenBlob(blob).ok()) << "another name of the file could change it";
  std::ifstream unchanged(secret);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(unchanged), {}), bytes);
}

TEST_F(Blobs, AdoptTakesAFile) {
  const std::string bytes = Bytes(3'000'000, 9);
  const std::string path = folder_.path() + "/made";
  std::ofstream(path, std::ios::binary) << bytes;
  const auto blob = blobs_->Adopt(path, "");
  ASSERT_TRUE(blob.ok()) << blob.status();
  EXPECT_EQ(BlobName(*blob), BlobName(IdOf(bytes)));
  std::ofstream(path, std::ios::binary) << "changed";
  EXPECT_EQ(Get(*blob), bytes);
  EXPECT_EQ(blobs_->Adopt(folder_.path() + "/none", "").status().code(), Code::kNotFound);
  const std::string stored = *blobs_->Path(*blob);
  struct stat info = {};
  ASSERT_EQ(stat(stored.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0400U) << "read-only";
  EXPECT_TRUE(std::filesystem::is_empty(root_ + "/uploads"));
}

TEST_F(Blobs, WhatIsThereIsNotReplaced) {
  const std::string bytes = Bytes(10'000, 21);
  const auto inode = [&] {
    struct stat info {};
    EXPECT_EQ(stat(blobs_->Path(IdOf(bytes))->c_str(), &info), 0);
    return info.st_ino;
  };
  // Two uploads, begun before either was whole, and a file of the same bytes.
  const auto first = *blobs_->OpenUpload(UploadOf(bytes, 1), 0);
  const auto second = *blobs_->OpenUpload(UploadOf(bytes, 2), 0);
  ASSERT_TRUE(first->Append(bytes).ok() && second->Append(bytes).ok());
  ASSERT_TRUE(first->Finish().ok());
  const auto installed = inode();
  clock_.Advance(1'000'000);
  const int64_t later = clock_.WallMicros();
  ASSERT_TRUE(second->Finish().ok());
  EXPECT_EQ(inode(), installed) << "a job may be mounting it";
  const std::string path = folder_.path() + "/result";
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_EQ(blobs_->Adopt(path, "")->sha256, IdOf(bytes).sha256);
  EXPECT_EQ(inode(), installed);
  EXPECT_TRUE(std::filesystem::is_empty(root_ + "/uploads"));
  EXPECT_EQ(*blobs_->TotalBytes(), 10'000);
  EXPECT_EQ(*blobs_->Sweep({}, later), 0) << "it was used again";
  // A damaged one is replaced.
  std::filesystem::resize_file(*blobs_->Path(IdOf(bytes)), 5);
  ASSERT_TRUE(blobs_->Adopt(path, "").ok());
  EXPECT_EQ(Get(IdOf(bytes)), bytes);
}

TEST_F(Blobs, SweepSparesWhatIsNeededOrTouched) {
  const std::string needed = Bytes(10, 10);
  const std::string promised = Bytes(20, 11);
  const std::string garbage = Bytes(30, 12);
  for (const std::string& bytes : {needed, promised, garbage}) ASSERT_TRUE(Put(bytes).ok());
  const auto reader = blobs_->OpenBlob(IdOf(garbage));
  clock_.Advance(1'000'000);
  const int64_t later = clock_.WallMicros();
  blobs_->Touch(IdOf(promised));
  EXPECT_EQ(blobs_->Sweep({IdOf(needed).sha256}, later).value_or(-1), 30);
  EXPECT_TRUE(blobs_->Contains(IdOf(needed)));
  EXPECT_TRUE(blobs_->Contains(IdOf(promised)));
  EXPECT_FALSE(blobs_->Contains(IdOf(garbage)));
  std::string bytes(30, '\0');
  EXPECT_EQ((*reader)->Read(0, bytes.data(), 30).value_or(-1), 30) << "a reader is not disturbed";
  EXPECT_EQ(bytes, garbage);
  EXPECT_EQ(blobs_->List()->size(), 2U);
}

TEST_F(Blobs, ProjectsShareNothing) {
  const std::string bytes = Bytes(1000, 31);
  const auto in = [&](const std::string& project) {
    BlobId blob = IdOf(bytes);
    blob.project = project;
    return blob;
  };
  const auto put = [&](const std::string& project, int number) {
    UploadId upload = UploadOf(bytes, number);
    upload.blob.project = project;
    auto writer = blobs_->OpenUpload(upload, 0);
    if (!writer.ok()) return writer.status();
    if (const absl::Status appended = (*writer)->Append(bytes); !appended.ok()) return appended;
    return (*writer)->Finish();
  };
  ASSERT_TRUE(put("a", 1).ok());
  EXPECT_TRUE(blobs_->Contains(in("a")));
  EXPECT_FALSE(blobs_->Contains(in("b")) || blobs_->Contains(in("")));
  EXPECT_FALSE(blobs_->OpenBlob(in("b")).ok());
  UploadId same = UploadOf(bytes, 1);
  same.blob.project = "b";
  EXPECT_EQ(blobs_->Status(same).status().code(), Code::kNotFound) << "the upload's id is a's";
  ASSERT_TRUE(put("b", 1).ok()) << "the bytes travel again";
  const std::string path = folder_.path() + "/result";
  std::ofstream(path, std::ios::binary) << bytes;
  ASSERT_EQ(blobs_->Adopt(path, "c")->project, "c");
  EXPECT_EQ(*blobs_->TotalBytes(), 3000) << "a copy a project";
  const std::string own = *blobs_->Path(in("c"));
  EXPECT_NE(own, *blobs_->Path(in("a")));
  // The damage of one project's copy is not another's.
  std::filesystem::resize_file(own, 5);
  EXPECT_EQ(Get(in("a")), bytes);
  EXPECT_EQ(blobs_->Check()->size(), 1U);
}

TEST_F(Blobs, SweepAndTouchAreOfOneProject) {
  const std::string bytes = Bytes(30, 32);
  const std::string path = folder_.path() + "/result";
  std::ofstream(path, std::ios::binary) << bytes;
  const auto in = [&](const std::string& project) {
    BlobId blob = IdOf(bytes);
    blob.project = project;
    return blob;
  };
  for (const char* project : {"", "a", "b", "c"}) ASSERT_TRUE(blobs_->Adopt(path, project).ok());
  UploadId abandoned = UploadOf(Bytes(40, 33), 5);
  abandoned.blob.project = "a";
  auto writer = *blobs_->OpenUpload(abandoned, 0);
  ASSERT_TRUE(writer->Append(Bytes(40, 33).substr(0, 20)).ok() && writer->Commit().ok());
  writer.reset();
  // The system dates unfinished uploads.
  const timespec long_ago[2] = {{0, 0}, {0, 0}};
  for (const auto& entry : std::filesystem::directory_iterator(root_ + "/uploads"))
    ASSERT_EQ(utimensat(AT_FDCWD, entry.path().c_str(), long_ago, 0), 0);
  clock_.Advance(1'000'000);
  const int64_t later = clock_.WallMicros();
  blobs_->Touch(in("b"));
  EXPECT_EQ(blobs_->Sweep({BlobKey(in("a"))}, later).value_or(-1), 30 + 30 + 20)
      << "those of default and c, and the upload of a";
  EXPECT_TRUE(blobs_->Contains(in("a"))) << "referenced";
  EXPECT_TRUE(blobs_->Contains(in("b"))) << "touched";
  EXPECT_FALSE(blobs_->Contains(in("")) || blobs_->Contains(in("c")));
  EXPECT_TRUE(std::filesystem::is_empty(root_ + "/uploads"));
}

TEST_F(Blobs, CheckFindsChangedBytes) {
  const std::string bytes = Bytes(1000, 13);
  ASSERT_TRUE(Put(bytes).ok());
  const std::string path = *blobs_->Path(IdOf(bytes));
  ASSERT_EQ(chmod(path.c_str(), 0600), 0);
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(500);
    file.put(static_cast<char>(bytes[500] ^ 1));
  }
  std::ofstream(root_ + "/blobs/stray") << "x";
  EXPECT_EQ(blobs_->Check()->size(), 2U);
}

TEST_F(Blobs, ManyStreamsAtOnce) {
  InThreads(4, [&](int i) {
    for (uint64_t k = 0; k < 5; ++k) {
      const std::string bytes = Bytes(50'000, 100 + k + static_cast<uint64_t>(i % 2) * 10);
      const UploadId upload = UploadOf(bytes, i);
      auto writer = blobs_->OpenUpload(upload, 0);
      if (absl::IsAlreadyExists(writer.status())) continue;
      ASSERT_TRUE(writer.ok()) << writer.status();
      for (size_t at = 0; at < bytes.size(); at += 10'000)
        ASSERT_TRUE((*writer)->Append(bytes.substr(at, 10'000)).ok());
      ASSERT_TRUE((*writer)->Finish().ok());
      EXPECT_EQ(Get(upload.blob), bytes);
    }
  });
  EXPECT_EQ(blobs_->List()->size(), 10U);
  EXPECT_EQ(*blobs_->Check(), std::vector<std::string>());
}

}  // namespace
}  // namespace mendel::server
