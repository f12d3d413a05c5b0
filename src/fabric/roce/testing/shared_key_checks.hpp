// SPDX-License-Identifier: Apache-2.0
// Two sessions read by the shared keys of one map, packet by packet, as a switch on the way would
// have it. Each check returns what is wrong, in words; empty: nothing.
//
// Thread: one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fabric/roce/testing/hand_peer.hpp"

namespace espalier::fabric::roce {

/// Answers with bytes that encode the request.
class TellingReads final : public SharedReads {
 public:
  static std::byte keyed(std::uint64_t number) {
    return static_cast<std::byte>(0x40 + number % 0x40);
  }
  static std::byte at(std::uint64_t offset) {
    return static_cast<std::byte>(0x80 + offset / 512 % 0x40);
  }
  void read_keyed(std::uint64_t number, std::span<std::byte> into) override {
    std::ranges::fill(into, keyed(number));
  }
  void read_at(std::uint64_t offset, std::span<std::byte> into) override {
    std::ranges::fill(into, at(offset));
  }
};

class SharedKeyScene {
 public:
  static constexpr std::uint64_t kBytes = 65536;
  static constexpr std::uint32_t kLength = 1024;  // the path MTU

  explicit SharedKeyScene(std::uint64_t seed)
      : scene(seed),
        map(std::make_shared<SharedMap>(std::make_shared<TellingReads>())),
        keyed(*regions().offer_shared(map, SharedKind::keyed)),
        redirect(*regions().offer_shared(map, SharedKind::redirect, kBytes)) {
    for (Domain domain = 0; domain < 2; ++domain) {
      scene.domain = domain + 1;
      pairs.push_back(scene.from(peers[domain]));
      own.push_back(
          *regions().offer({scene.memory.data(), kBytes}, RemoteRights::read, domain + 1));
    }
  }
  RegionTable& regions() { return scene.endpoint.regions(); }
  Result<void> admit(std::size_t session) {
    return regions().admit(*map, own[session].remote().key);
  }
  /// What a READ with this PSN gets: the byte that fills it, in words, or why it gets nothing.
  std::string read(std::size_t session, std::uint32_t psn, RegionKey key, std::uint64_t address,
                   std::uint32_t length = kLength) {
    HandPeer& peer = peers[session];
    peer.hear();
    peer.send(request(PacketOpcode::read_request, psn, {address, key, length}));
    scene.turn(4);
    const auto heard = peer.hear();
    if (heard.empty()) return "nothing";
    const Heard& first = heard.front();
    if (first.headers.bth.opcode == PacketOpcode::acknowledge) {
      return refuses(first) ? "no access" : "invalid";
    }
    if (first.headers.bth.psn != psn || first.payload.size() != length) return "another answer";
    const std::byte byte = first.payload.front();
    const bool alike = std::ranges::all_of(first.payload, [&](std::byte b) { return b == byte; });
    return alike ? std::to_string(std::to_integer<int>(byte)) : "a mixture";
  }
  std::string next(std::size_t session, RegionKey key, std::uint64_t address,
                   std::uint32_t length = kLength) {
    return read(session, peers[session].psn++, key, address, length);
  }
  /// Whether a packet says that a key gives no right.
  static bool refuses(const Heard& heard) {
    return heard.headers.aeth == Aeth::nak(heard.headers.aeth.msn, NakCode::remote_access);
  }
  static std::string as_text(std::byte byte) { return std::to_string(std::to_integer<int>(byte)); }

  HandScene scene;
  HandPeer peers[2] = {{scene.network, HandScene::address(1), HandScene::address()},
                       {scene.network, HandScene::address(3), HandScene::address()}};
  std::vector<std::unique_ptr<QueuePair>> pairs;
  std::vector<Registration> own;
  std::shared_ptr<SharedMap> map;
  Registration keyed;
  Registration redirect;
};

/// One of two sessions is fenced while its packets are on their way, redirected already.
inline std::string one_of_two_is_fenced(std::uint64_t seed) {
  SharedKeyScene s(seed);
  if (!s.admit(0) || !s.admit(1)) return "a session was not admitted";
  const RegionKey redirect = s.redirect.remote().key;
  const auto text = SharedKeyScene::as_text(TellingReads::at(512));
  for (std::size_t i = 0; i < 2; ++i) {
    if (s.next(i, redirect, s.redirect.remote().at(512)) != text) return "a session could not read";
    const auto number = SharedKeyScene::as_text(TellingReads::keyed(7));
    if (s.next(i, s.keyed.remote().key, 7) != number) return "a keyed READ was not answered";
  }
  HandPeer& fenced = s.peers[0];
  fenced.send(request(PacketOpcode::read_request, fenced.psn++,
                      {s.redirect.remote().at(512), redirect, SharedKeyScene::kLength}));
  s.own[0].revoke();
  s.scene.turn(4);
  bool refused = false;
  for (const Heard& heard : fenced.hear()) {
    if (heard.headers.bth.opcode == PacketOpcode::read_response_only) {
      return "a fenced session read";
    }
    refused |= SharedKeyScene::refuses(heard);
  }
  if (!refused) return "a fenced session's READ was not refused";
  if (s.next(1, redirect, s.redirect.remote().at(512)) != text) return "the other was fenced, too";
  return "";
}

/// A retransmission meets other tables than the transmission did.
inline std::string duplicates_carry_other_addresses(std::uint64_t seed) {
  SharedKeyScene s(seed);
  if (!s.admit(0)) return "a session was not admitted";
  auto later = *s.regions().offer_shared(s.map, SharedKind::redirect, SharedKeyScene::kBytes);
  const std::uint32_t psn = s.peers[0].psn++;
  const struct {
    RegionKey key;
    std::uint64_t address;
    std::byte expected;
  } sent[] = {
      {s.keyed.remote().key, 5, TellingReads::keyed(5)},
      {s.redirect.remote().key, s.redirect.remote().at(1024), TellingReads::at(1024)},
      {later.remote().key, later.remote().at(2048), TellingReads::at(2048)},
      {s.keyed.remote().key, 5, TellingReads::keyed(5)},
  };
  for (const auto& each : sent) {
    const auto got = s.read(0, psn, each.key, each.address);
    if (got != SharedKeyScene::as_text(each.expected)) return "a duplicate got " + got;
  }
  // No other READ is a duplicate of it.
  if (s.read(0, psn, s.own[0].remote().key, s.own[0].remote().base) != "nothing") {
    return "a duplicate by a key of another kind was answered";
  }
  if (s.read(0, psn, s.keyed.remote().key, 5, 512) == "nothing") return "a part was refused";
  if (s.read(0, psn, later.remote().key, later.remote().at(0), 512) != "nothing") {
    return "a duplicate of another length was answered";
  }
  return "";
}

inline std::string one_packet_answers(std::uint64_t seed) {
  SharedKeyScene s(seed);
  if (!s.admit(0)) return "a session was not admitted";
  const auto got = s.next(0, s.keyed.remote().key, 1, SharedKeyScene::kLength + 1);
  return got == "invalid" ? "" : "a READ of two packets got " + got;
}

}  // namespace espalier::fabric::roce
