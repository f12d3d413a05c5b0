// SPDX-License-Identifier: Apache-2.0
// Peers that say what they like to an end for datagrams: introductions over TCP, keys, frames, and
// whatever else one may send, while the provider is as slow and forgetful as it may be. Nobody is
// heard but who has introduced himself rightly and received a key; his frames are heard in their
// order, each once; what is sent goes to who has introduced himself; and no receive is lost.
//
// Input: a byte of choices (whether addresses are those of hosts, and receives few), then steps,
// each a byte of what happens, a byte of to whom, and what that needs. The harness puts in what
// peers have been told, for nobody guesses that.
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/clock.hpp"
#include "base/testing/fuzz_input.hpp"
#include "fabric/ofi/datagrams.hpp"
#include "fabric/ofi/testing/fake_provider.hpp"
#include "fabric/roce/udp_address.hpp"

namespace espalier::fabric::ofi {
namespace {

using base::FuzzInput;
using base::want;

using Bytes = std::vector<std::byte>;
using wire::ofi::DatagramHead;
using wire::ofi::DatagramKind;
using wire::ofi::Introduction;
using wire::ofi::Key;
using wire::ofi::RecordHead;

constexpr std::uint64_t kMs = 1'000'000;
constexpr int kStepsMax = 200;
constexpr int kTurnsToMeet = 4;

template <class T>
void append(Bytes& to, const T& value) {
  const auto bytes = std::as_bytes(std::span(&value, 1));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

sockaddr_in host(std::uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return at;
}

Bytes end_address(bool hosts, std::uint16_t number) {
  Bytes address;
  if (hosts) {
    append(address, host(number));
  } else {
    append(address, std::array<std::uint16_t, 16>{0xFE80, number});
  }
  return address;
}

/// One who has dialled, or was dialled, and hears what its link brings.
struct Peer final : FrameTaker {
  ~Peer() {
    if (link != nullptr) link->let_go(true);
    reset();
  }
  // At once, and without leaving a port behind that nobody can use for a minute.
  void reset() {
    if (!socket) return;
    const linger none{1, 0};
    setsockopt(socket.number(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
    socket.close();
  }
  void take_frame(std::span<const std::byte> frame) override {
    want(introduced, "one is heard who has not introduced himself, or not rightly");
    want(server_key.has_value(), "one is heard who has no key");
    want(sent_key.has_value(), "one is heard who has given no key");
    const auto expected = frames.find(heard++);
    want(expected != frames.end(), "a frame is heard that was not sent, or before its turn");
    want(std::ranges::equal(frame, expected->second), "another frame is heard than was sent");
  }
  void lose_line() override { std::exchange(link, nullptr)->let_go(true); }

  memory::Descriptor socket;
  std::string name;  // as the hall is told
  Link* link = nullptr;
  Bytes said;  // over TCP
  Bytes told;  // likewise, by the server
  bool introduced = false;
  Introduction own{};
  std::optional<std::uint64_t> server_key;
  std::optional<std::uint64_t> sent_key;  // the first, which is to be believed
  std::map<std::uint32_t, Bytes> frames;  // by their number, the first of each
  std::uint32_t heard = 0;
};

class Harness final : public Hall {
 public:
  Harness(bool hosts, std::size_t links_max)
      : hosts_(hosts),
        provider_(hosts ? FI_SOCKADDR : FI_ADDR_EFA, end_address(hosts, 4000)),
        lines_(*Datagrams::open(FakeProvider::library(), "fake", *this)),
        door_(*Control::listen({roce::IpAddress::v4(127, 0, 0, 1), 0})) {
    provider_.receives_max = links_max * DatagramEnd::kReceivesPerLink;
    want(lines_->listen({roce::IpAddress::v4(127, 0, 0, 1), 0}).has_value(), "nobody listens");
  }

  bool has_room() override { return may_come_; }
  bool send_one_away() override {
    for (auto& peer : peers_) {
      if (peer == nullptr || peer->link == nullptr || peer->heard != 0) continue;
      std::exchange(peer->link, nullptr)->let_go(true);
      return true;
    }
    return false;
  }
  void let_in(Link& link, std::string name) override {
    for (auto& peer : peers_) {
      if (peer == nullptr || peer->name != name) continue;
      want(peer->link == nullptr, "one is let in twice");
      peer->link = &link;
      link.hand_to(*peer);
      return;
    }
    link.let_go(true);  // he has gone already
  }

  void step(FuzzInput& input) {
    const std::uint8_t what = input.byte();
    Peer& peer = peer_of(input.byte(), input);
    switch (what % 12) {
      case 0: introduce(peer, input); break;
      case 1: say(peer, drawn(input)); break;
      case 2: send_key(peer, input); break;
      case 3:
      case 4:
      case 5: send_frame(peer, input); break;
      case 6: send(drawn(input)); break;
      case 7: leave(input); break;
      case 8: change_provider(input.byte()); break;
      case 9: speak(peer, input); break;
      case 10: go(peer, input); break;
      default: {
        const std::uint64_t unit = input.byte() < 0xE0 ? kMs : 100 * kMs;
        late_ns_ += input.byte() * unit;
        break;
      }
    }
    turn();
    check();
  }

  /// When all have gone, nothing is left of them.
  void end() {
    for (auto& peer : peers_) peer.reset();
    gone_ = true;
    provider_.send_answer = provider_.receive_answer = 0;
    for (int i = 0; i != 100 && lines_->any(); ++i) {
      late_ns_ += 1000 * kMs;
      while (!provider_.under_way().empty()) provider_.leave(0, i % 2 == 0);
      turn();
    }
    want(!lines_->any(), "a link stays whose peer has gone");
    turn();
    want(provider_.posted() == provider_.receives(), "a receive is lost");
    want(provider_.peers() == 0, "a peer stays known who has gone");
  }

 private:
  Peer& peer_of(std::uint8_t which, FuzzInput& input) {
    auto& peer = peers_[which % peers_.size()];
    if (peer != nullptr) return *peer;
    peer = std::make_unique<Peer>();
    if (which < 0xC0) {
      dial(*peer);
    } else {
      be_dialled(*peer);
    }
    peer->own = server_of(*peer);
    // Of two numbers each byte differs, so a spoilt one is nobody else's.
    peer->own.number = ++dialled_ * 0x0101'0101'0101'0101;
    const Bytes address = end_address(hosts_, static_cast<std::uint16_t>(5000 + input.byte() % 4));
    std::memset(peer->own.address, 0, sizeof peer->own.address);
    std::memcpy(peer->own.address, address.data(), address.size());
    return *peer;
  }
  void dial(Peer& peer) {
    const roce::SocketAddress to(lines_->listens_at());
    peer.socket = memory::Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    want(connect(peer.socket.number(), to.get(), to.bytes) == 0, "the door is shut");
    peer.name = roce::to_text(Control::address_of(peer.socket));
    for (int i = 0; i != kTurnsToMeet && peer.told.empty(); ++i) turn();
  }
  void be_dialled(Peer& peer) {
    const auto link = lines_->dial(Control::address_of(door_));
    if (link) {
      peer.link = *link;
      (*link)->hand_to(peer);
      const int made = accept4(door_.number(), nullptr, nullptr, SOCK_CLOEXEC);
      peer.socket = memory::Descriptor(made);
    }
    for (int i = 0; i != kTurnsToMeet && link && peer.told.empty(); ++i) turn();
  }

  /// What the server has said of itself; guessed, if it has not.
  [[nodiscard]] Introduction server_of(const Peer& peer) const {
    Introduction server{};
    if (peer.told.size() == sizeof server) {
      std::memcpy(&server, peer.told.data(), sizeof server);
    }
    return server;
  }

  [[nodiscard]] static Bytes drawn(FuzzInput& input) {
    Bytes bytes(input.below(input.byte() < 0xF8 ? 64 : 8400));
    input.fill(bytes);
    return bytes;
  }
  /// Here and there another byte than should be.
  static void spoil(Bytes& bytes, FuzzInput& input) {
    const std::uint8_t how = input.byte();
    if (how < 0xC0 || bytes.empty()) return;
    const std::size_t place = input.below(bytes.size());
    bytes[place] ^= static_cast<std::byte>(input.byte());
    if (how >= 0xF0) bytes.resize(input.below(bytes.size() + 8));
  }

  void introduce(Peer& peer, FuzzInput& input) {
    Bytes bytes;
    append(bytes, peer.own);
    spoil(bytes, input);
    const std::size_t first = input.below(bytes.size() + 1);
    say(peer, std::span(bytes).first(first));
    turn();
    say(peer, std::span(bytes).subspan(first));
  }
  void say(Peer& peer, std::span<const std::byte> bytes) {
    if (!peer.socket || bytes.empty()) return;
    const auto sent = ::send(peer.socket.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) return;  // the server has hung up
    peer.said.insert(peer.said.end(), bytes.begin(), bytes.begin() + sent);
    peer.introduced = is_good(peer);
  }
  /// Whether what he has said first is an introduction that may be believed.
  [[nodiscard]] bool is_good(const Peer& peer) const {
    Introduction said;
    if (peer.said.size() < sizeof said) return false;
    std::memcpy(&said, peer.said.data(), sizeof said);
    const Introduction server = server_of(peer);
    Introduction same = said;
    same.number = server.number;
    std::memcpy(same.address, server.address, sizeof same.address);
    if (std::memcmp(&same, &server, sizeof same) != 0) return false;
    const auto behind = std::span(said.address).subspan(said.address_bytes);
    if (std::ranges::any_of(behind, [](std::uint8_t byte) { return byte != 0; })) return false;
    if (!hosts_) return true;
    sockaddr_in at;
    std::memcpy(&at, said.address, sizeof at);
    return at.sin_family == AF_INET && at.sin_addr.s_addr == htonl(INADDR_LOOPBACK) &&
           at.sin_port != 0;
  }

  void send(const Bytes& bytes) { provider_.bring(bytes); }
  static Bytes datagram(std::uint64_t to, std::uint32_t sequence, DatagramKind kind) {
    Bytes bytes;
    append(bytes, DatagramHead{to, sequence, static_cast<std::uint8_t>(kind), {}});
    return bytes;
  }
  void send_key(Peer& peer, FuzzInput& input) {
    const std::uint64_t number = server_of(peer).number;
    Bytes bytes = datagram(number, 0, DatagramKind::key);
    append(bytes, Key{0x2000u + input.byte()});
    spoil(bytes, input);
    const bool whole = bytes.size() == sizeof(DatagramHead) + sizeof(Key);
    const auto named = bytes.size() >= sizeof number ? base::load_plain<std::uint64_t>(bytes.data())
                                                     : std::uint64_t{0};
    // Whatever comes first counts; what is spoilt there may be of no consequence.
    if (whole && named == number && !peer.sent_key && provider_.posted() != 0) {
      peer.sent_key = base::load_plain<std::uint64_t>(bytes.data() + sizeof(DatagramHead));
    }
    send(bytes);
  }
  void send_frame(Peer& peer, FuzzInput& input) {
    const std::uint8_t how_far = input.byte();
    // Mostly one of those that may come now.
    const std::uint32_t sequence =
        peer.heard + (how_far < 0xE0 ? how_far % 20 : std::uint32_t{how_far} << 24);
    Bytes bytes = datagram(peer.server_key.value_or(0), sequence, DatagramKind::frame);
    const Bytes payload = drawn(input);
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    spoil(bytes, input);
    note_frame(peer, bytes);
    send(bytes);
  }
  /// What may be heard of it, if it was to this peer's key.
  void note_frame(Peer& peer, const Bytes& bytes) const {
    if (bytes.size() < sizeof(DatagramHead) || bytes.size() > DatagramEnd::kDatagramBytesMax)
      return;
    const auto head = base::load_plain<DatagramHead>(bytes.data());
    if (head.to != peer.server_key || provider_.posted() == 0) return;
    peer.frames.try_emplace(head.sequence, bytes.begin() + sizeof head, bytes.end());
  }

  void leave(FuzzInput& input) {
    const std::size_t count = provider_.under_way().size();
    if (count == 0) return;
    const std::size_t which = input.below(count);
    const bool good = input.byte() < 0xF0;
    want(provider_.leave(which, good), "what is being sent is written over");
  }
  void change_provider(std::uint8_t how) {
    provider_.send_answer = how % 4 == 1 ? -FI_EAGAIN : how % 4 == 2 ? -FI_EINVAL : 0;
    provider_.receive_answer = how >= 0xC0 ? -FI_EAGAIN : 0;
  }
  /// Who has the link says something, or makes room.
  static void speak(Peer& peer, FuzzInput& input) {
    if (peer.link == nullptr) return;
    Outbox& out = peer.link->out();
    const std::uint8_t what = input.byte();
    if (what % 4 == 0) static_cast<void>(out.peer_took(input.byte()));
    if (what % 4 == 1) out.owe();
    if (const auto room = out.room(what)) {
      RecordHead head{};
      head.bytes = *room;
      std::memset(out.add(head), what, *room);
    }
    out.flush();
  }
  void go(Peer& peer, FuzzInput& input) {
    switch (input.byte() % 4) {
      case 0:
        if (peer.socket) shutdown(peer.socket.number(), SHUT_WR);
        break;
      case 1: peer.reset(); break;
      case 2:
        if (peer.link != nullptr) std::exchange(peer.link, nullptr)->let_go(input.byte() % 2 == 0);
        break;
      default:
        may_come_ = !may_come_;
        gone_ = true;
        std::ranges::find(peers_, &peer, &std::unique_ptr<Peer>::get)->reset();
        break;
    }
  }

  void turn() {
    lines_->look();
    static_cast<void>(lines_->take());
    static_cast<void>(lines_->settle(base::monotonic_ns() + late_ns_));
    want(!lines_->any() || lines_->due_ns() != 0, "something is due before all time");
    for (auto& peer : peers_) {
      if (peer == nullptr || !peer->socket) continue;
      std::array<std::byte, 256> room;
      const auto came = recv(peer->socket.number(), room.data(), room.size(), MSG_DONTWAIT);
      if (came > 0) peer->told.insert(peer->told.end(), room.begin(), room.begin() + came);
      want(peer->told.size() <= sizeof(Introduction), "an end says more than who it is");
      peer->introduced = is_good(*peer);
    }
    for (const FakeProvider::Sent& sent : provider_.take_sent()) look_at(sent);
  }

  /// To somebody who has introduced himself with this address.
  void look_at(const FakeProvider::Sent& sent) {
    want(sent.bytes.size() >= sizeof(DatagramHead), "something is sent without a head");
    const auto head = base::load_plain<DatagramHead>(sent.bytes.data());
    const Bytes* const address = provider_.address_of(sent.to);
    want(address != nullptr, "something is sent to somebody unknown");
    for (auto& peer : peers_) {
      if (peer == nullptr || !peer->introduced) continue;
      Introduction said;
      std::memcpy(&said, peer->said.data(), sizeof said);
      const auto there = std::as_bytes(std::span(said.address)).first(said.address_bytes);
      if (!std::ranges::equal(there, *address)) continue;
      if (head.kind == static_cast<std::uint8_t>(DatagramKind::frame)) {
        if (head.to == peer->sent_key) return;
      } else if (head.kind == static_cast<std::uint8_t>(DatagramKind::key)) {
        if (head.to != said.number || sent.bytes.size() != sizeof head + sizeof(Key)) continue;
        if (peer->server_key) continue;  // another's, who has the same number
        peer->server_key = base::load_plain<std::uint64_t>(sent.bytes.data() + sizeof head);
        return;
      }
    }
    want(gone_, "something is sent to nobody who has asked for it");
  }

  void check() const {
    // Those that are not posted wait, as frames that have overtaken others.
    const std::size_t links = provider_.receives() / DatagramEnd::kReceivesPerLink;
    if (provider_.receive_answer == 0) {
      want(provider_.posted() >= links, "more frames wait than may");
    }
  }

  bool hosts_;
  FakeProvider provider_;
  std::unique_ptr<Lines> lines_;
  memory::Descriptor door_;  // where the server dials
  std::array<std::unique_ptr<Peer>, 3> peers_;
  bool may_come_ = true;
  std::uint64_t dialled_ = 0;
  bool gone_ = false;  // there may be links of peers that are not here any more
  std::uint64_t late_ns_ = 0;
};

}  // namespace
}  // namespace espalier::fabric::ofi

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier::fabric;
  espalier::base::FuzzInput input(data, size);
  const std::uint8_t choices = input.byte();
  ofi::Harness harness((choices & 1) == 0, (choices & 2) == 0 ? 8 : 2);
  for (int steps = 0; steps != ofi::kStepsMax && !input.over(); ++steps) harness.step(input);
  harness.end();
  return 0;
}
