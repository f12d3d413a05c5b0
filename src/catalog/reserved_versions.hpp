// SPDX-License-Identifier: Apache-2.0
// Versions of an object that may be released before the records of their writes are durable: a
// record of its own says that versions up to some limit may have been seen, and recovery moves the
// object's clock above it. So a version that a client has seen never stands for something else,
// whatever a crash loses (docs/design/durability.md).
//
// Such a record is handed over long before its versions are taken. A write whose version none
// covers, because the disk has not come to it or there was no room, is released with its own
// record, as everywhere: so nothing fails here, and nobody waits.
//
// Invariants
// 1. covers(v): a record of a limit at or above v is durable.
// 2. limit() has risen before a record of that limit is handed over. So a copy of the object that
//    ends with it has all limits whose records came before the copy began.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

namespace espalier::catalog {

class RedoSink;

class ReservedVersions {
 public:
  /// Versions that one record reserves.
  static constexpr std::uint64_t kAtATime = std::uint64_t{1} << 20;
  /// The record of a kind of objects.
  struct Record {
    std::size_t bytes = 0;
    void (*write)(std::span<std::byte> to, std::uint32_t object,
                  std::uint64_t limit) noexcept = nullptr;
  };

  /// Of this object, whose records go to `sink`, which outlives it.
  ReservedVersions(RedoSink& sink, std::uint32_t object, const Record& record)
      : sink_(sink), object_(object), record_(record) {}
  ReservedVersions(const ReservedVersions&) = delete;
  ReservedVersions& operator=(const ReservedVersions&) = delete;

  /// Whether this version may be released although the record of its write is not durable.
  [[nodiscard]] bool covers(std::uint64_t version) const noexcept {
    return version <= covered_.load(std::memory_order_acquire);
  }
  /// Before a write takes a version, and locks anything: has more reserved where less than half of
  /// that is left. `taken`: the newest version that was taken. Cost: a load; now and then a record.
  void keep_ahead(std::uint64_t taken) noexcept {
    if (taken + kAtATime / 2 > covered_.load(std::memory_order_relaxed)) [[unlikely]]
      reserve(taken);
  }
  /// The highest version that some record reserves, durable or not; 0: there is none.
  [[nodiscard]] std::uint64_t limit() const noexcept { return limit_.load(); }

 private:
  void reserve(std::uint64_t taken) noexcept;

  RedoSink& sink_;
  const std::uint32_t object_;
  const Record record_;
  std::atomic<std::uint64_t> covered_ = 0;
  std::atomic<std::uint64_t> limit_ = 0;
  std::mutex mutex_;           // guards what follows
  std::uint64_t pending_ = 0;  // the sequence of the record that is on its way; 0: none is
};

}  // namespace espalier::catalog
