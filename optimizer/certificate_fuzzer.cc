// libFuzzer target of the certificate (configure with MENDEL_FUZZ): the bytes are a certificate
// about two small graphs. It is refused, or it is replayed. No claim of it may crash the verifier.
// A certificate that replays must state the bound that its draws give.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "graph/text.h"
#include "optimizer/certificate_proto.h"
#include "verifier/verifier.h"

namespace mendel {
namespace {

constexpr char kOriginal[] = R"(graph "f" {
  %0 = Input() {name = "x", shape = [2, 3]}
  %1 = Constant() {symbol = "w", value = f32[3,2]{1, 2, 3, 4, 5, 6}}
  %2 = MatMul(%0, %1)
  %3 = Relu(%2)
  return "y" = %3
})";
constexpr char kPlan[] = R"(graph "g" {
  %0 = Input() {name = "x", shape = [2, 3]}
  %1 = Constant() {symbol = "w", value = f32[3,2]{1, 2, 3, 4, 5, 6}}
  %2 = Transpose(%0) {perm = [1, 0]}
  %3 = Transpose(%1) {perm = [1, 0]}
  %4 = MatMul(%3, %2)
  %5 = Transpose(%4) {perm = [1, 0]}
  %6 = Relu(%5)
  return "y" = %6
})";

struct Pair {
  Graph original = *ParseGraph(kOriginal);
  Graph plan = *ParseGraph(kPlan);
};

const Pair& Graphs() {
  static const Pair pair;
  return pair;
}

}  // namespace
}  // namespace mendel

/// Mutations of a true certificate reach further than random bytes.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  static const std::string bytes = [] {
    const auto certificate = mendel::Certify(mendel::Graphs().original, mendel::Graphs().plan, {});
    MENDEL_CHECK(certificate.ok());
    return mendel::SerializeCertificate(*certificate);
  }();
  if (seed % 16 == 0 && bytes.size() <= max_size) {
    std::copy(bytes.begin(), bytes.end(), data);
    size = bytes.size();
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto certificate =
      mendel::ParseCertificate(std::string(reinterpret_cast<const char*>(data), size));
  MENDEL_CHECK(certificate.ok() || certificate.status().code() != absl::StatusCode::kInternal);
  if (!certificate.ok()) return 0;
  const absl::Status replayed =
      mendel::Replay(mendel::Graphs().original, mendel::Graphs().plan, *certificate);
  MENDEL_CHECK(replayed.code() != absl::StatusCode::kInternal);
  if (replayed.ok()) MENDEL_CHECK(certificate->bound_log2 < 0 && certificate->draws.size() >= 2);
  return 0;
}
