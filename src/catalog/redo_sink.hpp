// SPDX-License-Identifier: Apache-2.0
// Where records of effects go, for a log or for other nodes (docs/design/records.md). An object
// that has no sink makes none.
//
//   1. before locks are taken   room = RedoRoom::reserve(sink, bytes)  may fail; nothing was done
//   2. before or within them    the record is written into the room
//   3. within them              room.hand_over(): the effect is decided, and no reader can see it
//   4. the effect becomes visible
//
// A sink that makes records durable says up to which they are (mark()). What readers see of an
// object, and what clients are told of it, waits for that: docs/design/durability.md.
//
// A record is handed over under the lock that orders the writes of its keys, or by their one owner
// (an append in its turn, which asks for room then), so the sink's order of two records of one key
// is the order of their versions. A room that is not handed over goes back by itself.
//
// Thread: a sink any, a room one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "espalier/error.hpp"
#include "espalier/kind.hpp"

namespace espalier::base {
class DurableMark;
}

namespace espalier::catalog {

/// What a write is answered with whose record will not be durable: it may be there after a restart,
/// or not.
inline constexpr Error kRecordLost{Code::system, 0, 5};  // EIO

class UnflushedAge;

/// What is promised of the writes of objects that say nothing of it themselves.
struct RedoPromise {
  Durability durability = Durability::sync;  ///< async or sync
  /// Of async: how old what is not durable may become. Outlives the objects. Null: no object may be
  /// async, nor none (a chain's, which answers once all members have a record).
  UnflushedAge* age = nullptr;
  /// Of which run of the sink its sequences are: a number that is drawn at each start.
  std::uint64_t run = 0;
};

class RedoSink {
 public:
  /// Memory for one record of so many bytes, aligned to 8, which is the caller's until it is handed
  /// over or given back. Must not wait: its caller may expose an epoch.
  /// Errors: the sink's; the write is then refused with it. One that has no room just now says
  /// busy: its caller may ask again later.
  virtual Result<std::span<std::byte>> reserve(std::size_t bytes) noexcept = 0;
  /// Takes a record. Its place in the sink's order is that of this call. Returns its sequence,
  /// which ascends from 1 on. Must not wait.
  virtual std::uint64_t hand_over(std::span<std::byte> record) noexcept = 0;
  /// The sequence of the newest record; 0: there is none. Cost: perhaps a lock.
  [[nodiscard]] virtual std::uint64_t handed_over() const noexcept = 0;
  /// Takes back what was reserved and is not needed.
  virtual void give_back(std::span<std::byte> room) noexcept = 0;

  /// Up to which sequence records are durable.
  [[nodiscard]] virtual base::DurableMark& mark() noexcept = 0;
  /// Why no more are, once the mark has failed: a sentence for people. Errors: std::bad_alloc.
  [[nodiscard]] virtual std::string failure() const = 0;

  [[nodiscard]] const RedoPromise& promise() const { return promise_; }
  /// Requires: no object has it as its sink yet.
  void set_promise(const RedoPromise& promise) { promise_ = promise; }

 protected:
  ~RedoSink() = default;

 private:
  RedoPromise promise_;
};

/// Room for one record in a sink, or nothing.
class RedoRoom {
 public:
  RedoRoom() = default;
  /// Of no sink: nothing. Errors: those of the sink.
  [[nodiscard]] static Result<RedoRoom> reserve(RedoSink* sink, std::size_t bytes) noexcept {
    if (sink == nullptr) return RedoRoom();
    const auto room = sink->reserve(bytes);
    if (!room) return std::unexpected(room.error());
    ESPALIER_ASSERT(room->size() == bytes);
    return RedoRoom(*sink, *room);
  }
  RedoRoom(RedoRoom&& other) noexcept
      : sink_(std::exchange(other.sink_, nullptr)), bytes_(other.bytes_) {}
  RedoRoom& operator=(RedoRoom&& other) noexcept {
    std::swap(sink_, other.sink_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~RedoRoom() {
    if (sink_ != nullptr) sink_->give_back(bytes_);
  }

  /// Whether there is any.
  explicit operator bool() const { return sink_ != nullptr; }
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  /// Hands the record in it over, once; does nothing where there is none. Returns its sequence, or
  /// 0.
  std::uint64_t hand_over() noexcept {
    RedoSink* const sink = std::exchange(sink_, nullptr);
    return sink != nullptr ? sink->hand_over(bytes_) : 0;
  }

 private:
  RedoRoom(RedoSink& sink, std::span<std::byte> bytes) : sink_(&sink), bytes_(bytes) {}

  RedoSink* sink_ = nullptr;
  std::span<std::byte> bytes_;
};

}  // namespace espalier::catalog
