// SPDX-License-Identifier: Apache-2.0
// The kind, as a node gets it (NodeOptions::own_kinds).
#pragma once

#include "engine/registry.hpp"

namespace espalier::example {

[[nodiscard]] const offload::Kind& queue_kind();

}  // namespace espalier::example
