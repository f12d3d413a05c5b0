// SPDX-License-Identifier: Apache-2.0
// Controller of switches: keeps their tables up to date with a map of a node. Each round reads the
// map's mapping feed and sends the entries of leaves that have moved. At the start, when it falls
// behind the feed, and when the tree's shape changes, it reads the tree and compiles it. After a
// fault of a node or a switch, the next round connects again, and installs the switch's tables
// whole. The switches have the same tables each, or stand in a row and have a part each
// (dataplane/way_tables.hpp). Several controllers, of other maps, may fill the tables of one
// switch.
//
// The redirect key that the tables write is valid while the controller's lease is. So the
// controller renews the lease during long operations, and when it is lost makes the switches forget
// the map immediately. Tables that are installed whole write a new key; the key of the previous
// tables is revoked once every switch has the new ones.
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
    std::vector<std::string> controls;  ///< sockets of the switches
    dataplane::TableLimits limits;
    /// For switches in a row, in order from the clients on: the room of each. Requires: `limits`
    /// are those that limits_of() computes from it. Empty: each switch has all tables.
    std::vector<dataplane::HopBudget> hops{};
    /// The node's number at the switches, if a map lies on several nodes; each node has a
    /// controller.
    std::uint16_t number = 0;
    /// A third party's card serves the node's memory, and no READs by key: the last switch is to
    /// redirect what no table has met to the tree's root.
    bool has_card = false;
    ConnectOptions connecting{};  ///< with a secret of the role admin, where the node has secrets
    /// Keys that clients have read, as often as they are here: they count in place of what the
    /// node has counted. Empty: that.
    std::vector<std::string> trace{};
    /// Interval between two reads of the leaves' counts.
    std::uint64_t count_every_ns = 1'000'000'000;
    /// Least interval between two reads of the whole tree.
    std::uint64_t read_every_ns = 0;
  };
  /// What was read of the node since the start.
  struct Counts {
    std::uint64_t trees = 0;   // read whole
    std::uint64_t moves = 0;   // changes reported by the feed
    std::uint64_t behind = 0;  // times that it fell behind the feed, or started
  };
  /// What a round has done, at the switch with the largest change.
  enum class Did : std::uint8_t {
    nothing,    // nothing had changed
    changed,    // entries name other addresses
    installed,  // all tables were installed
  };
  /// The side that could not be reached, or has refused.
  struct Fault {
    enum class Side : std::uint8_t { node, control };
    Side side = Side::node;
    Error error;
    std::string words;    ///< the switch's message; empty: none
    std::string control;  ///< which switch
  };

  explicit IndexController(Options options);

  /// Updates all switches; a fault of one does not keep the others from being updated. Call at
  /// least three times a second. Cost: some round trips; as IndexFollower::follow() if the tree is
  /// read; and a text of the tables if they are installed.
  std::expected<Did, Fault> round();

  /// Makes all reachable switches forget the map: the node then answers all READs.
  void clear();

  /// The follower, as of the last round; null: nothing was read yet.
  [[nodiscard]] const place::IndexFollower* follower() const {
    return follower_ ? &*follower_ : nullptr;
  }
  /// Entries changed one by one, since the start.
  [[nodiscard]] std::uint64_t changes() const { return changes_; }
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  struct Switch {
    Switch(std::string at, std::size_t number) : control(std::move(at)), part(number) {}
    std::string control;
    std::size_t part;  // its part of the tables
    std::optional<dataplane::ControlClient> client;
    bool current = false;   // it has the newest tables
    bool filled = false;    // it may have tables of this controller
    bool has_none = false;  // its installed part is empty
    std::uint64_t asked_ns = 0;
    std::uint64_t rests_until_ns = 0;  // after a fault that would recur in the next round
    std::optional<Fault> fault;        // that fault
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
  std::optional<place::FeedCursor> feed_;         // nothing: no feed, and each round reads the tree
  bool stale_ = false;                            // the tree's shape has changed
  std::uint64_t read_ns_ = 0;                     // when it was read
  Counts counts_;
  bool installed_ = false;  // switches may have tables of the present generation
  bool before_ = false;     // the previous generation's key is valid
  /// When to revoke that key, once no switch has tables that write it; else 0.
  std::uint64_t before_ends_ns_ = 0;
  bool keeps_ = false;  // keep() runs, and waits for a switch
  /// The parts of the tables as text; empty: not made yet.
  std::vector<std::string> programs_;
  std::uint64_t root_ = 0;  // that switches have been sent; 0: none
  std::uint64_t changes_ = 0;
  std::uint64_t counted_ns_ = 0;
};

}  // namespace espalier::client
