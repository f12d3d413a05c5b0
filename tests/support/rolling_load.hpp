// SPDX-License-Identifier: Apache-2.0
// Clients of a node that connect, work, leave, violate its protocol, and are killed: processes,
// several at a time, each replaced as soon as it is gone.
//
// Each connects through the node's socket or over a fabric. There are three kinds. Workers do
// everything that a map can do on keys of their own, check every answer against what they wrote,
// and leave. Victims are workers that are killed (SIGKILL) at some moment. Hostile ones are those
// of tests/support/hostile.hpp, which kill themselves. Workers report progress; these reports, not
// a clock, drive the load.
//
// Thread: belongs to one, the only one in the process.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/child.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {

struct RollingLoadOptions {
  std::string socket;
  std::vector<std::string> fabric;  ///< addresses that they use as well as the socket
  std::uint64_t seed = 1;
  std::uint32_t at_a_time = 6;
};

/// Counts so far.
struct RollingLoadCounts {
  std::uint64_t came = 0;
  std::uint64_t went = 0;       ///< workers that had finished
  std::uint64_t killed = 0;     ///< victims
  std::uint64_t hostile = 0;    ///< that have died
  std::uint64_t by_fabric = 0;  ///< of all clients
};

class RollingLoad {
 public:
  explicit RollingLoad(RollingLoadOptions options)
      : options_(std::move(options)), random_(options_.seed) {}

  /// Runs clients until `enough` holds, which is checked after each report and every 50 ms; then
  /// kills all that are left. Throws what a client got wrong.
  void run(const std::function<bool(const RollingLoadCounts&)>& enough);
  /// Erases all items and drops all maps but the first. Throws the reason of a failure.
  void tidy_up();
  [[nodiscard]] const RollingLoadCounts& counts() const { return counts_; }

 private:
  struct Client {
    Child child;
    bool hostile = false;
    bool killed = false;
  };

  void begin(std::uint32_t slot);
  void hear(std::uint32_t slot);
  void bury(std::uint32_t slot, const std::string& last_message);

  const RollingLoadOptions options_;
  Random random_;
  RollingLoadCounts counts_;
  std::map<std::uint32_t, Client> clients_;  // by slot; each slot has keys of its own
};

}  // namespace espalier::test
