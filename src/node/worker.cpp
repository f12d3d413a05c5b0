// SPDX-License-Identifier: Apache-2.0
#include "node/worker.hpp"

#include <malloc.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <string>
#include <utility>

#include "base/barrier.hpp"
#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/cpu_clock.hpp"
#include "base/system_error.hpp"
#include "fabric/address.hpp"
#include "node/handshake_packets.hpp"
#include "wire/handshake.hpp"

namespace espalier::node {
namespace {

constexpr std::uint32_t kTurnsPerLook = 1024;  // between polls of the sockets, while there is work
constexpr int kPacketsPerLook = 64;            // from one socket: a client that floods it must wait
constexpr std::uint64_t kFinishNs = 1'000'000'000;  // for what is in flight when the node stops
constexpr std::uint64_t kLaggedNsMax = 1'000'000;   // a turn that took longer was interrupted
constexpr int kBackloggedSleepMs = 1;  // a client that drains its ring rings no doorbell

}  // namespace

Worker::Worker(offload::Services& services, const Config& config, memory::SharedMemory& page,
               std::uint32_t number)
    : services_(services), config_(config), page_(page), number_(number), times_(config) {}

Worker::~Worker() { stop(); }

Result<void> Worker::start() {
  auto page = page_.read_only();
  if (!page) return std::unexpected(page.error());
  page_descriptor_ = std::move(*page);
  epoll_ = memory::Descriptor(::epoll_create1(EPOLL_CLOEXEC));
  const bool opened = wake_event_.open();
  if (!opened || !epoll_) return base::refused_by_system();
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = wake_event_.number();
  if (::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, wake_event_.number(), &event) != 0)
    return base::refused_by_system();
  if (const auto made = make_scheduler(); !made) return made;
  thread_ = std::thread([this] { run(); });
  return {};
}

Result<void> Worker::make_scheduler() {
  if (scheduler_) return {};
  auto doorbells = rings::Doorbells::reserve(config_.clients.connections_max);
  if (!doorbells) return std::unexpected(doorbells.error());
  doorbells_ = std::make_unique<rings::Doorbells>(std::move(*doorbells));
  offload::ClientTableOptions table_options;
  table_options.response_bytes_max = config_.clients.response_bytes_max;
  table_options.stuck_ns = times_.stuck_ns;
  table_options.sweep_ns = times_.sweep_ns;
  table_options.watch_all = core_.watch_all;
  client_table_ = std::make_unique<offload::ClientTable>(services_, *doorbells_, table_options);
  client_table_->on_broken = [this](offload::Connection& connection) {
    broken_.push_back(&connection);
  };
  client_table_->on_ended = [this](offload::Connection& connection) {
    doorbells_->close(connection.doorbell);
    std::erase(broken_, &connection);
  };
  offload::SchedulerOptions options;
  options.in_flight_max = config_.clients.in_flight_max;
  options.shard = number_;
  scheduler_ = std::make_unique<offload::Scheduler>(services_, *client_table_, options);
  scheduler_->wake = [this] { wake(); };
  broken_.reserve(config_.clients.connections_max);
  return {};
}

Result<std::string> Worker::listen(const std::string& address, const Fabric& fabric) {
  const auto parsed = fabric::parse(address);
  if (!parsed) return std::unexpected(parsed.error());
  const fabric::Reach reach = fabric::reach_of(*parsed);
  if (reach == fabric::Reach::network && fabric.secrets == nullptr && !config_.clients.open) {
    return fail(Code::not_permitted, 4);
  }
  if (const auto made = make_scheduler(); !made) return std::unexpected(made.error());
  auto regions = fabric::RegionTable::create();
  if (!regions) return std::unexpected(regions.error());
  auto listening = fabric::open_for_listening(*parsed, std::move(*regions));
  if (!listening) return std::unexpected(listening.error());
  offload::FabricClientsOptions options;
  options.node_id = fabric.node_id;
  options.silence_ns = fabric.silence_ns;
  options.secrets = fabric.secrets;
  // A path's socket admits this user alone, who may do everything anyway.
  options.proof_is_optional = reach == fabric::Reach::user;
  // Over libfabric the target's own processor executes READs, which is no better than a request.
  options.one_sided =
      config_.node.one_sided && listening->endpoint->properties().transport != "ofi";
  options.sessions_max = config_.clients.connections_max;
  options.resume_ns = std::uint64_t{config_.clients.resume_seconds} * 1'000'000'000;
  options.count = [this](bool comes) {
    if (!comes) ++gone_;
    counts_.clients.fetch_add(comes ? 1 : ~std::uint32_t{0}, std::memory_order_relaxed);
  };
  fabrics_.push_back(std::make_unique<offload::FabricClients>(
      std::move(listening->endpoint), services_, *scheduler_, *doorbells_, std::move(options)));
  return to_text(listening->address);
}

