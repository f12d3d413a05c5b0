// SPDX-License-Identifier: Apache-2.0
// One client, as the worker that serves it sees it: its memory, its rings, what of it is in flight,
// and what kinds of objects keep for it.
//
// Thread: one at a time: that of its worker.
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
  /// How a client reaches the rings: it maps the same memory, or a link carries them.
  enum class Reach : std::uint8_t { shared, mirrored };

  /// Makes the memory of a connection. Errors: invalid_argument (no such rings can be), system.
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
  /// What carries its rings; null: its client shares the memory.
  [[nodiscard]] rings::RingLink* link() { return link_.get(); }

  std::string peer;     // for operators: "process 12", "session 3"
  std::string address;  // where it comes from: "unix process 12 of user 0", "roce 192.0.2.1:4791"
  rings::MessageShare share;  // of the memory for messages
  /// When it last gave or took something, as far as it is known; ns.
  std::uint64_t moved_ns = 0;
  std::uint64_t head_seen = 0;  // of its requests, at the last look
  rings::MessageReader requests;
  std::uint32_t doorbell = 0;  // its place in the row
  std::uint32_t in_flight = 0;
  std::uint32_t quiet_turns = 0;  // since its ring last had something
  bool watched = false;           // its ring is looked at each turn
  std::uint32_t unannounced = 0;  // how often it had requests, and its doorbell did not ring
  bool distrusted = false;        // that was too often: its ring is always watched
  bool backlogged = false;        // one of its response rings is full, or was just now
  bool broken = false;            // it broke the protocol, and is to be ended
  bool closing = false;           // ends when nothing of it is in flight
  Access access;                  // what it may do; who made it says so
  PrincipalRef account;           // of its principal; who made it says so, too
  ConnectionPlace place;          // among all of the node
  RelayedAccounts relayed;        // of those on whose behalf it asks
  /// For each response ring, the requests that wait until it has room.
  std::vector<StalledRequests> stalled;
  std::uint32_t stalled_count = 0;
  std::uint32_t timed_count = 0;  // requests that wait for a time
  std::uint32_t peer_waits = 0;   // requests that came over no other node, and wait for peers
  // By the number of nodes over which they came.
  std::array<std::uint32_t, wire::kHopsMax + 1> taken{};    // in flight, or not begun yet; over
                                                            // none it is not counted
  std::array<std::uint32_t, wire::kHopsMax + 1> counted{};  // that wait for nothing of the above
  std::array<StalledRequests, wire::kHopsMax + 1> without_place;  // not begun yet
  std::uint32_t without_place_count = 0;                          // all of these
  /// Its answers that wait until what they tell is durable; null: none has had to.
  std::unique_ptr<WaitingAnswers> waiting;
  Connection* next_waiting = nullptr;  // that has some
  /// The node's side of what carries its rings; null: its client shares the memory, or is gone.
  std::unique_ptr<LinkSide> side;
  SessionParts parts;
  ClientId helper_client = kNodeClient;  // of the jobs of its requests; the node's: none was made
  /// The same of those on whose behalf it asks, by the number of their account.
  std::unordered_map<std::uint64_t, ClientId> relayed_helper_clients;
  int owner_number = -1;  // by which whoever handed it over knows it

 private:
  Connection(const wire::ConnectionLayout& layout, memory::SharedMemory memory,
             rings::MessageBudget& budget, Reach reach);

  wire::ConnectionLayout layout_;
  memory::SharedMemory memory_;
  std::unique_ptr<rings::RingLink> link_;
  std::vector<rings::ResponseRing> rings_;
};

/// What the audit log says where the node ends a session that may not stay.
[[nodiscard]] AuditRecord end_of_session(const Connection& connection);

}  // namespace espalier::offload
