// SPDX-License-Identifier: Apache-2.0
// The maps of one link's host: they are opened there, and their leases are kept. Beside DeviceLink,
// which has the connection, so that it runs in a simulated world too: what it asks goes through a
// HostAsker, and what it reads by is given.
//
// What never happens
// - Something is read on after the host has refused to renew one of the leases: the session stands
//   and falls with all of them, those of maps that are not read now too.
//
// Thread: that of the worker.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "channel/device/host_asker.hpp"
#include "kinds/map/device/device_map.hpp"
#include "kinds/map/device/map_reader.hpp"

namespace espalier::device {

struct HostMapsOptions {
  /// The clock of leases.
  std::function<std::uint64_t()> now_ns = base::monotonic_ns;
  /// How often leases of maps that are not read now are looked at.
  std::uint64_t keep_leases_ns = 50'000'000;
};

class HostMaps final : public MapHost {
 public:
  explicit HostMaps(HostMapsOptions options = {})
      : options_(std::move(options)), now_ns_(options_.now_ns()) {}

  /// By what the host is asked from here on, which outlives the next call; null: it is gone.
  void ask_by(HostAsker* asker) { asker_ = asker; }
  /// By what is read from here on. Maps that are open by something else stay as they are.
  void read_by(std::shared_ptr<HostReads> reads) { reads_ = std::move(reads); }
  /// What is read ends.
  void stop_reading();
  [[nodiscard]] bool can_read() const { return reads_ != nullptr; }

  /// Lets go of reads that failed, and keeps the leases of maps that are not read now.
  void turn(std::uint64_t now_ns);
  /// Whether there may be leases to keep.
  [[nodiscard]] bool has_readers() const { return !readers_.empty(); }
  /// Tells what was read since it last did; readers that end tell by themselves.
  void count();

  [[nodiscard]] std::shared_ptr<MapOpening> open_map(std::uint32_t number) override;
  void renew(const std::shared_ptr<MapReader>& reader) override;
  [[nodiscard]] std::uint64_t now_ns() const override { return options_.now_ns(); }

 private:
  void follow(std::uint32_t number, const std::shared_ptr<MapReader>& reader);
  void ask_renewal(const std::shared_ptr<MapReader>& reader, const place::LeaseGuard::Asked& asked);
  void keep_idle_leases();

  const HostMapsOptions options_;
  std::uint64_t now_ns_;  // of this turn
  std::uint64_t leases_kept_ns_ = 0;
  HostAsker* asker_ = nullptr;        // null: the host is gone
  std::shared_ptr<HostReads> reads_;  // null: nothing can be read
  std::vector<std::weak_ptr<MapReader>> readers_;
};

}  // namespace espalier::device
