// SPDX-License-Identifier: Apache-2.0
// One client as its worker serves it: its memory, its rings, its requests in flight, and the state
// that kinds of objects store for it.
//
// Thread: one at a time: its worker's.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/access.hpp"
#include "engine/connection_place.hpp"
#include "engine/helper_job.hpp"
#include "engine/principal_ref.hpp"
#include "engine/relayed_accounts.hpp"
#include "engine/request.hpp"
#include "engine/session_parts.hpp"
#include "memory/shared_memory.hpp"
#include "rings/message_reader.hpp"
#include "rings/response_ring.hpp"

namespace espalier::rings {
class RingLink;
}

namespace espalier::offload {

struct AuditRecord;
struct LinkSide;
class WaitingAnswers;

class Connection {
 public:
  /// How a client reaches the rings: it maps the same memory, or a link mirrors them.
  enum class Reach : std::uint8_t { shared, mirrored };

  /// Allocates a connection's memory. Errors: invalid_argument (no valid ring sizes), system.
  static Result<std::unique_ptr<Connection>> create(const wire::ConnectionLayout& layout,
                                                    rings::MessageBudget& budget,
                                                    Reach reach = Reach::shared);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  [[nodiscard]] const wire::ConnectionLayout& layout() const { return layout_; }
  [[nodiscard]] memory::SharedMemory& memory() { return memory_; }
  [[nodiscard]] rings::ResponseRing& ring(std::uint32_t number) { return rings_[number]; }
  [[nodiscard]] std::span<const rings::ResponseRing> response_rings() const { return rings_; }
  /// The link that mirrors its rings; null: the client maps the memory.
  [[nodiscard]] rings::RingLink* link() { return link_.get(); }

  std::string peer;           // for operators: "process 12", "session 3"
  std::string address;        // the client's: "unix process 12 of user 0", "roce 192.0.2.1:4791"
  rings::MessageShare share;  // of the memory for messages
  /// When it last made progress, as far as known; ns.
  std::uint64_t moved_ns = 0;
  std::uint64_t head_seen = 0;  // head of its request ring at the last check
  rings::MessageReader requests;
  std::uint32_t doorbell = 0;  // its index in the doorbells
  std::uint32_t in_flight = 0;
  std::uint32_t quiet_turns = 0;  // turns since its ring last had requests
  bool watched = false;           // its ring is polled each turn
  std::uint32_t unannounced = 0;  // how often it had requests and its doorbell did not ring
  bool distrusted = false;        // too often unannounced: its ring is always polled
  bool backlogged = false;        // one of its response rings is full, or was just now
  bool broken = false;            // it broke the protocol, and is to be ended
  bool closing = false;           // ends when it has nothing in flight
  Access access;                  // its rights; set by the creator
  PrincipalRef account;           // its principal's account; set by the creator
  ConnectionPlace place;          // among the node's limits
  RelayedAccounts relayed;        // of the clients on whose behalf it asks
  /// For each response ring, the requests that wait for room in it.
  std::vector<StalledRequests> stalled;
  std::uint32_t stalled_count = 0;
  std::uint32_t timed_count = 0;  // requests that wait for a time
  std::uint32_t peer_waits = 0;   // requests with no hops that wait for peers
  // By the number of hops.
  std::array<std::uint32_t, wire::kHopsMax + 1> taken{};    // in flight, or not begun yet; not
                                                            // counted
                                                            // for no hops
  std::array<std::uint32_t, wire::kHopsMax + 1> counted{};  // those that wait for none of the above
  std::array<StalledRequests, wire::kHopsMax + 1> without_place;  // not begun yet
  std::uint32_t without_place_count = 0;                          // their total
  /// Its answers that wait for durability; null: none has had to.
  std::unique_ptr<WaitingAnswers> waiting;
  Connection* next_waiting = nullptr;  // the next connection that has some
  /// The node's side of its link; null: the client maps the memory, or is gone.
  std::unique_ptr<LinkSide> side;
  SessionParts parts;
  ClientId helper_client = kNodeClient;  // of its requests' jobs; the node's: none yet
  /// The same for clients on whose behalf it asks, by their account's number.
  std::unordered_map<std::uint64_t, ClientId> relayed_helper_clients;
  int owner_number = -1;  // by which its owner identifies it

 private:
  Connection(const wire::ConnectionLayout& layout, memory::SharedMemory memory,
             rings::MessageBudget& budget, Reach reach);

  wire::ConnectionLayout layout_;
  memory::SharedMemory memory_;
  std::unique_ptr<rings::RingLink> link_;
  std::vector<rings::ResponseRing> rings_;
};

/// The audit record for a session that the node ends because its rights are gone.
[[nodiscard]] AuditRecord end_of_session(const Connection& connection);

}  // namespace espalier::offload
