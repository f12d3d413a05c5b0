// SPDX-License-Identifier: Apache-2.0
// For tests: a client's datagram gets and a node's reader of them, on a network that loses, repeats
// and delays datagrams, with an adversary that replays them, from any address, and sends forged
// ones; the map is written while gets are in flight. Deterministic by seed.
//
// Thread: one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "engine/tests/testing/datagram_client.hpp"
#include "kinds/map/client/datagram_gets.hpp"

namespace espalier::client {

/// Counts over all worlds.
struct DatagramWorldCounts {
  std::uint64_t answered = 0;
  std::uint64_t by_ring = 0;
  std::uint64_t unanswered = 0;  ///< gets that a client repeats by its rings
  std::uint64_t lost = 0;
  std::uint64_t doubled = 0;
  std::uint64_t replayed = 0;
  std::uint64_t changed = 0;
  std::uint64_t repeated = 0;       ///< requests that a client retransmitted
  std::uint64_t unasked = 0;        ///< datagrams that a client rejected as answers
  std::uint64_t written_while = 0;  ///< items written while a get of them was in flight

  [[nodiscard]] bool all_happened() const {
    return answered != 0 && by_ring != 0 && unanswered != 0 && lost != 0 && doubled != 0 &&
           replayed != 0 && changed != 0 && repeated != 0 && unasked != 0 && written_while != 0;
  }
};

class DatagramWorld final : public DatagramWire {
 public:
  DatagramWorld(std::uint64_t seed, DatagramWorldCounts& counts)
      : random_(seed), counts_(counts), asker_(node_), gets_(*this, asker_.session, key()) {
    node_.pace_ns = 0;
    loss_ = random_.below(3) == 0 ? 2 : 12;
  }

  /// Returns the first error; empty: none.
  std::string run(int steps) {
    for (int i = 0; i < steps && wrong_.empty(); ++i) {
      if (!proved_) proved_ = gets_.prove();
      if (random_.below(2) == 0) write();
      if (proved_ && random_.below(3) != 0) get();
    }
    counts_.repeated += gets_.counts().repeated;
    counts_.unasked += gets_.counts().unasked;
    return wrong_;
  }

  void send(std::span<const std::byte> datagram) override {
    const std::string bytes(reinterpret_cast<const char*>(datagram.data()), datagram.size());
    passed_.push_back({0, bytes, true, offload::kHere});
    carry({0, bytes, true, offload::kHere});
  }
  std::optional<std::size_t> receive(std::span<std::byte> into) override {
    const auto due = std::ranges::find_if(
        under_way_, [&](const Packet& packet) { return !packet.to_node && packet.at_ns <= now_; });
    if (due == under_way_.end()) return std::nullopt;
    const std::size_t bytes = std::min(into.size(), due->bytes.size());
    std::memcpy(into.data(), due->bytes.data(), bytes);
    under_way_.erase(due);
    return bytes;
  }
  // Runs until the next datagram arrives at either side; meanwhile others write, and the adversary
  // sends.
  void wait(std::uint64_t until_ns) override {
    if (random_.below(4) == 0) write();
    if (random_.below(6) == 0) disturb();
    std::uint64_t next = until_ns;
    for (const Packet& packet : under_way_) next = std::min(next, packet.at_ns);
    now_ = std::max(now_ + 1, next);
    node_.now_ns = now_;
    for (;;) {
      const auto due = std::ranges::find_if(
          under_way_, [&](const Packet& packet) { return packet.to_node && packet.at_ns <= now_; });
      if (due == under_way_.end()) return;
      const Packet packet = std::move(*due);
      under_way_.erase(due);
      come_to_node(packet);
    }
  }
  [[nodiscard]] std::uint64_t now_ns() const override { return now_; }

 private:
  struct Packet {
    std::uint64_t at_ns = 0;
    std::string bytes;
    bool to_node = false;
    offload::DatagramSource from;
  };
  static constexpr std::uint64_t kDelayNs = 400'000;
  static constexpr std::uint64_t kKeys = 6;

  [[nodiscard]] crypto::Secret<crypto::SecretBytes> key() const {
    auto made = crypto::Secret<crypto::SecretBytes>::make();
    if (!made) throw std::runtime_error("no secret memory");
    **made = asker_.key;
    return std::move(*made);
  }
  std::string any_key() { return "key " + std::to_string(random_.below(kKeys)); }

