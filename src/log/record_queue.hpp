// SPDX-License-Identifier: Apache-2.0
// Room for records before their locks are taken, and their order under them: appending a record
// takes the next sequence.
//
// Thread: any may reserve, append and give back; one takes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "espalier/error.hpp"

namespace espalier::log {

/// A record that was appended; its bytes are behind it.
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

class RecordQueue {
 public:
  /// At most so many bytes of records are held at a time, and each has at most so many.
  RecordQueue(std::size_t held_bytes_max, std::size_t record_bytes_max, std::uint64_t next)
      : held_bytes_max_(held_bytes_max), record_bytes_max_(record_bytes_max), next_(next) {}
  RecordQueue(const RecordQueue&) = delete;
  RecordQueue& operator=(const RecordQueue&) = delete;
  ~RecordQueue();

  /// Room for one, aligned to 8. Errors: value_too_long, busy (ask again later), out_of_memory;
  /// what refuse() says.
  [[nodiscard]] Result<std::span<std::byte>> reserve(std::size_t bytes) noexcept;
  /// Takes a record in such room. Returns its sequence.
  std::uint64_t append(std::span<std::byte> record) noexcept;
  /// Frees room that was not appended, or a record that was taken.
  void release(QueuedRecord* record) noexcept;

  /// All that were appended, in order, or null.
  [[nodiscard]] QueuedRecord* take() noexcept;
  /// Waits until there is something to take, or stop() was called. Returns whether there is.
  bool wait();
  void stop();
  /// There is no more room from now on, with this error.
  void refuse(Error error) { refused_.store(error); }

  /// The sequence that comes next.
  [[nodiscard]] std::uint64_t next() const;
  /// Bytes of records and of room.
  [[nodiscard]] std::size_t held_bytes() const { return held_bytes_.load(); }

 private:
  const std::size_t held_bytes_max_;
  const std::size_t record_bytes_max_;
  std::atomic<std::size_t> held_bytes_ = 0;
  std::atomic<Error> refused_ = Error{};

  mutable std::mutex mutex_;
  std::condition_variable filled_;
  QueuedRecord* first_ = nullptr;
  QueuedRecord* last_ = nullptr;
  std::uint64_t next_;
  bool waiting_ = false;
  bool stopped_ = false;
};

}  // namespace espalier::log
