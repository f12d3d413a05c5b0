// SPDX-License-Identifier: Apache-2.0
// One core of a node: a scheduler, the sockets of its clients, and its sleep.
//
// A worker with work runs its scheduler, and polls its sockets periodically. Without work it spins
// for a while, announces on the node's page that it sleeps, checks once more, and waits on its
// sockets: a client that finds it asleep sends a byte. So no wake-up is lost, and if a byte is
// missing, the delay ends with the next sweep.
//
// Thread: its own; enqueue(), set_times(), stop() and the counts from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/client_table.hpp"
#include "engine/fabric_clients.hpp"
#include "engine/scheduler.hpp"
#include "memory/shared_memory.hpp"
#include "node/config.hpp"
#include "node/event_fd.hpp"
#include "node/peer_user.hpp"

namespace espalier::node {

/// A client after its hello, on its way to its worker.
struct PendingClient {
  memory::Descriptor socket;
  std::unique_ptr<offload::Connection> connection;
  std::uint32_t user = 0;
  SocketClass socket_class = SocketClass::others;
  /// Whether its rights still hold under the present configuration; any thread.
  std::function<bool()> may_stay = [] { return true; };
};

/// Settings that a worker adopts while it runs.
struct WorkerTimes {
  explicit WorkerTimes(const Config& config)
      : spin_ns(std::uint64_t{config.node.spin_us} * 1000),
        sweep_ns(std::uint64_t{config.node.sweep_ms} * 1'000'000),
        sweep_asleep_ms(static_cast<int>(config.node.sweep_asleep_ms)),
        stuck_ns(std::uint64_t{config.clients.stuck_seconds} * 1'000'000'000),
        socket_mode(config.node.socket_mode) {}

  std::uint64_t spin_ns;
  std::uint64_t sweep_ns;
  int sweep_asleep_ms;
  std::uint64_t stuck_ns;
  std::uint32_t socket_mode;
};

/// Counters of one worker.
struct WorkerCounts {
  std::atomic<std::uint64_t> sleeps{0};
  std::atomic<std::uint64_t> wake_ups{0};  ///< by a client's byte, or by another thread
  std::atomic<std::uint32_t> clients{0};
  // While metering is on:
  std::atomic<std::uint64_t> busy_turns{0};   ///< turns with work
  std::atomic<std::uint64_t> busy_cpu_ns{0};  ///< processor time of those
};

/// Settings of a worker's core for benchmarks, outside the configuration.
struct WorkerCore {
  /// The last cores belong to workers of other nodes: pinned workers use those before them, except
  /// the first core, which is left to clients.
  std::uint32_t taken = 0;
  /// Emulates a core that is slower by this factor. The worker spins after each of its turns, for
  /// (slowness - 1) times the turn's duration: so rates are those of a weaker core, but a request's
  /// latency lacks the spinning of its last turn. Helper threads are not slowed.
  double slowness = 1;
  /// Up to so many rings are polled in each turn, instead of their doorbells.
  std::size_t watch_all = offload::ClientTableOptions{}.watch_all;
};

class Worker {
 public:
  /// `page`: the node's page; `number`: its line there. start() must follow.
  Worker(offload::Services& services, const Config& config, memory::SharedMemory& page,
         std::uint32_t number);
  ~Worker();

  /// Requires: start() has not been called.
  void set_core(const WorkerCore& core) { core_ = core; }
  /// Parameters of a worker that serves clients of a fabric.
  struct Fabric {
    std::uint64_t node_id = 0;
    std::uint64_t silence_ns = 0;               // as in offload::FabricClientsOptions
    const offload::Secrets* secrets = nullptr;  // null: no authentication
  };
  /// Also serves clients at this fabric address. Requires: start() has not been called. Returns the
  /// address with the port that it got. Errors: those of fabric::open_for_listening, system,
  /// not_permitted (a network address without authentication).
  Result<std::string> listen(const std::string& address, const Fabric& fabric);
  /// Errors: system.
  Result<void> start();
  /// Finishes what is in flight, for a second, notifies the clients, and ends the thread. Requests
  /// at helpers or peers delay it until they return, or the peer is given up.
  void stop();
  /// Serves this client from now on.
  void enqueue(PendingClient pending);
  /// Applies a changed configuration, and ends those clients of its socket that may not stay.
  void set_times(const WorkerTimes& times);
  /// Turns metering of its processor time on or off; for benchmarks, since the clock costs two
  /// system calls a turn.
  void set_metered(bool metered) { metered_.store(metered, std::memory_order_relaxed); }
  [[nodiscard]] const WorkerCounts& counts() const { return counts_; }
  /// One for each fabric address that it serves.
  [[nodiscard]] std::span<const std::unique_ptr<offload::FabricClients>> fabrics() const {
    return fabrics_;
  }
  [[nodiscard]] const offload::SchedulerCounts& scheduler_counts() const {
    return scheduler_->counts();
  }
  [[nodiscard]] const offload::ClientCounts& client_counts() const {
    return client_table_->counts();
  }

 private:
  Result<void> make_scheduler();
  void run();
  void pin();
  void lag(std::uint64_t began_ns) const;
  void count_turn(std::uint64_t cpu_began_ns);
  bool adopt();
  void end_unwelcome();
  bool welcome(PendingClient pending);
  void spin_or_sleep(bool moved);
  void fall_asleep();
  void look_at_sockets(int timeout_ms);
  void read_socket(int socket);
  void remove(int socket);
  void give_memory_back();
  [[nodiscard]] int longest_sleep_ms() const;
  [[nodiscard]] bool fabric_has_news() const;
  int begin_sleep(int longest_ms);
  void end_sleep();
  void end_broken();
  void wake();
  void finish();

  offload::Services& services_;
  const Config& config_;
  memory::SharedMemory& page_;
  std::uint32_t number_;
  WorkerTimes times_;
  WorkerCore core_;
  memory::Descriptor page_descriptor_;  // of the node's page, read only
  memory::Descriptor epoll_;
  EventFd wake_event_;  // other threads of the node wake this one
  std::unique_ptr<rings::Doorbells> doorbells_;
  std::unique_ptr<offload::ClientTable> client_table_;
  std::unique_ptr<offload::Scheduler> scheduler_;
  struct Client {
    memory::Descriptor socket;
    offload::Connection* connection;
    SocketClass socket_class = SocketClass::others;
    std::function<bool()> may_stay;
  };
  std::unordered_map<int, Client> clients_;
  std::vector<std::unique_ptr<offload::FabricClients>> fabrics_;
  std::vector<int> sleeping_on_;              // descriptors of fabrics
  std::vector<offload::Connection*> broken_;  // clients to remove
  std::uint32_t gone_ = 0;  // clients that left since memory was last returned to the system
  std::uint32_t gone_seen_ = 0;
  std::uint64_t quiet_of_going_since_ns_ = 0;
  std::uint64_t gave_back_ns_ = 0;
  std::uint64_t quiet_since_ns_ = 0;
  std::uint32_t turns_ = 0;

  std::mutex mutex_;  // guards the next two
  std::vector<PendingClient> pending_clients_;
  std::optional<WorkerTimes> pending_times_;
  std::atomic<bool> has_pending_{false};  // in one of them
  std::atomic<bool> stopping_{false};
  std::atomic<bool> metered_{false};
  WorkerCounts counts_;
  std::thread thread_;
};

}  // namespace espalier::node