  void carry(const Packet& packet) {
    if (random_.below(loss_) == 0) {
      ++counts_.lost;
      return;
    }
    const int times = random_.below(8) == 0 ? 2 : 1;
    if (times == 2) ++counts_.doubled;
    for (int i = 0; i < times; ++i) {
      Packet sent = packet;
      if (random_.below(10) == 0) change(sent.bytes);
      // Now and then so late that the client has long given up.
      const std::uint64_t most = random_.below(20) == 0 ? 50 * kDelayNs : kDelayNs;
      sent.at_ns = now_ + 1 + random_.below(most);
      under_way_.push_back(std::move(sent));
    }
  }

  void come_to_node(const Packet& packet) {
    for (const auto& sent : node_.take(packet.bytes, packet.from)) {
      const auto reply = wire::read_datagram_reply(std::as_bytes(std::span(sent.bytes)));
      if (!reply || sent.to != packet.from) {
        wrong_ = "the node sends something else than a reply to the sender";
        return;
      }
      const bool challenge =
          reply->header.kind == static_cast<std::uint8_t>(wire::DatagramKind::challenge);
      if (sent.to != offload::kHere && (!challenge || sent.bytes.size() > packet.bytes.size())) {
        wrong_ = "an address that was not proved is sent more than a challenge";
        return;
      }
      passed_.push_back({0, sent.bytes, false, {}});
      if (sent.to == offload::kHere) carry({0, sent.bytes, false, {}});
    }
  }

  // A switch may write the hint; every other change is detected.
  void change(std::string& bytes) {
    const std::size_t at = random_.below(2) == 0 ? bytes.size() - 1 : random_.below(bytes.size());
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << random_.below(8)));
    ++counts_.changed;
  }

  // Sends an earlier datagram again, unchanged or changed, from here or elsewhere.
  void disturb() {
    if (passed_.empty()) return;
    const std::size_t newest = passed_.size() - 1;
    Packet packet = passed_[newest - std::min<std::size_t>(newest, random_.below(40))];
    ++counts_.replayed;
    if (random_.below(2) == 0) change(packet.bytes);
    if (packet.to_node && random_.below(2) == 0) packet.from = offload::kElsewhere;
    packet.at_ns = now_ + 1 + random_.below(kDelayNs);
    under_way_.push_back(std::move(packet));
  }

  void write() {
    const std::string item = any_key();
    std::string value = std::to_string(++written_);
    if (random_.below(10) == 0) value.resize(wire::kDatagramValueBytesMax + 1, 'l');
    node_.put(item, value);
    model_[item] = value;
    if (asked_ == item) {
      possible_.emplace_back(value);
      ++counts_.written_while;
    }
  }

  // An answer must be a value that the item had since the get began.
  void get() {
    asked_ = any_key();
    const auto known = model_.find(*asked_);
    possible_.clear();
    possible_.push_back(known == model_.end() ? std::nullopt : std::optional(known->second));
    const auto reply = gets_.get(node_.node.map(), *asked_);
    if (!reply) {
      ++counts_.unanswered;
      proved_ = random_.below(2) == 0;
    } else if (!may_be(*reply)) {
      wrong_ = *asked_ + " is answered with what it never was meanwhile";
    }
    asked_.reset();
  }
  [[nodiscard]] bool may_be(const wire::TakenReply& reply) {
    const auto any = [&](auto fits) { return std::ranges::any_of(possible_, fits); };
    switch (static_cast<wire::DatagramStatus>(reply.header.status)) {
      case wire::DatagramStatus::found:
        ++counts_.answered;
        return any([&](const auto& value) { return value && *value == reply.payload; });
      case wire::DatagramStatus::absent:
        ++counts_.answered;
        return any([](const auto& value) { return !value; });
      case wire::DatagramStatus::by_ring:
        ++counts_.by_ring;
        return any([](const auto& value) {
          return value && value->size() > wire::kDatagramValueBytesMax;
        });
      default: return false;
    }
  }

  base::Random random_;
  DatagramWorldCounts& counts_;
  offload::DatagramNode node_;
  offload::DatagramClient asker_;  // provides the connection
  DatagramGets gets_;
  std::uint64_t loss_ = 0;
  std::uint64_t now_ = 1'000'000'000;
  bool proved_ = false;
  std::vector<Packet> under_way_;
  std::vector<Packet> passed_;
  std::map<std::string, std::string> model_;
  std::uint64_t written_ = 0;
  std::optional<std::string> asked_;
  std::vector<std::optional<std::string>> possible_;
  std::string wrong_;
};

}  // namespace espalier::client
