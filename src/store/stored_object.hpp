// SPDX-License-Identifier: Apache-2.0
// An object whose memory waits for leases when it is dropped (dropped_objects.hpp), as its store
// knows it, whatever its kind; it may keep buffers in reserve. And all such objects of one store.
// A node counts those that wait as dropped maps (wire/node_numbers.hpp), hash maps too.
//
// Thread: any. The objects themselves are the caller's matter: one may be dropped after `list`.
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

  /// Whether it was dropped: once it was, it stays so.
  [[nodiscard]] virtual bool is_dropped() const = 0;
  /// Bytes of all its buffers.
  [[nodiscard]] virtual std::uint64_t memory_bytes() const = 0;
  /// Adds how many buffers of values it has of each class, those that wait for readers included:
  /// for who counts the memory of all objects, and does not know its kind. None: its own kind
  /// counts. Requires: no thread writes to it meanwhile.
  virtual void add_values(std::span<std::uint64_t>) const {}
  /// Has the buffers that it keeps in reserve lie where others lie.
  virtual void repack_spares() = 0;
  /// Takes again what it keeps in reserve for writes that free memory. Returns whether it has all
  /// that these need. Requires: no lock is held but that of StoredObjects.
  [[nodiscard]] virtual bool refill_reserve(memory::BufferCache&) noexcept { return true; }
  /// Gives back some of its memory, in so many steps of bounded work; nothing may ask for memory
  /// meanwhile. Returns whether all is given back. Requires: no thread uses the object any more,
  /// nor will.
  virtual bool free_some(std::uint32_t steps) = 0;
  /// Bytes that free_some() has given back.
  [[nodiscard]] virtual std::uint64_t freed_bytes() const = 0;

 private:
  friend class DroppedObjects;
  /// What it has for the time when it was dropped: then nothing may ask for memory.
  struct Waiting {
    StoredObject* next = nullptr;
    std::uint64_t bytes = 0;      // that wait
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
  /// Those of one kind.
  template <class T>
  [[nodiscard]] std::vector<const T*> list() const {
    const std::lock_guard lock(mutex_);
    std::vector<const T*> found;
    for (const StoredObject* object : objects_) {
      if (const auto* of_kind = dynamic_cast<const T*>(object)) found.push_back(of_kind);
    }
    return found;
  }
  /// Calls `use` for each object; none is removed meanwhile.
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
