// SPDX-License-Identifier: Apache-2.0
#include "memory/reclaimer.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/assert.hpp"
#include "base/own_counter.hpp"
#include "memory/buffer_cache.hpp"
#include "memory/buffer_pool.hpp"
#include "memory/holders.hpp"
#include "memory/planted_memory_bugs.hpp"
#include "memory/version_clock.hpp"

namespace espalier::memory {
namespace {

std::uint64_t bytes_of(const Retired& retired) {
  return retired.offset == 0 ? retired.bytes : class_bytes(retired.size_class);
}

}  // namespace

void Reclaimer::stamp(RetiredNode* node, std::uint64_t epoch) {
  node->stamp = epoch;
  stamped_.push(node);
}

void Reclaimer::free(RetiredNode* node, BufferCache* cache) {
  const Retired retired = node->retired;
  if (retired.id != 0) node->object->release_id(retired.id);
  if (spares_.size() < kSparesMax) {
    spares_.put(node);
  } else {
    delete node;
  }
  if (retired.offset == 0) return;
  if (cache != nullptr) {
    cache->release(retired.offset, retired.size_class);
  } else {
    pool_->release(retired.offset, retired.size_class);
  }
}

bool Reclaimer::needed(const PerObject& state, std::uint64_t version) {
  if (planted(Bug::snapshot_not_held)) return false;
  return !state.versions.empty() && state.versions.front().version < version;
}

void Reclaimer::add(VersionedObject& object, std::string_view name, const VersionClock& clock,
                    std::uint64_t snapshot_bytes_max) {
  ESPALIER_ASSERT(clock.attached());
  const std::lock_guard lock(mutex_);
  const auto [added, first] = objects_.try_emplace(&object);
  ESPALIER_ASSERT(first);
  PerObject& state = added->second;
  state.name = name;
  state.clock = &clock;
  state.snapshot_bytes_max = snapshot_bytes_max;
}

void Reclaimer::retire(VersionedObject& object, RetiredStock& stock,
                       std::span<const Retired> retired) noexcept {
  const std::lock_guard lock(mutex_);
  PerObject& state = of(object);
  std::uint64_t bytes = 0;
  for (const Retired& one : retired) {
    bytes += bytes_of(one);
    RetiredNode* const node = stock.take();
    node->retired = one;
    node->object = &object;
    if (planted(Bug::stamp_at_unlink)) {
      stamp(node, epochs_.current());
    } else {
      state.unreleased.push(node);
    }
  }
  state.retired_bytes += bytes;
  while (stock.size() < kStocked && spares_.size() != 0) stock.put(spares_.take());
  base::count_own(retired_since_, static_cast<std::uint32_t>(retired.size()));
  base::count_own(retired_bytes_since_, bytes);
}

bool Reclaimer::collect(BufferCache& cache) noexcept {
  const std::lock_guard lock(mutex_);
  retired_since_.store(0, std::memory_order_relaxed);
  retired_bytes_since_.store(0, std::memory_order_relaxed);
  const std::uint64_t epoch = epochs_.current();
  for (auto& [object, state] : objects_) {
    const std::uint64_t released = state.clock->released();
    while (!state.unreleased.empty() && state.unreleased.front().retired.version <= released) {
      stamp(state.unreleased.pop(), epoch);
    }
  }
  epochs_.advance();
  // Epochs first: a lease that is granted after the look at them holds no older one, and a pin was
  // taken while its epoch was exposed.
  std::uint64_t oldest = epochs_.oldest();
  if (!planted(Bug::pin_not_counted)) oldest = std::min(oldest, epoch_pins_->oldest());
  if (!planted(Bug::lease_not_counted)) oldest = std::min(oldest, leases_->oldest());
  bool freed = false;
  while (!stamped_.empty() && stamped_.front().stamp < oldest) {
    RetiredNode* const node = stamped_.pop();
    VersionedObject& object = *node->object;
    const SizeClass size_class = node->retired.size_class;
    PerObject& state = of(object);
    if (needed(state, node->retired.version)) {
      state.held.push(node);
      state.held_bytes += bytes_of(node->retired);
      held_bytes_ += bytes_of(node->retired);
      expire_beyond_limits(object, state);
    } else {
      state.retired_bytes -= bytes_of(node->retired);
      free(node, &cache);
      freed = true;
      object.buffer_freed(size_class, cache);
    }
  }
  return freed;
}

bool Reclaimer::waits_for_readers() const {
  const std::lock_guard lock(mutex_);
  return !stamped_.empty() || std::any_of(objects_.begin(), objects_.end(), [](const auto& entry) {
    return !entry.second.unreleased.empty();
  });
}

bool Reclaimer::waits_for_snapshots() const {
  const std::lock_guard lock(mutex_);
  return held_bytes_ != 0 || (!stamped_.empty() && stamped_.front().stamp <= expired_stamp_);
}

bool Reclaimer::waits_for_pins() const {
  const std::uint64_t pinned = epoch_pins_->oldest();
  const std::lock_guard lock(mutex_);
  return !stamped_.empty() && stamped_.back().stamp >= pinned;  // stamps ascend
}

bool Reclaimer::waits_for_leases() const {
  const std::uint64_t leased = leases_->oldest();
  const std::lock_guard lock(mutex_);
  return !stamped_.empty() && stamped_.back().stamp >= leased;  // stamps ascend
}

// Stamps anew what no snapshot needs any longer.
void Reclaimer::release_held(PerObject& state) {
  const std::uint64_t epoch = epochs_.current();
  state.held.sort_out([&](RetiredNode* node) {
    if (needed(state, node->retired.version)) {
      state.held.push(node);
    } else {
      const std::uint64_t bytes = bytes_of(node->retired);
      state.held_bytes -= bytes;
      held_bytes_ -= bytes;
      stamp(node, epoch);
    }
  });
}

// A walk at it exposes its epoch before it looks whether it has expired. One that saw that it has
// not exposes an epoch that is no newer than the stamp of what is released here.
void Reclaimer::expire_first(const VersionedObject* object, PerObject& state) {
  const auto oldest = state.versions.begin();
  oldest->expired.store(true, std::memory_order_seq_cst);
  state.expired.splice(state.expired.end(), state.versions, oldest);
  ++expired_count_;
  if (!planted(Bug::expiry_not_stamped)) stamp_anew(object, oldest->version);
  release_held(state);
  expired_stamp_ = epochs_.current();
}

// What is stamped already, and has not been seen to be needed yet: a walk at `version` may have
// begun after that stamp and read it all the same.
void Reclaimer::stamp_anew(const VersionedObject* object, std::uint64_t version) {
  const std::uint64_t epoch = epochs_.current();
  RetiredList anew;
  stamped_.sort_out([&](RetiredNode* node) {
    (node->object == object && node->retired.version > version ? anew : stamped_).push(node);
  });
  while (!anew.empty()) stamp(anew.pop(), epoch);
}

// Of all objects whose snapshots hold something. Returns whether there was one.
bool Reclaimer::expire_oldest_of_all() {
  auto oldest = objects_.end();
  for (auto each = objects_.begin(); each != objects_.end(); ++each) {
    const PerObject& state = each->second;
    if (state.held_bytes == 0 || state.versions.empty()) continue;
    if (oldest == objects_.end() ||
        state.versions.front().number < oldest->second.versions.front().number) {
      oldest = each;
    }
  }
  if (oldest == objects_.end()) return false;
  expire_first(oldest->first, oldest->second);
  return true;
}

void Reclaimer::expire_beyond_limits(const VersionedObject& object, PerObject& state) {
  while (state.held_bytes > state.snapshot_bytes_max && !state.versions.empty()) {
    expire_first(&object, state);
  }
  while (held_bytes_ > snapshot_bytes_max_ && expire_oldest_of_all()) {
  }
}

bool Reclaimer::expire_oldest() noexcept {
  if (planted(Bug::snapshots_never_yield)) return false;
  const std::lock_guard lock(mutex_);
  // What waits for readers, or is pinned, holds all that is stamped later back, too: to expire more
  // frees nothing.
  if (!stamped_.empty() && (stamped_.front().stamp <= expired_stamp_ ||
                            stamped_.front().stamp >= epoch_pins_->oldest())) {
    return false;
  }
  const std::uint64_t before = held_bytes_;
  bool any = false;
  while (before - held_bytes_ < kDueBytes && expire_oldest_of_all()) any = true;
  return any;
}

std::list<HeldVersion>::iterator Reclaimer::hold(VersionedObject& object, std::uint64_t version,
                                                 std::string owner) {
  const std::lock_guard lock(mutex_);
  auto& versions = of(object).versions;
  // Two threads may register in the other order than they read.
  auto after = versions.end();
  while (after != versions.begin() && std::prev(after)->version > version) --after;
  const auto held = versions.emplace(after);
  held->version = version;
  held->number = next_number_++;
  held->owner = std::move(owner);
  return held;
}

void Reclaimer::drop(VersionedObject& object, std::list<HeldVersion>::iterator held) noexcept {
  const std::lock_guard lock(mutex_);
  PerObject& state = of(object);
  if (held->expired.load(std::memory_order_relaxed)) {
    state.expired.erase(held);
    return;
  }
  const bool oldest = held == state.versions.begin();  // else older ones need all that it does
  state.versions.erase(held);
  if (oldest) release_held(state);
}

void Reclaimer::forget(VersionedObject& object) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = objects_.find(&object);
  if (found == objects_.end()) return;  // it was never added
  while (!found->second.unreleased.empty()) free(found->second.unreleased.pop(), nullptr);
  while (!found->second.held.empty()) free(found->second.held.pop(), nullptr);
  held_bytes_ -= found->second.held_bytes;
  objects_.erase(found);
  stamped_.sort_out([&](RetiredNode* node) {
    if (node->object == &object) {
      free(node, nullptr);
    } else {
      stamped_.push(node);
    }
  });
}

