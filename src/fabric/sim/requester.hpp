// SPDX-License-Identifier: Apache-2.0
// The requester of a simulated pair: sends work requests in order, and retransmits them for want of
// an answer; completes them in order, whatever the order of the answers.
//
//   works:  [ answered, behind one that is not | sent ... | not sent ... ]
//             first_                                       first_ + sent_
//
// Invariants
// I1. The first work is not answered: an answered one that comes to be first completes, and is
// gone.
// I2. What is not inlined is copied out of the program's memory when it is sent, each time: a
//     program that changes it before its completion sends other bytes than it meant to.
//
// Thread: that of its world.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "fabric/queue_pair.hpp"
#include "fabric/sim/message.hpp"

namespace espalier::fabric::sim {

class Pair;

class Requester {
 public:
  explicit Requester(Pair& pair) : pair_(pair) {}

  /// Takes as many as the send queue has room for; they are sent a moment later.
  std::size_t take(std::span<const WorkRequest> requests);
  /// Sends what may be sent: as long as no fence and no limit stands before it.
  void send_more();
  void on_answer(const Message& answer);
  void on_not_ready(const Message& answer);
  /// Completes all as flushed.
  void flush();
  /// Completes nothing, and releases the entries in the completion queue.
  void release();

 private:
  struct Work {
    WorkRequest request;
    std::vector<std::byte> inlined;
    std::uint32_t attempt = 0;  // how often it has found no receive
    bool waits = false;         // for the peer to have a receive
    bool answered = false;
    Status status = Status::success;
    std::uint64_t old_value = 0;
  };

  /// Null where there is no such work in flight (any more).
  [[nodiscard]] Work* in_flight(std::uint64_t sequence);
  void transmit(std::uint64_t sequence);
  void expect_answer();
  void on_timer();
  void finish(Work& work, Status status);
  void complete_answered();
  /// The first one has failed; what is behind it is flushed.
  void fail_first(Status status);

  Pair& pair_;
  std::deque<Work> works_;
  std::uint64_t first_ = 0;
  std::size_t sent_ = 0;
  std::uint32_t reads_in_flight_ = 0;  // and atomics
  std::uint32_t retries_ = 0;
  std::uint64_t deadline_ns_ = 0;
  bool timer_runs_ = false;
};

}  // namespace espalier::fabric::sim
