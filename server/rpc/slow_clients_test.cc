// Clients that connect and send nothing, send a byte at a time, never answer or never read are cut
// off, while others are served.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "base/hash.h"
#include "base/status.h"
#include "google/bytestream/bytestream.grpc.pb.h"
#include "mendel/v1/jobs.grpc.pb.h"
#include "server/rpc/test_server.h"

namespace mendel::server {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Empty SETTINGS and the acknowledgement of the server's.
constexpr std::string_view kSettings = {"\0\0\0\4\0\0\0\0\0\0\0\0\4\1\0\0\0\0", 18};

/// A client's end of a connection, without a library.
class Raw {
 public:
  explicit Raw(const TestServer& server)
      : socket_(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    const std::string path = server.folder() + "/socket";
    path.copy(name.sun_path, sizeof(name.sun_path) - 1);
    connected_ = connect(socket_, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0;
  }
  /// Over TCP, from another address of this machine.
  Raw(int port, const char* from) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in own{}, server{};
    own.sin_family = server.sin_family = AF_INET;
    inet_pton(AF_INET, from, &own.sin_addr);
    inet_pton(AF_INET, "127.0.0.1", &server.sin_addr);
    server.sin_port = htons(static_cast<uint16_t>(port));
    connected_ = bind(socket_, reinterpret_cast<const sockaddr*>(&own), sizeof(own)) == 0 &&
                 connect(socket_, reinterpret_cast<const sockaddr*>(&server), sizeof(server)) == 0;
    fcntl(socket_, F_SETFL, O_NONBLOCK);
  }
  ~Raw() { close(socket_); }
  Raw(const Raw&) = delete;
  Raw& operator=(const Raw&) = delete;

