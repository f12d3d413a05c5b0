// SPDX-License-Identifier: Apache-2.0
// A map of the host, as the requests of one worker of a device reach it: walks of the device's own
// over READs. It is opened at the host when it is first walked, and walks wait for that.
//
// A walk that cannot be done here (the host offers no reads of this map, the lease or the host was
// lost, the walk met changes too often) ends with an error; whether the host is asked then, the
// offload decides (device_offloads.hpp).
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

/// What became of opening a map; filled when the host has answered.
struct MapOpening {
  std::optional<Result<std::shared_ptr<MapReader>>> result;
};

/// What a map of a device needs of its link.
class MapHost {
 public:
  /// Has the host offer a map to be read.
  [[nodiscard]] virtual std::shared_ptr<MapOpening> open_map(std::uint32_t number) = 0;
  /// Asks the host for what the lease needs now, if anything.
  virtual void renew(const std::shared_ptr<MapReader>& reader) = 0;
  /// The clock by which it says how long a map is not asked for again.
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

  /// Whether the host offers this map to be read, as far as is known.
  [[nodiscard]] bool walks() const {
    return refused_until_ns_ == 0 || host_.now_ns() >= refused_until_ns_;
  }
  /// Whether all that walks here is busy, so that what comes next has to wait.
  [[nodiscard]] bool saturated() const;
  /// The host says that there is no such map any more.
  void drop() { dropped_ = true; }

 private:
  void take_opening();
  /// Requires: there is a reader. What is outside of a shard's borders is refused with wrong_shard.
  /// It enters at no hint: whether a node begins where a client says, only the host's own tables
  /// know, and a READ would bring whatever lies there.
  void begin(const tree::WalkRequest& walk);
  void refuse(const tree::WalkRequest& walk, Code code);
  [[nodiscard]] std::size_t pending() const;

  MapHost& host_;
  const std::uint32_t number_;
  std::shared_ptr<MapOpening> opening_;     // asked for, and not answered yet
  std::shared_ptr<MapReader> reader_;       // null: there is none
  std::vector<tree::WalkRequest> waiting_;  // for it to be opened
  struct Failed {
    tree::WalkRequest walk;
    Code code;
  };
  std::vector<Failed> failed_;          // to be told in the next turn
  std::uint64_t refused_until_ns_ = 0;  // walks, by the host; 0: they are not
  bool dropped_ = false;
};

}  // namespace espalier::device
