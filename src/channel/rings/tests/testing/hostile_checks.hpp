// SPDX-License-Identifier: Apache-2.0
// A node's reaction to each violation by a peer, one at a time, in a world without faults and
// beside a correct client. Each check returns what is wrong; empty: nothing.
//
// They are functions so that other tests can break a rule and show that its check fails.
//
// Thread: one at a time.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "channel/rings/link_prover.hpp"
#include "channel/rings/tests/testing/hostile_link.hpp"
#include "channel/rings/tests/testing/link_world.hpp"
#include "crypto/link_proof.hpp"
#include "rings/testing/ring_client.hpp"

namespace espalier::client {

/// A node, a correct client, and an unknown peer's endpoint.
class HostileScene {
 public:
  static constexpr std::uint64_t kMs = 1'000'000;
  static constexpr wire::ConnectionLayout kRings{64, 64, 1};

  static LinkWorldOptions calm() {
    LinkWorldOptions options;
    options.cuts = false;
    options.give_up_ms = 200;
    return options;
  }
  explicit HostileScene(const LinkWorldOptions& options = calm())
      : world(kCalmSeed, options),
        wrong(world.connect()),
        unknown_peer_(world.world().add_node("h")) {}

  /// A pair of the unknown peer that has begun to connect.
  std::unique_ptr<HostileLink> begin(std::string_view hello, const HostileLink::Room& room = {},
                                     std::uint64_t timeout_ns = 100'000) {
    auto link = std::make_unique<HostileLink>(*unknown_peer_, timeout_ns, room);
    link->dial("n", hello);
    return link;
  }
  /// The same with a hello that names its memory.
  std::unique_ptr<HostileLink> begin(wire::LinkHello hello, const HostileLink::Room& room = {},
                                     std::uint64_t timeout_ns = 100'000) {
    auto link = std::make_unique<HostileLink>(*unknown_peer_, timeout_ns, room);
    link->name_memory(hello);
    link->dial("n", hello);
    return link;
  }
  /// A pair that has the node's answer, or has failed.
  template <class Hello>
  std::unique_ptr<HostileLink> dial(const Hello& hello, const HostileLink::Room& room = {}) {
    auto link = begin(hello, room);
    wait([&] { return link->welcome() != nullptr || link->ended(); });
    return link;
  }
  static LinkWorldOptions with_secrets(LinkWorldOptions options) {
    options.secrets = true;
    return options;
  }

  // --- of a node with secrets --------------------------------------------------------------------

