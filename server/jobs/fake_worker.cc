// A fake `mendel` that misbehaves by its model's file name (job_runner_test.cc). Built without
// sanitizers, so that its limits are those of the real program.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<bool> terminated = false;
extern "C" void OnTerminate(int) { terminated = true; }

struct Call {
  std::vector<std::string> words;
  std::string Option(const std::string& name) const {
    for (const std::string& word : words) {
      if (word.rfind(name + "=", 0) == 0) return word.substr(name.size() + 1);
    }
    return "";
  }
};

int Fail(const char* code, const std::string& message, int exit_code) {
  std::printf("{\"error\": {\"code\": \"%s\", \"message\": \"%s\"}}\n", code, message.c_str());
  return exit_code;
}

void Progress(const std::string& line) {
  if (write(3, line.data(), line.size()) < 0) std::_Exit(77);
}

int Deliver(const std::string& stop_reason) {
  std::FILE* file = std::fopen("out/result.plan", "w");
  if (file == nullptr || std::fputs(("a plan, stopped: " + stop_reason).c_str(), file) < 0 ||
      std::fclose(file) != 0) {
    return Fail("UNAVAILABLE", "cannot write", 5);
  }
  std::printf(
      "{\"target\": {\"backend\": \"cpu\", \"isa\": \"avx2\", \"threads\": 2}, \"baseline\": "
      "{\"median_ms\": 3.0},"
      " \"plan\": {\"median_ms\": 2.0}, \"speedup\": 1.5, \"certificate\": {\"bound_log2\": "
      "-100.5}, \"weights\": \"symbolic\","
      " \"numeric\": [{\"plan_max\": 1e-6}], \"search\": {\"stop_reason\": \"%s\"}, \"mutants\": "
      "{\"conv_merge\": 2}}\n",
      stop_reason.c_str());
  return 0;
}

int Good(const Call&) {
  Progress(
      "{\"phase\":\"import\",\"warnings\":[\"a "
      "warning\"]}\n{\"phase\":\"search\",\"candidates\":7,\"best_speedup\":1.25}\n");
  return Deliver("saturated");
}

[[noreturn]] void Segfault() {
  std::raise(SIGSEGV);
  std::abort();
}

int Killed(const Call&) {
  std::raise(SIGKILL);
  return 79;
}

int Hang(const Call&) {
  std::signal(SIGTERM, SIG_IGN);
  while (true) pause();
}

