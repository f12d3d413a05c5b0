// SPDX-License-Identifier: Apache-2.0
// Several processes that use the objects of a node concurrently and record their requests and
// answers: for histories that span processes.
//
// All stamp their operations with the machine's clock (Clock::Source::machine). They are forked
// once and then run round after round, each over a connection of its own. A counter in shared
// memory makes them begin together.
//
// Thread: belongs to one, the only one in the process when this is made.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/child.hpp"
#include "tests/support/history.hpp"
#include "tests/support/workload.hpp"

namespace espalier::test {

/// A fault that a process is made to have in the answers that it reports.
enum class Fault : std::uint8_t {
  none,
  stale_reads,   ///< gets are answered from a cache that is never invalidated
  lost_updates,  ///< a modify overwrites a value that it has not read
  short_scans,   ///< one item is missing in the middle
};

/// A process's path to the node.
struct ClientWay {
  std::string address;
  Access access = Access::rpc;
};

/// One process's part of a round.
struct ClientRound {
  Store& store;
  std::uint32_t process = 0;
  std::uint64_t round = 0;
  std::uint64_t seed = 0;  ///< of the round, for all processes
  /// For each of its threads, before its first call: a barrier.
  std::function<void()> arrive_and_wait;
};

struct ClientProcessesOptions {
  std::string address;
  std::vector<ClientWay> ways;  ///< in turns; empty: all by `address`, with calls
  std::string map = "default";
  std::uint32_t processes = 3;
  WorkloadOptions each;       ///< for each of them, in each round
  Fault fault = Fault::none;  ///< of the first process
  /// The work of each of them, instead of the workload on an ordered map: returns its history, or
  /// throws. Then only the numbers of threads and pipelines in `each` count.
  std::function<std::vector<Operation>(const ClientRound&)> work;
};

class ClientProcesses {
 public:
  explicit ClientProcesses(const ClientProcessesOptions& options);
  ~ClientProcesses();
  ClientProcesses(const ClientProcesses&) = delete;
  ClientProcesses& operator=(const ClientProcesses&) = delete;

  /// Runs one round in all of them, and returns the history. Throws their errors.
  std::vector<Operation> run_round(std::uint64_t seed);
  /// How many answers were changed so far.
  [[nodiscard]] std::uint64_t faults() const { return faults_; }
  /// Threads in all of them, by which they number their operations.
  [[nodiscard]] std::uint32_t threads() const;

 private:
  [[nodiscard]] std::uint32_t threads_of_each() const {
    return options_.each.threads + options_.each.pipelines;
  }
  int live(Line& line, std::uint32_t number);
  std::vector<Operation> do_round(std::uint32_t number, std::uint64_t seed, std::uint64_t round);
  std::vector<Operation> use_ordered_map(const ClientRound& round);

  const ClientProcessesOptions options_;
  std::atomic<std::uint64_t>* arrived_;  // in memory that all share
  std::vector<Child> children_;
  std::uint64_t faults_ = 0;
};

/// Plants the fault in a process's answers, from time to time. Returns how many were changed.
std::uint64_t plant(Fault fault, std::vector<Operation>& log);

}  // namespace espalier::test
