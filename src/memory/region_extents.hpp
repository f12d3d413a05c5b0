// SPDX-License-Identifier: Apache-2.0
// Implementation of Region: which memory is taken, and how it is populated.
//
// A maintenance thread keeps writers from waiting for huge pages. It prepares spare extents: for a
// shared region one, touched and then collapsed; for a private one in transparent huge pages one
// for each 16 MiB in use, at most four, because a first touch there clears 2 MiB. In shared regions
// it also collapses extents after they were taken, and punches the file when readers have filled
// its holes.
//
// When the region has shrunk or is near its limit, surplus spares lose their memory and leave their
// addresses, which are reused first.
//
// Invariants
// E1. taken_slabs_ says what is taken; a bit is set after the memory is populated, and cleared
//     before it is returned.
// E2. Spare extents, and the addresses of former spares, are below end_, not taken, and not
//     charged.
// E3. When a call that takes memory returns, taken memory and spares are within the limit, or there
//     are no spares. A spare under preparation then is dropped when it is ready, if there is no
//     room for it.
#pragma once

#include <sched.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>

#include "memory/address_range.hpp"
#include "memory/lazy_array.hpp"
#include "memory/region.hpp"

namespace espalier::memory {

class Region::Extents {
 public:
  Extents(AddressRange range, std::uint64_t limit_bytes, PageKind pages);
  ~Extents();

  [[nodiscard]] const AddressRange& range() const { return range_; }
  [[nodiscard]] std::uint64_t taken() const { return taken_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t limit() const { return limit_; }
  void lift_limit(bool lifted) { limit_lifted_.store(lifted, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t end() const { return end_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool shared() const { return range_.file() >= 0; }

  /// Takes the header's extent, once, and starts the thread of shared memory. False: it was
  /// refused.
  [[nodiscard]] bool take_header();
  /// False: the limit, or the end of the addresses, is reached.
  [[nodiscard]] bool take(std::uint64_t bytes, std::uint64_t& offset);
  [[nodiscard]] bool set_aside(std::uint64_t& offset);
  [[nodiscard]] bool retake(std::uint64_t offset, std::uint64_t bytes);
  void give(std::uint64_t offset, std::uint64_t bytes);
  /// Counts memory outside the region. False: the limit is reached.
  [[nodiscard]] bool charge_elsewhere(std::uint64_t bytes);
  void uncharge_elsewhere(std::uint64_t bytes);
  [[nodiscard]] std::uint64_t elsewhere() const {
    return elsewhere_.load(std::memory_order_relaxed);
  }
  bool punch_holes();
  void wait_until_idle();

 private:
  [[nodiscard]] bool charge(std::uint64_t bytes);
  void uncharge(std::uint64_t bytes) { taken_.fetch_sub(bytes, std::memory_order_relaxed); }
  /// Takes addresses never used. False: there are no more, or the system refuses them now.
  [[nodiscard]] bool extend(std::uint64_t bytes, std::uint64_t& offset);
  [[nodiscard]] bool extend_locked(std::uint64_t bytes, std::uint64_t& offset);
  [[nodiscard]] bool take_spare(std::uint64_t& offset);
  void bring(std::uint64_t offset, std::uint64_t bytes);
  [[nodiscard]] bool is_taken(std::uint64_t slab) const {
    return ((taken_slabs_[slab / 64] >> (slab % 64)) & 1) != 0;
  }
  [[nodiscard]] bool all_taken(std::uint64_t offset, std::uint64_t bytes) const;
  void mark(std::uint64_t offset, std::uint64_t bytes, bool taken);
  void collapse_later(std::uint64_t offset, std::uint64_t bytes);
  void maintain();
  /// Number of spare extents due when so many bytes of the range are taken.
  [[nodiscard]] std::size_t spares_for(std::uint64_t bytes) const;
  [[nodiscard]] std::uint64_t taken_here() const;
  /// What may be taken yet, when so much is taken. It may exceed the limit: that may be lifted.
  [[nodiscard]] std::uint64_t room_beside(std::uint64_t taken) const {
    return taken < limit_ ? limit_ - taken : 0;
  }
  [[nodiscard]] bool fits(std::size_t spares) const {
    return spares * kExtentBytes <= room_beside(taken());
  }
  [[nodiscard]] bool wants_spare() const;
  [[nodiscard]] bool has_too_many() const;
  void wake_if_wanted();
  void make_spare(std::unique_lock<std::mutex>& lock);
  void drop_spare();
  /// Makes room for charged memory: drops spares until all fits.
  void drop_spares_beyond_limit();
  /// Starts the thread of a private region that has grown. Without it, the thread that first
  /// touches an extent clears it.
  void start_when_large() noexcept;
  void start() noexcept;

  /// A private region has one spare extent for each kBytesPerSpare, up to kSparesMost; a smaller
  /// one has no thread.
  static constexpr std::uint64_t kBytesPerSpare = std::uint64_t{16} << 20;
  static constexpr std::size_t kSparesMost = 4;

  AddressRange range_;
  const std::uint64_t limit_;
  const PageKind pages_;
  cpu_set_t cpus_{};  // of the thread that made the region; the maintenance thread gets them
  const bool knows_cpus_;
  std::atomic<bool> limit_lifted_{false};
  std::atomic<std::uint64_t> taken_{0};
  std::atomic<std::uint64_t> elsewhere_{0};  // bytes of taken_ that are not of the range
  std::atomic<std::uint64_t> end_{0};
  mutable std::mutex mutex_;                         // guards all below, and writes of end_
  LazyArray<std::uint64_t> taken_slabs_;             // bits
  std::array<std::uint64_t, kSparesMost> spares_{};  // offsets
  std::size_t spare_count_ = 0;
  std::array<std::uint64_t, kSparesMost> bare_{};  // offsets of dropped spares
  std::size_t bare_count_ = 0;
  bool spare_refused_ = false;  // until memory is next taken or returned
  std::deque<std::uint64_t> to_collapse_;
  bool working_ = false;
  bool stopping_ = false;
  bool start_refused_ = false;  // the system refused a thread
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::thread maintenance_;
};

}  // namespace espalier::memory
