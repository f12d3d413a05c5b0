// SPDX-License-Identifier: Apache-2.0
// Connection management: establishes and terminates connections, and retransmits unanswered
// messages [IBTA chapter 12].
//
//        active side              passive side
//   asking  ---- REQ ------------> asked      the application decides
//           <--- REP ------------- answered   (or REJ, and it ends)
//   up      ---- RTU ------------> up
//   leaving ---- DREQ -----------> (gone)
//           <--- DREP ------------
//
// A repeated message gets the same answer again. A message that names no connection of this side is
// answered if an answer helps the peer to give up, and otherwise dropped.
//
// Address validation: a peer is proven when it has sent what only the machine at its address can
// know: a number that was sent there (an RTU, a packet to the pair, a cookie).
//
// Invariants
// I1. What unknown peers can make this remember is bounded: kAskedMax requests that are undecided
//     or were rejected, each for kAskedNs or kRefusedNs. No more than kUnprovenMax peers are not
//     proven, those with a decision included: beyond that a request is answered by one REJ, which
//     is as long and never repeated, with a cookie that proves the address of the client that
//     returns it (connection_cookies.hpp).
// I2. A message is accepted only from where the peer of the connection sends (peer_address.hpp).
// I3. A flood of requests keeps no client out: if the table is full, a request evicts any other, so
//     that each is as likely to be decided; and while it is nearly full, each address is limited to
//     its share. A client whose request was evicted retries, and gets no answer, for its source
//     address may be spoofed.
// I4. Amplification limit: a peer that is not proven gets at most kAmplification times as many
// bytes
//     as came from it, and nothing of its pair.
// Thread: that of the endpoint.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "fabric/endpoint.hpp"
#include "fabric/roce/connection_cookies.hpp"
#include "fabric/roce/connection_message.hpp"
#include "fabric/roce/ip_service.hpp"
#include "fabric/roce/pair.hpp"

namespace espalier::fabric::roce {

class RoceEndpoint;

class Connector {
 public:
  static constexpr std::size_t kAskedMax = 1024;
  static constexpr std::uint64_t kAskedNs = 10'000'000'000;
  /// How long a rejected request is remembered, if there is room; a later one is decided anew.
  static constexpr std::uint64_t kRefusedNs = 1'000'000'000;
  /// From here on the table is nearly full; and the share of one address.
  static constexpr std::size_t kAskedMany = kAskedMax / 2;
  static constexpr std::uint32_t kAskedShare = kAskedMax / 16;
  static constexpr std::size_t kUnprovenMax = 64;
  /// As QUIC has it [RFC 9000, 8.1]. All messages are equally long, so they are counted.
  static constexpr std::uint32_t kAmplification = 3;

  explicit Connector(RoceEndpoint& endpoint);

  /// Sends a REQ. The pair becomes connected, or enters the error state.
  void connect(Pair& pair, const PortAddress& peer, std::uint16_t service,
               std::span<const std::byte> data);
  /// Errors: already_exists.
  Result<void> listen(std::uint16_t service);
  std::optional<ConnectRequest> next_request();
  /// The MTU that a request is for. Errors: not_found.
  Result<std::uint32_t> mtu_of(std::uint64_t request) const;
  /// Establishes the pair. Requires: mtu_of() found the request.
  void accept(std::uint64_t request, Pair& pair, std::span<const std::byte> data);
  /// `data`: private data of the REJ; at most kRejectDataMax bytes.
  void reject(std::uint64_t request, std::span<const std::byte> data);

  void message(const PortAddress& from, const ConnectionMessage& message);
  /// The peer has sent something through the pair, which is as good as an RTU.
  void heard_from(const Pair& pair);
  /// Sends the peer a DREQ, if it is connected and does not know that the pair has ended.
  void terminate(Pair& pair, bool peer_knows);
  /// Retransmits unanswered messages. Returns the next deadline; 0: none.
  std::uint64_t expire(std::uint64_t now_ns);
  /// Connections that are remembered.
  [[nodiscard]] std::size_t size() const { return connections_.size(); }
  /// Of those the ones whose peer is not proven.
  [[nodiscard]] std::size_t unproven() const { return unproven_; }

