// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/client/datagram_gets.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "channel/rings/planted_client_bugs.hpp"
#include "crypto/datagram_tag.hpp"

namespace espalier::client {
namespace {

using wire::DatagramKind;

constexpr std::uint64_t kFirstTimeoutNs = 5'000'000;  // while it is not known what answers take
constexpr std::uint64_t kMeans = 4;  // an answer that takes so many times the usual is lost
constexpr std::uint64_t kSmoothing = 8;

}  // namespace

DatagramGets::DatagramGets(DatagramWire& wire, std::uint64_t session,
                           crypto::Secret<crypto::SecretBytes> key)
    : wire_(wire), session_(session), key_(std::move(key)), timeout_ns_(kFirstTimeoutNs) {}

bool DatagramGets::prove() {
  constexpr char kZeros[wire::kChallengeBytes]{};
  const auto challenge =
      ask(DatagramKind::hello, {kZeros, sizeof kZeros}, DatagramKind::challenge, 0, 0);
  if (!challenge) return false;
  const std::string said(challenge->payload);
  return ask(DatagramKind::proof, said, DatagramKind::proved, 0, 0).has_value();
}

std::optional<wire::TakenReply> DatagramGets::get(std::uint32_t map, std::string_view key,
                                                  std::uint64_t hint) {
  return ask(DatagramKind::get, key, DatagramKind::answer, map, hint);
}

// A hello or a proof that was heard is taken no more, for its number is not new: each is sent anew.
std::optional<wire::TakenReply> DatagramGets::ask(DatagramKind kind, std::string_view text,
                                                  DatagramKind answer, std::uint32_t map,
                                                  std::uint64_t hint) {
  ESPALIER_ASSERT(!text.empty() && text.size() <= wire::kDatagramKeyBytesMax);
  wire::DatagramRequest header{};
  header.magic = wire::kDatagramMagic;
  header.version = wire::kDatagramVersion;
  header.kind = static_cast<std::uint8_t>(kind);
  header.key_bytes = static_cast<std::uint16_t>(text.size());
  header.session = session_;
  header.map = map;
  header.hint = hint;
  const auto bytes = std::span(request_).first(sizeof header + text.size());
  for (int i = 0; i < kSends; ++i) {
    const bool is_new = i == 0 || kind != DatagramKind::get;
    if (is_new) {
      header.number = ++number_;
      std::memcpy(bytes.data(), &header, sizeof header);
      std::ranges::copy(std::as_bytes(std::span(text)), bytes.begin() + sizeof header);
      if (!crypto::sign_request(*key_, bytes)) return std::nullopt;
    }
    const std::uint64_t sent_ns = wire_.now_ns();
    wire_.send(bytes);
    ++counts_.sent;
    if (i != 0) ++counts_.repeated;
    if (const auto reply = await(answer, sent_ns + timeout_ns_)) {
      if (is_new) learn(wire_.now_ns() - sent_ns);
      return reply;
    }
    back_off();
  }
  return std::nullopt;
}

std::optional<wire::TakenReply> DatagramGets::await(DatagramKind answer, std::uint64_t until_ns) {
  for (;;) {
    while (const auto came = wire_.receive(answer_)) {
      const auto bytes = std::span<const std::byte>(answer_).first(*came);
      const auto reply = wire::read_datagram_reply(bytes);
      const bool ours = reply && reply->header.session == session_ &&
                        reply->header.kind == static_cast<std::uint8_t>(answer);
      if (ours && is_believed(*reply, bytes)) {
        counts_.bytes += *came;
        return reply;
      }
      ++counts_.unasked;
      // Who floods us does not keep us from asking again.
      if (wire_.now_ns() >= until_ns) return std::nullopt;
    }
    if (wire_.now_ns() >= until_ns) return std::nullopt;
    wire_.wait(until_ns);
  }
}

bool DatagramGets::is_believed(const wire::TakenReply& reply,
                               std::span<const std::byte> bytes) const {
  if (reply.header.number != number_ && !planted(Bug::datagram_number_not_asked)) return false;
  return crypto::is_signed_reply(*key_, bytes) || planted(Bug::datagram_tag_not_asked);
}

// Karn's algorithm: of a request that was repeated nobody knows which time it is that is answered,
// so nothing is learnt of it, and the timeout stays what it has become. Else answers that take
// longer than the timeout, all at once, would have each request sent again for good.
void DatagramGets::learn(std::uint64_t took_ns) {
  mean_ns_ = mean_ns_ == 0 ? took_ns : mean_ns_ - mean_ns_ / kSmoothing + took_ns / kSmoothing;
  mean_ns_ = std::max<std::uint64_t>(mean_ns_, 1);
  timeout_ns_ = std::clamp(kMeans * mean_ns_, kTimeoutNsMin, kTimeoutNsMax);
}

void DatagramGets::back_off() { timeout_ns_ = std::min(2 * timeout_ns_, kTimeoutNsMax); }

}  // namespace espalier::client
