// SPDX-License-Identifier: Apache-2.0
// Controller of all switches of a topology, for a map that lies on several nodes. It follows the
// trees of all nodes, compiles them together, cuts the tables over the switches of each path
// (dataplane/way_tables.hpp), and sends each switch its part. Interfaces below hide how it reaches
// switches and nodes.
//
// A switch that cannot be reached does not keep others from being updated; when it is back its
// tables are installed whole. A restart of all switches is rolling: the next one begins when every
// switch has its tables again, so at most one is without.
//
// Invariants
// - A switch is never sent a change of tables that it does not have.
// - The keys of a generation are not revoked while a switch may have tables with them, nor before
//   READs that it has redirected have arrived.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/way_tables.hpp"
#include "index/index_follower.hpp"

namespace espalier::place {

/// One of the nodes.
class TopologyNode {
 public:
  TopologyNode() = default;
  TopologyNode(const TopologyNode&) = delete;
  TopologyNode& operator=(const TopologyNode&) = delete;
  virtual ~TopologyNode() = default;

  /// Of the present generation.
  [[nodiscard]] virtual dataplane::MapKeys keys() const = 0;
  [[nodiscard]] virtual dataplane::HintTerms hints() const = 0;
  [[nodiscard]] virtual const tree::MapView& view() const = 0;
  [[nodiscard]] virtual RegionSource& source() = 0;
  /// Moves since the last call; nothing: they are not known, and the tree must be read.
  [[nodiscard]] virtual Result<std::optional<std::vector<MappingChange>>> moves() = 0;
  /// How often leaves are read by now; empty: that is not known, or need not be known again yet.
  [[nodiscard]] virtual Result<LeafCounts> counts() { return LeafCounts(); }
  /// Another redirect key; the one before stays good until end_generations_before().
  virtual Result<void> begin_generation() = 0;
  virtual Result<void> end_generations_before() = 0;
};

/// One of the switches: asks it as dataplane::SwitchControl is asked. Between two calls that it has
/// answered it has not begun anew: a switch that has is first found out of reach, or holds nothing.
class TopologySwitch {
 public:
  TopologySwitch() = default;
  TopologySwitch(const TopologySwitch&) = delete;
  TopologySwitch& operator=(const TopologySwitch&) = delete;
  virtual ~TopologySwitch() = default;

  /// Errors: connection_lost (no reply), invalid_argument (it has refused).
  virtual Result<std::string> ask(std::string_view word, std::string_view body) = 0;
};

class TopologyController {
 public:
  /// A READ that a switch has redirected reaches the node within this time, or is lost.
  static constexpr std::uint64_t kLateReadsNs = 100'000'000;

  /// What a round has done.
  struct Round {
    bool compiled = false;         // new tables, under a new generation
    std::size_t changes = 0;       // entries
    std::size_t installed = 0;     // switches whose tables were installed whole
    std::size_t out_of_reach = 0;  // switches that could not be updated
  };

  /// As many nodes as paths, and as many switches as the budget has; all must outlive it. `now_ns`:
  /// the time. Requires: limits_of() takes the budget.
  TopologyController(dataplane::TopologyBudget topology, std::vector<TopologyNode*> nodes,
                     std::vector<TopologySwitch*> switches, std::function<std::uint64_t()> now_ns);

  /// Updates all reachable switches. Errors: those of nodes, all of which must be reached; after an
  /// error make another controller.
  Result<Round> round();
  /// Has `restart` restart each switch, from this number on, one by one with the rounds that
  /// follow: the next when the one before has been gone, and all have their tables again. `restart`
  /// need not wait for that.
  void restart_all(std::function<void(std::size_t number)> restart, std::size_t first = 0);
  [[nodiscard]] bool is_restarting() const { return restart_ != nullptr; }
  /// The switch that is to be restarted next. Requires: is_restarting().
  [[nodiscard]] std::size_t next_restart() const { return next_restart_; }
  /// Whether every switch has what was compiled last, and none is about to be restarted.
  [[nodiscard]] bool all_current() const;

  /// Has long work (compiling, writing tables) be done by this, which returns when it is over: so
  /// that leases can be renewed meanwhile. By default it is called.
  using Work = std::function<void()>;
  void do_long_work_by(std::function<void(const Work& work)> does) { does_ = std::move(does); }
  /// Trees are read again no sooner than this after the last time, by default at once.
  void read_no_sooner_than(std::uint64_t ns) { read_every_ns_ = ns; }

 private:
  struct SwitchState {
    bool current = false;   // it has what was compiled last
    bool filled = false;    // it may have something of a generation before
    bool has_none = false;  // of what it was put: its part is empty
    bool restarts = false;  // it is about to be gone
  };

  Result<void> follow_nodes();
  Result<bool> read_trees();
  Result<bool> compile(std::vector<dataplane::EntryChange>& changes);
  [[nodiscard]] std::vector<dataplane::IndexTables> tables_of(
      std::span<const dataplane::TreeImage> images) const;
  Result<void> begin_generation();
  Result<void> end_generation_before();
  [[nodiscard]] bool update(std::size_t number, std::span<const dataplane::EntryChange> changes,
                            Round& round);
  void restart_next();
  const dataplane::SwitchProgram& program(std::size_t number);

  const dataplane::TopologyBudget topology_;
  const std::vector<TopologyNode*> nodes_;
  const std::vector<TopologySwitch*> switches_;
  const std::function<std::uint64_t()> now_ns_;
  std::vector<IndexFollower> followers_;            // of each node
  std::vector<bool> stale_;                         // the tree is to be read again
  bool counted_ = false;                            // counts are others than were compiled by
  std::vector<SwitchState> states_;                 // of each switch
  std::vector<dataplane::SwitchProgram> programs_;  // of all; empty: not made yet
  std::uint32_t generation_ = 0;
  bool before_ = false;  // the previous generation's keys are valid
  std::uint64_t before_ends_ns_ = 0;
  std::uint64_t read_every_ns_ = 0;
  std::uint64_t read_ns_ = 0;  // when trees were read; 0: never
  std::function<void(const Work& work)> does_ = [](const Work& work) { work(); };
  std::function<void(std::size_t)> restart_;  // null: none is to be restarted
  std::size_t next_restart_ = 0;
};

}  // namespace espalier::place
