// SPDX-License-Identifier: Apache-2.0
// A node in a process of its own, for tests whose clients are processes too. It needs no program,
// so it works in every build, also under ThreadSanitizer.
//
// Thread: belongs to one, the only one in the process when this is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "node/config.hpp"
#include "node/node.hpp"
#include "tests/support/child.hpp"

namespace espalier::test {

/// What such a node holds when no client is connected.
struct IdleNumbers {
  std::uint64_t taken_bytes = 0;         ///< of its region, from the system
  std::uint64_t node_bytes = 0;          ///< of tree nodes of all maps
  std::uint64_t value_bytes = 0;         ///< of out-of-line values of all maps
  std::uint64_t retired_bytes = 0;       ///< unlinked and not yet free
  std::uint64_t long_message_bytes = 0;  ///< of incomplete messages
  std::uint64_t snapshots = 0;
  std::uint64_t epoch_participants = 0;
  std::uint64_t resident_bytes = 0;  ///< of the process
  std::uint64_t heap_bytes = 0;      ///< allocated and not freed; 0 where a sanitizer allocates
  std::uint64_t descriptors = 0;     ///< of the process
  std::uint64_t requests = 0;        ///< done since it started
  std::uint64_t items = 0;           ///< of all maps
};

class ForkedNode {
 public:
  /// Starts it and waits until it serves. Throws the reason of a failure.
  explicit ForkedNode(const node::Config& config, const node::NodeOptions& options = {});
  ForkedNode(const ForkedNode&) = delete;
  ForkedNode& operator=(const ForkedNode&) = delete;

  /// Its fabric addresses, as configured, with the actual ports.
  [[nodiscard]] const std::vector<std::string>& fabric_addresses() const { return addresses_; }
  /// Waits until no client is connected and nothing is in flight, and gets the numbers. If that
  /// never happens, this waits for ever, and the watchdog of all tests ends it. Throws if the node
  /// is gone.
  IdleNumbers idle_numbers();
  /// Stops it. Returns what was wrong with its structures and its end; empty: nothing.
  std::string stop();

 private:
  std::string ask(const std::string& question);

  Child child_;
  std::vector<std::string> addresses_;
};

}  // namespace espalier::test