Reclaimer::Snapshots Reclaimer::snapshots() const {
  const std::lock_guard lock(mutex_);
  Snapshots all;
  for (const auto& [object, state] : objects_) all.count += state.versions.size();
  all.bytes = held_bytes_;
  all.bytes_max = snapshot_bytes_max_;
  all.expired = expired_count_;
  return all;
}

std::uint64_t Reclaimer::bytes_held_by_leases() const {
  const std::uint64_t leased = leases_->oldest();
  const std::uint64_t exposed = std::min(epochs_.oldest(), epoch_pins_->oldest());
  const std::lock_guard lock(mutex_);
  std::uint64_t bytes = 0;
  stamped_.for_each([&](const RetiredNode& node) {
    if (node.stamp >= exposed) return false;  // stamps ascend
    if (node.stamp >= leased) bytes += bytes_of(node.retired);
    return true;
  });
  return bytes;
}

std::vector<std::uint64_t> Reclaimer::bytes_held_since(
    std::span<const std::uint64_t> epochs) const {
  std::vector<std::uint64_t> bytes(epochs.size());
  {
    const std::lock_guard lock(mutex_);
    stamped_.for_each([&](const RetiredNode& node) {
      // The newest epoch that keeps it; all older ones do too.
      const auto after = std::ranges::upper_bound(epochs, node.stamp);
      if (after != epochs.begin()) {
        bytes[static_cast<std::size_t>(after - epochs.begin()) - 1] += bytes_of(node.retired);
      }
      return true;
    });
  }
  for (std::size_t i = bytes.size(); i > 1; --i) bytes[i - 2] += bytes[i - 1];
  return bytes;
}

