// SPDX-License-Identifier: Apache-2.0
// What a device does for calls on tables: the host, which has the memory, runs them. The device
// keeps the words of loaded pipelines, and passes long answers on as fast as its client takes them.
#pragma once

#include "engine/registry.hpp"

namespace espalier::device {

/// As offload::Kind::serve_at_device.
void serve_tables_at_device(offload::Offload& made, const offload::Offload& node);

}  // namespace espalier::device
