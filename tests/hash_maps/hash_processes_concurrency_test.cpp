// SPDX-License-Identifier: Apache-2.0
// Several processes that use one hash map of a node, each in its own way: through rings, through a
// device, and by one-sided reads. Their histories, by a clock that all share, form one linearizable
// history, by the versions of the writes and by a search; and a faulty process is detected.
// ESPALIER_SEED repeats the choices, but not the schedule.
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/hash_maps/hash_map_client.hpp"
#include "tests/support/client_processes.hpp"
#include "tests/support/device_process.hpp"
#include "tests/support/forked_node.hpp"
#include "tests/support/node_config.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/version_replay.hpp"
#include "tests/support/wing_gong.hpp"

namespace espalier::test {
namespace {

/// Few operations, as under a sanitizer, may pass without an occasion for a fault.
constexpr std::uint64_t kRoundsForAFault = 50;
/// Of more hash maps a device reads none (kinds/hash/device/host_hashes.cpp).
constexpr std::uint64_t kMapsOfADevice = 40;

class HashProcessesConcurrency : public ::testing::Test {
 protected:
  HashProcessesConcurrency() {
    config_.node.one_sided = true;
    config_.node.leases = kLeasesThatLast;
    config_.node.fabric = "shm:" + (folder_ / "fabric").string();
    config_.clients.resume_seconds = 1;  // the device is killed, and the host waits for it
    options_.address = "unix:" + config_.node.socket;
    options_.each.threads = 2;
    options_.each.pipelines = 0;
    options_.work = [this](const ClientRound& round) { return use_hash_map(round); };
  }

  void ask_a_device_too() {
    device_ = node_config(folder_);
    device_->node.socket = (folder_ / "device").string();
    device_->node.place = node::Place::device;
    device_->node.host = config_.node.fabric;
    options_.ways = {{options_.address, Access::rpc},
                     {"unix:" + device_->node.socket, Access::rpc},
                     {"shm:", Access::one_sided}};
  }
  // Where `roce` answers READs on one worker while another writes, it copies what may change under
  // it, as a network card would; readers confirm it. A thread sanitizer would see a race of bytes
  // there, so under one the worker that writes answers READs too.
  void read_by_packets_too() {
    if (kThreadSanitized) config_.node.cores = 1;
    config_.node.fabric += " roce://127.0.0.1:0/1";
    options_.ways = {
        {options_.address, Access::rpc}, {"shm:", Access::one_sided}, {"roce:", Access::one_sided}};
  }
  void make_short() {
    calls_ = 4;
    keys_ = 3;
    partitions_ = 1;
    search_ = true;
  }

  /// Runs rounds, each with a map of its own, until one is refused. Returns why. With a planted
  /// fault, only rounds count in which it occurred.
  std::optional<std::string> run(std::uint64_t seed, std::uint64_t rounds) {
    seed_ = seed_from_environment(seed);
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
    std::optional<std::string> wrong = check_rounds(clients, rounds);
    if (wrong) return seed_text(seed_) + ": " + *wrong;
    if (device) device->kill();  // the node is idle when all are gone
    const std::string of_node = node.stop();
    return of_node.empty() ? std::nullopt : std::optional(of_node);
  }

  void expect_linearizable(std::uint64_t seed, std::uint64_t rounds) {
    ASSERT_EQ(run(seed, rounds).value_or(""), "");
    // Processes that run in sequence would prove nothing.
    EXPECT_TRUE(overlapping_);
    EXPECT_LE(unknown_, 1 + rounds / 10);
  }
  /// That one of so many rounds is refused, the first process having a fault.
  void expect_noticed(Fault fault, std::uint64_t seed, std::uint64_t rounds = 1) {
    options_.fault = fault;
    const std::string wrong = run(seed, rounds).value_or("");
    EXPECT_GT(faults_, 0u);
    EXPECT_NE(wrong.find("round "), std::string::npos)
        << seed_text(seed_) << ": " << faults_ << " wrong answers, and not one was noticed. "
        << wrong;
  }

  std::uint64_t calls_ = steps_or(scaled(600));  // of each thread
  std::uint64_t keys_ = 12;
  std::uint32_t partitions_ = 2;
  bool replay_ = true;
  bool search_ = false;
  base::TemporaryFolder folder_;
  node::Config config_ = node_config(folder_, 2);
  std::optional<node::Config> device_;
  ClientProcessesOptions options_;

 private:
  static std::string name_of(std::uint64_t round) { return "h" + std::to_string(round); }

