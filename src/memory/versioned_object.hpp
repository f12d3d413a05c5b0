// SPDX-License-Identifier: Apache-2.0
// What has versions, and whose old buffers the reclaimer frees (reclaimer.hpp).
#pragma once

#include <cstdint>

#include "memory/size_class.hpp"

namespace espalier::memory {

class BufferCache;

/// An object whose old versions may still be read, as the reclaimer knows it. Both functions are
/// called under the reclaimer's lock: they must not call the reclaimer, take a lock under which it
/// is called, or have the pool reclaim.
class VersionedObject {
 public:
  /// The id that was retired with a buffer may be used again. The buffer is not free yet.
  virtual void release_id(std::uint32_t id) noexcept = 0;
  /// A buffer of the object has come free into `cache`, from which the object may take what it is
  /// short of before other threads do. Not called for what forget() frees.
  virtual void buffer_freed(SizeClass size_class, BufferCache& cache) noexcept = 0;

 protected:
  ~VersionedObject() = default;
};

}  // namespace espalier::memory
