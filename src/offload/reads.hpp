// SPDX-License-Identifier: Apache-2.0
// What reads have in common: at which version they read.
#pragma once

#include <memory>
#include <string_view>

#include "offload/call.hpp"

namespace espalier::offload {

/// Where a read reads: at the newest version, or at a snapshot that its payload names.
struct ReadSource {
  std::shared_ptr<HeldSnapshot> snapshot;  // null: the newest
  std::string_view payload;                // behind the snapshot's number
  bool found = true;                       // false: there is no such snapshot of this map

  /// What to walk at.
  [[nodiscard]] const tree::HeldVersion* held() const {
    return snapshot == nullptr ? nullptr : &snapshot->version();
  }
};

/// `holds`: the snapshot that an earlier step of this request found, which stays, whatever the
/// client has closed meanwhile; null: it was not looked up yet.
[[nodiscard]] ReadSource read_source(Call& call, std::shared_ptr<HeldSnapshot> holds);

}  // namespace espalier::offload
