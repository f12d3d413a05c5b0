// SPDX-License-Identifier: Apache-2.0
// A held version of a map, for a client or for a request of several walks.
#pragma once

#include <cstdint>

namespace espalier::memory {
struct HeldVersion;
}

namespace espalier::offload {

/// A version that stays readable while this lives. Implementations depend on the place.
class HeldSnapshot {
 public:
  virtual ~HeldSnapshot() = default;
  HeldSnapshot(const HeldSnapshot&) = delete;
  HeldSnapshot& operator=(const HeldSnapshot&) = delete;

  [[nodiscard]] virtual const memory::HeldVersion& version() const = 0;
  /// The id of its map.
  [[nodiscard]] virtual std::uint32_t map() const = 0;

 protected:
  HeldSnapshot() = default;
};

}  // namespace espalier::offload
