// SPDX-License-Identifier: Apache-2.0
// A device's handling of calls on ordered maps: it walks its host's maps by READs, and forwards
// what READs cannot serve to the host.
#pragma once

#include "engine/registry.hpp"

namespace espalier::device {

/// As offload::Kind::serve_at_device.
void serve_maps_at_device(offload::Offload& made, const offload::Offload& node);

}  // namespace espalier::device