 private:
  enum class State : std::uint8_t { asking, asked, refused, answered, up, leaving };
  struct Connection {
    State state = State::asking;
    PeerAddress peer;
    ConnectionIds ids;
    Pair* pair = nullptr;
    RequestMessage request;     // that was asked
    ConnectionMessage message;  // the last one sent, to be retransmitted
    std::uint64_t again_ns = 0;
    std::uint64_t wait_ns = 0;
    std::uint32_t repeats = 0;  // that are left
    std::uint32_t cookies = 0;  // that its request has brought
    std::uint32_t allowed = 0;  // messages that may still go to a peer that is not proven
    bool proven = true;         // the peer; one that we ask has not to be
    std::size_t place = 0;      // in asked_, while it is asked or refused
  };
  using Connections = std::map<std::uint32_t, Connection>;

  std::uint32_t new_id();
  void say(Connection& connection, const ConnectionMessage& message, std::uint64_t wait_ns,
           std::uint32_t repeats);
  void send(const PortAddress& to, const ConnectionMessage& message);
  void send(Connection& connection, const ConnectionMessage& message);
  void set_again(Connection& connection, std::uint64_t when_ns);
  void prove(Connection& connection);
  void become_up(Connection& connection);
  [[nodiscard]] bool is_proven(const PortAddress& from, const RequestMessage& request);
  void send_cookie(const PortAddress& to, const ConnectionMessage& of,
                   const RequestMessage& request);
  bool ask_with_cookie(Connection& connection, const ConnectionMessage& message,
                       const RejectMessage& reject);
  void refuse(const PortAddress& to, const ConnectionMessage& of, ConnectionIds ids,
              ConnectionStep step, RejectReason reason);
  Connections::iterator find(const PortAddress& from, std::uint32_t local_id);
  void erase(Connections::iterator at);
  [[nodiscard]] bool make_room(const PortAddress& from);
  void add_asked(Connection& connection);
  void remove_asked(const Connection& connection);

  void take(const PortAddress& from, const ConnectionMessage& message, const RequestMessage& body);
  void take(const PortAddress& from, const ConnectionMessage& message, const ReplyMessage& body);
  void take(const PortAddress& from, const ConnectionMessage& message, const ReadyMessage& body);
  void take(const PortAddress& from, const ConnectionMessage& message, const RejectMessage& body);
  void take(const PortAddress& from, const ConnectionMessage& message,
            const DisconnectMessage& body);
  void take(const PortAddress& from, const ConnectionMessage& message,
            const DisconnectedMessage& body);
  void take(const PortAddress& from, const ConnectionMessage& message, const ReceiptMessage& body);

  RoceEndpoint& endpoint_;
  std::set<std::uint16_t> services_;
  Connections connections_;  // by our id
  /// By the client: address, UDP port, and the peer's id.
  using PeerName = std::tuple<std::array<std::uint8_t, 16>, std::uint16_t, std::uint32_t>;
  static PeerName name_of(const PortAddress& peer, std::uint32_t id) {
    return {peer.ip.gid(), peer.udp_port, id};
  }
  std::map<PeerName, std::uint32_t> by_peer_;
  std::deque<std::uint32_t> requests_;  // that the application has not seen
  std::vector<std::uint32_t> asked_;    // all that are asked or refused, in any order,
  std::map<std::array<std::uint8_t, 16>, std::uint32_t> asked_by_;  // and how many of each address
  std::set<std::pair<std::uint64_t, std::uint32_t>> due_;  // deadlines, each with its connection
  std::size_t unproven_ = 0;
  ConnectionCookies cookies_;
  std::uint32_t psn_ = 0;
};

}  // namespace espalier::fabric::roce
