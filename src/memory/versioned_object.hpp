// SPDX-License-Identifier: Apache-2.0
// Interface of versioned objects to the reclaimer, which frees their old buffers (reclaimer.hpp).
#pragma once

#include <cstdint>

#include "memory/size_class.hpp"

namespace espalier::memory {

class BufferCache;

/// An object whose old versions may still be read. The reclaimer calls both functions under its
/// lock: they must not call the reclaimer, take a lock under which it is called, or have the pool
/// reclaim.
class VersionedObject {
 public:
  /// The id retired with a buffer may be reused. The buffer is not free yet.
  virtual void release_id(std::uint32_t id) noexcept = 0;
  /// A buffer of the object was freed into `cache`; the object may take buffers that it lacks from
  /// there before other threads do. Not called for buffers freed by forget().
  virtual void buffer_freed(SizeClass size_class, BufferCache& cache) noexcept = 0;

 protected:
  ~VersionedObject() = default;
};

}  // namespace espalier::memory
