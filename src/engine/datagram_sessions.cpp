// SPDX-License-Identifier: Apache-2.0
#include "engine/datagram_sessions.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/assert.hpp"
#include "crypto/datagram_tag.hpp"
#include "crypto/hmac.hpp"
#include "crypto/secret_memory.hpp"
#include "engine/connection.hpp"
#include "engine/principal_accounts.hpp"

namespace espalier::offload {
namespace {

/// The sessions of one connection: at most one for each of its response rings.
class OwnSessions final : public SessionPart {
 public:
  explicit OwnSessions(DatagramSessions& all) : all_(all) {}
  ~OwnSessions() override { end(); }

  void replace(std::uint32_t ring, std::uint64_t number) {
    if (const std::uint64_t before = std::exchange(numbers_.at(ring), number); before != 0) {
      all_.close(before);
    }
  }
  void end() override {
    for (std::uint64_t& number : numbers_) {
      if (number != 0) all_.close(std::exchange(number, 0));
    }
  }

 private:
  DatagramSessions& all_;
  std::array<std::uint64_t, wire::kRingBits + 1> numbers_{};
};

}  // namespace

bool TakenNumbers::take(std::uint64_t number) {
  if (number == 0) return false;
  if (number > newest_) {
    const std::uint64_t passed = std::min(number - newest_, kSeenNumbers);
    for (std::uint64_t i = 0; i < passed; ++i) times_[(number - i) % kSeenNumbers] = 0;
    newest_ = number;
  } else if (newest_ - number >= kSeenNumbers) {
    return false;
  }
  std::uint8_t& times = times_[number % kSeenNumbers];
  if (times >= kRepeatsMax) return false;
  ++times;
  return true;
}

Result<wire::DatagramOffer> DatagramSessions::open(Connection& connection, std::uint32_t ring,
                                                   const crypto::SecretBytes* proven) {
  ESPALIER_ASSERT(connection.account != nullptr);
  OwnSessions& own = connection.parts.of<OwnSessions>(*this);
  wire::DatagramOffer offer{};
  std::ranges::copy(port_.ip.gid(), offer.address);
  offer.port = port_.udp_port;
  if (auto drawn = crypto::draw_bytes(std::as_writable_bytes(std::span(&offer.session, 1)));
      !drawn) {
    return std::unexpected(drawn.error());
  }
  if (auto drawn = crypto::draw_bytes(std::as_writable_bytes(std::span(offer.nonce))); !drawn) {
    return std::unexpected(drawn.error());
  }
  auto slot = secrets_->take();
  if (!slot) return std::unexpected(slot.error());
  const crypto::SecretBytes none{};
  if (auto made = crypto::datagram_key(proven != nullptr ? *proven : none, offer, **slot); !made) {
    return std::unexpected(made.error());
  }
  auto session = std::make_shared<DatagramSession>();
  session->number = offer.session;
  session->key = std::move(*slot);
  session->access = connection.access;
  session->account = connection.account;
  session->share = &connection.account->parts.of<DatagramShare>();
  {
    const std::lock_guard lock(mutex_);
    // A number drawn twice is refused, and so is 0, which means none.
    const bool is_new = offer.session != 0 && sessions_.emplace(offer.session, session).second;
    if (!is_new) return fail(Code::busy);
  }
  own.replace(ring, offer.session);
  return offer;
}

void DatagramSessions::close(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto known = sessions_.find(number);
  if (known == sessions_.end()) return;
  known->second->over.store(true, std::memory_order_release);
  sessions_.erase(known);
}

std::shared_ptr<DatagramSession> DatagramSessions::find(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  const auto known = sessions_.find(number);
  return known == sessions_.end() ? nullptr : known->second;
}

std::size_t DatagramSessions::size() const {
  const std::lock_guard lock(mutex_);
  return sessions_.size();
}

Result<std::array<std::byte, wire::kChallengeBytes>> DatagramSessions::challenge(
    const DatagramSession& session, const DatagramSource& source) const {
  const auto address = source.ip.gid();
  const auto digest = crypto::hmac_sha256(
      own_, {std::as_bytes(std::span(&session.number, 1)), std::as_bytes(std::span(address)),
             std::as_bytes(std::span(&source.udp_port, 1))});
  if (!digest) return std::unexpected(digest.error());
  std::array<std::byte, wire::kChallengeBytes> challenge;
  std::copy_n(digest->begin(), challenge.size(), challenge.begin());
  return challenge;
}

}  // namespace espalier::offload
