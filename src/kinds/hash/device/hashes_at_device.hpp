// SPDX-License-Identifier: Apache-2.0
// Handlers of a device for gets of hash maps: the device reads its host's memory, and relays to the
// host what READs cannot serve.
#pragma once

#include "engine/registry.hpp"

namespace espalier::device {

/// As offload::Kind::serve_at_device.
void serve_hashes_at_device(offload::Offload& made, const offload::Offload& node);

}  // namespace espalier::device
