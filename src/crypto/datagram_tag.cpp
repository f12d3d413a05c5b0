// SPDX-License-Identifier: Apache-2.0
#include "crypto/datagram_tag.hpp"

#include <algorithm>
#include <string_view>

#include "base/assert.hpp"
#include "crypto/hmac.hpp"
#include "crypto/secret_memory.hpp"

namespace espalier::crypto {
namespace {

using Bytes = std::span<const std::byte>;

// Domain separation: what is signed for one purpose is never valid for another.
constexpr std::string_view kKey = "espalier 1 datagram key";
constexpr std::size_t kTagAt = offsetof(wire::DatagramRequest, tag);
constexpr std::size_t kHintAt = offsetof(wire::DatagramRequest, hint);
static_assert(kTagAt == offsetof(wire::DatagramReply, tag));
static_assert(kHintAt + sizeof(std::uint64_t) == kTagAt);

void check(Bytes datagram) {
  ESPALIER_ASSERT(datagram.size() >= wire::kDatagramRequestBytes &&
                  datagram.size() <= wire::kDatagramBytesMax);
}

Result<Digest> tag_of(const SecretBytes& key, Bytes datagram, std::size_t head_bytes) {
  check(datagram);
  return hmac_sha256(
      key, {datagram.first(head_bytes), datagram.subspan(kTagAt + wire::kDatagramTagBytes)});
}

Result<void> sign(const SecretBytes& key, std::span<std::byte> datagram, std::size_t head_bytes) {
  const auto tag = tag_of(key, datagram, head_bytes);
  if (!tag) return std::unexpected(tag.error());
  std::copy_n(tag->begin(), wire::kDatagramTagBytes, datagram.begin() + kTagAt);
  return {};
}

bool is_signed(const SecretBytes& key, Bytes datagram, std::size_t head_bytes) {
  const auto tag = tag_of(key, datagram, head_bytes);
  return tag && equal_in_secret(Bytes(*tag).first(wire::kDatagramTagBytes),
                                datagram.subspan(kTagAt, wire::kDatagramTagBytes));
}

}  // namespace

Result<void> datagram_key(const SecretBytes& connection, const wire::DatagramOffer& of,
                          SecretBytes& key) {
  auto made = hmac_sha256(connection, {std::as_bytes(std::span(kKey)),
                                       std::as_bytes(std::span(&of.session, 1)),
                                       std::as_bytes(std::span(of.nonce))});
  if (!made) return std::unexpected(made.error());
  std::ranges::copy(*made, key.begin());
  cleanse(made->data(), made->size());
  return {};
}

Result<void> sign_request(const SecretBytes& key, std::span<std::byte> datagram) {
  return sign(key, datagram, kHintAt);
}
Result<void> sign_reply(const SecretBytes& key, std::span<std::byte> datagram) {
  return sign(key, datagram, kTagAt);
}
bool is_signed_request(const SecretBytes& key, Bytes datagram) {
  return is_signed(key, datagram, kHintAt);
}
bool is_signed_reply(const SecretBytes& key, Bytes datagram) {
  return is_signed(key, datagram, kTagAt);
}

}  // namespace espalier::crypto
