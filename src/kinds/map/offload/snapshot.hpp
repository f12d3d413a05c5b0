// SPDX-License-Identifier: Apache-2.0
// A version of a map that a client holds, or a request that takes several walks.
#pragma once

#include <cstdint>

namespace espalier::memory {
struct HeldVersion;
}

namespace espalier::offload {

/// A version that stays readable as long as this lives. What keeps it, the place knows.
class HeldSnapshot {
 public:
  virtual ~HeldSnapshot() = default;
  HeldSnapshot(const HeldSnapshot&) = delete;
  HeldSnapshot& operator=(const HeldSnapshot&) = delete;

  [[nodiscard]] virtual const memory::HeldVersion& version() const = 0;
  /// The number of its map.
  [[nodiscard]] virtual std::uint32_t map() const = 0;

 protected:
  HeldSnapshot() = default;
};

}  // namespace espalier::offload
