// SPDX-License-Identifier: Apache-2.0
// One thread's way through a connection: it sends requests into the shared request ring, and has a
// response ring to itself.
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

/// Bytes as requests carry them.
[[nodiscard]] inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// A response that has come. The bytes stay until the next one is received.
struct Incoming {
  wire::ResponseHeader header{};
  std::string_view payload{};
  bool refused =
      false;  ///< there was no memory for it: its code is out_of_memory, payload it has none
};

class ThreadRings {
 public:
  /// `budget`: of which long responses are gathered, and outlives it; null: there is no limit to
  /// what was asked for. Errors: too_many_participants (all response rings of this connection are
  /// taken).
  static Result<std::unique_ptr<ThreadRings>> open(std::shared_ptr<NodeConnection> connection,
                                                   rings::MessageBudget* budget = nullptr);
  ThreadRings(const ThreadRings&) = delete;
  ThreadRings& operator=(const ThreadRings&) = delete;

  /// Slots that a request will take.
  [[nodiscard]] static std::uint32_t slots_of(const wire::CallMessage& request) {
    return wire::slots_of(static_cast<std::uint32_t>(request.bytes()));
  }
  /// Most slots that a request may take to be sent at once.
  [[nodiscard]] std::uint64_t batch_slots_max() const { return requests_.count() / 2; }
  /// Reserves slots for several requests, which must be sent next and take all of them: the atomic
  /// step of each would wait for the slots of the one before to be written. Returns false if there
  /// is no room for all.
  bool reserve(std::uint64_t slots);
  /// Writes a request into the ring; the node may not see it before ring(). Returns false if there
  /// is no room now: then responses must be received first. A message that is long for the ring is
  /// sent to its end, however long that takes; false then says that the connection is lost.
  bool send(const wire::CallMessage& request, std::uint32_t tag);
  /// The same, but never waits: of a message that is long for the ring as much goes as there is
  /// room for now, the rest by send_rest(), and nothing else is sent meanwhile.
  bool begin_send(const wire::CallMessage& request, std::uint32_t tag);
  /// Sends more of what was begun. Returns whether all of it is sent.
  bool send_rest();
  /// The slot behind what was sent last.
  [[nodiscard]] std::uint64_t tail() const { return tail_; }
  /// Tells the node of what was sent. Cost: a store; a system call if the node sleeps.
  void ring() {
    if (unrung_) connection_->ring(tail_);
    unrung_ = false;
  }
  /// Takes the next response, if one has come.
  bool receive(Incoming& response);
  /// Spins, then sleeps until receive() may find something, or until about this moment of the
  /// monotonic clock. Returns false if the connection is lost, and nothing more will come.
  /// Requires: all that was sent was rung for.
  bool wait(std::uint64_t until_ns = std::numeric_limits<std::uint64_t>::max());
  /// Nothing is in flight, and nothing follows at once.
  void enter_idle() {
    if (progresses_) connection_->enter_idle();
  }
  /// Waits a little until send() may find room. Returns false if the connection is lost.
  bool wait_for_room();
  [[nodiscard]] bool lost() const { return connection_->lost(); }
  [[nodiscard]] Error lost_error() const { return connection_->lost_error(); }
  void lose() { connection_->lose(); }
  /// The same, asking the socket. Cost: a system call.
  bool ask_lost() { return connection_->ask_lost(); }
  /// The same before something is begun, with nothing in flight.
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
  bool progresses_;  // answers come only with our help
  std::uint32_t ring_;
  rings::SlotSpace requests_;
  rings::MessageShare share_;
  rings::MessageReader responses_;
  rings::MessageBuffer message_;               // the response in hand
  std::deque<rings::MessageBuffer> deferred_;  // that came while a long message was sent
  std::vector<std::byte> long_message_;        // begun by begin_send()
  rings::MessageStream stream_;                // of it
  std::uint64_t tail_ = 0;                     // behind what was sent last
  std::uint64_t reserved_ = 0;                 // slots from `next_` on are ours to fill
  std::uint64_t next_ = 0;
  bool unrung_ = false;
  bool broken_ = false;
};

}  // namespace espalier::client
