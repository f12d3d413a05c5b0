// SPDX-License-Identifier: Apache-2.0
// A queue pair over packets: its requester and its responder, and what both need of the endpoint.
//
// Thread: that of the endpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "fabric/queue_pair.hpp"
#include "fabric/region_table.hpp"
#include "fabric/roce/endpoint_counters.hpp"
#include "fabric/roce/packet.hpp"
#include "fabric/roce/peer_address.hpp"
#include "fabric/roce/port.hpp"
#include "fabric/roce/requester.hpp"
#include "fabric/roce/responder.hpp"

namespace espalier::fabric::roce {

class RoceEndpoint;

/// The peer's parameters of a connection.
struct PeerFacts {
  PeerAddress address;
  std::uint32_t pair = 0;       // its number there
  std::uint32_t first_psn = 0;  // of its requests
  std::uint32_t reads = 0;      // that it answers at a time
};

class Pair final : public QueuePair {
 public:
  Pair(RoceEndpoint& endpoint, std::uint32_t number, std::uint32_t first_psn,
       const QueuePairOptions& options);
  ~Pair() override;

  void close() override;
  [[nodiscard]] bool peer_knows() const override { return state() == State::connected && !held_; }

  // For the endpoint.

  /// The PSN of its first request.
  [[nodiscard]] std::uint32_t first_psn() const { return first_psn_; }
  [[nodiscard]] const QueuePairOptions& asked_options() const { return options(); }
  [[nodiscard]] const PeerFacts& peer() const { return peer_; }
  void establish(const PeerFacts& peer, std::span<const std::byte> data);
  /// Holds posted requests back until the peer has proved its address.
  void hold() { held_ = true; }
  void release();
  /// The peer has rejected the connection, with this data.
  void be_refused(std::span<const std::byte> data);
  /// Handles a packet for this pair that came from `from`; its contents are untrusted.
  void packet(const PortAddress& from, const Packet& packet);
  /// Sends what may be sent, at most so many packets. Returns whether there is more.
  bool transmit(std::uint32_t packets);
  /// Sends a delayed acknowledgement, unless it should wait longer: then false.
  bool send_delayed_ack(bool now);
  std::uint64_t expire(std::uint64_t now_ns) { return requester_.expire(now_ns); }
  [[nodiscard]] bool idle() const { return requester_.idle(); }
  /// The peer has given up, for a packet of so many bytes did not get through; 0: for any reason.
  void ended_by_peer(std::uint32_t undelivered_bytes);
  /// The connection is over; `why` is success if either side closed it.
  void end(Status why, bool peer_knows = false);
  [[nodiscard]] const Requester& requester() const { return requester_; }
  [[nodiscard]] const Responder& responder() const { return responder_; }

  bool listed = false;           // among those with something to send
  bool heard = false;            // anything from the peer
  bool busy = false;             // among those that wait for answers
  std::uint32_t connection = 0;  // by which connection messages name it

  // For its halves.

  /// Room for a packet's payload, its headers written before it, or null: the port is full.
  std::byte* begin_packet(Headers& headers, std::size_t payload_bytes);
  void end_packet();
  /// An acknowledgement is due. Returns whether it is delayed; send_delayed_ack() sends it then.
  [[nodiscard]] bool holds_back();
  [[nodiscard]] std::uint64_t now_ns() const;
  void has_work();
  void look_again_at(std::uint64_t when_ns);
  [[nodiscard]] EndpointCounters& counters();
  /// A packet of so many bytes, BTH to ICRC, did not get through.
  void set_undelivered(std::uint32_t ib_bytes);
  void complete_request(const WorkRequest& request, Status status, std::uint64_t old_value) {
    complete(request, status, old_value);
  }
  std::optional<Receive> take_receive() { return receives().take(); }
  void complete_received(const Receive& receive, Opcode opcode, Status status, std::uint32_t bytes,
                         const std::uint32_t* immediate) {
    complete_receive(receive, opcode, status, bytes, immediate);
  }
  /// Calls use(bytes) if the peer may reach them; says whether it may.
  template <class Use>
  [[nodiscard]] bool access(RegionKey key, std::uint64_t address, std::size_t bytes,
                            RemoteRights rights, const Use& use) {
    reader_.enter();
    std::byte* const at = reader_.find(key, address, bytes, rights, options().domain);
    if (at != nullptr) use(at);
    reader_.leave();
    return at != nullptr;
  }
  /// The same for a WRITE, with how its bytes are to be placed.
  template <class Use>
  [[nodiscard]] bool access_target(RegionKey key, std::uint64_t address, std::size_t bytes,
                                   const Use& use) {
    reader_.enter();
    const WriteTarget to = reader_.find_target(key, address, bytes, options().domain);
    if (to) use(to);
    reader_.leave();
    return static_cast<bool>(to);
  }
  [[nodiscard]] PlacedCounter& placed() const { return reader_.placed(); }
  /// The same as access() for a READ; null instead of bytes: they are zeros, for its key is void.
  template <class Use>
  [[nodiscard]] bool access_source(RegionKey key, std::uint64_t address, std::size_t bytes,
                                   const Use& use) {
    reader_.enter();
    const ReadSource from = reader_.find_source(key, address, bytes, options().domain);
    if (from) use(from.at);
    reader_.leave();
    return static_cast<bool>(from);
  }
  /// Calls use(source) if the key is a shared one that the peer may read by; says whether it is.
  template <class Use>
  [[nodiscard]] bool access_shared(RegionKey key, std::uint64_t address, const Use& use) {
    reader_.enter();
    const SharedSource from = reader_.find_shared(key, address, options().domain);
    if (from.answers()) use(from);
    reader_.leave();
    return from.answers();
  }
  /// The map of a shared key, whether or not the peer may use it; 0: it is no shared key.
  [[nodiscard]] std::uint64_t shared_map_of(RegionKey key) {
    reader_.enter();
    const std::uint64_t map = reader_.find_shared(key, 0, options().domain).map;
    reader_.leave();
    return map;
  }
  [[nodiscard]] bool may_access(RegionKey key, std::uint64_t address, std::size_t bytes,
                                RemoteRights rights) {
    return access(key, address, bytes, rights, [](std::byte*) {});
  }

 private:
  std::size_t begin(std::span<const WorkRequest> requests) override;

  RoceEndpoint& endpoint_;
  PacketPort& port_;
  RegionTable::Reader& reader_;
  std::uint32_t first_psn_;
  std::uint64_t ack_delay_until_ns_ = 0;  // an acknowledgement, at the latest; 0: none
  bool has_sent_ = false;                 // since an acknowledgement is due
  bool held_ = false;
  PeerFacts peer_;
  Requester requester_;
  Responder responder_;
};

}  // namespace espalier::fabric::roce
