// libFuzzer target of the plan parser (configure with MENDEL_FUZZ). The first byte chooses between the raw bytes as a file, and
// the rest cut into sections under right hashes, which lets the fuzzer past the hash checks.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/plan.h"

namespace mendel {
namespace {

/// Sections of the lengths that the input's own first bytes tell.
std::vector<std::byte> Assemble(std::span<const std::byte> input) {
  std::vector<SectionEntry> entries;
  std::vector<std::span<const std::byte>> bodies;
  for (const char* name : {"graph", "baseline", "tensors", "weights", "info", "certificate"}) {
    if (input.size() < 2) break;
    const size_t wanted = std::to_integer<size_t>(input[0]) * 256 + std::to_integer<size_t>(input[1]);
    input = input.subspan(2);
    const size_t size = std::min(wanted, input.size());
    bodies.push_back(input.first(size));
    input = input.subspan(size);
    entries.push_back({name, 0, size, SectionHash(bodies.back())});
  }
  if (entries.empty()) return {};
  std::vector<std::byte> file = EncodeHeader(entries);
  for (size_t i = 0; i < entries.size(); ++i) {
    file.resize(entries[i].offset);
    file.insert(file.end(), bodies[i].begin(), bodies[i].end());
  }
  return file;
}

}  // namespace
}  // namespace mendel

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto input = std::as_bytes(std::span(data, size)).subspan(1);
  if (data[0] % 4 == 0) {
    (void)mendel::ParsePlan(input, nullptr).ok();
  } else {
    const std::vector<std::byte> file = mendel::Assemble(input);
    (void)mendel::ParsePlan(file, nullptr).ok();
  }
  return 0;
}
