// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/ctr_cipher.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "base/assert.hpp"
#include "kinds/table/ctr_vaes.hpp"

namespace espalier::table {
namespace {

constexpr std::size_t kHashBytes = 32;

const unsigned char* raw(const std::byte* bytes) {
  return reinterpret_cast<const unsigned char*>(bytes);
}
unsigned char* raw(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

void store_big_endian(std::uint64_t number, unsigned char* to) {
  number = __builtin_bswap64(number);
  std::memcpy(to, &number, sizeof number);
}

void sign(const crypto::CryptoFunctions& functions, std::span<const std::byte> key,
          std::span<const std::byte> text, std::byte* out) {
  unsigned int bytes = 0;
  const void* const made =
      functions.hmac(functions.sha256(), key.data(), static_cast<int>(key.size()), raw(text.data()),
                     text.size(), raw(out), &bytes);
  ESPALIER_ASSERT(made != nullptr && bytes == kHashBytes);
}

}  // namespace

Result<void> derive_key(std::span<const std::byte> secret, std::span<const std::byte> salt,
                        std::string_view info, std::span<std::byte> out) {
  constexpr std::size_t kInfoMax = 128;
  ESPALIER_ASSERT(out.size() <= 255 * kHashBytes && info.size() <= kInfoMax);
  const auto functions = crypto::crypto_functions();
  if (!functions) return std::unexpected(functions.error());
  struct {
    std::byte key[kHashBytes];
    std::byte last[kHashBytes];
    std::byte text[kHashBytes + kInfoMax + 1];
  } work{};
  // An absent salt is one of zeros.
  const std::byte no_salt[kHashBytes] = {};
  sign(**functions, salt.empty() ? std::span<const std::byte>(no_salt) : salt, secret, work.key);
  std::size_t done = 0;
  for (unsigned part = 1; done < out.size(); ++part) {
    std::size_t text = part == 1 ? 0 : kHashBytes;
    std::memcpy(work.text, work.last, text);
    if (!info.empty()) std::memcpy(work.text + text, info.data(), info.size());
    text += info.size();
    work.text[text++] = static_cast<std::byte>(part);
    sign(**functions, work.key, std::span(work.text, text), work.last);
    const std::size_t bytes = std::min(kHashBytes, out.size() - done);
    std::memcpy(out.data() + done, work.last, bytes);
    done += bytes;
  }
  crypto::cleanse(&work, sizeof work);
  return {};
}

Result<CtrCipher> CtrCipher::of_schedule(crypto::Secret<Schedule> schedule, Form form) {
  const auto functions = crypto::crypto_functions();
  if (!functions) return std::unexpected(functions.error());
  CtrCipher cipher(std::move(schedule), **functions);
  if (form == Form::best && has_vaes()) {
    cipher.vaes_ = true;
    expand_key_vaes(cipher.schedule_->key.data(), cipher.schedule_->rounds[0]);
    return cipher;
  }
  cipher.context_ = {(*functions)->cipher_new(), (*functions)->cipher_free};
  if (cipher.context_ == nullptr) return fail(Code::out_of_memory);
  const int ready = (*functions)
                        ->encrypt_init(cipher.context_.get(), (*functions)->aes_128_ctr(), nullptr,
                                       raw(cipher.schedule_->key.data()), nullptr);
  if (ready != 1) return fail(Code::unsupported);
  return cipher;
}

Result<CtrCipher> CtrCipher::of_key(std::span<const std::byte, kKeyBytes> key, Form form) {
  auto schedule = crypto::Secret<Schedule>::make();
  if (!schedule) return std::unexpected(schedule.error());
  std::memcpy((*schedule)->key.data(), key.data(), key.size());
  return of_schedule(*std::move(schedule), form);
}

Result<CtrCipher> CtrCipher::derived(std::span<const std::byte, kKeyBytes> user_key,
                                     const SaltBytes& salt, std::string_view info, Form form) {
  auto schedule = crypto::Secret<Schedule>::make();
  if (!schedule) return std::unexpected(schedule.error());
  if (auto made = derive_key(user_key, salt, info, (*schedule)->key); !made) {
    return std::unexpected(made.error());
  }
  return of_schedule(*std::move(schedule), form);
}

void CtrCipher::apply_evp(std::uint64_t page, std::uint64_t block, std::size_t within,
                          const std::byte* in, std::byte* out, std::size_t bytes) {
  constexpr std::size_t kTogether = std::size_t{1} << 30;
  unsigned char counter[kCipherBlockBytes];
  store_big_endian(page, counter);
  store_big_endian(block, counter + 8);
  bool done = functions_->encrypt_init(context_.get(), nullptr, nullptr, nullptr, counter) == 1;
  int written = 0;
  if (within != 0) {
    unsigned char skipped[kCipherBlockBytes] = {};
    done = done && functions_->encrypt_update(context_.get(), skipped, &written, skipped,
                                              static_cast<int>(within)) == 1;
    crypto::cleanse(skipped, sizeof skipped);
  }
  for (std::size_t at = 0; at < bytes; at += kTogether) {
    const auto part = static_cast<int>(std::min(kTogether, bytes - at));
    done = done && functions_->encrypt_update(context_.get(), raw(out + at), &written, raw(in + at),
                                              part) == 1;
  }
  // In counter mode, with a key, nothing can fail.
  ESPALIER_ASSERT(done);
}

void CtrCipher::apply_blocks(std::uint64_t page, std::uint64_t block, std::size_t within,
                             const std::byte* in, std::byte* out, std::size_t bytes) {
  ESPALIER_ASSERT(within < kCipherBlockBytes);
  if (bytes == 0) return;
  if (vaes_) {
    apply_ctr_vaes(schedule_->rounds[0], page, block, within, in, out, bytes);
  } else {
    apply_evp(page, block, within, in, out, bytes);
  }
}

}  // namespace espalier::table
