// SPDX-License-Identifier: Apache-2.0
// Interface of the destination of redo records: a log, or other nodes (docs/design/records.md). An
// object without a sink makes no records.
//
//   1. before locks are taken   room = RedoRoom::reserve(sink, bytes)  may fail; nothing was done
//   2. before or within them    the record is written into the room
//   3. within them              room.hand_over(): the effect is decided, and no reader can see it
//   4. the effect becomes visible
//
// A durable sink says up to which sequence records are durable (mark()). Readers and clients see an
// effect only after that: docs/design/durability.md.
//
// A record is handed over under the lock that orders the writes of its keys, or by the one thread
// that owns them (an append in its turn, which reserves room then). So the sink orders two records
// of one key by their versions. Room that is not handed over returns to the sink when it is
// destroyed.
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

/// Answers a write whose record will not become durable: after a restart it may be there or not.
inline constexpr Error kRecordLost{Code::system, 0, 5};  // EIO

class UnflushedAge;

/// The durability of objects that were made without one of their own.
struct RedoPromise {
  Durability durability = Durability::sync;  ///< async or sync
  /// For async: limits the age of records that are not durable. Outlives the objects. Null: no
  /// object may be async or `none` (in a chain, which answers once all members have a record).
  UnflushedAge* age = nullptr;
  /// Identifies the run of the sink that its sequences belong to: random, drawn at each start.
  std::uint64_t run = 0;
};

class RedoSink {
 public:
  /// Reserves memory for one record of so many bytes, aligned to 8. The caller owns it until it is
  /// handed over or given back. Must not wait: the caller may expose an epoch.
  /// Errors: the sink's; the write is then refused with it. busy: no room now, the caller may try
  /// again.
  virtual Result<std::span<std::byte>> reserve(std::size_t bytes) noexcept = 0;
  /// Takes a record; the sink orders records by these calls. Returns its sequence, which ascends
  /// from 1. Must not wait.
  virtual std::uint64_t hand_over(std::span<std::byte> record) noexcept = 0;
  /// The sequence of the newest record; 0: none. May take a lock.
  [[nodiscard]] virtual std::uint64_t handed_over() const noexcept = 0;
  /// Takes back room that is not used.
  virtual void give_back(std::span<std::byte> room) noexcept = 0;

  /// Up to which sequence records are durable.
  [[nodiscard]] virtual base::DurableMark& mark() noexcept = 0;
  /// Why the mark has failed: a sentence for people. Errors: std::bad_alloc.
  [[nodiscard]] virtual std::string failure() const = 0;

  [[nodiscard]] const RedoPromise& promise() const { return promise_; }
  /// Requires: it is not yet the sink of any object.
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
  /// Without a sink, nothing. Errors: those of the sink.
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

  explicit operator bool() const { return sink_ != nullptr; }
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  /// Hands its record over, once; without room does nothing. Returns the record's sequence, or 0.
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
