// A server made of a folder, for tests. Uploads and blobs are files, so that the next client finds
// the files of a killed one.
#ifndef MENDEL_CLIENT_SERVICE_FAKE_CHANNEL_H_
#define MENDEL_CLIENT_SERVICE_FAKE_CHANNEL_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "client/service/channel.h"

namespace mendel {

/// The state of the fake besides its folder, and the faults that it makes. Outlives its channels.
struct FakeServer {
  explicit FakeServer(std::string folder_of_server) : folder(std::move(folder_of_server)) {}
  std::string folder;
  std::map<std::string, v1::Job> jobs;
  std::map<std::string, std::vector<v1::JobEvent>> events;
  std::map<std::string, v1::Plan> plans;
  std::map<std::string, std::string> request_ids;
  /// Bytes that arrived by Write and left by Read, over all attempts.
  int64_t received = 0;
  int64_t sent = 0;
  /// Called before every call with its name; a status other than OK is the answer.
  std::function<CallStatus(const std::string& call)> fault;
  /// Called after every message of a stream. `done` counts the bytes (or events) of this attempt. A
  /// status other than OK ends the stream.
  std::function<CallStatus(const std::string& call, int64_t done)> stream_fault;

  std::string BlobPath(const std::string& sha256) const { return folder + "/blob-" + sha256; }
  /// Stores bytes as a blob and returns its name.
  std::string AddBlob(const std::string& bytes);
};

std::unique_ptr<Channel> MakeFakeChannel(FakeServer& server);

/// Reads or writes a whole file (tests).
std::string ReadAll(const std::string& path);
void WriteAll(const std::string& path, const std::string& bytes);

}  // namespace mendel

#endif  // MENDEL_CLIENT_SERVICE_FAKE_CHANNEL_H_
