// SPDX-License-Identifier: Apache-2.0
// A switch between clients and a node, each at the far end of a memif link (fabric/memif/link.hpp):
// what clients send goes through the packet function on its way to the node.
//
//   client -- link n --> clients' socket | switch | node's socket -- link n --> node
//
// A client's link has the same number behind the switch, so addresses stay as they are and neither
// end knows of the switch. The link to the node is opened when a client connects; either of the two
// ends with the other. A number that is in use at the node is refused to clients for a while, so
// that they take another. All packets of a pair take one way and keep their order. Frames that find
// no room are lost, as in any switch.
//
// It may lead to several nodes, of maps that lie on several: then clients have a socket for each,
// and what comes at one goes to its node.
//
// Several may stand in a row, each the node of the one before; then each is configured with its
// position, and they share the tables (shim.hpp).
//
// Only frames towards the node are rewritten: keys are the node's, and a client may offer memory by
// a key of the same number.
//
// Thread: one at a time, but for wake() and counters().
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "dataplane/installed_function.hpp"
#include "espalier/error.hpp"

namespace espalier::dataplane {

struct SwitchCounters {
  /// READs that were redirected by so many sets, the last entry being for those and more.
  static constexpr std::size_t kSetsMax = 8;

  std::uint64_t to_node = 0;  // frames that went on
  std::uint64_t to_clients = 0;
  std::uint64_t lost = 0;           // for want of room, or of a link
  std::uint64_t links_up = 0;       // came up, from client to node
  std::uint64_t links_down = 0;     // ended, after they had been up
  std::uint64_t reads_passed = 0;   // READ requests by keys that no table is for
  std::uint64_t keys_unknown = 0;   // of these, by keyed keys: their maps have no tables here
  std::uint64_t unknown_key = 0;    // the last one of these
  std::uint64_t carried = 0;        // READs that went to the next switch with a shim of this one
  std::uint64_t shims_passed = 0;   // of tables that this switch does not have: they went on
  std::uint64_t shims_removed = 0;  // the same, at the last switch: the READ went on without
  std::uint64_t shims_dropped = 0;  // from hosts, and at the last switch those that are not whole
  std::uint64_t gets_hinted = 0;    // in datagrams, that say now where their walks may begin
  std::array<std::uint64_t, kSetsMax + 1> redirected{};

  [[nodiscard]] std::uint64_t redirected_in_all() const {
    return std::accumulate(redirected.begin(), redirected.end(), std::uint64_t{0});
  }
};

class MemifSwitch {
 public:
  struct Options {
    std::string clients;  // the socket that it listens at
    std::string node;     // the one that it connects to
    bool first = true;    // clients come to it, and no other switch's frames
    bool last = true;     // the node is behind it, and no other switch
    /// Ways to further nodes, whose numbers in tables are 1, 2 and so on.
    struct Way {
      std::string clients;
      std::string node;
    };
    std::vector<Way> more{};
  };
  static constexpr std::size_t kNodesMax = 64;

  /// `function` outlives it. The node need not be there yet: clients come through when it is.
  /// Errors: invalid_argument (no path of a socket, or more nodes than kNodesMax), already_exists
  /// (a process listens at `clients`), system.
  static Result<std::unique_ptr<MemifSwitch>> open(const Options& options,
                                                   InstalledFunction& function);
  MemifSwitch() = default;
  MemifSwitch(const MemifSwitch&) = delete;
  MemifSwitch& operator=(const MemifSwitch&) = delete;
  virtual ~MemifSwitch() = default;

  /// Moves at most a burst of each link in each direction. Returns how many frames came.
  virtual std::size_t poll() = 0;
  /// Sleeps until a frame or a client comes, or wake(), or for so long.
  virtual void wait(std::uint64_t timeout_ns) = 0;
  virtual void wake() = 0;
  /// As of some moment during the call.
  [[nodiscard]] virtual SwitchCounters counters() const = 0;
  /// Links from client to node that are up. As counters().
  [[nodiscard]] virtual std::size_t links() const = 0;
};

}  // namespace espalier::dataplane
