// SPDX-License-Identifier: Apache-2.0
// The maps of one link's host: opens them there, and renews their leases. Independent of the
// connection, which the link owns, so that it also runs in simulation: requests go through a
// HostAsker, and reads through a given port.
//
// Invariant
// - Nothing is read after the host has refused to renew one of the leases: a session lives as long
//   as all its leases, including those of maps not read now.
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
  /// Interval of checking leases of maps that are not read now.
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
  /// Also renews leases of maps that are not read now.
  void turn(std::uint64_t now_ns) override;
  [[nodiscard]] bool has_leases() const override { return !readers_.empty(); }
  /// Closing readers publish their own counts.
  void count() override;

  [[nodiscard]] std::shared_ptr<MapOpening> open_map(std::uint32_t number) override;
  void renew(const std::shared_ptr<MapReader>& reader) override;
  [[nodiscard]] std::uint64_t now_ns() const override { return options_.reads.now_ns(); }

 private:
  void follow(std::uint32_t number, const std::shared_ptr<MapReader>& reader);
  void ask_renewal(const std::shared_ptr<MapReader>& reader, const place::LeaseGuard::Asked& asked);
  void keep_idle_leases();

  const HostMapsOptions options_;
  std::uint64_t now_ns_;  // time of this turn
  std::uint64_t leases_kept_ns_ = 0;
  HostAsker* asker_ = nullptr;       // null: the host is disconnected
  std::shared_ptr<MapReads> reads_;  // null: no READs are possible
  std::vector<std::weak_ptr<MapReader>> readers_;
};

/// The maps of the host for the next scheduler; registers them in the node's part.
[[nodiscard]] std::unique_ptr<HostPart> maps_of_host(offload::TypedSlots<offload::NodePart>& parts,
                                                     const HostOptions& options);

}  // namespace espalier::device
