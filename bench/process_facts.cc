#include "bench/process_facts.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "base/status.h"

namespace mendel {
namespace {

/// The number behind `word` at the start of a line, or 0.
double NumberAfter(const std::string& text, const std::string& word) {
  const size_t at = ("\n" + text).find("\n" + word);
  return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + word.size(), nullptr);
}

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string Metrics(int port) {
  const int connection = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string request = "GET /metrics HTTP/1.0\r\n\r\n";
  std::string answer;
  if (connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
      write(connection, request.data(), request.size()) == static_cast<ssize_t>(request.size())) {
    std::array<char, 4096> buffer{};
    for (ssize_t got = 0; (got = read(connection, buffer.data(), buffer.size())) > 0;) {
      answer.append(buffer.data(), static_cast<size_t>(got));
    }
  }
  close(connection);
  return answer;
}

}  // namespace

ProcessFacts FactsOf(int pid, int metrics_port) {
  ProcessFacts facts;
  const std::string status = ReadAll(Cat("/proc/", pid, "/status"));
  facts.resident_kib = static_cast<int64_t>(NumberAfter(status, "VmRSS:"));
  facts.anonymous_kib = static_cast<int64_t>(NumberAfter(status, "RssAnon:"));
  facts.threads = static_cast<int64_t>(NumberAfter(status, "Threads:"));
  // "pid (name) state ppid ..." and, 11 words behind the state, utime stime.
  const std::string stat = ReadAll(Cat("/proc/", pid, "/stat"));
  std::istringstream words(stat.substr(std::min(stat.size(), stat.rfind(')') + 1)));
  std::string word;
  for (int i = 0; i < 11; ++i) words >> word;
  const auto tick = static_cast<double>(sysconf(_SC_CLK_TCK));
  double user = 0;
  double system = 0;
  words >> user >> system;
  facts.cpu_seconds = (user + system) / tick;
  facts.heap_bytes = NumberAfter(Metrics(metrics_port), "process_heap_bytes ");
  return facts;
}

}  // namespace mendel