void Worker::stop() {
  if (!thread_.joinable()) return;
  stopping_.store(true, std::memory_order_release);
  wake();
  thread_.join();
}

void Worker::wake() { wake_event_.signal(); }

void Worker::enqueue(PendingClient pending) {
  {
    const std::lock_guard lock(mutex_);
    pending_clients_.push_back(std::move(pending));
    counts_.clients.fetch_add(1, std::memory_order_relaxed);
    has_pending_.store(true, std::memory_order_release);
  }
  wake();
}

void Worker::set_times(const WorkerTimes& times) {
  {
    const std::lock_guard lock(mutex_);
    pending_times_ = times;
    has_pending_.store(true, std::memory_order_release);
  }
  wake();
}

void Worker::run() {
  ::pthread_setname_np(::pthread_self(), ("worker-" + std::to_string(number_)).c_str());
  if (config_.node.pin) pin();
  const bool lags = core_.slowness > 1;
  while (!stopping_.load(std::memory_order_acquire)) {
    const std::uint64_t began_ns = lags ? base::monotonic_ns() : 0;
    const bool metered = metered_.load(std::memory_order_relaxed);
    const std::uint64_t cpu_began_ns = metered ? base::thread_cpu_ns() : 0;
    bool moved = scheduler_->turn();
    for (const auto& fabric : fabrics_) moved = fabric->turn() || moved;
    if (has_pending_.load(std::memory_order_acquire)) moved = adopt() || moved;
    if (!broken_.empty()) end_broken();
    if (++turns_ % kTurnsPerLook == 0) {
      look_at_sockets(0);
      give_memory_back();
    }
    if (metered && moved) count_turn(cpu_began_ns);
    if (lags) lag(began_ns);
    spin_or_sleep(moved);
  }
  finish();
}

// With fewer cores than workers, pinning does not help: they run anywhere. From the last core on,
// since clients that pin themselves begin with the first.
void Worker::pin() {
  const auto cores = base::usable_cores();
  const std::size_t place = std::size_t{core_.taken} + number_;
  const std::size_t for_clients = core_.taken == 0 ? 0 : 1;
  if (place + for_clients >= cores.size()) return;
  static_cast<void>(base::pin_this_thread(cores[cores.size() - 1 - place]));
}

void Worker::lag(std::uint64_t began_ns) const {
  const std::uint64_t now_ns = base::monotonic_ns();
  const auto took_ns = static_cast<double>(std::min(now_ns - began_ns, kLaggedNsMax));
  const std::uint64_t until_ns =
      now_ns + static_cast<std::uint64_t>((core_.slowness - 1) * took_ns);
  while (base::monotonic_ns() < until_ns) base::spin_pause();
}

void Worker::count_turn(std::uint64_t cpu_began_ns) {
  counts_.busy_cpu_ns.fetch_add(base::thread_cpu_ns() - cpu_began_ns, std::memory_order_relaxed);
  counts_.busy_turns.fetch_add(1, std::memory_order_relaxed);
}

void Worker::spin_or_sleep(bool moved) {
  if (moved) {
    quiet_since_ns_ = 0;
    return;
  }
  base::spin_pause();
  if (turns_ % 16 != 0) return;  // the clock costs as much as a turn
  const std::uint64_t now = base::monotonic_ns();
  if (quiet_since_ns_ == 0) quiet_since_ns_ = now;
  if (now - quiet_since_ns_ < times_.spin_ns) return;
  fall_asleep();
  quiet_since_ns_ = 0;
}

