#include "base/hash.h"

#include <openssl/evp.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"

namespace mendel {

struct Sha256::Context {
  EVP_MD_CTX* evp = nullptr;
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  context_->evp = EVP_MD_CTX_new();
  MENDEL_CHECK(context_->evp != nullptr &&
               EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() { EVP_MD_CTX_free(context_->evp); }

void Sha256::Update(std::span<const std::byte> bytes) {
  MENDEL_CHECK(EVP_DigestUpdate(context_->evp, bytes.data(), bytes.size()) == 1);
}

void Sha256::Update(std::string_view text) {
  Update(std::as_bytes(std::span(text.data(), text.size())));
}

std::string Sha256::HexDigest() {
  std::array<unsigned char, 32> digest{};
  unsigned int length = 0;
  MENDEL_CHECK(EVP_DigestFinal_ex(context_->evp, digest.data(), &length) == 1 &&
               length == digest.size());
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (unsigned char byte : digest) {
    hex.push_back(kDigits[byte >> 4]);
    hex.push_back(kDigits[byte & 15]);
  }
  return hex;
}

std::string Sha256Hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.HexDigest();
}

std::string Sha256Hex(std::string_view text) {
  return Sha256Hex(std::as_bytes(std::span(text.data(), text.size())));
}

namespace {

void SipRound(std::array<uint64_t, 4>& v) {
  v[0] += v[1];
  v[1] = std::rotl(v[1], 13) ^ v[0];
  v[0] = std::rotl(v[0], 32);
  v[2] += v[3];
  v[3] = std::rotl(v[3], 16) ^ v[2];
  v[0] += v[3];
  v[3] = std::rotl(v[3], 21) ^ v[0];
  v[2] += v[1];
  v[1] = std::rotl(v[1], 17) ^ v[2];
  v[2] = std::rotl(v[2], 32);
}

}  // namespace

KeyedHash::KeyedHash(std::array<uint64_t, 2> key)
    : v_{key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du ^ 0xee,
         key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u} {}

void KeyedHash::Add(uint64_t word) {
  v_[3] ^= word;
  SipRound(v_);
  SipRound(v_);
  v_[0] ^= word;
  ++words_;
}

void KeyedHash::Add(std::string_view text) {
  Add(static_cast<uint64_t>(text.size()));
  for (size_t i = 0; i < text.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + i, std::min<size_t>(8, text.size() - i));
    Add(word);
  }
}

Hash128 KeyedHash::Finish() const {
  std::array<uint64_t, 4> v = v_;
  const uint64_t last =
      (words_ * 8) << 56;  // SipHash's final block: the length in bytes modulo 256 in the top byte
  v[3] ^= last;
  SipRound(v);
  SipRound(v);
  v[0] ^= last;
  v[2] ^= 0xee;
  for (int i = 0; i < 4; ++i) SipRound(v);
  Hash128 hash;
  hash.low = v[0] ^ v[1] ^ v[2] ^ v[3];
  v[1] ^= 0xdd;
  for (int i = 0; i < 4; ++i) SipRound(v);
  hash.high = v[0] ^ v[1] ^ v[2] ^ v[3];
  return hash;
}

}  // namespace mendel
