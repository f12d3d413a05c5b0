// SPDX-License-Identifier: Apache-2.0
// What a device does for calls of the node's own kinds. Beside kinds.cpp, and not in it: a node is
// linked without what a device needs.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "channel/device/host_opening.hpp"
#include "channel/device/host_part.hpp"
#include "engine/node_parts.hpp"
#include "engine/registry.hpp"

namespace espalier::device {

/// What gives the calls of the node's kind of this name their handlers at a device; null: none of
/// its rows needs one.
[[nodiscard]] decltype(offload::Kind::serve_at_device) served_at_device(std::string_view kind);

/// What the node's kinds keep with the link of one more scheduler to the host, by whose parts their
/// executors find it. Requires: `parts` are those of a device's node and outlive no link.
[[nodiscard]] std::vector<std::unique_ptr<HostPart>> make_host_parts(
    offload::TypedSlots<offload::NodePart>& parts, const HostOptions& options);

}  // namespace espalier::device
