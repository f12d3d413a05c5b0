// SPDX-License-Identifier: Apache-2.0
#include "memory/region_extents.hpp"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <span>
#include <utility>

#include "base/assert.hpp"
#include "base/bytes.hpp"
#include "memory/collapse.hpp"

namespace espalier::memory {

Region::Extents::Extents(AddressRange range, std::uint64_t limit_bytes, PageKind pages)
    : range_(std::move(range)),
      limit_(limit_bytes),
      pages_(pages),
      knows_cpus_(::sched_getaffinity(0, sizeof cpus_, &cpus_) == 0),
      taken_slabs_(range_.bytes() / kSlabBytes / 64 + 1) {}

Region::Extents::~Extents() {
  if (!maintenance_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  maintenance_.join();
}

bool Region::Extents::take_header() {
  if (!range_.open(0, kExtentBytes)) return false;
  mark(0, kExtentBytes, true);
  end_.store(kExtentBytes, std::memory_order_relaxed);
  taken_.store(kExtentBytes, std::memory_order_relaxed);
  if (shared()) start();
  return true;
}

bool Region::Extents::take(std::uint64_t bytes, std::uint64_t& offset) {
  if (!charge(bytes)) return false;
  start_when_large();
  if (bytes == kExtentBytes && take_spare(offset)) {
    mark(offset, bytes, true);
    return true;
  }
  if (!extend(bytes, offset)) {
    uncharge(bytes);
    return false;
  }
  bring(offset, bytes);
  mark(offset, bytes, true);
  collapse_later(offset, bytes);
  return true;
}

bool Region::Extents::set_aside(std::uint64_t& offset) {
  if (!extend(kExtentBytes, offset)) return false;
  // What is taken in parts would else fill a huge page at its first touch.
  if (!shared() && pages_ != PageKind::small) {
    (void)range_.advise(offset, kExtentBytes, MADV_NOHUGEPAGE);
  }
  return true;
}

bool Region::Extents::retake(std::uint64_t offset, std::uint64_t bytes) {
  if (!charge(bytes)) return false;
  if (!range_.open(offset, bytes)) {
    uncharge(bytes);
    return false;
  }
  bring(offset, bytes);
  mark(offset, bytes, true);
  collapse_later(offset, bytes);
  return true;
}

void Region::Extents::give(std::uint64_t offset, std::uint64_t bytes) {
  ESPALIER_ASSERT(all_taken(offset, bytes));
  mark(offset, bytes, false);
  if (pages_ == PageKind::explicit_huge && bytes % kExtentBytes == 0) {
    range_.clear_explicit(offset, bytes);
  } else {
    range_.clear(offset, bytes);
  }
  uncharge(bytes);
  wake_if_wanted();
}

bool Region::Extents::charge_elsewhere(std::uint64_t bytes) {
  if (!charge(bytes)) return false;
  elsewhere_.fetch_add(bytes, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  drop_spares_beyond_limit();
  return true;
}

void Region::Extents::uncharge_elsewhere(std::uint64_t bytes) {
  const std::uint64_t before = elsewhere_.fetch_sub(bytes, std::memory_order_relaxed);
  ESPALIER_ASSERT(before >= bytes);
  uncharge(bytes);
  wake_if_wanted();
}

// Holes that were read have become pages of zeros. Where nothing is taken, they go.
bool Region::Extents::punch_holes() {
  const std::lock_guard lock(mutex_);
  const std::uint64_t spare = spare_count_ * kExtentBytes;
  if (range_.file_bytes().value_or(0) <= taken_here() + spare + limit_ / 8) return false;
  const std::uint64_t end = end_.load(std::memory_order_relaxed) / kSlabBytes;
  const auto spares = std::span(spares_).first(spare_count_);
  const auto in_use = [&](std::uint64_t slab) {
    const std::uint64_t extent = base::round_down(slab * kSlabBytes, kExtentBytes);
    return is_taken(slab) || std::ranges::find(spares, extent) != spares.end();
  };
  for (std::uint64_t slab = 0; slab < end;) {
    std::uint64_t behind = slab;
    while (behind < end && !in_use(behind)) ++behind;
    if (behind > slab) range_.clear(slab * kSlabBytes, (behind - slab) * kSlabBytes);
    slab = behind + 1;
  }
  if (end * kSlabBytes < range_.bytes()) {
    range_.clear(end * kSlabBytes, range_.bytes() - end * kSlabBytes);
  }
  return true;
}

void Region::Extents::wait_until_idle() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] {
    const bool more = !to_collapse_.empty() || wants_spare() || has_too_many();
    return !maintenance_.joinable() || (!working_ && !more);
  });
}

bool Region::Extents::charge(std::uint64_t bytes) {
  std::uint64_t taken = taken_.load(std::memory_order_relaxed);
  do {
    const bool lifted = limit_lifted_.load(std::memory_order_relaxed);
    if (bytes > room_beside(taken) && !lifted) return false;
  } while (!taken_.compare_exchange_weak(taken, taken + bytes, std::memory_order_relaxed));
  return true;
}

bool Region::Extents::extend(std::uint64_t bytes, std::uint64_t& offset) {
  const std::lock_guard lock(mutex_);
  return extend_locked(bytes, offset);
}

bool Region::Extents::extend_locked(std::uint64_t bytes, std::uint64_t& offset) {
  if (bytes == kExtentBytes && bare_count_ != 0) {
    offset = bare_[bare_count_ - 1];
    if (!range_.open(offset, bytes)) return false;
    --bare_count_;
    return true;
  }
  offset = end_.load(std::memory_order_relaxed);
  if (bytes > range_.bytes() - offset || !range_.open(offset, bytes)) return false;
  end_.store(offset + bytes, std::memory_order_relaxed);
  return true;
}

