// SPDX-License-Identifier: Apache-2.0
// Versions of an object that may be released before the records of their writes are durable. A
// record of its own says that versions up to a limit may have been seen, and recovery moves the
// object's clock above the limit. So whatever a crash loses, a version that a client has seen is
// never reused for another write (docs/design/durability.md).
//
// Such a record is handed over long before its versions are taken. A write whose version is not
// covered, because the disk is behind or the log had no room, is released with its own record as
// usual. So reserving never fails a write, and no thread waits for it.
//
// Invariants
// 1. covers(v): a record of a limit at or above v is durable.
// 2. limit() rises before a record of that limit is handed over. So a copy of the object that ends
//    with limit() has all limits whose records precede the copy.
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
  /// The format of the limit's record, by kind of object.
  struct Record {
    std::size_t bytes = 0;
    void (*write)(std::span<std::byte> to, std::uint32_t object,
                  std::uint64_t limit) noexcept = nullptr;
  };

  /// Of this object; its records go to `sink`, which must outlive it.
  ReservedVersions(RedoSink& sink, std::uint32_t object, const Record& record)
      : sink_(sink), object_(object), record_(record) {}
  ReservedVersions(const ReservedVersions&) = delete;
  ReservedVersions& operator=(const ReservedVersions&) = delete;

  /// Whether this version may be released before the record of its write is durable.
  [[nodiscard]] bool covers(std::uint64_t version) const noexcept {
    return version <= covered_.load(std::memory_order_acquire);
  }
  /// Reserves more if less than half of kAtATime is left. Call before a write takes a version or
  /// any lock. `taken`: the newest version taken. Cost: a load; rarely a record.
  void keep_ahead(std::uint64_t taken) noexcept {
    if (taken + kAtATime / 2 > covered_.load(std::memory_order_relaxed)) [[unlikely]]
      reserve(taken);
  }
  /// The highest version that any record reserves, durable or not; 0: none.
  [[nodiscard]] std::uint64_t limit() const noexcept { return limit_.load(); }

 private:
  void reserve(std::uint64_t taken) noexcept;

  RedoSink& sink_;
  const std::uint32_t object_;
  const Record record_;
  std::atomic<std::uint64_t> covered_ = 0;
  std::atomic<std::uint64_t> limit_ = 0;
  std::mutex mutex_;           // guards what follows
  std::uint64_t pending_ = 0;  // sequence of the record in flight; 0: none
};

}  // namespace espalier::catalog
