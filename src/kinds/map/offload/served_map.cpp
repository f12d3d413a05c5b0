// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/offload/served_map.hpp"

#include "base/epoch_pins.hpp"
#include "kinds/map/write/staged_value.hpp"

namespace espalier::offload {

base::EpochPin ServedMap::pin() { return {}; }

std::optional<tree::StagedValue> ServedMap::stage(std::string_view /*value*/) {
  return std::nullopt;
}

}  // namespace espalier::offload
