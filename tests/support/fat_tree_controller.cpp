// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fat_tree_controller.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "fabric/shared_copy.hpp"

namespace espalier::test {

using place::FeedCursor;
using place::MappingChange;

/// The map of one node, its mapping feed, and the redirect keys that it has given out.
class FatTreeController::Node final : public place::TopologyNode, public place::RegionSource {
 public:
  explicit Node(FatTreeWorld& world, std::uint16_t number)
      : of_(*world.nodes[number]),
        keyed_(world.keys[number].keyed),
        number_(number),
        cursor_(*FeedCursor::create(*of_.map->table.feed().add_follower(), *of_.map)),
        slot_(*of_.store.epochs.join()) {
    generations_.push_back(offer());
  }

  [[nodiscard]] dataplane::MapKeys keys() const override {
    return {keyed_, generations_.back().remote().key, number_};
  }
  [[nodiscard]] dataplane::HintTerms hints() const override {
    return {of_.map->id, generations_.back().remote().base, FatTreeWorld::kPrefix};
  }
  [[nodiscard]] const tree::MapView& view() const override { return *of_.map; }
  [[nodiscard]] place::RegionSource& source() override { return *this; }
  [[nodiscard]] Result<std::optional<std::vector<MappingChange>>> moves() override {
    std::vector<MappingChange> changes;
    bool known = true;
    do {
      fabric::copy_from_shared(landing_.header.data(), of_.map->at(cursor_.header_offset()),
                               landing_.header.size());
      fabric::copy_from_shared(landing_.entries.data(), of_.map->at(cursor_.entries_offset()),
                               cursor_.entries_bytes());
      known = cursor_.take(landing_, changes) == FeedCursor::Came::entries && known;
    } while (cursor_.waiting() != 0);
    if (!known) return std::optional<std::vector<MappingChange>>();
    return std::optional(std::move(changes));
  }
  Result<void> begin_generation() override {
    generations_.push_back(offer());
    if (generations_.size() > 2) generations_.erase(generations_.begin());
    return {};
  }
  Result<void> end_generations_before() override {
    generations_.erase(generations_.begin(), generations_.end() - 1);
    return {};
  }
  Result<void> read(std::span<const Want> wanted) override {
    slot_.enter();
    auto read = place::LocalRegion(of_.store.region.at(0)).read(wanted);
    slot_.exit();
    return read;
  }
  [[nodiscard]] std::size_t generations() const { return generations_.size(); }

 private:
  fabric::Registration offer() {
    return *of_.endpoint.regions().offer_shared(of_.shared, fabric::SharedKind::redirect,
                                                of_.store.region.bytes());
  }

  FatTreeWorld::Node& of_;
  const fabric::RegionKey keyed_;
  const std::uint16_t number_;
  FeedCursor cursor_;
  FeedCursor::Landing landing_;
  base::EpochSlot slot_;
  std::vector<fabric::Registration> generations_;
};

/// A switch's control, as long as it is up.
class FatTreeController::Switch final : public place::TopologySwitch {
 public:
  Switch(FatTreeWorld& world, std::size_t number) : world_(world), number_(number) { begin(); }

  Result<std::string> ask(std::string_view word, std::string_view body) override {
    if (!world_.tree.is_up(number_)) return fail(Code::connection_lost);
    const auto answer = control_->ask(word, body, kHolder);
    if (!answer) return fail(Code::invalid_argument);
    return *answer;
  }
  /// With no tables.
  void begin() {
    control_ = std::make_unique<dataplane::SwitchControl>(world_.tree.function(number_),
                                                          [](std::string&) {});
  }

 private:
  static constexpr dataplane::SwitchControl::Holder kHolder = 1;

  FatTreeWorld& world_;
  const std::size_t number_;
  std::unique_ptr<dataplane::SwitchControl> control_;
};

FatTreeController::FatTreeController(FatTreeWorld& world, const FatTreeWorld::Room& room)
    : world_(world) {
  std::vector<place::TopologyNode*> nodes;
  std::vector<place::TopologySwitch*> switches;
  for (std::uint16_t i = 0; i < FatTreeWorld::kNodes; ++i) {
    nodes.push_back(nodes_.emplace_back(std::make_unique<Node>(world, i)).get());
  }
  for (std::size_t i = 0; i < dataplane::FatTree::kSwitches; ++i) {
    switches.push_back(switches_.emplace_back(std::make_unique<Switch>(world, i)).get());
  }
  controller_.emplace(world.tree.budget(room.ranges, {1, room.nodes}, {2, room.nodes}), nodes,
                      switches, [&world] { return world.network.now_ns(); });
}

FatTreeController::~FatTreeController() = default;

place::TopologyController::Round FatTreeController::round() {
  const auto done = controller_->round();
  EXPECT_TRUE(done) << message(done.error());
  return done.value_or(place::TopologyController::Round());
}

void FatTreeController::take_down(std::size_t number) { world_.tree.set_switch(number, false); }

void FatTreeController::bring_up(std::size_t number) {
  world_.tree.set_switch(number, true);
  switches_[number]->begin();
}

std::size_t FatTreeController::keys_of(std::uint16_t node) const {
  return nodes_[node]->generations();
}

}  // namespace espalier::test
