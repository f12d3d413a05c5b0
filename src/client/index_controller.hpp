// SPDX-License-Identifier: Apache-2.0
// The controller of a switch: has its tables follow a map of a node. Round by round it reads the
// tree, compiles it, and sends the switch what is new. A node or a switch that is gone is sought
// again in the next round, and then the switch gets everything.
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
    /// Between two looks at which leaves are read most.
    std::uint64_t count_every_ns = 1'000'000'000;
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

  /// Cost: as IndexFollower::follow(), and a text of the tables where they are installed.
  std::expected<Did, Fault> round();

  /// Leaves the switch without tables, if it can be reached: the node answers in their place.
  void clear();

  /// Null: none was read yet. Of the last round.
  [[nodiscard]] const place::IndexFollower* follower() const {
    return follower_ ? &*follower_ : nullptr;
  }
  /// Entries that it has changed one by one, ever.
  [[nodiscard]] std::uint64_t changes() const { return changes_; }

 private:
  std::expected<place::IndexFollower::Changes, Fault> read_tree();
  Result<place::LeafCounts> count_leaves();
  std::expected<void, Fault> reach_switch();
  std::expected<std::string, Fault> send(std::string_view word, std::string_view body);
  Fault lose_node(const Error& error);

  const Options options_;
  std::unique_ptr<IndexLink> link_;
  std::optional<place::IndexFollower> follower_;  // of this link
  std::optional<dataplane::ControlClient> control_;
  bool current_ = false;  // the switch has what was compiled last
  std::uint64_t changes_ = 0;
  std::uint64_t counted_ns_ = 0;
};

}  // namespace espalier::client
