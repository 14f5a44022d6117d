// SHA-256 of two messages side by side. One message's rounds wait for each other, so that a
// processor's SHA instructions are half idle; those of a second message fill the gaps.
// Measured against OpenSSL: docs/decisions/2026-11-26-libraries.md.
#ifndef MENDEL_BASE_SHA256_PAIR_H_
#define MENDEL_BASE_SHA256_PAIR_H_

#include <array>
#include <cstddef>
#include <span>

namespace mendel {

/// True when this machine has the instructions that Sha256Pair needs (x86: SHA, SSE4.1).
bool HasSha256Pair();
/// The digests of two messages of equal length, a multiple of 64 bytes. CHECKs HasSha256Pair().
std::array<std::array<std::byte, 32>, 2> Sha256Pair(std::span<const std::byte> a,
                                                    std::span<const std::byte> b);

}  // namespace mendel

#endif  // MENDEL_BASE_SHA256_PAIR_H_
