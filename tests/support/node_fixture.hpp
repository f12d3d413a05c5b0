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
/// What this process has allocated and not freed, in bytes; the stores' own memory is apart. Under
/// a sanitizer, which has an allocator of its own, 0.
std::size_t heap_bytes();

/// Starts a node at a socket of its own; one test at a time in each process.
class NodeFixture : public testing::Test {
 protected:
  ~NodeFixture() override;
  void start();
  [[nodiscard]] const std::string& socket() const { return config_.node.socket; }
  /// How stores reach the node: "unix", or by a fabric, "shm", "roce", "memif" or "ofi",
  /// with "_send" behind it where rings are carried as messages, and "_one_sided" where stores
  /// read by themselves; or "device", by a device before it, which reads it over "shm", and
  /// "device_balanced", where its balancer has some of what it knows read of the host all the same;
  /// or "datagram", by its socket, with gets as datagrams of UDP, as with "_datagram" behind
  /// "unix", a fabric or "sharded"; or "in_network", through a switch whose tables follow the map
  /// "tested", by READs that carry keys. "_known" behind a fabric: its clients have to prove a
  /// secret, which all of this process have from ESPALIER_SECRET_FILE, as administrators. "sharded"
  /// has a node more, and "sharded_three" has two, for maps that make_sharded() makes. Before
  /// start().
  void reach_by(const std::string& way);
  [[nodiscard]] std::string address() const;
  [[nodiscard]] Store connect() const;
  /// Writes a file of secrets for the node, and one for the clients of this process.
  void ask_for_secrets();
  /// Waits until no client is connected and nothing of earlier ones is left, and audits the map.
  void expect_all_came_back();
  void await_dropped_maps();
  [[nodiscard]] std::uint64_t held_snapshots();
  /// The device's, of whatever way.
  [[nodiscard]] std::string device_address() const {
    return "unix:" + (folder_ / "device").string();
  }
  /// Starts a device before the node, which offers its memory over shared memory.
  void start_device();
  /// Opens a switch before a node that is reached over memif, and those besides it, in place of the
  /// one that there is.
  void open_switch();
  /// Two in a row, of which the one before the node has its control at another socket.
  void open_switches();
  [[nodiscard]] std::string control() const { return (folder_ / "control").string(); }
  [[nodiscard]] std::string control_behind() const { return (folder_ / "control_behind").string(); }
  /// Opens one, and starts its controller.
  void start_switch();
  [[nodiscard]] std::uint32_t in_flight() const;
  [[nodiscard]] bool is_device() const { return way_.starts_with("device"); }
  [[nodiscard]] bool is_sharded() const { return way_.starts_with("sharded"); }
  /// As clients reach the nodes, this one first.
  [[nodiscard]] std::string fabric_of_other(std::size_t number) const;
  [[nodiscard]] std::vector<std::string> shard_addresses() const;
  /// Makes a map over all of them: node i has the keys from borders[i - 1] on.
  void make_sharded(const std::string& name, const MapOptions& options,
                    const std::vector<std::string>& borders);
  /// Starts those besides this one.
  void start_others();

  base::TemporaryFolder folder_;
  node::Config config_ = node_config(folder_);
  node::NodeOptions options_;
  std::unique_ptr<node::Node> node_;
  std::vector<node::Config> other_configs_;
  std::vector<std::unique_ptr<node::Node>> others_;   // of maps that lie on several
  std::unique_ptr<device::Device> device_;            // null: stores reach the node itself
  std::unique_ptr<dataplane::RunningSwitch> behind_;  // null: there is none behind switch_
  std::unique_ptr<dataplane::RunningSwitch> switch_;  // null: no switch is on the way
  std::unique_ptr<client::ControllerThread> controller_;
  std::string way_ = "unix";
  std::size_t descriptors_ = 0;  // open once the node had started
};

/// Tests whose parameter is such a way.
class NodeOverEachWay : public NodeFixture, public ::testing::WithParamInterface<const char*> {
 protected:
  NodeOverEachWay() { reach_by(GetParam()); }
};
inline constexpr const char* kWays[] = {"unix",      "shm",   "shm_send", "roce",
                                        "roce_send", "memif", "ofi"};
inline std::string way_name(const ::testing::TestParamInfo<const char*>& way) { return way.param; }

/// Writes and reads through a connection of its own, on a thread of its own, and holds every answer
/// against what it wrote, until it goes.
class Witness {
 public:
  explicit Witness(const std::string& socket);
  ~Witness();
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  /// Waits until it has done so many rounds more.
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
