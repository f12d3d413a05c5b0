// SPDX-License-Identifier: Apache-2.0
// Linearizability over several client processes of one node: each records its requests and answers
// by a clock that all share; the merged histories are checked like those of threads. ESPALIER_SEED
// repeats the choices, but not the schedule.
//
// And that a faulty process is detected: with each fault planted the same run must be refused.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/client_processes.hpp"
#include "tests/support/device_process.hpp"
#include "tests/support/forked_node.hpp"
#include "tests/support/history_bytes.hpp"
#include "tests/support/node_config.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/workload.hpp"

namespace espalier::test {
namespace {

// Few operations, as under a sanitizer, may pass without an occasion for a fault.
constexpr std::uint64_t kRoundsPerOccasion = 50;

class ProcessLinearizabilityConcurrency : public ::testing::Test {
 protected:
  ProcessLinearizabilityConcurrency() {
    // Small nodes, so that leaves split and merge all the time.
    config_.maps = {{"default", {.node_bytes = 512, .log_bytes = 128}},
                    {"plain", {.node_bytes = 512, .log_bytes = 64, .versions = false}}};
    options_.address = "unix:" + config_.node.socket;
    options_.each.threads = 1;
    options_.each.pipelines = 1;
    options_.each.keys = 48;
  }

  void read_alone_too() {
    config_.node.one_sided = true;
    config_.node.leases = kLeasesThatLast;
    // Where `roce` answers READs on one worker while another writes, it copies what may change
    // under it, as a network card would; readers confirm it. A thread sanitizer would see a race
    // of bytes there, so under one the worker that writes answers READs too.
    if (kThreadSanitized) config_.node.cores = 1;
    config_.node.fabric = "shm:" + (folder_ / "fabric").string() + " roce://127.0.0.1:0/1";
    options_.ways = {
        {options_.address, Access::rpc}, {"shm:", Access::one_sided}, {"roce:", Access::one_sided}};
  }

  /// One process uses the node, another a device before it, and the third one-sided reads.
  void ask_a_device_too() {
    config_.node.one_sided = true;
    config_.node.leases = kLeasesThatLast;
    config_.node.fabric = "shm:" + (folder_ / "fabric").string();
    config_.clients.resume_seconds =
        1;  // at the end the device is killed, and the host waits for it
    device_ = node_config(folder_);
    device_->node.socket = (folder_ / "device").string();
    device_->node.place = node::Place::device;
    device_->node.host = config_.node.fabric;
    options_.ways = {{options_.address, Access::rpc},
                     {"unix:" + device_->node.socket, Access::rpc},
                     {"shm:", Access::one_sided}};
  }

  /// Of so few operations that each can be searched.
  void make_histories_short() {
    options_.each.keys = 14;
    options_.each.in_flight = 4;
    options_.each.operations = 20;
    options_.each.operations_per_phase = 10;
    options_.each.search = true;
  }

  /// Runs rounds until one is refused. Returns why. With a planted fault, only rounds count in
  /// which it occurred.
  std::optional<std::string> run(std::uint64_t seed, std::uint64_t rounds) {
    options_.each.seed = base::seed_from_environment(seed);
    const bool versions = options_.map == "default";
    if (!versions) options_.each.ranges = options_.each.snapshots = false;
    ForkedNode node(config_);
    std::optional<DeviceProcess> device;
    if (device_) device.emplace(*device_).start();
    // Ports are known once the node has taken them.
    for (ClientWay& way : options_.ways) {
      for (const std::string& address : node.fabric_addresses()) {
        if (address.starts_with(way.address)) way.address = address;
      }
    }
    ClientProcesses clients(options_);
    // From here on this process may have threads, and a connection.
    std::optional<std::string> wrong = check_rounds(clients, rounds, versions);
    if (wrong) return seed_text(options_.each.seed) + ": " + *wrong;
    if (device) device->kill();  // the node is idle when all are gone
    const std::string of_node = node.stop();
    return of_node.empty() ? std::nullopt : std::optional(of_node);
  }

