// SPDX-License-Identifier: Apache-2.0
// A map of the host as the requests of one device worker use it: walks of the device's own over
// READs. Opened at the host on first use; walks wait for that.
//
// A walk that cannot run here (the host does not offer this map for reading, the lease or the host
// was lost, the walk met changes too often) ends with an error; the offload decides whether to
// forward the request to the host (device_offloads.hpp).
//
// Thread: that of the worker.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "espalier/error.hpp"
#include "kinds/map/offload/served_map.hpp"
#include "kinds/map/walk/walk_request.hpp"

namespace espalier::device {

struct MapReader;

/// Result of opening a map; filled in when the host has answered.
struct MapOpening {
  std::optional<Result<std::shared_ptr<MapReader>>> result;
};

/// What a device's map needs of its link.
class MapHost {
 public:
  /// Asks the host to offer a map for reading.
  [[nodiscard]] virtual std::shared_ptr<MapOpening> open_map(std::uint32_t number) = 0;
  /// Sends the lease's due request to the host, if any.
  virtual void renew(const std::shared_ptr<MapReader>& reader) = 0;
  /// The clock for refusals.
  [[nodiscard]] virtual std::uint64_t now_ns() const { return base::monotonic_ns(); }

 protected:
  ~MapHost() = default;
};

class DeviceMap final : public offload::ServedMap {
 public:
  /// `host` outlives it.
  DeviceMap(MapHost& host, std::uint32_t number) : host_(host), number_(number) {}

  void submit(const espalier::Request& walk, Handler& handler, wire::Ref hint) override;
  void submit(const tree::WalkRequest& walk) override;
  std::size_t advance() override;
  [[nodiscard]] bool keeps_versions() const override { return true; }
  [[nodiscard]] std::shared_ptr<offload::HeldSnapshot> hold(std::uint64_t version,
                                                            const std::string& owner) override;
  [[nodiscard]] bool dropped() const override { return dropped_; }
  [[nodiscard]] std::uint64_t released() const override { return 0; }  // nothing waits for it
  [[nodiscard]] std::shared_ptr<void> keep() const override { return nullptr; }

  /// Whether the host offers this map for reading, as far as is known.
  [[nodiscard]] bool walks() const {
    return refused_until_ns_ == 0 || host_.now_ns() >= refused_until_ns_;
  }
  /// Whether all walks here are busy, so that a further one would wait.
  [[nodiscard]] bool saturated() const;
  /// The host reports that the map no longer exists.
  void drop() { dropped_ = true; }

 private:
  void take_opening();
  /// Requires: there is a reader. Keys outside a shard's borders are refused with wrong_shard.
  /// Ignores hints: only the host's own tables know whether a node begins at an address, and a READ
  /// would return any bytes there.
  void begin(const tree::WalkRequest& walk);
  void refuse(const tree::WalkRequest& walk, Code code);
  [[nodiscard]] std::size_t pending() const;

  MapHost& host_;
  const std::uint32_t number_;
  std::shared_ptr<MapOpening> opening_;     // requested, not answered yet
  std::shared_ptr<MapReader> reader_;       // null: not open
  std::vector<tree::WalkRequest> waiting_;  // until it is open
  struct Failed {
    tree::WalkRequest walk;
    Code code;
  };
  std::vector<Failed> failed_;          // to be completed in the next turn
  std::uint64_t refused_until_ns_ = 0;  // until then the host refuses reads; 0: not refused
  bool dropped_ = false;
};

}  // namespace espalier::device
