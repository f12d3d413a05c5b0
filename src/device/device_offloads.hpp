// SPDX-License-Identifier: Apache-2.0
// What a device does itself and what it has its host do.
//
//   here      noop, cancel; get, floor, scans and counts of the newest state, by walks over READs
//   relayed   writes, batches, counters, sequencers, maps as a whole, snapshots and reads at them,
//             lists and numbers; and any read that could not be done here
//   streamed  queries of tables and reading their rows: as fast as the client takes what comes
//   refused   one-sided access, windows to write and buffers for results; for encrypted tables,
//             reservations and keys: clients ask the host for these
//
// A get or a scan is the same handler as on a node: it knows a ServedMap, whoever walks that.
//
// Thread: any, once it was made.
#pragma once

#include <string>
#include <vector>

#include "offload/registry.hpp"

namespace espalier::device {

class DeviceOffloads {
 public:
  /// `host`: its address, for those who are refused.
  explicit DeviceOffloads(const std::string& host);
  DeviceOffloads(const DeviceOffloads&) = delete;
  DeviceOffloads& operator=(const DeviceOffloads&) = delete;

  [[nodiscard]] const offload::OffloadTable& table() const { return table_; }

 private:
  [[nodiscard]] offload::Offload of(const offload::Offload& node) const;

  const std::string refusal_;
  std::vector<offload::Offload> offloads_;
  offload::OffloadTable table_{};
};

}  // namespace espalier::device
