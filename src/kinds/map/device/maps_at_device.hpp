// SPDX-License-Identifier: Apache-2.0
// What a device does for calls on ordered maps: it walks the maps of its host over READs, and has
// the host do what these cannot do.
#pragma once

#include <memory>

#include "channel/device/host_opening.hpp"
#include "channel/device/host_part.hpp"
#include "engine/node_parts.hpp"
#include "engine/registry.hpp"

namespace espalier::device {

/// As offload::Kind::serve_at_device.
void serve_maps_at_device(offload::Offload& made, const offload::Offload& node);

/// The maps of the host, as the next scheduler walks them; the node's part of these names it.
[[nodiscard]] std::unique_ptr<HostPart> maps_of_host(offload::TypedSlots<offload::NodePart>& parts,
                                                     const HostOptions& options);

}  // namespace espalier::device
