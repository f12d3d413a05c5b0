// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/offload/served_map.hpp"

#include "base/epoch_pins.hpp"
#include "memory/staged_bytes.hpp"

namespace espalier::offload {

base::EpochPin ServedMap::pin() { return {}; }

std::optional<memory::StagedBytes> ServedMap::stage(std::string_view /*value*/) {
  return std::nullopt;
}

}  // namespace espalier::offload