  std::optional<std::string> check_rounds(ClientProcesses& clients, std::uint64_t rounds,
                                          bool versions) {
    auto store = Store::connect(options_.address);
    if (!store) return message(store.error());
    auto map = store->open_map(options_.map);
    if (!map) return message(map.error());
    Clock clock(Clock::Source::machine);
    Random seeds(options_.each.seed);
    History history;
    std::uint64_t left = rounds;
    for (std::uint64_t round = 0; left != 0 && round < kRoundsPerOccasion * rounds; ++round) {
      history.initial_version = map->stats()->write_version;
      history.operations = clients.run_round(seeds());
      if (options_.fault == Fault::none || clients.faults() != faults_) --left;
      faults_ = clients.faults();
      // All have ended: what this reads is what the map holds from now on.
      std::vector<Recorder> last;
      last.emplace_back(*map, clock, clients.threads());
      last.front().scan("", "");
      if (last.front().unexpected()) return last.front().unexpected();
      history.operations.push_back(last.front().log().back());
      if (auto wrong = check_history(history, options_.each, versions, report_)) {
        return "round " + std::to_string(round) + ": " + *wrong;
      }
      history.initial.clear();
      for (const ReadItem& item : history.operations.back().items) {
        history.initial[item.key] = item.value;
      }
    }
    return std::nullopt;
  }

  void expect_accepted(std::uint64_t seed, std::uint64_t rounds) {
    ASSERT_EQ(run(seed, rounds).value_or(""), "");
    RecordProperty("operations", std::to_string(report_.operations));
    RecordProperty("overlapping", std::to_string(report_.overlapping));
    RecordProperty("searched", std::to_string(report_.searched));
    RecordProperty("unknown", std::to_string(report_.unknown));
    // Processes that run in sequence would prove nothing.
    EXPECT_GT(report_.overlapping, 0u);
    EXPECT_LE(report_.unknown, report_.histories / 4 + 1);
  }
  /// That the checker finds a history wrong in one of so many rounds.
  void expect_refused(Fault fault, std::uint64_t seed, std::uint64_t rounds = 1) {
    options_.fault = fault;
    const std::string wrong = run(seed, rounds).value_or("");
    EXPECT_GT(faults_, 0u);
    EXPECT_NE(wrong.find("round "), std::string::npos)
        << seed_text(options_.each.seed) << ": " << faults_ << " wrong answers, and not one of them"
        << " was noticed. " << wrong;
    RecordProperty("refused", wrong);
  }

