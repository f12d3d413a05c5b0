// SPDX-License-Identifier: Apache-2.0
// Interface of an object whose memory waits for leases when it is dropped (dropped_objects.hpp),
// whatever its kind, and the list of all such objects of a store. The node reports waiting ones,
// hash maps included, as dropped maps (wire/node_numbers.hpp).
//
// Thread: any. The list does not own its objects: one may be dropped after `list`.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

namespace espalier::memory {
class BufferCache;
}

namespace espalier::store {

class StoredObject {
 public:
  StoredObject() = default;
  virtual ~StoredObject() = default;
  StoredObject(const StoredObject&) = delete;
  StoredObject& operator=(const StoredObject&) = delete;

  /// Whether it was dropped; dropping is final.
  [[nodiscard]] virtual bool is_dropped() const = 0;
  /// Bytes of all its buffers.
  [[nodiscard]] virtual std::uint64_t memory_bytes() const = 0;
  /// Adds the number of its value buffers of each class, those that wait for readers included. For
  /// callers that count the memory of all objects without knowing their kinds; the default adds
  /// none, where the kind counts by itself. Requires: no thread writes to it meanwhile.
  virtual void add_values(std::span<std::uint64_t>) const {}
  /// Moves the buffers that it keeps in reserve next to other buffers.
  virtual void repack_spares() = 0;
  /// Takes again what it keeps in reserve for writes that free memory. Returns whether it has all
  /// that these need. Requires: no lock is held but that of StoredObjects.
  [[nodiscard]] virtual bool refill_reserve(memory::BufferCache&) noexcept { return true; }
  /// Gives back some of its memory, in so many steps of bounded work; nothing may ask for memory
  /// meanwhile. Returns whether all is given back. Requires: no thread uses the object any more,
  /// nor will.
  virtual bool free_some(std::uint32_t steps) = 0;
  /// Bytes that free_some() has freed.
  [[nodiscard]] virtual std::uint64_t freed_bytes() const = 0;

 private:
  friend class DroppedObjects;
  /// Bookkeeping of a waiting object, reserved in advance: dropping may not allocate.
  struct Waiting {
    StoredObject* next = nullptr;
    std::uint64_t bytes = 0;      // not freed yet
    std::uint64_t all_bytes = 0;  // when it began to wait
    std::uint64_t stamp = 0;
  };
  Waiting waiting_;
};

class StoredObjects {
 public:
  void add(StoredObject& object) {
    const std::lock_guard lock(mutex_);
    objects_.push_back(&object);
  }
  /// Does nothing if the object was never added.
  void remove(const StoredObject& object) {
    const std::lock_guard lock(mutex_);
    std::erase(objects_, &object);
  }
  /// The objects of one kind.
  template <class T>
  [[nodiscard]] std::vector<const T*> list() const {
    const std::lock_guard lock(mutex_);
    std::vector<const T*> found;
    for (const StoredObject* object : objects_) {
      if (const auto* of_kind = dynamic_cast<const T*>(object)) found.push_back(of_kind);
    }
    return found;
  }
  /// Calls `use` for each object; no object is removed meanwhile.
  template <class Use>
  void for_each(const Use& use) {
    const std::lock_guard lock(mutex_);
    for (StoredObject* object : objects_) use(*object);
  }

 private:
  mutable std::mutex mutex_;
  std::vector<StoredObject*> objects_;
};

}  // namespace espalier::store