  bool connected() const { return connected_; }
  void Send(std::string_view bytes) {
    (void)send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  /// Sends the next byte of the preface, in a cycle.
  void SendByte() { Send(kPreface.substr(sent_++ % kPreface.size(), 1)); }
  /// True if Ended() has read anything.
  bool heard() const { return heard_; }
  /// Reads all available bytes; true if the server has ended the connection.
  bool Ended() {
    std::array<char, 4096> buffer{};
    ssize_t got = 0;
    while ((got = recv(socket_, buffer.data(), buffer.size(), 0)) > 0) heard_ = true;
    return got == 0 || (errno != EAGAIN && errno != EINTR);
  }

 private:
  const int socket_;
  bool connected_ = false;
  bool heard_ = false;
  size_t sent_ = 0;
};

std::vector<std::unique_ptr<Raw>> Connect(const TestServer& server, int count) {
  std::vector<std::unique_ptr<Raw>> connections;
  for (int i = 0; i < count; ++i) connections.push_back(std::make_unique<Raw>(server));
  return connections;
}

/// Polls `step` until it is true; fails the test after a minute.
void Until(const std::function<bool()>& step) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!step()) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

/// An ordinary client, on a connection of its own.
grpc::Status List(TestServer& server) {
  v1::Jobs::Stub jobs(server.channel(true));
  grpc::ClientContext context;
  Prepare(context);
  context.set_wait_for_ready(true);
  v1::ListJobsResponse page;
  return jobs.ListJobs(&context, {}, &page);
}

bool AllEnded(const std::vector<std::unique_ptr<Raw>>& connections) {
  bool all = true;
  for (const auto& one : connections) all = one->Ended() && all;
  return all;
}

TEST(SlowClients, ThoseThatSayNothingOrLittleAreCutOff) {
  TestServer server([](ServerOptions& options) { options.handshake_seconds = 1; });
  const auto silent = Connect(server, 60);
  const auto slow = Connect(server, 60);
  const auto preface_only = Connect(server, 60);
  for (const auto& one : preface_only) one->Send(kPreface);
  EXPECT_TRUE(List(server).ok());
  Until([&] {
    for (const auto& one : slow) one->SendByte();
    return AllEnded(silent) && AllEnded(slow) && AllEnded(preface_only);
  });
  EXPECT_TRUE(List(server).ok());
}

TEST(SlowClients, HalfOpenConnectionsAreCutOff) {
  TestServer server([](ServerOptions& options) { options.keepalive_seconds = 1; });
  const auto dead = Connect(server, 30);
  for (const auto& one : dead) one->Send(Cat(kPreface, kSettings));
  EXPECT_TRUE(List(server).ok());
  Until([&] { return AllEnded(dead); });  // they answer no ping
  EXPECT_TRUE(List(server).ok());
}

TEST(SlowClients, TooManyConnectionsAreClosedAndTheRestGoesOn) {
  TestServer server([](ServerOptions& options) { options.max_connections = 40; });
  v1::Jobs::Stub early(server.channel(true));
  v1::ListJobsResponse page;
  grpc::ClientContext first;
  Prepare(first);
  ASSERT_TRUE(early.ListJobs(&first, {}, &page).ok());
  auto flood = Connect(server, 100);  // both ends count here: they are in one process
  const auto refused = [&] {
    return server.env().metrics.Value("mendel_connections_refused_total", {});
  };
  Until([&] { return refused() >= 60; });
  grpc::ClientContext second;
  Prepare(second);
  EXPECT_TRUE(early.ListJobs(&second, {}, &page).ok());
  flood.clear();
  EXPECT_TRUE(List(server).ok());
}

TEST(SlowClients, OneAddressTakesNoMoreThanItsShareOfConnections) {
  TestServer server([](ServerOptions& options) {
    options.listen += ",127.0.0.1:0";
    options.max_connections_per_address = 5;
  });
  const int port = server.rpc().ports()[1];
  const auto refused = [&] {
    return server.env().metrics.Value("mendel_connections_refused_total", {});
  };
  std::vector<std::unique_ptr<Raw>> greedy;
  for (int i = 0; i < 8; ++i) {
    greedy.push_back(std::make_unique<Raw>(port, "127.0.0.2"));
    ASSERT_TRUE(greedy.back()->connected());
  }
  Until([&] { return refused() == 3; });
  for (int i = 0; i < 8; ++i) EXPECT_EQ(greedy[static_cast<size_t>(i)]->Ended(), i >= 5) << i;
  const Raw other(port, "127.0.0.3");
  const auto local = Connect(server, 20);
  EXPECT_TRUE(List(server).ok());
  EXPECT_EQ(refused(), 3) << "others, and unix sockets, have theirs";
  // Closed connections are available again as soon as the server notices.
  greedy.clear();
  Until([&] {
    const double before = refused();
    Raw again(port, "127.0.0.2");
    again.Send(kPreface);
    Until([&] { return again.Ended() || again.heard(); });
    return refused() == before;
  });
}

TEST(SlowClients, NoNumberOfClientsShutsOutAnother) {
  Permits permits("transfers", 16, 8);
  std::vector<std::unique_ptr<Permits::Permit>> held;
  const auto take = [&](const std::string& client) {
    auto permit = permits.Take(client);
    const bool granted = permit.ok();
    if (granted) held.push_back(*std::move(permit));
    return granted;
  };
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(take("a") && take("b"));
  EXPECT_FALSE(take("a"));
  for (const char* client : {"c", "d"}) {
    EXPECT_TRUE(take(client) && take(client)) << client;
    EXPECT_FALSE(take(client)) << "beyond the total only what is granted to everybody";
  }
  held.erase(held.begin(), held.begin() + 5);
  EXPECT_TRUE(take("c"));
  EXPECT_EQ(permits.taken(), 16);
}

TEST(SlowClients, APaceCountsTheClientsTimeOnly) {
  Pace pace(100, 10);
  EXPECT_TRUE(pace.Moved(1, 9'999'999)) << "the window is not over";
  EXPECT_FALSE(pace.Moved(1, 1)) << "two bytes in ten seconds";
  EXPECT_TRUE(pace.Moved(999, 5'000'000)) << "a new window";
  EXPECT_TRUE(pace.Moved(1, 5'000'000));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(pace.Moved(1, 0)) << "it waits for the server";
}

TEST(SlowClients, AByteNowAndThenIsNoTransfer) {
  TestServer server([](ServerOptions& options) { options.transfer_idle_seconds = 1; });
  google::bytestream::ByteStream::Stub stub(server.channel(true));
  const std::string bytes(1000, 'x');
  grpc::ClientContext context;
  google::bytestream::WriteResponse response;
  auto writer = stub.Write(&context, &response);
  google::bytestream::WriteRequest request;
  request.set_resource_name(Cat("uploads/01234567-89ab-cdef-0123-456789abcdef/blobs/",
                                Sha256Hex(std::string_view(bytes)), "/", bytes.size()));
  int sent = 0;
  Until([&] {
    request.set_write_offset(sent);
    request.set_data("x");
    // Often enough that it is never idle for a second.
    return !writer->Write(request) || ++sent == 1000;
  });
  EXPECT_LT(sent, 1000);
  EXPECT_FALSE(writer->Finish().ok());
  // The client sees the end first.
  Until([&] { return server.env().transfers.taken() == 0; });
}

TEST(SlowClients, TransfersThatDoNotMoveAreCutOff) {
  TestServer server([](ServerOptions& options) {
    options.transfer_idle_seconds = 1;
    options.max_transfers = options.max_transfers_per_client = 4;
  });
  const std::string bytes(8 << 20, 'x');
  server.MakeModel(bytes);
  google::bytestream::ByteStream::Stub stub(server.channel(true));
  std::array<grpc::ClientContext, 2> reading;
  std::array<grpc::ClientContext, 2> writing;
  google::bytestream::ReadRequest request;
  request.set_resource_name(Cat("blobs/", Sha256Hex(std::string_view(bytes)), "/", bytes.size()));
  std::vector<std::unique_ptr<grpc::ClientReader<google::bytestream::ReadResponse>>> readers;
  std::vector<std::unique_ptr<grpc::ClientWriter<google::bytestream::WriteRequest>>> writers;
  google::bytestream::WriteResponse response;
  for (grpc::ClientContext& context : reading) readers.push_back(stub.Read(&context, request));
  for (grpc::ClientContext& context : writing) writers.push_back(stub.Write(&context, &response));
  Until([&] { return server.env().transfers.taken() == 4; });
  EXPECT_TRUE(List(server).ok());
  Until([&] { return server.env().transfers.taken() == 0; });
  for (const auto& one : writers) EXPECT_FALSE(one->Finish().ok());
  for (grpc::ClientContext& context : reading) context.TryCancel();
  for (const auto& one : readers) EXPECT_FALSE(one->Finish().ok());
}

}  // namespace
}  // namespace mendel::server
