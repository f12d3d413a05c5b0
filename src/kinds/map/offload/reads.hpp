// SPDX-License-Identifier: Apache-2.0
// What reads have in common: at which version they read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "engine/call.hpp"
#include "kinds/map/offload/snapshot.hpp"

namespace espalier::offload {

/// Where a read reads: at the newest version, or at a snapshot that it names.
struct ReadSource {
  std::shared_ptr<HeldSnapshot> snapshot;  // null: the newest
  bool found = true;                       // false: there is no such snapshot of this map

  /// What to walk at.
  [[nodiscard]] const memory::HeldVersion* held() const {
    return snapshot == nullptr ? nullptr : &snapshot->version();
  }
};

/// `number`: by which the client knows the snapshot. `holds`: the snapshot that an earlier step of
/// this request found, which stays, whatever the client has closed meanwhile; null: it was not
/// looked up yet.
[[nodiscard]] ReadSource read_source(Call& call, std::optional<std::uint64_t> number,
                                     std::shared_ptr<HeldSnapshot> holds);

}  // namespace espalier::offload
