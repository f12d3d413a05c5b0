// SPDX-License-Identifier: Apache-2.0
// Orders records: appending one assigns the next sequence, under the locks of its keys.
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

  /// Appends a record in reserved room. Returns its sequence.
  std::uint64_t append(std::span<std::byte> record) noexcept;
  /// Takes all appended records, in order.
  [[nodiscard]] RecordList take() noexcept;
  /// Puts the last taken records back, before those appended since. Requires: no later taken record
  /// is kept.
  void put_back(RecordList& records) noexcept;
  /// Whether wait() blocks even if there are records.
  void hold(bool held) noexcept;
  /// Waits until there are records and no hold, or stop() was called. Returns whether there are
  /// records.
  bool wait();
  void stop();

  /// The next sequence.
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
