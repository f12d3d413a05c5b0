// SPDX-License-Identifier: Apache-2.0
// What a device does for calls on ordered maps: it walks the maps of its host over READs, and has
// the host do what these cannot do.
#pragma once

#include "engine/registry.hpp"

namespace espalier::device {

/// As offload::Kind::serve_at_device.
void serve_maps_at_device(offload::Offload& made, const offload::Offload& node);

}  // namespace espalier::device
