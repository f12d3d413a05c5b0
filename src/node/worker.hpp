// SPDX-License-Identifier: Apache-2.0
// One core of a node: a scheduler, the sockets of its clients, and when it sleeps.
//
// A worker with something to do turns its scheduler, and looks at its sockets now and then.
// Without, it spins for a while, says on the node's page that it sleeps, looks once more, and
// waits on its sockets: a client that finds it asleep sends a byte. So nobody waits for a sleeper
// that was not woken, and a byte that is missing costs the time until the next sweep.
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

/// A client that has said hello, on its way to its worker.
struct PendingClient {
  memory::Descriptor socket;
  std::unique_ptr<offload::Connection> connection;
  std::uint32_t user = 0;
  SocketClass socket_class = SocketClass::others;
  /// Whether what it was let in for holds as the node is configured now; any thread.
  std::function<bool()> may_stay = [] { return true; };
};

/// What of the configuration a worker takes while it works.
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

/// Numbers about one worker.
struct WorkerCounts {
  std::atomic<std::uint64_t> sleeps{0};
  std::atomic<std::uint64_t> wake_ups{0};  ///< by a client's byte, or by another thread
  std::atomic<std::uint32_t> clients{0};
  // While it is metered:
  std::atomic<std::uint64_t> busy_turns{0};   ///< in which something was done
  std::atomic<std::uint64_t> busy_cpu_ns{0};  ///< processor time that those took
};

/// What a benchmark says of the core of a worker, and no configuration.
struct WorkerCore {
  /// The last cores are those of workers of other nodes beside it: where workers are pinned, its
  /// own have those before them, except the first core, which is left to clients.
  std::uint32_t taken = 0;
  /// How many times as slow as this machine's the core is to be. The worker spins after each of
  /// its turns, for (slowness - 1) times what that took: so rates are those of a weaker core, and a
  /// request's latency lacks the spinning of its last turn. Threads of helpers stay as they are.
  double slowness = 1;
  /// Rings that it looks at in each turn, in place of their doorbells.
  std::size_t watch_all = offload::ClientTableOptions{}.watch_all;
};

class Worker {
 public:
  /// `page`: the node's page; `number`: which line of it. Followed by start().
  Worker(offload::Services& services, const Config& config, memory::SharedMemory& page,
         std::uint32_t number);
  ~Worker();

  /// Before start().
  void set_core(const WorkerCore& core) { core_ = core; }
  /// What a worker that serves clients of a fabric needs to know.
  struct Fabric {
    std::uint64_t node_id = 0;
    std::uint64_t silence_ns = 0;               // as in offload::FabricClientsOptions
    const offload::Secrets* secrets = nullptr;  // null: nobody can prove who it is
  };
  /// Serves clients at this address of the fabric, too. Before start(). Returns the address with
  /// what was free for it to take. Errors: those of fabric::open_for_listening, system,
  /// not_permitted (it is of a network, and nobody need prove who he is).
  Result<std::string> listen(const std::string& address, const Fabric& fabric);
  /// Errors: system.
  Result<void> start();
  /// Finishes what is in flight, for a second, tells the clients, and ends the thread. What a
  /// helper or a peer has keeps it until they are done with it, or the peer is given up.
  void stop();
  /// Serves this client from now on.
  void enqueue(PendingClient pending);
  /// The configuration was changed: goes by these times from now on, and ends those clients of its
  /// socket that may not stay.
  void set_times(const WorkerTimes& times);
  /// Counts the processor time of its turns from now on, or no more; a benchmark asks for it, for
  /// the clock costs two calls into the kernel a turn.
  void set_metered(bool metered) { metered_.store(metered, std::memory_order_relaxed); }
  [[nodiscard]] const WorkerCounts& counts() const { return counts_; }
  /// Of each address of the fabric that it serves.
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
  std::uint32_t gone_ = 0;  // clients, since memory was last given back to the system
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
