// SPDX-License-Identifier: Apache-2.0
// A real node with a switch before it, controllers that fill its tables, and a client whose READs
// carry keys; every answer is held against a model.
//
// Thread: one.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "client/store_impl.hpp"
#include "dataplane/control_client.hpp"
#include "dataplane/running_switch.hpp"
#include "espalier/espalier.h"
#include "tests/support/node_fixture.hpp"

namespace espalier::test {

class InNetwork : public NodeFixture {
 protected:
  using IndexController = client::IndexController;
  using Did = IndexController::Did;
  static inline const MapOptions kOptions{.node_bytes = 4096, .log_bytes = 512};

  static std::string key_of(std::uint64_t number) {
    const std::string digits = std::to_string(number);
    return "user" + std::string(7 - digits.size(), '0') + digits;
  }

  InNetwork() {
    reach_by("memif");
    config_.node.one_sided = true;
  }
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }
  [[nodiscard]] IndexController controller(std::size_t ranges = 4000, std::size_t sets = 3,
                                           const std::string& map = "m") const {
    return IndexController({.node = *client::parse_node_address(config_.node.fabric),
                            .map = map,
                            .controls = {control()},
                            .limits = {.ranges = ranges, .sets = sets},
                            .count_every_ns = 0});
  }
  void fill(std::uint64_t keys, const MapOptions& options = kOptions) {
    writer_.emplace(*Store::connect(config_.node.fabric));
    written_.emplace(*writer_->create_map("m", options));
    for (std::uint64_t i = 0; i < keys; ++i) put(key_of(i), "value " + std::to_string(i));
  }
  void put(const std::string& key, const std::string& value) {
    ASSERT_TRUE(written_->put(key, value));
    model_[key] = value;
  }
  /// A number of the switch's status.
  [[nodiscard]] std::uint64_t number_of_switch(const std::string& wanted) const {
    std::istringstream lines(*dataplane::ControlClient::connect(control())->ask("status"));
    std::string name;
    for (std::uint64_t value = 0; lines >> name >> value;) {
      if (name == wanted) return value;
    }
    ADD_FAILURE() << "no number " << wanted;
    return 0;
  }
  void open_reader(const std::string& clients = "clients") {
    auto store = Store::connect("roce+memif:" + path(clients), {.access = Access::in_network});
    ASSERT_TRUE(store) << message(store.error());
    reader_.emplace(std::move(*store));
    auto map = reader_->open_map("m");
    ASSERT_TRUE(map) << message(map.error());
    read_.emplace(*map);
  }
  /// READs that a right answer waited for.
  std::uint64_t trips_of(const std::string& key) {
    const auto trips = [&] { return client::StoreImpl::of(*reader_).read_traffic().round_trips; };
    const std::uint64_t before = trips();
    const auto found = read_->get(key);
    EXPECT_TRUE(found) << message(found.error());
    const auto expected = model_.find(key);
    EXPECT_EQ(found && *found ? std::optional((*found)->value) : std::nullopt,
              expected == model_.end() ? std::nullopt : std::optional(expected->second))
        << key;
    return trips() - before;
  }
  /// A round that comes about. Where the machine is so busy that the controller's lease was lost
  /// since the round before, it is told everything anew.
  Did did(IndexController& controller) {
    for (int i = 0; i < 100; ++i) {
      const auto round = controller.round();
      if (round) return *round;
      lost_ = round.error().error.code == Code::connection_lost;
      EXPECT_TRUE(lost_) << message(round.error().error) << ": " << round.error().words;
      if (!lost_) break;
    }
    return Did::nothing;
  }

  /// A get takes so many trips; where a busy machine has lost leases, once they are there again.
  void expect_trips(std::uint64_t wanted, const std::string& key,
                    IndexController* controller = nullptr) {
    std::uint64_t trips = 0;
    for (int i = 0; i < 50 && trips != wanted; ++i) {
      if (i != 0 && controller != nullptr) did(*controller);
      trips = trips_of(key);
    }
    EXPECT_EQ(trips, wanted) << key;
  }

  bool lost_ = false;  // a lease, ever, or since a test has set it back
  std::optional<Store> writer_;
  std::optional<Map> written_;
  std::optional<Store> reader_;
  std::optional<Map> read_;
  std::map<std::string, std::string> model_;
};

}  // namespace espalier::test