void Worker::fall_asleep() {
  std::byte* const sleeping =
      page_.at(offsetof(wire::NodePage, workers) + std::size_t{number_} * sizeof(wire::WorkerLine));
  base::store_shared(sleeping, std::uint32_t{1});
  base::rare_barrier(services_.asymmetric);
  // Writes before the barrier are found here; a later writer finds the worker asleep.
  if (!scheduler_->has_news() && !fabric_has_news() && !has_pending_.load() && !stopping_.load()) {
    counts_.sleeps.fetch_add(1, std::memory_order_relaxed);
    look_at_sockets(begin_sleep(longest_sleep_ms()));
    end_sleep();
    client_table_->sweep();
  }
  base::store_shared(sleeping, std::uint32_t{0});
  give_memory_back();
}

int Worker::longest_sleep_ms() const {
  if (client_table_->waits_for_clients()) return kBackloggedSleepMs;
  const std::uint64_t limit_ms = scheduler_->sleep_limit_ns() / 1'000'000;
  return static_cast<int>(
      std::min<std::uint64_t>(limit_ms, static_cast<unsigned>(times_.sweep_asleep_ms)));
}

bool Worker::fabric_has_news() const {
  return std::ranges::any_of(fabrics_, [](const auto& fabric) { return fabric->has_news(); });
}

// Sleeps on the fabrics, too, and returns for how long: one that cannot signal news is polled soon.
int Worker::begin_sleep(int longest_ms) {
  for (const auto& fabric : fabrics_) {
    const int limit_ms = static_cast<int>(fabric->sleep_limit_ns() / 1'000'000);
    longest_ms = std::min(longest_ms, std::max(limit_ms, 1));
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fabric->endpoint().begin_sleep();
    if (event.data.fd >= 0 &&
        ::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, event.data.fd, &event) == 0) {
      sleeping_on_.push_back(event.data.fd);
    } else {
      longest_ms = 1;
    }
  }
  return longest_ms;
}

void Worker::end_sleep() {
  for (const int descriptor : sleeping_on_) {
    ::epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, descriptor, nullptr);
  }
  sleeping_on_.clear();
  for (const auto& fabric : fabrics_) fabric->endpoint().end_sleep();
}

// After many clients have left, and then none for a while, or when they keep leaving. By itself the
// allocator returns only memory behind everything in use, which is little then. Runs on another
// thread, since it takes milliseconds.
void Worker::give_memory_back() {
  constexpr std::uint32_t kMany = 256;
  constexpr std::uint64_t kQuietNs = 100'000'000;
  constexpr std::uint64_t kLongestNs = 10'000'000'000;
  if (gone_ < kMany) return;
  const std::uint64_t now = base::monotonic_ns();
  if (std::exchange(gone_seen_, gone_) != gone_) quiet_of_going_since_ns_ = now;
  if (now - quiet_of_going_since_ns_ < kQuietNs && now - gave_back_ns_ < kLongestNs) return;
  gave_back_ns_ = now;
  gone_ = gone_seen_ = 0;
  services_.helpers.run([] { malloc_trim(0); });
}

void Worker::look_at_sockets(int timeout_ms) {
  epoll_event events[64];
  const int found = ::epoll_wait(epoll_.number(), events, 64, timeout_ms);
  for (int i = 0; i < found; ++i) {
    if (events[i].data.fd == wake_event_.number()) {
      wake_event_.clear();
    } else if (clients_.contains(events[i].data.fd)) {
      read_socket(events[i].data.fd);
    }
  }
  if (found > 0 && timeout_ms != 0) counts_.wake_ups.fetch_add(1, std::memory_order_relaxed);
}

// Wake-up bytes need no answer; everything else ends the connection.
void Worker::read_socket(int socket) {
  char bytes[256];
  for (int packets = 0; packets < kPacketsPerLook; ++packets) {
    const ssize_t got = ::recv(socket, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got != 1 || bytes[0] != static_cast<char>(wire::SocketByte::wake)) return remove(socket);
  }
}

bool Worker::adopt() {
  std::vector<PendingClient> pending_clients;
  bool changed = false;
  {
    const std::lock_guard lock(mutex_);
    pending_clients.swap(pending_clients_);
    if (pending_times_) {
      times_ = *std::exchange(pending_times_, std::nullopt);
      client_table_->set_times(times_.sweep_ns, times_.stuck_ns);
      changed = true;
    }
    has_pending_.store(false, std::memory_order_relaxed);
  }
  if (changed) end_unwelcome();
  for (PendingClient& pending : pending_clients) {
    bool welcomed = false;
    try {
      welcomed = welcome(std::move(pending));
    } catch (const std::bad_alloc&) {  // its socket is closed, and it may reconnect
    }
    if (!welcomed) counts_.clients.fetch_sub(1, std::memory_order_relaxed);
  }
  return !pending_clients.empty();
}

