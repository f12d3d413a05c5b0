// SPDX-License-Identifier: Apache-2.0
// Where kinds are registered that have handlers of their own for devices.
#include "kinds/at_device.hpp"

#include "kinds/map/device/maps_at_device.hpp"
#include "kinds/table/device/tables_at_device.hpp"

namespace espalier::device {

decltype(offload::Kind::serve_at_device) served_at_device(std::string_view kind) {
  if (kind == "map") return serve_maps_at_device;
  if (kind == "table") return serve_tables_at_device;
  return nullptr;
}

}  // namespace espalier::device
