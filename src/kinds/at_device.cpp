// SPDX-License-Identifier: Apache-2.0
// Registers the kinds that have handlers of their own for devices, or a reader of the host.
#include "kinds/at_device.hpp"

#include "kinds/hash/device/hashes_at_device.hpp"
#include "kinds/hash/device/host_hashes.hpp"
#include "kinds/map/device/host_maps.hpp"
#include "kinds/map/device/maps_at_device.hpp"
#include "kinds/table/device/tables_at_device.hpp"

namespace espalier::device {

decltype(offload::Kind::serve_at_device) served_at_device(std::string_view kind) {
  if (kind == "map") return serve_maps_at_device;
  if (kind == "table") return serve_tables_at_device;
  if (kind == "hash") return serve_hashes_at_device;
  return nullptr;
}

std::vector<std::unique_ptr<HostPart>> make_host_parts(
    offload::TypedSlots<offload::NodePart>& parts, const HostOptions& options) {
  std::vector<std::unique_ptr<HostPart>> made;
  made.push_back(maps_of_host(parts, options));
  made.push_back(hashes_of_host(parts, options));
  return made;
}

}  // namespace espalier::device