  base::TemporaryFolder folder_;
  node::Config config_ = node_config(folder_, 2);
  std::optional<node::Config> device_;
  ClientProcessesOptions options_;
  WorkloadReport report_;
  std::uint64_t faults_ = 0;
};

TEST_F(ProcessLinearizabilityConcurrency, LongHistories) {
  options_.each.operations = steps_or(scaled(4000));
  expect_accepted(61, 2);
}

TEST_F(ProcessLinearizabilityConcurrency, LongHistoriesOfKeysThatBeginAlike) {
  options_.each.pattern = KeyPattern::same_first_16;
  options_.each.operations = steps_or(scaled(4000));
  expect_accepted(62, 2);
}

// All meet in the log of one leaf.
TEST_F(ProcessLinearizabilityConcurrency, LongHistoriesInOneLeaf) {
  config_.maps = {{"default", {}}};
  options_.each.keys = 12;
  options_.each.operations = steps_or(scaled(4000));
  expect_accepted(63, 2);
}

TEST_F(ProcessLinearizabilityConcurrency, ManyShortHistories) {
  make_histories_short();
  expect_accepted(64, steps_or(scaled(200)));
}

// Without versions single keys are still linearizable; only a search can show it.
TEST_F(ProcessLinearizabilityConcurrency, VersionsOff) {
  options_.map = "plain";
  options_.each.keys = 14;
  options_.each.in_flight = 4;
  options_.each.operations = 20;
  options_.each.operations_per_phase = 10;
  options_.each.batches = false;
  options_.each.search = true;
  expect_accepted(65, steps_or(scaled(200)));
}

TEST_F(ProcessLinearizabilityConcurrency, LongHistoriesOverAFabric) {
  config_.node.fabric = "shm:" + (folder_ / "fabric").string();
  options_.address = config_.node.fabric;
  options_.each.operations = steps_or(scaled(2000));
  expect_accepted(70, 2);
}

TEST_F(ProcessLinearizabilityConcurrency, LongHistoriesOverMessages) {
  config_.node.fabric = "shm:" + (folder_ / "fabric").string();
  options_.address = config_.node.fabric + "?rings=send";
  options_.each.operations = steps_or(scaled(2000));
  expect_accepted(71, 2);
}

// One process uses calls, another walks the node's memory by loads, a third by packets.
TEST_F(ProcessLinearizabilityConcurrency, LongHistoriesOfProcessesThatReadAloneToo) {
  read_alone_too();
  options_.each.operations = steps_or(scaled(2000));
  expect_accepted(72, 2);
}

TEST_F(ProcessLinearizabilityConcurrency, ManyShortHistoriesOfProcessesThatReadAloneToo) {
  read_alone_too();
  make_histories_short();
  expect_accepted(73, steps_or(scaled(60)));
}

TEST_F(ProcessLinearizabilityConcurrency, LongHistoriesOfProcessesThatAskADeviceToo) {
  ask_a_device_too();
  options_.each.operations = steps_or(scaled(2000));
  expect_accepted(75, 2);
}

TEST_F(ProcessLinearizabilityConcurrency, ManyShortHistoriesOfProcessesThatAskADeviceToo) {
  ask_a_device_too();
  make_histories_short();
  expect_accepted(76, steps_or(scaled(60)));
}

TEST_F(ProcessLinearizabilityConcurrency, StaleReadsOfAProcessThatAsksADeviceAreRefused) {
  ask_a_device_too();
  std::swap(options_.ways[0], options_.ways[1]);  // the first process has the fault
  options_.each.operations = steps_or(scaled(3000));
  expect_refused(Fault::stale_reads, 77);
}

TEST_F(ProcessLinearizabilityConcurrency, StaleReadsOfAProcessThatReadsAloneAreRefused) {
  read_alone_too();
  std::swap(options_.ways[0], options_.ways[1]);  // the first process has the fault
  options_.each.operations = steps_or(scaled(3000));
  expect_refused(Fault::stale_reads, 74);
}

TEST_F(ProcessLinearizabilityConcurrency, StaleReadsAreRefused) {
  options_.each.operations = steps_or(scaled(3000));
  expect_refused(Fault::stale_reads, 66);
}

TEST_F(ProcessLinearizabilityConcurrency, LostUpdatesAreRefused) {
  options_.each.operations = steps_or(scaled(3000));
  expect_refused(Fault::lost_updates, 67);
}

TEST_F(ProcessLinearizabilityConcurrency, ShortScansAreRefused) {
  options_.each.operations = steps_or(scaled(3000));
  expect_refused(Fault::short_scans, 68);
}

TEST_F(ProcessLinearizabilityConcurrency, StaleReadsAreRefusedWithoutVersions) {
  options_.map = "plain";
  options_.each.keys = 4;
  options_.each.operations = 20;
  options_.each.batches = false;
  options_.each.search = true;
  expect_refused(Fault::stale_reads, 69, 200);
}

TEST(HistoryBytes, GiveBackWhatTheyWereMadeOf) {
  Operation full;
  full.kind = Kind::batch;
  full.thread = 3;
  full.invoked = 4;
  full.responded = ~std::uint64_t{0};
  full.key = std::string("k\0y", 3);
  full.high = "high";
  full.value = "";
  full.options = {.limit = 9, .reverse = true, .from_floor = true};
  full.writes = {{"a", "1", false}, {"b", "", true}};
  full.conditions = {{"c", "2", 7, ConditionKind::version}};
  full.refused = full.applied = full.existed = full.pinned = true;
  full.seen = "seen";
  full.failed_condition = 1;
  full.items = {{"x", "y", 5}, {"z", std::string(1000, 'z'), 6}};
  full.counted = 12;
  full.version = 13;
  full.read_version = 14;
  const std::vector<Operation> operations{full, Operation{}};
  const std::string bytes = to_bytes(operations);
  const std::vector<Operation> back = operations_of(bytes);
  ASSERT_EQ(back.size(), 2u);
  EXPECT_EQ(to_bytes(back), bytes);
  EXPECT_EQ(back[0].key, full.key);
  EXPECT_EQ(back[0].value, full.value);
  EXPECT_EQ(back[0].items, full.items);
  EXPECT_EQ(back[0].conditions[0].kind, ConditionKind::version);
  EXPECT_EQ(back[0].read_version, full.read_version);
  EXPECT_FALSE(back[1].seen || back[1].value || back[1].applied);
  for (std::size_t cut = 0; cut < bytes.size(); cut += 7) {
    EXPECT_THROW(static_cast<void>(operations_of(bytes.substr(0, cut))), std::runtime_error);
  }
  EXPECT_THROW(static_cast<void>(operations_of(bytes + "x")), std::runtime_error);
}

}  // namespace
}  // namespace espalier::test
