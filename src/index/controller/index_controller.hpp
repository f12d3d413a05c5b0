// SPDX-License-Identifier: Apache-2.0
// The controller of switches: has their tables follow a map of a node. Round by round it reads the
// map's mapping feed and sends them the entries of leaves that have moved. When it begins, when it
// is behind the feed, and when the tree has another shape, it reads the tree and compiles it. A
// node or a switch that is gone is sought again in the next round, and then that switch gets
// everything. Switches have the same tables each, or stand in a row and have a part each
// (dataplane/way_tables.hpp). Several controllers, of other maps, may fill the tables of one
// switch.
//
// The key that the tables write is good while the controller's lease is. So the lease is renewed
// while something takes long, and where it is lost the switches forget the map at once. Tables that
// are told whole write a key of their own; that of the tables before is void once every switch has
// the new ones.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dataplane/control_client.hpp"
#include "dataplane/way_tables.hpp"
#include "index/controller/index_link.hpp"
#include "index/index_follower.hpp"

namespace espalier::client {

class IndexController {
 public:
  struct Options {
    NodeAddress node;
    std::string map;
    std::vector<std::string> controls;  ///< the sockets of the switches
    dataplane::TableLimits limits;
    /// Where the switches stand in a row, in their order from the clients on: the room of each.
    /// What `limits` says must be theirs (limits_of()). Empty: each has all.
    std::vector<dataplane::HopBudget> hops{};
    /// Which node it is to the switches, where a map lies on several: each has a controller.
    std::uint16_t number = 0;
    /// A third party's card serves the node's memory, and no READs by key: the last switch is to
    /// redirect what no table has met to the tree's root.
    bool has_card = false;
    ConnectOptions connecting{};  ///< with a secret of the role admin, where the node has secrets
    /// Keys that somebody has read, as often as they are here: they count in place of what the
    /// node has counted. Empty: that.
    std::vector<std::string> trace{};
    /// Between two looks at which leaves are read most.
    std::uint64_t count_every_ns = 1'000'000'000;
    /// Between two times that the tree is read whole, at least.
    std::uint64_t read_every_ns = 0;
  };
  /// What was read of the node, ever.
  struct Counts {
    std::uint64_t trees = 0;   // that were read whole
    std::uint64_t moves = 0;   // changes that the feed told
    std::uint64_t behind = 0;  // times that it was behind the feed, or began
  };
  /// What a round has done; at the switch that was told most.
  enum class Did : std::uint8_t {
    nothing,    // all was as before
    changed,    // entries name other addresses
    installed,  // the switch got everything
  };
  /// Which side could not be reached, or has refused.
  struct Fault {
    enum class Side : std::uint8_t { node, control };
    Side side = Side::node;
    Error error;
    std::string words;    ///< the switch's; empty: none
    std::string control;  ///< which switch
  };

  explicit IndexController(Options options);

  /// The fault of one switch keeps no other one from being told. To be called at least three times
  /// a second. Cost: some round trips; as IndexFollower::follow() where the tree is read; and a
  /// text of the tables where they are installed.
  std::expected<Did, Fault> round();

  /// Has the switches that can be reached forget the map: the node answers in their place.
  void clear();

  /// Null: none was read yet. Of the last round.
  [[nodiscard]] const place::IndexFollower* follower() const {
    return follower_ ? &*follower_ : nullptr;
  }
  /// Entries that it has changed one by one, ever.
  [[nodiscard]] std::uint64_t changes() const { return changes_; }
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  struct Switch {
    Switch(std::string at, std::size_t number) : control(std::move(at)), part(number) {}
    std::string control;
    std::size_t part;  // of the tables
    std::optional<dataplane::ControlClient> client;
    bool current = false;   // it has what was compiled last
    bool filled = false;    // it may have something of this controller
    bool has_none = false;  // of what it was put: its part is empty
    std::uint64_t asked_ns = 0;
    std::uint64_t rests_until_ns = 0;  // after a fault that the next round would meet again
    std::optional<Fault> fault;        // that one
  };

  [[nodiscard]] dataplane::WayBudget way() const { return {options_.limits.ranges, options_.hops}; }
  std::expected<place::IndexFollower::Changes, Fault> read_tree();
  Result<place::LeafCounts> count_leaves();
  Result<void> open_link();
  Result<void> begin_generation();
  Result<void> end_generation_before();
  void send_root();
  Result<void> read_feed();
  Result<void> read_shape();
  std::vector<std::string> text_of(std::span<const dataplane::EntryChange> changes) const;
  std::expected<Did, Fault> update(Switch& to, std::string_view changes);
  std::expected<void, Fault> reach(Switch& to);
  std::expected<std::string, Fault> send(Switch& to, std::string_view word, std::string_view body,
                                         std::uint64_t longest_ns);
  const std::string& program(std::size_t part);
  template <class Work>
  auto while_kept(const Work& work);
  void keep(const Switch* besides = nullptr);
  Fault lose_node(const Error& error);

  const Options options_;
  std::vector<Switch> switches_;
  std::unique_ptr<IndexLink> link_;
  std::optional<place::IndexFollower> follower_;  // of this link
  std::optional<place::FeedCursor> feed_;  // nothing: there is none, and each round reads the tree
  bool stale_ = false;                     // the tree has another shape than was read
  std::uint64_t read_ns_ = 0;              // when it was read
  Counts counts_;
  bool installed_ = false;  // switches may have tables of the present generation
  bool before_ = false;     // and the key of the one before is good
  /// When that is to end, for no switch has tables that write it any more; or 0.
  std::uint64_t before_ends_ns_ = 0;
  bool keeps_ = false;  // it is asking switches, and one of them is waited for
  /// What each part of the tables is as text; empty: not made yet.
  std::vector<std::string> programs_;
  std::uint64_t root_ = 0;  // that switches have been sent; 0: none
  std::uint64_t changes_ = 0;
  std::uint64_t counted_ns_ = 0;
};

}  // namespace espalier::client
