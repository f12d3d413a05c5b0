// SPDX-License-Identifier: Apache-2.0
// Room for records, before any lock is taken: as many bytes as may be held, and who waits for some.
//
// Room is given in turn: while one waits, nobody else gets any, however little. So a long record
// finds room, too, once those before it are written, and one that is longer than what may be held
// when none is.
//
// Who cannot wait asks again (reserve()). The longest that was refused for want of room has a
// claim: shorter records pass it until they have come to as much as may be held, and then none does
// until it has found room, or does not come back for it.
//
// Thread: any.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>

#include "base/chain.hpp"
#include "espalier/error.hpp"

namespace espalier::log {

/// Room, or a record that was appended; its bytes are behind it.
struct QueuedRecord {
  QueuedRecord* next;
  std::uint64_t sequence;
  std::uint64_t bytes;

  [[nodiscard]] std::span<std::byte> payload() {
    return {reinterpret_cast<std::byte*>(this + 1), bytes};
  }
  [[nodiscard]] static QueuedRecord* of(std::span<std::byte> payload) {
    return reinterpret_cast<QueuedRecord*>(payload.data()) - 1;
  }
};

/// Records, the oldest first.
using RecordList = base::Chain<QueuedRecord, &QueuedRecord::next>;

/// Moves all records of a list behind those of another. Cost: of each of them, some stores.
inline void move_records(RecordList& from, RecordList& to) {
  if (to.empty()) std::swap(from, to);
  while (!from.empty()) to.push(from.pop());
}

/// One that waits for room.
class RoomWaiter {
 public:
  virtual ~RoomWaiter() = default;
  /// Its turn has come: with room, or with the error for which there is none. Is called once, with
  /// a lock held: it should be short, and must call nothing of the log.
  virtual void complete(Result<std::span<std::byte>> room) noexcept = 0;

 private:
  friend class RecordRoom;
  std::size_t bytes_ = 0;
  RoomWaiter* next_ = nullptr;
};

class RecordRoom {
 public:
  /// Who was refused asks again within this time once there is room, or its claim ends.
  static constexpr std::uint64_t kClaimNs = 20'000'000;

  /// At most so many bytes of records are held at a time, and each has at most so many.
  RecordRoom(std::size_t held_bytes_max, std::size_t record_bytes_max,
             std::uint64_t claim_ns = kClaimNs)
      : held_bytes_max_(held_bytes_max), record_bytes_max_(record_bytes_max), claim_ns_(claim_ns) {}
  RecordRoom(const RecordRoom&) = delete;
  RecordRoom& operator=(const RecordRoom&) = delete;
  ~RecordRoom();

  /// Each has no more than so many, besides. Requires: nobody else uses the room yet.
  void bound_records(std::size_t bytes_max) {
    record_bytes_max_ = std::min(record_bytes_max_, bytes_max);
  }

  /// Room for one, aligned to 8. Errors: value_too_long, busy (there is none, others wait, or one
  /// that is longer has a claim), those of memory that runs out, and of refuse().
  [[nodiscard]] Result<std::span<std::byte>> reserve(std::size_t bytes) noexcept;
  /// Has `waiter` completed in its turn: perhaps by this call, else by whoever makes room.
  void wait(RoomWaiter& waiter, std::size_t bytes) noexcept;
  /// Lets it wait no longer. Returns whether it did: else it was completed, and has what it got.
  bool cancel(RoomWaiter& waiter) noexcept;
  /// Frees room, or a record that was written.
  void release(QueuedRecord* record) noexcept;
  /// Of a list, which is empty then.
  void release_all(RecordList& records) noexcept;

  /// Gives no room meanwhile.
  void pause(bool paused) noexcept;
  [[nodiscard]] bool is_paused() const { return paused_; }
  /// There is no more room from now on, with this error.
  void refuse(Error error) noexcept;

  /// Bytes of records and of room.
  [[nodiscard]] std::size_t held_bytes() const { return held_bytes_.load(); }

 private:
  Result<std::span<std::byte>> give(std::size_t bytes) noexcept;
  Result<std::span<std::byte>> give_beside_claim(std::size_t bytes) noexcept;
  void claim(std::size_t bytes) noexcept;
  [[nodiscard]] bool is_abandoned() noexcept;
  [[nodiscard]] bool has_room(std::size_t held, std::size_t whole) const {
    return held == 0 || held + whole <= held_bytes_max_;  // one that is longer comes through alone
  }
  void give_in_turn() noexcept;

  const std::size_t held_bytes_max_;
  std::size_t record_bytes_max_;
  const std::uint64_t claim_ns_;
  std::atomic<std::size_t> held_bytes_ = 0;
  std::atomic<Error> refused_ = Error{};
  std::atomic<bool> paused_ = false;

  std::mutex mutex_;
  base::Chain<RoomWaiter, &RoomWaiter::next_> waiters_;
  std::atomic<std::size_t> waiting_ = 0;  // how many there are; changed with the lock held
  std::atomic<std::size_t> claimed_ = 0;  // so long it is, or there is none; with the lock held
  std::size_t passed_ = 0;                // bytes of shorter ones since
  std::uint64_t unclaimed_since_ns_ = 0;  // there has been room for it, or 0
};

}  // namespace espalier::log