/// Like `mendel optimize`: SIGTERM delivers the best plan so far.
int Slow(const Call&) {
  std::signal(SIGTERM, &OnTerminate);
  for (int i = 1; !terminated; ++i) {
    Progress("{\"phase\":\"search\",\"candidates\":" + std::to_string(i) + "}\n");
    usleep(20'000);
  }
  return Deliver("interrupted");
}

int Allocate(const Call&) {
  while (true) std::memset(new char[16 << 20], 1, 16 << 20);
}

/// Allocates memory that the limit on private mappings does not count.
int Share(const Call&) {
  while (true) {
    void* memory =
        mmap(nullptr, 16 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    std::memset(memory, 1, 16 << 20);
  }
}

int Flood(int descriptor, const char* text) {
  while (true) {
    if (write(descriptor, text, std::strlen(text)) < 0) return 78;
  }
}

int Fill(const Call&) {
  const std::string block(1 << 20, 'x');
  for (int i = 0;; ++i) {
    std::FILE* file = std::fopen(("out/" + std::to_string(i)).c_str(), "w");
    for (int k = 0; file != nullptr && k < 8; ++k) std::fwrite(block.data(), 1, block.size(), file);
    if (file != nullptr) std::fclose(file);
    usleep(1000);
  }
}

int LargeFile(const Call&) {
  const std::string block(1 << 20, 'x');
  std::FILE* file = std::fopen("out/large", "w");
  while (file != nullptr) std::fwrite(block.data(), 1, block.size(), file);
  return 5;
}

int Link(const Call&) {
  const int code = Deliver("saturated");
  std::filesystem::remove("out/result.plan");
  std::error_code error;
  std::filesystem::create_symlink("/etc/hostname", "out/result.plan", error);
  return code;
}

/// Tries all that a worker must not be able to do; the first success is reported.
int Escape(const Call& call) {
  std::string done;
  const auto attempt = [&](const char* what, bool worked) {
    if (worked) done += std::string(what) + " ";
  };
  // In its own process namespace a worker sees itself and its guard, which is confined in the same
  // way.
  const bool guarded = getpid() == 2 && getppid() == 1;
  attempt("socket", socket(AF_INET, SOCK_STREAM, 0) >= 0);
  attempt("unix-socket", socket(AF_UNIX, SOCK_STREAM, 0) >= 0);
  attempt("passwd", open("/etc/passwd", O_RDONLY) >= 0);
  attempt("secret", open(call.Option("--shapes").c_str(), O_RDONLY) >= 0);
  attempt("parent", open("../lock", O_RDWR) >= 0 || open("lock", O_RDWR) >= 0);
  attempt("list",
          open("/home", O_RDONLY | O_DIRECTORY) >= 0 || open("/root", O_RDONLY | O_DIRECTORY) >= 0);
  attempt("memory",
          !guarded && open(("/proc/" + std::to_string(getppid()) + "/mem").c_str(), O_RDONLY) >= 0);
  attempt("write-input", open("in/model/escape", O_RDWR) >= 0);
  attempt("write-usr", open("/usr/mendel-was-here", O_WRONLY | O_CREAT, 0600) >= 0);
  attempt("fork", fork() > 0);
  attempt("trace", std::system("true") == 0);
  attempt("signal", !guarded && kill(getppid(), 0) == 0);
  attempt("environment", std::getenv("MENDEL_TEST_SECRET") != nullptr);
  attempt("descriptor", fcntl(5, F_GETFD) >= 0);
  if (open("in/model/escape", O_RDONLY) < 0) done += "no-input ";
  std::thread([] {}).join();
  return done.empty() ? Deliver("saturated") : Fail("INVALID_ARGUMENT", "could: " + done, 2);
}

int Different(const Call&) {
  std::printf(
      "{\"verdict\": \"different\", \"bound_log2\": -60, \"tests\": 1, \"primes\": "
      "[2305843009213693951], \"seed\": 5, \"reason\": "
      "\"r\","
      " \"outputs\": [{\"name\": \"y\", \"shape\": [2, 3], \"elements\": 6, \"wrong_elements\": 1,"
      " \"boxes\": [{\"begin\": [0, 1], \"end\": [1, 2]}]}]}\n");
  return 1;
}

int Main(int argc, char** argv) {
  const Call call{{argv + 1, argv + argc}};
  if (argc == 2 && call.words[0] == "--version") return 0;
  if (argc < 3) return 2;
  std::signal(SIGPIPE, SIG_IGN);
  static const std::map<std::string, int (*)(const Call&)> behaviors = {
      {"good", &Good},
      {"crash", [](const Call&) -> int { Segfault(); }},
      {"abort", [](const Call&) -> int { std::abort(); }},
      {"hang", &Hang},
      {"slow", &Slow},
      {"allocate", &Allocate},
      {"share", &Share},

      {"flood_answer", [](const Call&) { return Flood(1, "an answer "); }},
      {"flood_log", [](const Call&) { return Flood(2, "a log\n"); }},
      {"flood_progress", [](const Call&) { return Flood(3, "{\"phase\":\"x\"}\n"); }},
      {"flood_line", [](const Call&) { return Flood(3, "{\"phase\":"); }},
      {"fill", &Fill},
      {"killed", &Killed},
      {"large_file", &LargeFile},
      {"link", &Link},
      {"escape", &Escape},
      {"different", &Different},
      {"garbage", [](const Call&) { return std::printf("no object [[[[") < 0 ? 1 : 0; }},
      {"silent", [](const Call&) { return 0; }},
      {"bad_input",
       [](const Call&) {
         return Fail(
             "INVALID_ARGUMENT",
             "node 'n' in " + std::filesystem::current_path().string() + "/in/model/x is wrong", 2);
       }},
      {"undecided", [](const Call&) { return Fail("ABORTED", "out of time", 3); }},
      {"internal", [](const Call&) { return Fail("INTERNAL", "a bug", 4); }},
      {"disk", [](const Call&) { return Fail("UNAVAILABLE", "cannot write", 5); }},
      {"code_9",
       [](const Call&) {
         std::fprintf(stderr, "bwrap: cannot start\n");
         return 9;
       }},
  };
  const auto found = behaviors.find(std::filesystem::path(call.words[1]).filename());
  return found == behaviors.end() ? 76 : found->second(call);
}

}  // namespace

int main(int argc, char** argv) { return Main(argc, argv); }