  /// In a process of its own.
  std::vector<Operation> use_hash_map(const ClientRound& round) const {
    auto map = round.store.open_hash_map(name_of(round.round));
    if (!map) throw std::runtime_error("no hash map: " + message(map.error()));
    Clock clock(Clock::Source::machine);
    std::vector<HashClient> clients;
    for (std::uint32_t i = 0; i < options_.each.threads; ++i) {
      clients.emplace_back(*map, round.process * options_.each.threads + i, round.seed, keys_,
                           clock);
    }
    {
      std::vector<std::jthread> working;
      for (HashClient& client : clients) {
        working.emplace_back([this, &client, &round] {
          round.arrive_and_wait();
          client.work(calls_);
        });
      }
    }
    std::vector<Operation> all;
    for (HashClient& client : clients) {
      if (!client.unexpected.empty()) throw std::runtime_error(client.unexpected);
      for (Operation& seen : client.seen) all.push_back(std::move(seen));
    }
    return all;
  }

  std::optional<std::string> check_rounds(ClientProcesses& clients, std::uint64_t rounds) {
    auto store = Store::connect(options_.address);
    if (!store) return message(store.error());
    Random seeds(seed_);
    std::uint64_t left = rounds;
    for (std::uint64_t round = 0; left != 0 && round < kRoundsForAFault * rounds; ++round) {
      const auto made = store->create_hash_map(name_of(round), {.partitions = partitions_});
      if (!made) return message(made.error());
      History history;
      history.operations = clients.run_round(seeds());
      if (options_.fault == Fault::none || clients.faults() != faults_) --left;
      faults_ = clients.faults();
      if (auto wrong = check(history)) return "round " + std::to_string(round) + ": " + *wrong;
      const auto dropped = store->drop_hash_map(name_of(round));
      if (!dropped) return message(dropped.error());
    }
    return std::nullopt;
  }

  std::optional<std::string> check(const History& history) {
    for (const Operation& operation : history.operations) {
      if (auto wrong = malformed(operation)) return wrong;
    }
    overlapping_ = overlapping_ || has_overlapping(history);
    if (replay_) {
      if (auto wrong = replay_versions(history)) return wrong;
    }
    if (!search_) return std::nullopt;
    const CheckResult result = check_linearizable(history);
    if (result.answer == Answer::no) return result.why;
    if (result.answer == Answer::unknown) ++unknown_;
    return std::nullopt;
  }
  /// Whether operations of two threads overlapped.
  static bool has_overlapping(const History& history) {
    for (const Operation& one : history.operations) {
      for (const Operation& other : history.operations) {
        const bool apart = precedes(one, other) || precedes(other, one);
        if (one.thread != other.thread && !apart) return true;
      }
    }
    return false;
  }

  std::uint64_t seed_ = 0;
  std::uint64_t faults_ = 0;
  bool overlapping_ = false;   // whether threads met
  std::uint64_t unknown_ = 0;  // histories in which the search gave up
};

TEST_F(HashProcessesConcurrency, LongHistoriesOfRingsADeviceAndOneThatReadsAlone) {
  ask_a_device_too();
  expect_linearizable(81, 2);
}

TEST_F(HashProcessesConcurrency, ShortHistoriesOfRingsADeviceAndOneThatReadsAlone) {
  ask_a_device_too();
  make_short();
  expect_linearizable(82, steps_or(scaled(kMapsOfADevice)));
}

TEST_F(HashProcessesConcurrency, LongHistoriesOfThoseWhoReadAlone) {
  read_by_packets_too();
  expect_linearizable(83, 2);
}

TEST_F(HashProcessesConcurrency, ShortHistoriesOfThoseWhoReadAlone) {
  read_by_packets_too();
  make_short();
  expect_linearizable(84, steps_or(scaled(60)));
}

TEST_F(HashProcessesConcurrency, StaleReadsThroughADeviceAreNoticed) {
  ask_a_device_too();
  std::swap(options_.ways[0], options_.ways[1]);  // the first process has the fault
  expect_noticed(Fault::stale_reads, 85);
}

TEST_F(HashProcessesConcurrency, StaleReadsOfOneThatReadsAloneAreNoticed) {
  read_by_packets_too();
  std::swap(options_.ways[0], options_.ways[1]);
  expect_noticed(Fault::stale_reads, 86);
}

TEST_F(HashProcessesConcurrency, LostUpdatesAreNoticed) {
  ask_a_device_too();
  expect_noticed(Fault::lost_updates, 87);
}

TEST_F(HashProcessesConcurrency, StaleReadsAreNoticedByTheSearchAlone) {
  ask_a_device_too();
  make_short();
  replay_ = false;
  calls_ = 8;
  expect_noticed(Fault::stale_reads, 88, 30);
}

}  // namespace
}  // namespace espalier::test
