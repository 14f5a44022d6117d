// Cost of certification: every model against itself with all its convolutions and matrix products
// computed another way, and with one of them changed. Prints a Markdown table; nothing is asserted.
// usage: certify_bench [--threads N] MODEL.onnx...

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "base/check.h"
#include "base/deadline.h"
#include "base/parallel.h"
#include "graph/rewrite.h"
#include "tests/legal_rewrites.h"
#include "tests/program_source.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

double PeakMegabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024e-6;
}

struct Cost {
  Certificate certificate;
  double seconds = 0;
  double cpu = 0;
};

Cost Measure(const Graph& model, const Graph& rewritten) {
  const double cpu = CpuSeconds();
  const Stopwatch watch;
  auto certificate = Certify(model, rewritten, {});
  if (!certificate.ok())
    std::fprintf(stderr, "%s\n", std::string(certificate.status().message()).c_str());
  MENDEL_CHECK(certificate.ok());
  return {*std::move(certificate), watch.Seconds(), CpuSeconds() - cpu};
}

/// Multiply-adds of the programs; combined slices avoid most of them.
double Multiplications(const Graph& model, const Graph& rewritten) {
  return (RunTimeFlops(model) + RunTimeFlops(rewritten)) / 2;
}

void Row(const std::filesystem::path& path) {
  const Graph model = LoadModel(path.string());
  Rng rng(1);
  int changed = 0, one = 0;
  const Graph rewritten = WithOtherProducts(rng, model, &changed);
  const Graph one_changed = WithOtherProducts(rng, model, &one, changed / 2);
  const Cost single = Measure(model, one_changed);
  const Cost all = Measure(model, rewritten);
  const double tests = static_cast<double>(all.certificate.draws.size()) - 1;
  const double multiplications = Multiplications(model, rewritten) * tests;
  std::printf(
      "| %s | %d | %lld | %.0f | %.0f | %.1f | %.2f | %.2f | %.2f | %.2f | %.2f | %.0f | %.0f |\n",
      path.stem().c_str(), changed, static_cast<long long>(all.certificate.segments), tests,
      all.certificate.bound_log2, multiplications / 1e9, all.seconds, all.cpu,
      multiplications / all.cpu / 1e9, single.seconds, single.cpu, PeakMegabytes(),
      static_cast<double>(std::filesystem::file_size(path)) / 1e6);
  std::fflush(stdout);
}

/// Runs in a process of its own, so that the peak memory is that of this model.
bool RowApart(const std::filesystem::path& path) {
  const pid_t child = fork();
  if (child == 0) {
    Row(path);
    _exit(0);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace
}  // namespace mendel

int main(int argc, char** argv) {
  int first = 1;
  if (argc > 2 && std::strcmp(argv[1], "--threads") == 0) {
    mendel::SetParallelism(std::atoi(argv[2]));
    first = 3;
  }
  std::printf(
      "Certification on %d threads; GMAC: multiply-adds that both programs have, times the "
      "certifying draws. Combined slices "
      "spare most of them, the selecting draw is extra.\n\n",
      mendel::Parallelism());
  std::printf(
      "| model | products changed | segments | draws | bound log2 | GMAC | seconds | CPU s | "
      "GMAC/s a core | one changed: s | "
      "one changed: CPU s | peak MB | model MB "
      "|\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  std::fflush(stdout);
  bool good = true;
  for (int k = first; k < argc; ++k) good = mendel::RowApart(argv[k]) && good;
  return good ? 0 : 1;
}
