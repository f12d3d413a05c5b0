// SPDX-License-Identifier: Apache-2.0
// The responder of a simulated pair: executes the peer's requests, each once, in order.
//
// Requests that change memory or take a receive are executed one at a time: the next one begins
// when all lines of a WRITE have landed. READs begin in order and then go on by themselves, so that
// later requests may finish before them, other READs too; a duplicate of a READ is executed again.
//
//   requests:  [ answered: kept until the peer needs no answer | begun | early: not their turn ]
//
// Each line looks its region up at its own moment: after a revoke nothing is touched.
//
// Invariants
// I1. A request begins when all before it have begun, and what of these changes memory is done.
// I2. After a failure no later request begins; the pair ends when all earlier READs are answered.
//
// Thread: that of its world.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "fabric/queue_pair.hpp"
#include "fabric/sim/lines.hpp"
#include "fabric/sim/message.hpp"

namespace espalier::fabric::sim {

class Pair;

/// A READ that goes on.
struct Reading {
  Message request;
  bool again = false;  // it had been begun before
  std::vector<Piece> pieces;
  std::size_t done = 0;
  std::vector<std::byte> data;
  std::vector<std::byte> before;  // what stood there when it began
};

/// What changes memory or fills a receive, and goes on. If the peer has crashed it may stay so.
struct Landing {
  Message request;
  std::optional<Receive> receive;
  std::vector<Piece> pieces;
  std::size_t done = 0;
  std::uint64_t steps = 0;  // of the world, at the last piece
  bool torn = false;
  std::uint64_t old_value = 0;
};

/// A request that has failed, and waits for earlier READs to be answered.
struct Failure {
  std::uint64_t sequence = 0;
  Status status = Status::success;      // that the peer's request completes with
  Status own_status = Status::success;  // why the pair ends here
};

/// What one packet would carry: a READ by a shared key is no longer (fabric/shared_map.hpp).
inline constexpr std::uint32_t kSharedReadBytesMax = 4096;

/// Whether a READ goes by a shared key; then all of it is read at one moment.
[[nodiscard]] bool is_shared_read(Pair& pair, const Message& request);
/// Copies bytes of a region, while it is found: all of them or none; for a READ by a void key they
/// are zeros. Requires of a READ by a shared key: the piece is all of it.
bool copy_from_region(Pair& pair, const Message& request, const Piece& piece, std::byte* to);
bool copy_to_region(Pair& pair, const Message& request, const Piece& piece, const std::byte* from);
/// All pieces of a WRITE were copied: what went past the cache is fenced, if its region is there.
void finish_write_in_region(Pair& pair, const Message& request);

class Responder {
 public:
  explicit Responder(Pair& pair) : pair_(pair) {}

  void on_request(Message request);
  /// Begins what has come and waits for its turn.
  void go_on();
  /// The pair ends: nothing goes on, and receives that were taken are flushed.
  void stop();
  /// The same without completions.
  void release();
  /// The atomic unit of the node is this pair's.
  void do_atomic();

 private:
  // responder.cpp: order, answers, and refusals.
  /// False: it finds no receive, and must come again.
  [[nodiscard]] bool begin(Message request);
  [[nodiscard]] Status check(const Message& request) const;
  void repeat(Message request);
  [[nodiscard]] bool peer_stops(const Message& request);
  Message& answer(const Message& request, Status status);
  void send_answer(std::uint64_t sequence);
  void refuse(const Message& request, Status status, Status own_status);
  void end_if_refused();

  // landing.cpp
  void begin_landing(Message request, std::optional<Receive> receive);
  void schedule_piece();
  void land_piece(std::uint64_t sequence);
  void finish_landing();
  void begin_atomic(Message request);
  void finish_atomic(std::uint64_t sequence);

  // reading.cpp
  void begin_reading(Message request, bool again);
  void schedule_read(std::uint64_t id, std::uint64_t delay_ns);
  void read_piece(std::uint64_t id);
  void finish_reading(std::uint64_t id);
  void count_torn(const Reading& reading);
  [[nodiscard]] bool reads_before(std::uint64_t sequence) const;
  void give_up_reads(std::uint64_t from);

  Pair& pair_;
  std::uint64_t next_ = 0;
  std::uint64_t last_reading_ = 0;
  std::map<std::uint64_t, Message> early_;
  std::map<std::uint64_t, Reading> readings_;  // in the order in which they were begun
  std::optional<Landing> landing_;
  std::map<std::uint64_t, Message> answers_;
  std::optional<Failure> failure_;
  bool going_on_ = false;
};

}  // namespace espalier::fabric::sim
