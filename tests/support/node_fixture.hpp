// SPDX-License-Identifier: Apache-2.0
// A node in this process, and a correct client, to check whether other clients can affect it.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/testing/open_descriptors.hpp"
#include "dataplane/running_switch.hpp"
#include "device/device.hpp"
#include "espalier/map.hpp"
#include "index/controller/controller_thread.hpp"
#include "node/node.hpp"
#include "tests/support/node_config.hpp"

namespace espalier::test {

using base::open_descriptors;
/// Memory of this process, in bytes.
std::size_t resident_bytes();
/// Bytes that this process has allocated and not freed, without the stores' own memory. 0 under a
/// sanitizer, which has an allocator of its own.
std::size_t heap_bytes();

/// Starts a node at a socket of its own; one test at a time in each process.
class NodeFixture : public testing::Test {
 protected:
  ~NodeFixture() override;
  void start();
  [[nodiscard]] const std::string& socket() const { return config_.node.socket; }
  /// Selects the path from stores to the node; call before start().
  /// "unix", or a fabric: "shm", "roce", "memif" or "ofi", with the suffix "_send" if rings are
  /// carried as messages, and "_one_sided" if stores use one-sided reads. "device": through a
  /// device, which reads the node over "shm"; "device_balanced": whose balancer has some cached
  /// data read from the host all the same. "datagram": by its socket, with gets as datagrams of
  /// UDP, like the suffix "_datagram" after "unix", a fabric or "sharded". "in_network": through a
  /// switch whose tables follow the map "tested", by READs that carry keys. The suffix "_known"
  /// after a fabric: clients must prove a secret, which all of this process have from
  /// ESPALIER_SECRET_FILE, as administrators. "sharded" has one more node, and "sharded_three" has
  /// two, for maps that make_sharded() makes.
  void reach_by(const std::string& way);
  [[nodiscard]] std::string address() const;
  [[nodiscard]] Store connect() const;
  /// Writes a file of secrets for the node, and one for the clients of this process.
  void ask_for_secrets();
  /// Waits until no client is connected and nothing of earlier ones is left, and audits the map.
  void expect_all_came_back();
  void await_dropped_maps();
  [[nodiscard]] std::uint64_t held_snapshots();
  /// The device's address, for each path.
  [[nodiscard]] std::string device_address() const {
    return "unix:" + (folder_ / "device").string();
  }
  /// Starts a device before the node, which offers its memory over shm.
  void start_device();
  /// Opens a switch before the nodes that are reached over memif, instead of the present one.
  void open_switch();
  /// Opens two in a row; the one before the node has its control at another socket.
  void open_switches();
  [[nodiscard]] std::string control() const { return (folder_ / "control").string(); }
  [[nodiscard]] std::string control_behind() const { return (folder_ / "control_behind").string(); }
  /// Opens one, and starts its controller.
  void start_switch();
  [[nodiscard]] std::uint32_t in_flight() const;
  [[nodiscard]] bool is_device() const { return way_.starts_with("device"); }
  [[nodiscard]] bool is_sharded() const { return way_.starts_with("sharded"); }
  /// Addresses of the nodes for clients, this one's first.
  [[nodiscard]] std::string fabric_of_other(std::size_t number) const;
  [[nodiscard]] std::vector<std::string> shard_addresses() const;
  /// Makes a map over all of them: node i has the keys from borders[i - 1] on.
  void make_sharded(const std::string& name, const MapOptions& options,
                    const std::vector<std::string>& borders);
  /// Starts the other nodes.
  void start_others();

  base::TemporaryFolder folder_;
  node::Config config_ = node_config(folder_);
  node::NodeOptions options_;
  std::unique_ptr<node::Node> node_;
  std::vector<node::Config> other_configs_;
  std::vector<std::unique_ptr<node::Node>> others_;   // of maps that lie on several
  std::unique_ptr<device::Device> device_;            // null: stores reach the node directly
  std::unique_ptr<dataplane::RunningSwitch> behind_;  // null: there is none behind switch_
  std::unique_ptr<dataplane::RunningSwitch> switch_;  // null: no switch on the path
  std::unique_ptr<client::ControllerThread> controller_;
  std::string way_ = "unix";
  std::size_t descriptors_ = 0;  // open once the node had started
};

/// Tests whose parameter is such a path.
class NodeOverEachWay : public NodeFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  NodeOverEachWay() { reach_by(GetParam()); }
};
inline constexpr const char* kWays[] = {"unix",      "shm",   "shm_send", "roce",
                                        "roce_send", "memif", "ofi"};
inline std::string way_name(const ::testing::TestParamInfo<const char*>& way) { return way.param; }

/// A client with its own connection and thread that writes and reads, and checks every answer
/// against what it wrote, until it is destroyed.
class Witness {
 public:
  explicit Witness(const std::string& socket);
  ~Witness();
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  /// Waits until it has done so many more rounds.
  void wait_for(std::uint64_t rounds) const;
  [[nodiscard]] std::uint64_t rounds() const { return rounds_.load(std::memory_order_relaxed); }

 private:
  void work(const std::string& socket);

  std::atomic<std::uint64_t> rounds_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> failed_{false};
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace espalier::test
