// SPDX-License-Identifier: Apache-2.0
// Registers what a device does for calls of the node's own kinds. Apart from kinds.cpp, because a
// node is linked without what a device needs.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "channel/device/host_opening.hpp"
#include "channel/device/host_part.hpp"
#include "engine/node_parts.hpp"
#include "engine/registry.hpp"

namespace espalier::device {

/// The function that gives the calls of the node's kind of this name their handlers at a device;
/// null: none of its calls needs one.
[[nodiscard]] decltype(offload::Kind::serve_at_device) served_at_device(std::string_view kind);

/// Makes what the node's kinds keep for one more scheduler's link to the host; their executors find
/// it by these parts. Requires: `parts` are those of a device's node and outlive no link.
[[nodiscard]] std::vector<std::unique_ptr<HostPart>> make_host_parts(
    offload::TypedSlots<offload::NodePart>& parts, const HostOptions& options);

}  // namespace espalier::device
