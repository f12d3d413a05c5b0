// SPDX-License-Identifier: Apache-2.0
// The order of records: appending one takes the next sequence, under the locks of its keys.
//
// Thread: any.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "log/record_room.hpp"

namespace espalier::log {

class RecordQueue {
 public:
  RecordQueue(RecordRoom& room, std::uint64_t next) : room_(room), next_(next) {}
  RecordQueue(const RecordQueue&) = delete;
  RecordQueue& operator=(const RecordQueue&) = delete;
  ~RecordQueue() { room_.release_all(appended_); }

  /// Takes a record in room that was reserved. Returns its sequence.
  std::uint64_t append(std::span<std::byte> record) noexcept;
  /// All that were appended, in order.
  [[nodiscard]] RecordList take() noexcept;
  /// The last of those that were taken, before what was appended since. Nothing of what was taken
  /// later may be kept.
  void put_back(RecordList& records) noexcept;
  /// Whether those who wait() go on to wait, though there is something.
  void hold(bool held) noexcept;
  /// Waits until there is something to take, and it is not held, or stop() was called. Returns
  /// whether there is something.
  bool wait();
  void stop();

  /// The sequence that comes next.
  [[nodiscard]] std::uint64_t next() const;

 private:
  RecordRoom& room_;
  mutable std::mutex mutex_;
  std::condition_variable filled_;
  RecordList appended_;
  std::uint64_t next_;
  unsigned waiting_ = 0;
  bool held_ = false;
  bool stopped_ = false;
};

}  // namespace espalier::log
