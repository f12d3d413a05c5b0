// SPDX-License-Identifier: Apache-2.0
// One thread's lane of a connection: sends requests into the shared request ring, and owns a
// response ring.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "channel/rings/node_connection.hpp"
#include "rings/message_reader.hpp"
#include "wire/call_message.hpp"

namespace espalier::client {

/// Bytes in the type that requests use.
[[nodiscard]] inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A received response. Its bytes are valid until the next one is received.
struct Incoming {
  wire::ResponseHeader header{};
  std::string_view payload{};
  bool refused =
      false;  ///< there was no memory for it: its code is out_of_memory, and it has no payload
};

class ThreadRings {
 public:
  /// `budget`: bounds the memory in which long responses are assembled, and must outlive the rings;
  /// null: no bound for requested data. Errors: too_many_participants (all response rings of this
  /// connection are taken).
  static Result<std::unique_ptr<ThreadRings>> open(std::shared_ptr<NodeConnection> connection,
                                                   rings::MessageBudget* budget = nullptr);
  ThreadRings(const ThreadRings&) = delete;
  ThreadRings& operator=(const ThreadRings&) = delete;

  /// Slots that a request needs.
  [[nodiscard]] static std::uint32_t slots_of(const wire::CallMessage& request) {
    return wire::slots_of(static_cast<std::uint32_t>(request.bytes()));
  }
  /// Most slots of a request that is sent in one piece.
  [[nodiscard]] std::uint64_t batch_slots_max() const { return requests_.count() / 2; }
  /// Reserves slots for several requests, which must be sent next and fill all of them. One
  /// reservation is faster: each atomic step waits for the writes of the slots before it. Returns
  /// false if there is no room for all.
  bool reserve(std::uint64_t slots);
  /// Writes a request into the ring; the node may not see it before ring(). Returns false if there
  /// is no room now: then receive responses first. A message that is long for the ring is sent to
  /// its end, which may block for long; false then means that the connection is lost.
  bool send(const wire::CallMessage& request, std::uint32_t tag);
  /// The same, but never blocks: of a message that is long for the ring, sends as much as there is
  /// room for, and the rest by send_rest(). Nothing else may be sent meanwhile.
  bool begin_send(const wire::CallMessage& request, std::uint32_t tag);
  /// Sends more of the message. Returns whether all of it is sent.
  bool send_rest();
  /// The slot after the last one sent.
  [[nodiscard]] std::uint64_t tail() const { return tail_; }
  /// Rings the doorbell for all that was sent. Cost: a store; a system call if the node sleeps.
  void ring() {
    if (unrung_) connection_->ring(tail_);
    unrung_ = false;
  }
  /// Takes the next response, if one has arrived.
  bool receive(Incoming& response);
  /// Spins, then sleeps until receive() may find a response, or until `until_ns` of the monotonic
  /// clock. Returns false if the connection is lost and no response is left. Requires: ring() was
  /// called after the last send.
  bool wait(std::uint64_t until_ns = std::numeric_limits<std::uint64_t>::max());
  /// Call when nothing is in flight, and no request follows immediately.
  void enter_idle() {
    if (progresses_) connection_->enter_idle();
  }
  /// Waits briefly until send() may find room. Returns false if the connection is lost.
  bool wait_for_room();
  [[nodiscard]] bool lost() const { return connection_->lost(); }
  [[nodiscard]] Error lost_error() const { return connection_->lost_error(); }
  void lose() { connection_->lose(); }
  /// The same, checking the socket. Cost: a system call.
  bool ask_lost() { return connection_->ask_lost(); }
  /// The same before a request is begun, with nothing in flight.
  bool ask_lost_idle() { return connection_->ask_lost_idle(); }
  [[nodiscard]] NodeConnection& connection() const { return *connection_; }
  [[nodiscard]] const std::shared_ptr<NodeConnection>& shared_connection() const {
    return connection_;
  }

 private:
  ThreadRings(std::shared_ptr<NodeConnection> connection, std::uint32_t ring,
              rings::MessageBudget* budget);
  [[nodiscard]] wire::RequestHeader header_of(const wire::CallMessage& request,
                                              std::uint32_t tag) const;
  bool send_long(wire::RequestHeader header, const wire::CallMessage& request);
  bool take(rings::MessageBuffer& into);
  bool keep_for_later(rings::MessageBuffer& response);
  bool spin_for_response();

  std::shared_ptr<NodeConnection> connection_;
  bool progresses_;  // answers arrive only through make_progress()
  std::uint32_t ring_;
  rings::SlotSpace requests_;
  rings::MessageShare share_;
  rings::MessageReader responses_;
  rings::MessageBuffer message_;               // the response in hand
  std::deque<rings::MessageBuffer> deferred_;  // received while a long message was sent
  std::vector<std::byte> long_message_;        // begun by begin_send()
  rings::MessageStream stream_;                // of long_message_
  std::uint64_t tail_ = 0;                     // after the last slot sent
  std::uint64_t reserved_ = 0;                 // slots from `next_` on that this lane must fill
  std::uint64_t next_ = 0;
  bool unrung_ = false;
  bool broken_ = false;
};

}  // namespace espalier::client
