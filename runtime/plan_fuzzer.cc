// libFuzzer target of the plan parser (configure with MENDEL_FUZZ). The first byte chooses between
// the raw bytes as a file, and the rest cut into sections under right hashes, which lets the fuzzer
// past the hash checks: those of a plan, or of a bundle of two members.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "runtime/plan_bundle.h"

namespace mendel {
namespace {

using Bytes = std::span<const std::byte>;

/// Sections of the lengths that the input's own first bytes report; the input is consumed.
std::vector<std::byte> Assemble(Bytes& input, std::initializer_list<const char*> names) {
  std::vector<SectionEntry> entries;
  std::vector<Bytes> bodies;
  for (const char* name : names) {
    if (input.size() < 2) break;
    const size_t wanted =
        std::to_integer<size_t>(input[0]) * 256 + std::to_integer<size_t>(input[1]);
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

/// Weights, and members that hold together, around the input.
std::vector<std::byte> AssembleBundle(Bytes input) {
  const size_t shared = std::min<size_t>(input.size(), 256);
  const Bytes weights = input.first(shared);
  input = input.subspan(shared);
  std::vector<SectionEntry> entries = {{"weights", 0, weights.size(), SectionHash(weights)}};
  std::vector<std::vector<std::byte>> members;
  for (const char* name : {"member.0", "member.1"}) {
    members.push_back(Assemble(input, {"graph", "tensors", "info", "certificate"}));
    entries.push_back({name, 0, members.back().size(), SectionHash(members.back())});
  }
  std::vector<std::byte> file = EncodeHeader(entries, kBundleFileVersion);
  file.resize(entries[0].offset);
  file.insert(file.end(), weights.begin(), weights.end());
  for (size_t k = 0; k < members.size(); ++k) {
    file.resize(entries[k + 1].offset);
    file.insert(file.end(), members[k].begin(), members[k].end());
  }
  return file;
}

}  // namespace
}  // namespace mendel

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  auto input = std::as_bytes(std::span(data, size)).subspan(1);
  std::vector<std::byte> file;
  switch (data[0] % 4) {
    case 0:
      (void)mendel::ParsePlans(input, nullptr).ok();
      break;
    case 1:
      file = mendel::AssembleBundle(input);
      (void)mendel::ParsePlans(file, nullptr).ok();
      break;
    default:
      file = mendel::Assemble(input,
                              {"graph", "baseline", "tensors", "weights", "info", "certificate"});
      (void)mendel::ParsePlan(file, nullptr).ok();
  }
  return 0;
}