std::vector<Holder> Reclaimer::snapshot_holders() const {
  const std::lock_guard lock(mutex_);
  std::vector<Holder> holders;
  for (const auto& [object, state] : objects_) {
    const std::size_t first = holders.size();
    for (const HeldVersion& held : state.versions) {  // they ascend
      holders.push_back(
          {Holder::Kind::snapshot, held.owner, std::string(state.name), held.version, 0});
    }
    const auto here = std::span(holders).subspan(first);
    if (here.empty()) continue;
    state.held.for_each([&](const RetiredNode& node) {
      // The newest snapshot that needs it; all older ones do too.
      const auto after = std::ranges::lower_bound(here, node.retired.version, {}, &Holder::since);
      if (after != here.begin()) {
        std::prev(after)->bytes += bytes_of(node.retired);
      }
      return true;
    });
    for (std::size_t i = here.size(); i > 1; --i) here[i - 2].bytes += here[i - 1].bytes;
  }
  return holders;
}

Reclaimer::Waiting Reclaimer::waiting(const VersionedObject& object, bool list) const {
  const std::lock_guard lock(mutex_);
  Waiting result;
  if (const auto found = objects_.find(&object); found != objects_.end()) {
    const PerObject& state = found->second;
    result.bytes = state.retired_bytes;
    result.snapshots = state.versions.size() + state.expired.size();
    if (!list) return result;
    const auto add = [&](const RetiredNode& node) {
      if (node.object != &object) return true;
      if (node.retired.id != 0) ++result.ids;
      if (node.retired.offset != 0) result.buffers.push_back(node.retired);
      return true;
    };
    state.unreleased.for_each(add);
    state.held.for_each(add);
    stamped_.for_each(add);
  }
  return result;
}

}  // namespace espalier::memory
