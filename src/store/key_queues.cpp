// SPDX-License-Identifier: Apache-2.0
#include "store/key_queues.hpp"

#include <algorithm>
#include <functional>
#include <string_view>

#include "base/assert.hpp"
#include "base/cpu.hpp"
#include "base/random.hpp"
#include "store/transaction.hpp"

namespace espalier::store {
namespace {

constexpr std::uint32_t kIsAlone = 1;
constexpr std::uint32_t kHasPlaces = 2;
constexpr int kSpins = 1000;  // a short transaction ends meanwhile

/// Each key's once.
std::vector<std::uint64_t> hashes_of(std::span<const ObjectSteps> objects) {
  std::vector<std::uint64_t> hashes;
  for (const ObjectSteps& object : objects) {
    for (const catalog::TransactionStep& step : object.steps) {
      const std::uint64_t of_key = std::hash<std::string_view>{}(step.key);
      hashes.push_back(base::mix64(of_key + base::mix64(object.id)));
    }
  }
  std::ranges::sort(hashes);
  const auto same = std::ranges::unique(hashes);
  hashes.erase(same.begin(), same.end());
  return hashes;
}

}  // namespace

// --- alone ---------------------------------------------------------------------------------------

std::optional<KeyQueues::Alone> KeyQueues::try_alone() noexcept {
  std::uint32_t none = 0;
  if (!state_.compare_exchange_strong(none, kIsAlone, std::memory_order_acq_rel)) {
    return std::nullopt;
  }
  return Alone(*this);
}

// A place that was entered before the exchange makes it fail, one that is entered behind it finds
// none alone. While it fails no other can be alone.
void KeyQueues::end_alone() noexcept {
  std::uint32_t only = kIsAlone;
  if (state_.compare_exchange_strong(only, 0, std::memory_order_acq_rel)) return;
  const std::lock_guard lock(mutex_);
  state_.fetch_and(~kIsAlone, std::memory_order_acq_rel);
  release_those_behind_alone();
}

void KeyQueues::release_those_behind_alone() noexcept {
  while (behind_alone_ != nullptr) {
    Place& place = *behind_alone_;
    behind_alone_ = std::exchange(place.next_, nullptr);
    place.waits_for_alone_ = false;
    step_ahead(place);
  }
}

/// One less is before it.
void KeyQueues::step_ahead(Place& place) noexcept {
  const std::uint32_t before = place.ahead_.fetch_sub(1, std::memory_order_acq_rel);
  ESPALIER_ASSERT(before != 0);
  if (before == 1 && blocked_threads_ != 0) changed_.notify_all();
}

// --- places --------------------------------------------------------------------------------------

bool KeyQueues::enter(Place& place, std::span<const ObjectSteps> objects, std::uint64_t client) {
  ESPALIER_ASSERT(place.queues_ == nullptr);
  const auto hashes = hashes_of(objects);
  place.keys_.assign(hashes.size(), Key());
  const std::lock_guard lock(mutex_);
  if (client != kNoClient && share_of(client) >= kPlacesOfClientMax) return false;
  add(place, client);
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    place.keys_[i].hash = hashes[i];
    place.keys_[i].owner = &place;
    put_last(place.keys_[i]);
  }
  if ((state_.load(std::memory_order_acquire) & kIsAlone) == 0) return true;
  place.waits_for_alone_ = true;
  place.ahead_.fetch_add(1, std::memory_order_relaxed);
  place.next_ = std::exchange(behind_alone_, &place);
  return true;
}

/// Counts it. From then on none begins alone.
void KeyQueues::add(Place& place, std::uint64_t client) noexcept {
  place.queues_ = this;
  place.client_ = client;
  place.ahead_.store(0, std::memory_order_relaxed);
  if (client != kNoClient) ++share_of(client);
  ++places_;
  state_.fetch_or(kHasPlaces, std::memory_order_acq_rel);
}

void KeyQueues::remove(Place& place) noexcept {
  const std::lock_guard lock(mutex_);
  for (Key& key : place.keys_) take_out(key);
  if (std::exchange(place.waits_for_alone_, false)) {
    Place** link = &behind_alone_;
    while (*link != &place) link = &(*link)->next_;
    *link = std::exchange(place.next_, nullptr);
  }
  if (place.client_ != kNoClient) --share_of(place.client_);
  if (--places_ == 0) state_.fetch_and(~kHasPlaces, std::memory_order_acq_rel);
}

void KeyQueues::put_last(Key& key) noexcept {
  Bucket& bucket = bucket_of(key);
  const Key* same = bucket.last;
  while (same != nullptr && same->hash != key.hash) same = same->before;
  if (same != nullptr) key.owner->ahead_.fetch_add(1, std::memory_order_relaxed);
  key.before = bucket.last;
  key.behind = nullptr;
  (bucket.last != nullptr ? bucket.last->behind : bucket.first) = &key;
  bucket.last = &key;
}

// The next one of the key had exactly this before it, if none else is.
void KeyQueues::take_out(Key& key) noexcept {
  Bucket& bucket = bucket_of(key);
  const Key* earlier = key.before;
  while (earlier != nullptr && earlier->hash != key.hash) earlier = earlier->before;
  if (earlier == nullptr) {
    const Key* later = key.behind;
    while (later != nullptr && later->hash != key.hash) later = later->behind;
    if (later != nullptr) step_ahead(*later->owner);
  }
  (key.before != nullptr ? key.before->behind : bucket.first) = key.behind;
  (key.behind != nullptr ? key.behind->before : bucket.last) = key.before;
}

void KeyQueues::await(const Place& place) {
  for (int i = 0; i < kSpins; ++i) {
    if (place.is_first()) return;
    base::spin_pause();
  }
  std::unique_lock lock(mutex_);
  ++blocked_threads_;
  changed_.wait(lock, [&] { return place.is_first(); });
  --blocked_threads_;
}

}  // namespace espalier::store
