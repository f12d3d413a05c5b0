// SPDX-License-Identifier: Apache-2.0
// Calls on tables at a device: the host, which has the memory, runs them. The device knows the
// loaded pipelines, and relays long answers as fast as its client takes them.
#pragma once

#include "engine/registry.hpp"

namespace espalier::device {

/// As offload::Kind::serve_at_device.
void serve_tables_at_device(offload::Offload& made, const offload::Offload& node);

}  // namespace espalier::device