  /// A pair of a pending peer, and its challenge.
  struct Challenged {
    std::unique_ptr<HostileLink> link;
    wire::LinkChallenge challenge{};
  };
  std::optional<Challenged> ask_challenge(
      const wire::LinkHello& hello = link_hello(wire::LinkWay::prove, kRings)) {
    Challenged peer;
    peer.link = dial(hello);
    if (!peer.link->accepted_pending()) return std::nullopt;
    const std::string said = hear(*peer.link);
    if (said.size() != sizeof peer.challenge) return std::nullopt;
    std::memcpy(&peer.challenge, said.data(), said.size());
    return peer;
  }
  /// The next message there; empty: none arrived in time.
  std::string hear(HostileLink& link, std::uint64_t ms = 1000) {
    wait(
        [&] {
          link.poll();
          return !link.messages().empty() || link.ended();
        },
        ms);
    if (link.messages().empty()) return {};
    std::string said = std::move(link.messages().front());
    link.messages().pop_front();
    return said;
  }
  /// The node's answer to a proof, if it arrives in time.
  std::optional<wire::LinkProven> prove(Challenged& peer, const wire::LinkProof& proof,
                                        std::uint64_t ms = 1000) {
    peer.link->send(std::string(base::bytes_of(proof)), std::nullopt);
    return answer(peer, ms);
  }
  std::optional<wire::LinkProven> answer(Challenged& peer, std::uint64_t ms = 1000) {
    const std::string said = hear(*peer.link, ms);
    wire::LinkProven proven{};
    if (said.size() != sizeof proven) return std::nullopt;
    std::memcpy(&proven, said.data(), said.size());
    return proven;
  }
  /// The proof of a client that knows the secret.
  static wire::LinkProof proof_of(const Challenged& peer, std::string_view name,
                                  const crypto::SecretBytes& secret) {
    wire::LinkProof proof{};
    proof.magic = wire::kProofMagic;
    proof.step = static_cast<std::uint32_t>(wire::ProofStep::proof);
    proof.client_pair = peer.link->number();
    proof.nonce.fill(std::byte{7});
    std::memcpy(proof.name.data(), name.data(), std::min(name.size(), proof.name.size()));
    proof.digest = crypto::client_digest(secret, peer.challenge, proof).value();
    return proof;
  }
  /// An authenticated session, which waits for its first pair; nothing: it was refused.
  std::optional<ProvenSession> proven_session(const wire::LinkHello& hello, std::string_view name,
                                              const crypto::SecretBytes& secret) {
    wire::LinkHello asks = hello;
    asks.way = static_cast<std::uint8_t>(wire::LinkWay::prove);
    auto peer = ask_challenge(asks);
    auto key = crypto::Secret<crypto::SecretBytes>::make();
    if (!peer || !key) return std::nullopt;
    const wire::LinkProof proof = proof_of(*peer, name, secret);
    const auto proven = prove(*peer, proof);
    if (!proven || proven->code != 0) return std::nullopt;
    if (!crypto::session_key(secret, peer->challenge, proof, **key)) return std::nullopt;
    return ProvenSession{proven->token, peer->challenge.node_id, std::move(*key), 0};
  }
  /// The same as the client "other".
  std::optional<ProvenSession> other_session(
      const wire::LinkHello& hello = link_hello(wire::LinkWay::send, kRings)) {
    crypto::SecretBytes secret{};
    static_cast<void>(
        crypto::parse_credential(std::string("other read ") + LinkWorld::kOtherSecret, secret));
    return proven_session(hello, "other", secret);
  }
  /// A pair of such a session; null: no hello could be signed.
  std::unique_ptr<HostileLink> dial_as(ProvenSession& session, wire::LinkWay way) {
    const auto said = session.sign(link_hello(way, kRings));
    return said ? dial(std::string(base::bytes_of(*said))) : nullptr;
  }
  /// A pair of a session of its own: of a node with secrets, as the client "other", which has one.
  std::unique_ptr<HostileLink> dial_session(wire::LinkHello hello,
                                            const HostileLink::Room& room = {}) {
    if (world.clients().authentication_counts() == nullptr) return dial(hello, room);
    auto link = std::make_unique<HostileLink>(*unknown_peer_, 100'000, room);
    link->name_memory(hello);
    auto session = other_session(hello);
    const auto said = session ? session->sign(hello) : fail(Code::not_permitted);
    if (said) link->dial("n", base::bytes_of(*said));
    wait([&] { return link->welcome() != nullptr || link->ended(); });
    return link;
  }

  // --- and of any --------------------------------------------------------------------------------

  /// Whether a condition holds in time.
  template <class Condition>
  bool wait(Condition condition, std::uint64_t ms = 20) {
    const std::uint64_t end = world.world().now_ns() + ms * kMs;
    while (!condition() && world.world().now_ns() < end) world.world().run_for(10'000);
    return condition();
  }
  /// Whether the node answers such a pair.
  bool answers(HostileLink& link) {
    const std::uint64_t before = link.came(0);
    link.request(rings::message_of(rings::request_of(wire::OffloadId::noop)));
    return wait([&] {
      link.poll();
      return link.came(0) > before;
    });
  }
  /// What is wrong with how the client is served.
  std::string serve() {
    if (!wrong.empty()) return wrong;
    LinkReached reached;
    std::string found = world.work(20, reached);
    if (found.empty() && world.connection().resumed() != 0) found = "its pair was ended";
    return found.empty() ? found : "the client: " + found;
  }
  [[nodiscard]] const offload::FabricCounts& counts() { return world.clients().counts(); }

  LinkWorld world;
  const std::string wrong;

 private:
  static constexpr std::uint64_t kCalmSeed = 3;
  std::unique_ptr<fabric::Endpoint> unknown_peer_;
};

// --- what breaks the protocol --------------------------------------------------------------------

struct Breach {
  enum class End : std::uint8_t {
    broken,  // the session is over
    failed,  // its pair is, and the session waits for its client
    none,    // it goes on
  };
  std::string name;
  wire::LinkWay way;
  End end;
  std::function<void(HostileLink&)> commit;
};

inline std::uint32_t link_note(wire::LinkNoteKind kind, std::uint32_t ring, std::uint64_t slot) {
  return wire::to_immediate({kind, ring, static_cast<std::uint32_t>(slot)});
}

/// What notes, and the payloads that come with them, may say.
inline std::vector<Breach> breaches_of_notes() {
  using enum Breach::End;
  using enum wire::LinkWay;
  using Kind = wire::LinkNoteKind;
  const auto note = [](Kind kind, std::uint32_t ring, std::uint64_t slot) {
    return [=](HostileLink& link) { link.write(0, {}, link_note(kind, ring, slot)); };
  };
  const auto sent = [](std::size_t bytes, Kind kind, std::uint32_t ring, std::uint64_t slot) {
    return [=](HostileLink& link) {
      link.send(std::string(bytes, '\0'), link_note(kind, ring, slot));
    };
  };
  return {
      {"ALineOfARingThatIsNot", write, broken, note(Kind::slots, 1, 2)},
      {"ALineOfTheLastRing", write, broken, note(Kind::slots, 15, 2)},
      {"MoreLinesThanTheRingHas", write, broken, note(Kind::slots, 0, 1 + 65)},
      {"LinesFarAhead", write, broken, note(Kind::slots, 0, wire::kLinkSlotMask / 2)},
      {"LinesFarBehind", write, none, note(Kind::slots, 0, wire::kLinkSlotMask)},
      {"LinesOnceMore", write, none, note(Kind::slots, 0, 1)},
      {"ACreditThatIsNoMessage", write, broken, note(Kind::credit, 0, 0)},
      {"LinesSentWhereTheyAreWritten", write, broken, sent(64, Kind::slots, 0, 2)},
      {"OldLinesSentWhereTheyAreWritten", write, broken, sent(64, Kind::slots, 0, 1)},
      {"ACreditSentWhereItIsWritten", write, broken, sent(8, Kind::credit, 0, 0)},
      {"AnEndThatIsWritten", write, broken, note(Kind::close, 0, 0)},
      {"LinesWrittenWhereTheyAreSent", send, broken, note(Kind::slots, 0, 2)},
      {"OldLinesWrittenWhereTheyAreSent", send, broken, note(Kind::slots, 0, 1)},
      {"ANoteOfNoKind", write, broken, note(static_cast<Kind>(3), 0, 0)},
      {"HalfALine", send, broken, sent(32, Kind::slots, 0, 2)},
      {"ALineAndAByte", send, broken, sent(65, Kind::slots, 0, 2)},
      {"AMessageOfARingThatIsNot", send, broken, sent(64, Kind::slots, 1, 2)},
      {"MoreLinesThanCameBefore", send, none, sent(64 * 64, Kind::slots, 0, 1)},
      {"AMessageLongerThanAll", send, failed, sent(64 * 64 + 1, Kind::slots, 0, 65)},
      {"NoCredit", send, broken, sent(0, Kind::credit, 0, 0)},
      {"AShortCredit", send, broken, sent(7, Kind::credit, 0, 0)},
      {"ALongCredit", send, broken, sent(9, Kind::credit, 0, 0)},
      {"ACreditOfARingThatIsNot", send, broken, sent(8, Kind::credit, 1, 0)},
      {"NoNote", send, broken, [](HostileLink& link) { link.send(std::string(64, 'x'), {}); }},
  };
}

/// What credits may say, and where WRITEs may go.
inline std::vector<Breach> breaches_of_memory() {
  using enum Breach::End;
  using enum wire::LinkWay;
  using fabric::WorkRequest;
  const auto credit = [](std::uint64_t value) {
    return [value](HostileLink& link) {
      link.credit(0, value);
      link.credit(0, 0);
    };
  };
  const auto put = [](std::int64_t behind_the_end, std::size_t bytes) {
    return [=](HostileLink& link) {
      const std::uint64_t end = link.layout().bytes();
      link.write(end + static_cast<std::uint64_t>(behind_the_end), std::string(bytes, 'x'));
    };
  };
  return {
      {"ACreditBeyondAllThatWasSent", write, none, credit(1'000'000)},
      {"TheSameByAMessage", send, none, credit(1'000'000)},
      {"ACreditWithoutEnd", write, none, credit(~std::uint64_t{0})},
      {"AWriteUpToTheEnd", write, none, put(-8, 8)},
      {"AWriteOverTheEnd", write, failed, put(-8, 9)},
      {"AWriteBehindTheEnd", write, failed, put(0, 8)},
      {"AWriteBeforeTheBeginning", write, failed,
       [](HostileLink& link) { link.write(~std::uint64_t{0}, std::string(1, 'x')); }},
      {"AWriteByAKeyThatIsNot", write, failed,
       [](HostileLink& link) {
         link.write(link.welcome()->key ^ 0x10000, link.welcome()->base, std::string(8, 'x'));
       }},
      {"ARead", write, failed,
       [](HostileLink& link) {
         static std::byte into[8];
         link.post(WorkRequest::read(0, into, link.welcome()->key, link.welcome()->base));
       }},
      {"AnAtomic", write, failed,
       [](HostileLink& link) {
         link.post(WorkRequest::fetch_add(0, link.welcome()->key, link.welcome()->base, 1));
       }},
  };
}

/// `secrets`: of a client that was authenticated.
inline std::string check_breach(const Breach& breach, bool secrets = false) {
  HostileScene scene(secrets ? HostileScene::with_secrets(HostileScene::calm())
                             : HostileScene::calm());
  const auto link = scene.dial_session(link_hello(breach.way, HostileScene::kRings));
  if (!link->accepted() || !scene.answers(*link)) return "a good session is not served";
  breach.commit(*link);
  const auto& counts = scene.counts();
  const auto is_over = [&] { return link->poll(), link->ended(); };
  if (breach.end == Breach::End::none) {
    if (scene.wait(is_over, 5)) return "its pair was ended";
    if (!scene.answers(*link)) return "it is served no more";
  } else {
    if (!scene.wait(is_over)) return "its pair was not ended";
    const bool broken = breach.end == Breach::End::broken;
    if ((counts.broken != 0) != broken) return "it counts as what it is not";
  }
  return scene.serve();
}

// --- what is another's ---------------------------------------------------------------------------

/// A WRITE to a session's memory through the pair of another.
inline std::string check_memory_of_others(const LinkWorldOptions& options = HostileScene::calm()) {
  HostileScene scene(options);
  const wire::LinkHello hello = link_hello(wire::LinkWay::write, HostileScene::kRings);
  const auto victim = scene.dial_session(hello);
  const auto thief = scene.dial_session(hello);
  if (!victim->accepted() || !thief->accepted()) return "a good hello is refused";
  thief->write(victim->welcome()->key, victim->welcome()->base, std::string(8, 'x'));
  const auto rejected = [&] { return thief->poll(), thief->last().has_value(); };
  if (!scene.wait(rejected)) return "it has no end";
  if (thief->last() != fabric::Status::remote_access) return "another's memory was reached";
  return scene.serve();
}

/// A session is asked for by its name, with other rings than it has, or by half the name.
inline std::string check_stolen_names(const LinkWorldOptions& options = HostileScene::calm()) {
  HostileScene scene(options);
  const wire::LinkToken name = scene.world.first_token();
  const wire::LinkHello good = link_hello(wire::LinkWay::write, LinkWorld::kRings, name);
  std::vector<std::pair<wire::LinkHello, Code>> hellos(7, {good, Code::invalid_argument});
  ++hellos[0].first.request_slots_log2;
  ++hellos[1].first.response_slots_log2;
  --hellos[2].first.response_rings;
  hellos[3].first.request_slots_log2 += 32;
  hellos[4].first.response_slots_log2 += 32;
  hellos[5] = {link_hello(wire::LinkWay::write, LinkWorld::kRings, {name[0], 0}), Code::not_found};
  hellos[6] = {link_hello(wire::LinkWay::write, LinkWorld::kRings, {0, name[1]}), Code::not_found};
  for (const auto& [hello, code] : hellos) {
    const auto link = scene.dial(hello);
    if (link->welcome() == nullptr) return "it says nothing";
    const Code said = static_cast<Code>(link->welcome()->code);
    if (said != (options.secrets ? Code::not_permitted : code)) return "a session was handed over";
    if (std::string wrong = scene.serve(); !wrong.empty()) return wrong;
  }
  return scene.counts().resumed == 0 ? std::string() : "a session went on";
}

// --- shared resources ----------------------------------------------------------------------------

/// Many peers that take nothing that is sent to them; other clients must still be served.
inline std::string check_posts_for_others(LinkWorldOptions options = HostileScene::calm()) {
  options.posts_max = 512;
  options.sessions_max = 16;
  HostileScene scene(options);
  const wire::LinkHello hello = link_hello(wire::LinkWay::send, {256, 256, 1});
  std::vector<std::unique_ptr<HostileLink>> links;
  for (int i = 0; i < 8; ++i) {
    links.push_back(scene.dial_session(hello, {0, 0}));
    if (!links.back()->accepted()) return "a good hello is refused";
  }
  for (int i = 0; i < 140; ++i) {
    for (const auto& link : links) {
      link->poll();
      link->request(rings::message_of(rings::request_of(wire::OffloadId::noop)));
    }
    scene.world.world().run_for(10'000);  // so that each answer is a message of its own
  }
  return scene.serve();
}

/// Refused peers that send something which arrives when the node has dropped them: the receives
/// that it consumed must be posted again.
inline std::string check_receives_for_others(LinkWorldOptions options = HostileScene::calm()) {
  options.tick_ns = 200'000;
  HostileScene scene(options);
  wire::LinkHello hello = link_hello(wire::LinkWay::send, HostileScene::kRings);
  hello.magic = 0;
  constexpr std::uint64_t kSecond = 1'000 * HostileScene::kMs;
  const fabric::sim::Range usual = scene.world.world().faults().land_ns;
  // More often than there are receives, with the largest number of pending refusals.
  for (int round = 0; round < 18; ++round) {
    std::vector<std::unique_ptr<HostileLink>> links;
    for (int i = 0; i < 64; ++i) links.push_back(scene.begin(hello, {}, kSecond));
    const auto heard = [](const auto& link) { return link->welcome() != nullptr; };
    scene.wait([&] { return std::ranges::all_of(links, heard); }, 100);
    scene.world.world().faults().land_ns = {2 * kSecond, 2 * kSecond};
    for (const auto& link : links) link->send("x", {});
    scene.world.world().run_for(kSecond + kSecond / 10);
    scene.world.world().faults().land_ns = usual;
  }
  return scene.serve();
}

/// More sessions than there are shared receives, each with a message that it has begun and does not
/// end.
inline std::string check_unfinished_messages(LinkWorldOptions options = HostileScene::calm()) {
  constexpr int kSessions = 1100;
  options.give_up_ms = 20;
  HostileScene scene(options);
  const wire::LinkHello hello = link_hello(wire::LinkWay::send, {64, 64, 1});
  constexpr std::uint64_t kSecond = 1'000 * HostileScene::kMs;
  std::vector<std::unique_ptr<HostileLink>> links;
  for (int i = 0; i < kSessions; ++i) links.push_back(scene.begin(hello, {0, 0}, kSecond));
  const auto accepted = [](const auto& link) { return link->accepted(); };
  if (!scene.wait([&] { return std::ranges::all_of(links, accepted); }, 100)) {
    return "a good hello is refused";
  }
  const fabric::sim::Range usual = scene.world.world().faults().land_ns;
  scene.world.world().faults().land_ns = {2 * kSecond, 2 * kSecond};
  for (const auto& link : links) link->send("x", {});
  scene.world.world().run_for(HostileScene::kMs);
  scene.world.world().faults().land_ns = usual;
  return scene.serve();
}

}  // namespace espalier::client