// Ends sessions of users that the socket would no longer admit, or whose secret has changed.
void Worker::end_unwelcome() {
  std::vector<int> unwelcome;
  for (const auto& [socket, client] : clients_) {
    const bool accepted = is_let_in(client.socket_class, times_.socket_mode);
    if (!accepted || !client.may_stay()) unwelcome.push_back(socket);
  }
  for (const int socket : unwelcome) {
    const offload::Connection& connection = *clients_.at(socket).connection;
    services_.audit.acted([&] { return offload::end_of_session(connection); });
    remove(socket);
  }
}

bool Worker::welcome(PendingClient pending) {
  offload::Connection& connection = *pending.connection;
  const int socket = pending.socket.number();
  // The configuration may have changed since it was admitted.
  if (!pending.may_stay() || !is_let_in(pending.socket_class, times_.socket_mode)) {
    refuse(socket, {Code::not_permitted, 0, 0});
    return false;
  }
  const auto doorbell = doorbells_->open(pending.user);
  if (!doorbell) {
    refuse(socket, doorbell.error());
    return false;
  }
  connection.doorbell = doorbell->place;
  const auto give_up = [&] {
    clients_.erase(socket);
    doorbells_->close(doorbell->place);
    return false;
  };
  try {  // before anything is promised
    clients_.try_emplace(socket);
    client_table_->expect(connection);
  } catch (const std::bad_alloc&) {
    refuse(socket, {Code::out_of_memory, 0, 0});
    return give_up();
  }
  wire::Welcome welcome{};
  welcome.request_slots = connection.layout().request_slots;
  welcome.response_slots = connection.layout().response_slots;
  welcome.response_rings = connection.layout().response_rings;
  welcome.doorbell = doorbell->in_page;
  welcome.worker = number_;
  welcome.node_id = base::load_plain<std::uint64_t>(page_.at(offsetof(wire::NodePage, node_id)));
  const int descriptors[] = {connection.memory().descriptor(), doorbell->page,
                             page_descriptor_.number()};
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = socket;
  if (!send_welcome(socket, welcome, descriptors) ||
      ::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, socket, &event) != 0) {
    return give_up();
  }
  connection.memory().close_descriptor();
  connection.owner_number = socket;
  clients_.at(socket) = Client{std::move(pending.socket), &connection, pending.socket_class,
                               std::move(pending.may_stay)};
  client_table_->add(std::move(pending.connection));
  return true;
}

void Worker::remove(int socket) {
  const auto at = clients_.find(socket);
  if (at == clients_.end()) return;
  offload::Connection& connection = *at->second.connection;
  if (connection.broken) send_byte(socket, wire::SocketByte::broken);
  clients_.erase(at);  // closes the socket, which removes it from the epoll set
  ++gone_;
  counts_.clients.fetch_sub(1, std::memory_order_relaxed);
  connection.parts.end();  // now, though its last requests end later
  scheduler_->remove(connection);
}

void Worker::end_broken() {
  while (!broken_.empty()) {
    offload::Connection* const connection = broken_.back();
    broken_.pop_back();
    const auto ended = [connection](const auto& fabric) { return fabric->end_broken(*connection); };
    if (connection->link() == nullptr) {
      remove(connection->owner_number);
    } else {
      static_cast<void>(std::ranges::any_of(fabrics_, ended));
    }
  }
}

// Notifies clients once they have their answers; does not wait for those that do not read them.
void Worker::finish() {
  adopt();
  scheduler_->take_no_more();
  const base::Stopwatch watch;
  const auto turn = [this] {
    bool moved = scheduler_->turn();
    for (const auto& fabric : fabrics_) moved = fabric->turn() || moved;
    return moved;
  };
  while (!scheduler_->idle() && watch.elapsed_ns() < kFinishNs) {
    if (!turn()) std::this_thread::yield();
  }
  fabrics_.clear();
  for (const auto& [socket, client] : clients_) send_byte(socket, wire::SocketByte::stopping);
  while (!clients_.empty()) remove(clients_.begin()->first);
  while (!scheduler_->idle()) {
    if (!scheduler_->turn()) std::this_thread::yield();
  }
  scheduler_.reset();
  client_table_.reset();
}

}  // namespace espalier::node
