// SPDX-License-Identifier: Apache-2.0
// The controller of a switch: has its tables follow a map of a node. Round by round it reads the
// map's mapping feed and sends the switch the entries of leaves that have moved. When it begins,
// when it is behind the feed, and when the tree has another shape, it reads the tree and compiles
// it. A node or a switch that is gone is sought again in the next round, and then the switch gets
// everything.
//
// A switch has one controller: tables that are installed replace all that it had.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "client/index_link.hpp"
#include "dataplane/switch_control.hpp"
#include "place/index_follower.hpp"

namespace espalier::client {

class IndexController {
 public:
  struct Options {
    NodeAddress node;
    std::string map;
    std::string control;  ///< the socket of the switch
    dataplane::TableLimits limits;
    ClientSecret secret{};  ///< of the role admin, where the node has secrets
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
  /// What a round has done.
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
    std::string words;  ///< the switch's; empty: none
  };

  explicit IndexController(Options options) : options_(std::move(options)) {}

  /// Cost: some round trips; as IndexFollower::follow() where the tree is read; and a text of the
  /// tables where they are installed.
  std::expected<Did, Fault> round();

  /// Leaves the switch without tables, if it can be reached: the node answers in their place.
  void clear();

  /// Null: none was read yet. Of the last round.
  [[nodiscard]] const place::IndexFollower* follower() const {
    return follower_ ? &*follower_ : nullptr;
  }
  /// Entries that it has changed one by one, ever.
  [[nodiscard]] std::uint64_t changes() const { return changes_; }
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  std::expected<place::IndexFollower::Changes, Fault> read_tree();
  Result<place::LeafCounts> count_leaves();
  Result<void> open_link();
  Result<void> read_feed();
  Result<void> read_shape();
  std::expected<void, Fault> reach_switch();
  std::expected<std::string, Fault> send(std::string_view word, std::string_view body);
  Fault lose_node(const Error& error);

  const Options options_;
  std::unique_ptr<IndexLink> link_;
  std::optional<place::IndexFollower> follower_;  // of this link
  std::optional<dataplane::ControlClient> control_;
  std::optional<place::FeedCursor> feed_;  // nothing: there is none, and each round reads the tree
  bool stale_ = false;                     // the tree has another shape than was read
  std::uint64_t read_ns_ = 0;              // when it was read
  Counts counts_;
  bool current_ = false;  // the switch has what was compiled last
  std::uint64_t changes_ = 0;
  std::uint64_t counted_ns_ = 0;
};

}  // namespace espalier::client
