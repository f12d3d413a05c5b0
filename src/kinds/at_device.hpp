// SPDX-License-Identifier: Apache-2.0
// What a device does for calls of the node's own kinds. Beside kinds.cpp, and not in it: a node is
// linked without what a device needs.
#pragma once

#include <string_view>

#include "engine/registry.hpp"

namespace espalier::device {

/// What gives the calls of the node's kind of this name their handlers at a device; null: none of
/// its rows needs one.
[[nodiscard]] decltype(offload::Kind::serve_at_device) served_at_device(std::string_view kind);

}  // namespace espalier::device
