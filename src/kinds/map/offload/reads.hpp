// SPDX-License-Identifier: Apache-2.0
// Common part of reads: the version to read at.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "engine/call.hpp"
#include "kinds/map/offload/snapshot.hpp"

namespace espalier::offload {

/// The source of a read: the newest version, or a named snapshot.
struct ReadSource {
  std::shared_ptr<HeldSnapshot> snapshot;  // null: the newest
  bool found = true;                       // false: the map has no such snapshot

  /// The version for the walk; null: the newest.
  [[nodiscard]] const memory::HeldVersion* held() const {
    return snapshot == nullptr ? nullptr : &snapshot->version();
  }
};

/// `number`: the client's number of the snapshot. `holds`: the snapshot that an earlier step of
/// this request found, which stays even if the client has closed it; null: not looked up yet.
[[nodiscard]] ReadSource read_source(Call& call, std::optional<std::uint64_t> number,
                                     std::shared_ptr<HeldSnapshot> holds);

}  // namespace espalier::offload
