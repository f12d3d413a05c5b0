// SPDX-License-Identifier: Apache-2.0
// What a device does for gets of hash maps: it reads its host's memory, and has the host do what
// READs cannot do.
#pragma once

#include "engine/registry.hpp"

namespace espalier::device {

/// As offload::Kind::serve_at_device.
void serve_hashes_at_device(offload::Offload& made, const offload::Offload& node);

}  // namespace espalier::device
