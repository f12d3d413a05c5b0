// SPDX-License-Identifier: Apache-2.0
// The maps of one link's host: they are opened there, and their leases are kept. The link has
// the connection, so this runs in a simulated world too: what it asks goes through a HostAsker, and
// what it reads by is given.
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
#include "channel/device/host_part.hpp"
#include "kinds/map/device/device_map.hpp"
#include "kinds/map/device/map_reader.hpp"
#include "kinds/map/offload/maps_elsewhere.hpp"

namespace espalier::device {

struct HostOptions;

struct HostMapsOptions {
  MapReadsOptions reads{};
  /// How often leases of maps that are not read now are looked at.
  std::uint64_t keep_leases_ns = 50'000'000;
};

class HostMaps final : public HostPart, public offload::MapsElsewhere, public MapHost {
 public:
  explicit HostMaps(HostMapsOptions options = {})
      : options_(std::move(options)), now_ns_(options_.reads.now_ns()) {}

  [[nodiscard]] std::unique_ptr<offload::ServedMap> serve(std::uint32_t number) override {
    return std::make_unique<DeviceMap>(*this, number);
  }

  void ask_by(HostAsker* asker) override { asker_ = asker; }
  void read_by(std::shared_ptr<HostReads> reads) override;
  void stop_reading() override;
  [[nodiscard]] bool can_read() const { return reads_ != nullptr; }
  /// And keeps the leases of maps that are not read now.
  void turn(std::uint64_t now_ns) override;
  [[nodiscard]] bool has_leases() const override { return !readers_.empty(); }
  /// Readers that end tell by themselves.
  void count() override;

  [[nodiscard]] std::shared_ptr<MapOpening> open_map(std::uint32_t number) override;
  void renew(const std::shared_ptr<MapReader>& reader) override;
  [[nodiscard]] std::uint64_t now_ns() const override { return options_.reads.now_ns(); }

 private:
  void follow(std::uint32_t number, const std::shared_ptr<MapReader>& reader);
  void ask_renewal(const std::shared_ptr<MapReader>& reader, const place::LeaseGuard::Asked& asked);
  void keep_idle_leases();

  const HostMapsOptions options_;
  std::uint64_t now_ns_;  // of this turn
  std::uint64_t leases_kept_ns_ = 0;
  HostAsker* asker_ = nullptr;       // null: the host is gone
  std::shared_ptr<MapReads> reads_;  // null: nothing can be read
  std::vector<std::weak_ptr<MapReader>> readers_;
};

/// The maps of the host, as the next scheduler walks them; the node's part of these names it.
[[nodiscard]] std::unique_ptr<HostPart> maps_of_host(offload::TypedSlots<offload::NodePart>& parts,
                                                     const HostOptions& options);

}  // namespace espalier::device
