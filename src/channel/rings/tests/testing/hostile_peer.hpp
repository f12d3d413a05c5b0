// SPDX-License-Identifier: Apache-2.0
// For tests: a machine whose programs violate the protocol towards a node by all means of the
// fabric's verbs: hellos, guessed tokens, notes, slots, credits, WRITEs to anywhere, silence, and
// sudden ends. Choices select what it does next.
//
// Its well-formed requests use only keys that begin with "h", so other clients know what their own
// keys hold.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "channel/rings/tests/testing/choices.hpp"
#include "channel/rings/tests/testing/hostile_link.hpp"
#include "rings/testing/ring_client.hpp"

namespace espalier::client {

/// What all hostile peers of a world know, and counts of what happened.
struct HostileLore {
  /// An accepted session, and its rings.
  struct Known {
    wire::LinkToken token{};
    wire::ConnectionLayout rings;
  };
  std::vector<Known> own;
  /// A correct client's session. The peers request it only with wrong rings: a correct request
  /// would take it over, since the token is all that is needed.
  Known stolen;
  std::uint32_t map = 0;

  std::uint64_t dialled = 0;
  std::uint64_t accepted = 0;
  std::uint64_t rejected = 0;
  std::uint64_t took_over = 0;
  std::uint64_t ended = 0;  // pairs, by the node or by a violation
  std::uint64_t vanished = 0;
  std::uint64_t answered = 0;  // slots
};

/// The machine of the hostile peers.
struct HostileMachine {
  /// Called at first, and after each crash.
  std::function<std::unique_ptr<fabric::Endpoint>()> start;
  /// The machine crashes without closing anything. Its endpoint is destroyed afterwards.
  std::function<void()> crash;
  std::string target;  // the argument of connect()
  std::uint64_t timeout_ns = 100'000;
};

class HostilePeer {
 public:
  static constexpr std::size_t kLinksMax = 8;

  HostilePeer(HostileMachine machine, HostileLore& lore)
      : machine_(std::move(machine)), lore_(lore), endpoint_(machine_.start()) {}

  /// Does one thing.
  void act(Choices& choices) {
    if (links_.empty() || choices.one_in(12)) return dial(choices);
    const std::size_t which = choices.below(links_.size());
    Known& known = links_[which];
    look(known);
    if (known.link->ended()) {
      ++lore_.ended;
      return drop(which);
    }
    HostileLink& link = *known.link;
    if (known.patient) return go_on(known, choices);
    switch (choices.below(14)) {
      case 0:
      case 1:
      case 2: return link.request(message(choices));
      case 3: return link.carry(garbage(link, choices));
      case 4: return send(link, choices);
      case 5: return note(link, choices);
      case 6:
      case 7: return write(link, choices);
      case 8: return credit(link, choices);
      case 9: return link.acknowledge();
      case 10: return known.takes = choices.one_in(2), void();
      case 11: return reach(link, choices);
      case 12: return choices.one_in(4) ? link.close() : void();
      default: break;
    }
    if (choices.one_in(6)) return vanish();
    if (choices.one_in(4)) drop(which);
  }

  /// The machine crashes, and restarts without state.
  void vanish() {
    ++lore_.vanished;
    machine_.crash();
    links_.clear();
    endpoint_.reset();
    endpoint_ = machine_.start();
  }
  void hang_up() { links_.clear(); }
  /// Runs the endpoint, and waits until there may be more for it to do, for at most so long.
  void rest(std::uint64_t ns) {
    endpoint_->progress();
    endpoint_->wait(ns);
  }
  [[nodiscard]] std::size_t links() const { return links_.size(); }

 private:
  struct Known {
    std::unique_ptr<HostileLink> link;
    bool takes = true;     // posts its receives again
    bool patient = false;  // does nothing that ends the session
    bool known = false;
    bool asked_by_name = false;
    std::uint64_t answered = 0;
  };

