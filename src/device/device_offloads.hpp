// SPDX-License-Identifier: Apache-2.0
// The calls as a device serves them, according to each row's rule for devices (wire/call_row.hpp).
//
// A get or a scan has the same handler as on a node: it uses a ServedMap, whatever walks that.
//
// Thread: any, once it was made.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/registry.hpp"

namespace espalier::device {

class DeviceOffloads {
 public:
  /// `host`: its address, for messages of refusal. `own`: kinds of the program, which outlive this.
  explicit DeviceOffloads(const std::string& host, std::span<const offload::Kind> own = {});
  DeviceOffloads(const DeviceOffloads&) = delete;
  DeviceOffloads& operator=(const DeviceOffloads&) = delete;

  [[nodiscard]] const offload::OffloadTable& table() const { return table_; }

 private:
  [[nodiscard]] offload::Offload of(const offload::Kind& kind, const offload::Offload& node) const;

  const std::string refusal_;
  std::vector<offload::Offload> offloads_;
  offload::OffloadTable table_{};
};

}  // namespace espalier::device
