// SPDX-License-Identifier: Apache-2.0
// AES-128 in counter mode over pages and over streams, for encrypted tables and results.
//
// The counter block of 16 bytes is the page's number, then the block's number in the page, each a
// big-endian number of 64 bits. So any byte decrypts independently, and encryption is the same as
// decryption. There is no integrity: a party that can write cipher text can flip bits of the plain
// text.
//
// Two implementations: VAES over 512 bits if the processor has it, else OpenSSL's EVP, which is
// also the oracle. Round keys lie in secret memory; those of EVP in its own, which it overwrites.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "crypto/crypto_library.hpp"
#include "crypto/secret_memory.hpp"
#include "kinds/table/key_bytes.hpp"

namespace espalier::table {

inline constexpr std::size_t kCipherBlockBytes = 16;

/// HKDF with SHA-256 (RFC 5869), of any salt and length. Overwrites intermediate values.
/// Errors: unsupported (no libcrypto). Requires: at most 255 * 32 bytes.
Result<void> derive_key(std::span<const std::byte> secret, std::span<const std::byte> salt,
                        std::string_view info, std::span<std::byte> out);

/// Purpose of a derived key: a table's rows and a result's never share one.
inline constexpr std::string_view kTableKeyInfo = "espalier table rows";
inline constexpr std::string_view kResultKeyInfo = "espalier query result";

class CtrCipher {
 public:
  enum class Form : std::uint8_t { best, evp };

  /// From a key used as it is. Errors: unsupported (no libcrypto), system (no memory may be
  /// locked).
  static Result<CtrCipher> of_key(std::span<const std::byte, kKeyBytes> key,
                                  Form form = Form::best);
  /// Derived from a user's key, a salt, and its purpose. Errors: the same.
  static Result<CtrCipher> derived(std::span<const std::byte, kKeyBytes> user_key,
                                   const SaltBytes& salt, std::string_view info,
                                   Form form = Form::best);

  /// Encrypts or decrypts bytes at `offset` of a page; in and out may be the same.
  void apply(std::uint64_t page, std::uint64_t offset, const std::byte* in, std::byte* out,
             std::size_t bytes) {
    apply_blocks(page, offset / kCipherBlockBytes, offset % kCipherBlockBytes, in, out, bytes);
  }
  /// The same from a block on, skipping its first `within` bytes.
  void apply_blocks(std::uint64_t page, std::uint64_t block, std::size_t within,
                    const std::byte* in, std::byte* out, std::size_t bytes);

  [[nodiscard]] bool uses_vaes() const { return vaes_; }

 private:
  /// The key, then the round keys in order of use.
  struct Schedule {
    alignas(64) std::byte rounds[11][16];
    KeyBytes key;
  };
  CtrCipher(crypto::Secret<Schedule> schedule, const crypto::CryptoFunctions& functions)
      : schedule_(std::move(schedule)), functions_(&functions) {}
  static Result<CtrCipher> of_schedule(crypto::Secret<Schedule> schedule, Form form);
  void apply_evp(std::uint64_t page, std::uint64_t block, std::size_t within, const std::byte* in,
                 std::byte* out, std::size_t bytes);

  crypto::Secret<Schedule> schedule_;
  const crypto::CryptoFunctions* functions_;
  std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context_{nullptr, nullptr};
  bool vaes_ = false;
};

}  // namespace espalier::table