  void drop(std::size_t which) {
    links_.erase(links_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  // Nothing that ends a session, so that it makes progress and has state to lose.
  void go_on(Known& known, Choices& choices) {
    HostileLink& link = *known.link;
    switch (choices.below(8)) {
      case 0: return credit(link, choices);
      case 1: return known.takes = !choices.one_in(4), void();
      case 2: return scribble(link, choices);
      case 3: return link.acknowledge();
      case 4: known.patient = !choices.one_in(8); return;
      default: return link.request(message(choices, true));
    }
  }

  // Records what has happened so far.
  void look(Known& known) {
    HostileLink& link = *known.link;
    link.poll(known.takes);
    std::uint64_t answered = 0;
    for (std::uint32_t i = 0; i < wire::kResponseRingsMax; ++i) answered += link.came(i);
    lore_.answered += answered - std::exchange(known.answered, answered);
    if (known.known || link.welcome() == nullptr) return;
    known.known = true;
    if (!link.accepted()) {
      ++lore_.rejected;
      return;
    }
    ++(known.asked_by_name ? lore_.took_over : lore_.accepted);
    lore_.own.push_back({link.welcome()->token, link.layout()});
    if (lore_.own.size() > 16) lore_.own.erase(lore_.own.begin());
  }

  // --- hellos -----------------------------------------------------------------------------------

  void dial(Choices& choices) {
    if (links_.size() == kLinksMax) drop(choices.below(kLinksMax));
    HostileLink::Room room;
    room.receives = choices.pick({16u, 0u, 1u, 64u});
    room.bytes_each = choices.pick({std::size_t{4096}, std::size_t{0}, std::size_t{64}});
    Known known;
    known.link = std::make_unique<HostileLink>(*endpoint_, machine_.timeout_ns, room);
    const auto way = choices.pick({wire::LinkWay::write, wire::LinkWay::send});
    wire::LinkHello hello = link_hello(way, {64u << choices.below(3), 64u << choices.below(3),
                                             static_cast<std::uint32_t>(1 + choices.below(3))});
    known.link->name_memory(hello);
    known.patient = choices.one_in(2);
    const bool good = choices.one_in(2);
    if (!good) spoil(hello, choices);
    known.asked_by_name = hello.token != wire::LinkToken{};
    std::string bytes(base::bytes_of(hello));
    if (!good && choices.one_in(8)) bytes.resize(choices.below(fabric::kConnectDataMax + 1), '\7');
    if (!good && choices.one_in(16)) bytes = choices.bytes(choices.below(bytes.size() + 1));
    ++lore_.dialled;
    if (!known.link->dial(machine_.target, bytes)) return;
    links_.push_back(std::move(known));
    // A pair that is closed immediately may never have reached the node.
    if (choices.one_in(8)) links_.pop_back();
  }

  void spoil(wire::LinkHello& hello, Choices& choices) {
    const auto byte = [&choices] { return static_cast<std::uint8_t>(choices.below(256)); };
    switch (choices.below(10)) {
      case 0: hello.magic ^= std::uint64_t{1} << choices.below(64); return;
      case 1: hello.protocol = static_cast<std::uint32_t>(choices.word()); return;
      case 2: hello.way = byte(); return;
      case 3: hello.request_slots_log2 = byte(); return;
      case 4: hello.response_slots_log2 = byte(); return;
      case 5: hello.response_rings = choices.pick<std::uint8_t>({0, 255, 16, 17, byte()}); return;
      case 6: hello.token = {choices.word(), choices.one_in(2) ? 0 : choices.word()}; return;
      case 7: hello.key ^= 1u << choices.below(32); return;
      case 8: hello.reserved = static_cast<std::uint32_t>(choices.word()); return;
      default: name_a_session(hello, choices); return;
    }
  }

  void name_a_session(wire::LinkHello& hello, Choices& choices) {
    const bool stolen = lore_.own.empty() || choices.one_in(3);
    const auto& known = stolen ? lore_.stolen : lore_.own[choices.below(lore_.own.size())];
    const std::uint64_t base = hello.base;
    const fabric::RegionKey key = hello.key;
    hello = link_hello(static_cast<wire::LinkWay>(hello.way), known.rings, known.token);
    hello.base = base;
    hello.key = key;
    if (!stolen && !choices.one_in(3)) return;
    switch (choices.below(4)) {
      case 0:
        hello.request_slots_log2 = static_cast<std::uint8_t>(hello.request_slots_log2 + 32);
        return;
      case 1: hello.response_slots_log2 ^= 1; return;
      case 2: ++hello.response_rings; return;
      default: hello.token[choices.below(2)] ^= std::uint64_t{1} << choices.below(64); return;
    }
  }

  // --- slots -------------------------------------------------------------------------------------

  std::string message(Choices& choices, bool whole = false) {
    using Id = wire::OffloadId;
    // No call of a helper thread: its timing cannot be repeated from a seed.
    const Id offload =
        choices.pick({Id::noop, Id::put, Id::get, Id::erase, Id::scan, Id::count, Id::sequence,
                      Id::add, Id::snapshot_open, Id::snapshot_close, Id::cancel, Id::floor});
    auto header = rings::request_of(offload, choices.one_in(8) ? 0 : lore_.map,
                                    static_cast<std::uint32_t>(choices.below(8)),
                                    static_cast<std::uint32_t>(choices.below(16)));
    if (!whole) {
      header.ring =
          static_cast<std::uint8_t>(choices.one_in(8) ? choices.below(256) : choices.below(2));
    }
    std::string key = "h" + std::to_string(choices.below(16));
    std::string payload(choices.one_in(8) ? choices.below(3000) : choices.below(100), 'x');
    if (offload == Id::add || offload == Id::snapshot_close) {
      payload = std::string(base::bytes_of(choices.below(4)));
    }
    if (offload == Id::scan) payload = "i";
    std::string made = rings::message_of(header, key, payload);
    // A length that differs from that of the content: the rest is parsed as another message, or
    // waits.
    if (!whole && choices.one_in(16))
      made[4 + choices.below(2)] = static_cast<char>(choices.below(256));
    return made;
  }

  std::string garbage(const HostileLink& link, Choices& choices) {
    std::string message(4 + wire::kRingSlotPayload * choices.between(1, 8), '\0');
    for (char& c : message) c = static_cast<char>(choices.below(256));
    std::string slots = to_slots(message, link.tail());
    // Whichever slot is parsed as a header: no call of a helper thread, and none that writes other
    // clients' objects.
    for (std::size_t at = 12; at < slots.size(); at += wire::kRingSlotBytes) {
      slots[at] = static_cast<char>(
          choices.pick({0, 1, 2, 10, 11, 12, 13, 14, 15, 22, 23, 24, 26, 127, 128, 255}));
    }
    if (choices.one_in(4)) slots[64 * choices.below(slots.size() / 64)] ^= 1;
    return slots;
  }

  // --- what a client's link would never do ------------------------------------------------------

  static std::size_t length(Choices& choices) {
    return choices.pick<std::size_t>(
        {0, 8, 64, 1, 7, 9, 63, 65, 128, 4032, 4095, 4096, 4097, 4160, 9000});
  }

  static std::uint32_t immediate(const HostileLink& link, Choices& choices) {
    if (choices.one_in(4)) return static_cast<std::uint32_t>(choices.word());
    wire::LinkNote note;
    note.kind = static_cast<wire::LinkNoteKind>(choices.below(4));
    note.ring =
        static_cast<std::uint32_t>(choices.one_in(3) ? choices.below(16) : choices.below(2));
    const std::uint64_t far = std::uint64_t{1} << choices.below(wire::kLinkSlotBits + 1);
    const std::uint64_t slot = choices.one_in(2) ? link.tail() + far : link.tail() - far;
    note.slot = static_cast<std::uint32_t>(choices.one_in(3) ? link.tail() : slot);
    if (note.kind == wire::LinkNoteKind::close && !choices.one_in(4)) note.kind = {};
    return wire::to_immediate(note);
  }

  void send(HostileLink& link, Choices& choices) {
    std::string bytes(length(choices), static_cast<char>(choices.below(256)));
    if (choices.one_in(8)) return link.send(std::move(bytes), {});
    link.send(std::move(bytes), immediate(link, choices));
  }
  void note(HostileLink& link, Choices& choices) {
    if (choices.one_in(2)) return link.send({}, immediate(link, choices));
    link.write(0, {}, immediate(link, choices));
  }

  // Anywhere, in pieces of any length; mostly at words that the node or a client reads.
  void write(HostileLink& link, Choices& choices) {
    const wire::ConnectionLayout rings = link.layout();
    if (!rings.valid()) return;
    std::uint64_t offset = 0;
    switch (choices.below(6)) {
      case 0: offset = 8 * choices.below(wire::kConnectionPageBytes / 8); break;
      case 1: offset = wire::kLinkPageOffset + 8 * choices.below(sizeof(wire::LinkPage) / 8); break;
      case 2: offset = rings.response_side(choices.below(rings.response_rings) & 0xF); break;
      case 3: offset = rings.requests() + choices.below(rings.bytes() - rings.requests()); break;
      case 4: offset = rings.bytes() - choices.below(128); break;
      default: offset = choices.one_in(2) ? choices.word() : ~choices.below(4096); break;
    }
    std::string bytes(base::bytes_of(word(link, choices)));
    if (choices.one_in(4)) bytes = choices.bytes(choices.between(1, 32));
    if (choices.one_in(8)) bytes.resize(length(choices), 'w');
    if (choices.one_in(4)) return link.write(offset, std::move(bytes), immediate(link, choices));
    link.write(offset, std::move(bytes));
  }

  // Over words that the node reads, or wrote, in the session's memory at the node.
  void scribble(HostileLink& link, Choices& choices) {
    const wire::ConnectionLayout rings = link.layout();
    if (!rings.valid()) return;
    const std::uint64_t slots = rings.bytes() / wire::kRingSlotBytes;
    const std::uint64_t offset = choices.one_in(2)
                                     ? 8 * choices.below(wire::kConnectionPageBytes / 8)
                                     : wire::kRingSlotBytes * choices.below(slots);
    link.write(offset, std::string(base::bytes_of(word(link, choices))));
  }

  // A plausible value of a credit or a sequence word, or one close to it.
  static std::uint64_t word(const HostileLink& link, Choices& choices) {
    const std::uint64_t near = choices.below(200);
    switch (choices.below(4)) {
      case 0: return near;
      case 1: return link.came(0) + near;
      case 2: return link.tail() - near;
      default: return choices.word();
    }
  }

  void credit(HostileLink& link, Choices& choices) {
    const auto ring = static_cast<std::uint32_t>(choices.below(choices.one_in(4) ? 16 : 2));
    link.credit(ring, word(link, choices));
  }

  // READs and atomics, which no peer may issue; and the memory of other sessions.
  void reach(HostileLink& link, Choices& choices) {
    const wire::LinkWelcome* const own = link.welcome();
    if (own == nullptr) return;
    const std::uint64_t at = own->base + 8 * choices.below(64);
    switch (choices.below(4)) {
      case 0: return link.post(fabric::WorkRequest::read(0, read_, own->key, at));
      case 1: return link.post(fabric::WorkRequest::fetch_add(0, own->key, at, 1));
      case 2: return link.post(fabric::WorkRequest::compare_swap(0, own->key, at, 0, 1));
      default: break;
    }
    const wire::LinkWelcome* const other = links_[choices.below(links_.size())].link->welcome();
    if (other != nullptr && other->base != own->base) {
      link.write(other->key, other->base, std::string(64, 'o'));
    }
  }

  HostileMachine machine_;
  HostileLore& lore_;
  std::unique_ptr<fabric::Endpoint> endpoint_;
  std::vector<std::byte> read_ = std::vector<std::byte>(64);
  std::vector<Known> links_;
};

}  // namespace espalier::client
