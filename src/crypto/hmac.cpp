// SPDX-License-Identifier: Apache-2.0
#include "crypto/hmac.hpp"

#include <cstring>

#include "base/assert.hpp"
#include "crypto/crypto_library.hpp"
#include "crypto/secret_memory.hpp"

namespace espalier::crypto {

Result<Digest> hmac_sha256(std::span<const std::byte> key,
                           std::initializer_list<std::span<const std::byte>> parts) {
  const auto functions = crypto_functions();
  if (!functions) return std::unexpected(functions.error());
  std::array<std::byte, 2048> text;
  std::size_t bytes = 0;
  for (const std::span<const std::byte> part : parts) {
    ESPALIER_ASSERT(part.size() <= text.size() - bytes);
    if (!part.empty()) std::memcpy(text.data() + bytes, part.data(), part.size());
    bytes += part.size();
  }
  Digest digest{};
  unsigned int made = 0;
  const auto raw = [](auto* at) { return reinterpret_cast<const unsigned char*>(at); };
  const void* const done =
      (*functions)
          ->hmac((*functions)->sha256(), key.data(), static_cast<int>(key.size()), raw(text.data()),
                 bytes, reinterpret_cast<unsigned char*>(digest.data()), &made);
  cleanse(text.data(), bytes);
  ESPALIER_ASSERT(done != nullptr && made == digest.size());
  return digest;
}

bool equal_in_secret(std::span<const std::byte> a, std::span<const std::byte> b) noexcept {
  ESPALIER_ASSERT(a.size() == b.size());
  std::byte differs{};
  for (std::size_t i = 0; i < a.size(); ++i) {
    differs |= a[i] ^ b[i];
    asm volatile("" : "+r"(differs));  // no end before the end
  }
  return differs == std::byte{};
}

}  // namespace espalier::crypto
