// SPDX-License-Identifier: Apache-2.0
// The calls as a device serves them, by what each row says of devices (wire/call_row.hpp).
//
// A get or a scan is the same handler as on a node: it knows a ServedMap, whoever walks that.
//
// Thread: any, once it was made.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "offload/registry.hpp"

namespace espalier::device {

class DeviceOffloads {
 public:
  /// `host`: its address, for those who are refused. `own`: kinds of the
  /// program, which outlive this.
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