bool Region::Extents::take_spare(std::uint64_t& offset) {
  const std::lock_guard lock(mutex_);
  if (spare_count_ == 0) return false;
  offset = spares_[--spare_count_];
  wake_.notify_one();
  return true;
}

void Region::Extents::bring(std::uint64_t offset, std::uint64_t bytes) {
  if (shared()) return range_.clear(offset, bytes);  // readers may have filled the hole
  // Where explicit pages have become too few meanwhile, small ones serve.
  if (pages_ == PageKind::explicit_huge && bytes % kExtentBytes == 0) {
    (void)range_.map_explicit(offset, bytes);
  }
}

bool Region::Extents::all_taken(std::uint64_t offset, std::uint64_t bytes) const {
  const std::lock_guard lock(mutex_);
  if (offset + bytes > end_.load(std::memory_order_relaxed)) return false;
  for (std::uint64_t i = offset / kSlabBytes; i < (offset + bytes) / kSlabBytes; ++i) {
    if (!is_taken(i)) return false;
  }
  return true;
}

void Region::Extents::mark(std::uint64_t offset, std::uint64_t bytes, bool taken) {
  const std::lock_guard lock(mutex_);
  for (std::uint64_t i = offset / kSlabBytes; i < (offset + bytes) / kSlabBytes; ++i) {
    ESPALIER_ASSERT(is_taken(i) != taken);
    taken_slabs_[i / 64] ^= std::uint64_t{1} << (i % 64);
  }
  spare_refused_ = false;
  if (taken) drop_spares_beyond_limit();
  if (wants_spare()) wake_.notify_one();
}

// --- the thread --------------------------------------------------------------------------------

void Region::Extents::start_when_large() noexcept {
  if (shared() || spares_for(taken_here()) == 0) return;
  const std::lock_guard lock(mutex_);
  if (!maintenance_.joinable() && !start_refused_) start();
}

// The program's signals are for its own threads.
void Region::Extents::start() noexcept {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    maintenance_ = std::thread([this] { maintain(); });
  } catch (const std::exception&) {
    start_refused_ = true;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Region::Extents::collapse_later(std::uint64_t offset, std::uint64_t bytes) {
  if (pages_ != PageKind::collapsed || bytes % kExtentBytes != 0) return;
  const std::lock_guard lock(mutex_);
  try {
    for (std::uint64_t at = offset; at < offset + bytes; at += kExtentBytes) {
      to_collapse_.push_back(at);
    }
  } catch (const std::bad_alloc&) {  // they stay in small pages, which is slower and no more
  }
  wake_.notify_one();
}

std::size_t Region::Extents::spares_for(std::uint64_t bytes) const {
  if (pages_ == PageKind::collapsed) return 1;
  if (shared() || pages_ != PageKind::transparent) return 0;
  return std::min<std::uint64_t>(bytes / kBytesPerSpare, kSparesMost);
}

std::uint64_t Region::Extents::taken_here() const {
  return taken() - std::min(taken(), elsewhere());
}

bool Region::Extents::wants_spare() const {
  return spare_count_ < spares_for(taken_here()) && !spare_refused_ && fits(spare_count_ + 1);
}

// Half a spare's worth of memory may come and go without a spare that does so too.
bool Region::Extents::has_too_many() const {
  return spare_count_ > spares_for(taken_here() + kBytesPerSpare / 2);
}

// Where the limit has room again, or there is less. Under the lock, or the thread might look before
// and sleep after.
void Region::Extents::wake_if_wanted() {
  const std::lock_guard lock(mutex_);
  spare_refused_ = false;
  if (wants_spare() || has_too_many()) wake_.notify_one();
}

void Region::Extents::make_spare(std::unique_lock<std::mutex>& lock) {
  std::uint64_t offset = 0;
  if (!extend_locked(kExtentBytes, offset)) {
    spare_refused_ = true;
    return;
  }
  lock.unlock();
  if (shared()) {
    range_.clear(offset, kExtentBytes);
    (void)collapse(range_, offset);
  } else {
    (void)populate(range_, offset);
  }
  lock.lock();
  spares_[spare_count_++] = offset;
  drop_spares_beyond_limit();
}

void Region::Extents::drop_spare() {
  const std::uint64_t offset = spares_[--spare_count_];
  range_.clear(offset, kExtentBytes);
  bare_[bare_count_++] = offset;
}

void Region::Extents::drop_spares_beyond_limit() {
  while (spare_count_ != 0 && !fits(spare_count_)) drop_spare();
}

void Region::Extents::maintain() {
  constexpr auto kBetweenLooks = std::chrono::seconds(1);
  if (knows_cpus_) (void)::sched_setaffinity(0, sizeof cpus_, &cpus_);
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto wanted = [&] {
      return stopping_ || wants_spare() || has_too_many() || !to_collapse_.empty();
    };
    bool work = true;
    if (shared()) {
      work = wake_.wait_for(lock, kBetweenLooks, wanted);
    } else {
      wake_.wait(lock, wanted);
    }
    if (stopping_) return;
    working_ = true;
    if (!work) {
      lock.unlock();
      punch_holes();
      lock.lock();
    } else if (wants_spare()) {
      make_spare(lock);
    } else if (has_too_many()) {
      drop_spare();
    } else {
      const std::uint64_t offset = to_collapse_.front();
      to_collapse_.pop_front();
      const bool still_taken = is_taken(offset / kSlabBytes);
      lock.unlock();
      if (still_taken) (void)collapse(range_, offset);
      lock.lock();
    }
    working_ = false;
    idle_.notify_all();
  }
}

}  // namespace espalier::memory
