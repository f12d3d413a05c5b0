// SPDX-License-Identifier: Apache-2.0
#include "store/dropped_objects.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "memory/planted_memory_bugs.hpp"

namespace espalier::store {

DroppedObjects::DroppedObjects(base::EpochTable epochs, const base::LeaseTable& leases)
    : epochs_(epochs), leases_(&leases) {}

DroppedObjects::~DroppedObjects() {
  while (first_ != nullptr) {
    const std::unique_ptr<StoredObject> object(std::exchange(first_, first_->waiting_.next));
  }
}

void DroppedObjects::add(std::unique_ptr<StoredObject> object) noexcept {
  ESPALIER_ASSERT(object->is_dropped());
  if (memory::planted(memory::Bug::dropped_freed_at_once)) return;
  const std::uint64_t bytes = object->memory_bytes();
  {
    const std::lock_guard lock(mutex_);
    object->waiting_ = {nullptr, bytes, bytes, epochs_.current()};
    epochs_.advance();
    StoredObject* const added = object.release();
    (first_ == nullptr ? first_ : last_->waiting_.next) = added;
    last_ = added;
  }
  if (!in_steps_.load(std::memory_order_relaxed)) collect();
}

std::unique_ptr<StoredObject> DroppedObjects::take_free() {
  const std::lock_guard lock(mutex_);
  if (first_ == nullptr || first_->waiting_.stamp >= leases_->oldest()) return nullptr;
  return std::unique_ptr<StoredObject>(std::exchange(first_, first_->waiting_.next));
}

// Each object is freed outside the lock, since that may take long.
void DroppedObjects::collect() noexcept {
  while (take_free() != nullptr) {
  }
}

// Counts out what was freed of the object. Its stamp is below those of all waiting objects.
void DroppedObjects::put_back(std::unique_ptr<StoredObject> object) {
  const std::lock_guard lock(mutex_);
  StoredObject::Waiting& waiting = object->waiting_;
  waiting.bytes = waiting.all_bytes - std::min(waiting.all_bytes, object->freed_bytes());
  waiting.next = first_;
  if (first_ == nullptr) last_ = object.get();
  first_ = object.release();
}

bool DroppedObjects::collect_some(std::uint32_t steps) noexcept {
  std::unique_ptr<StoredObject> object = take_free();
  if (object == nullptr) return false;
  if (!object->free_some(steps)) put_back(std::move(object));
  object.reset();
  return due();
}

bool DroppedObjects::due() const {
  const std::lock_guard lock(mutex_);
  return first_ != nullptr && first_->waiting_.stamp < leases_->oldest();
}

std::uint64_t DroppedObjects::bytes_held_since(std::uint64_t epoch) const {
  const std::lock_guard lock(mutex_);
  std::uint64_t bytes = 0;
  for (const StoredObject* object = first_; object != nullptr; object = object->waiting_.next) {
    bytes += object->waiting_.stamp < epoch ? 0 : object->waiting_.bytes;
  }
  return bytes;
}

std::uint64_t DroppedObjects::oldest_stamp() const {
  const std::lock_guard lock(mutex_);
  return first_ == nullptr ? 0 : first_->waiting_.stamp;
}

std::size_t DroppedObjects::size() const {
  const std::lock_guard lock(mutex_);
  std::size_t size = 0;
  for (const StoredObject* object = first_; object != nullptr; object = object->waiting_.next)
    ++size;
  return size;
}

}  // namespace espalier::store
