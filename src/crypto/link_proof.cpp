// SPDX-License-Identifier: Apache-2.0
#include "crypto/link_proof.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

#include "crypto/secret_memory.hpp"

namespace espalier::crypto {
namespace {

// Domain separation: what is signed for one purpose is never valid for another.
constexpr std::string_view kClient = "espalier 1 client proves";
constexpr std::string_view kNode = "espalier 1 node proves";
constexpr std::string_view kSession = "espalier 1 session key";
constexpr std::string_view kHello = "espalier 1 pair of session";

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}
template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

Result<Digest> client_digest(const SecretBytes& secret, const wire::LinkChallenge& challenge,
                             const wire::LinkProof& proof) {
  return hmac_sha256(secret, {bytes_of(kClient), bytes_of(challenge),
                              bytes_of(proof).first(offsetof(wire::LinkProof, digest))});
}

Result<Digest> node_digest(const SecretBytes& secret, const wire::LinkChallenge& challenge,
                           const wire::LinkProof& proof, const wire::LinkProven& proven) {
  return hmac_sha256(secret, {bytes_of(kNode), bytes_of(challenge), bytes_of(proof),
                              bytes_of(proven).first(offsetof(wire::LinkProven, digest))});
}

Result<void> session_key(const SecretBytes& secret, const wire::LinkChallenge& challenge,
                         const wire::LinkProof& proof, SecretBytes& key) {
  auto made = hmac_sha256(secret, {bytes_of(kSession), bytes_of(challenge), bytes_of(proof)});
  if (!made) return std::unexpected(made.error());
  std::ranges::copy(*made, key.begin());
  cleanse(made->data(), made->size());
  return {};
}

Result<std::uint64_t> hello_mark(const SecretBytes& key, const wire::LinkHello& hello) {
  const auto digest = hmac_sha256(key, {bytes_of(kHello), bytes_of(hello)});
  if (!digest) return std::unexpected(digest.error());
  std::uint64_t mark = 0;
  std::memcpy(&mark, digest->data(), sizeof mark);
  return mark;
}

}  // namespace espalier::crypto
