// SPDX-License-Identifier: Apache-2.0
// The thread that reads the sockets of an endpoint: it accepts connections, hands out the memory of
// regions, and queues events for the endpoint's own thread. It sleeps otherwise. So the
// application's thread may sleep too while peers access its regions.
//
// Denial of service: a client that connects and sends nothing, or an invalid packet, holds one
// descriptor for a few seconds.
//
// Invariants
// I1. Nothing here waits for a peer: sockets do not block, and an answer for which a peer's socket
//     has no room ends that connection.
// I2. What a peer can make this side keep is bounded: a pending connection takes one of
//     kKnockingMax places, and answers that were not asked for are dropped.
//
// Thread: its own, and that of the endpoint.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "espalier/error.hpp"
#include "fabric/endpoint.hpp"
#include "fabric/region_table.hpp"
#include "fabric/shm/listening_socket.hpp"
#include "fabric/shm/notice.hpp"
#include "fabric/shm/pair_socket.hpp"

namespace espalier::fabric::shm {

class Service {
 public:
  static constexpr std::size_t kKnockingMax = 1024;
  /// The hello timeout.
  static constexpr std::uint64_t kHelloNs = 5'000'000'000;

  Service(RegionTable& regions, Notice& notice) : regions_(regions), notice_(notice) {}
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;
  ~Service();

  /// Errors: system.
  Result<void> start();
  /// Errors: as ListeningSocket::open().
  Result<void> listen(std::string_view path);
  /// Reads the packets of this socket from now on. Returns its number. Errors: system.
  Result<std::uint64_t> add(std::shared_ptr<PairSocket> link);
  /// Stops reading a socket, and closes the connection.
  void forget(std::uint64_t number);

  /// Pending connections, each once.
  [[nodiscard]] std::optional<ConnectRequest> next_request();
  /// Accepts the pending connection of this number; null: it has gone.
  [[nodiscard]] std::shared_ptr<PairSocket> accept(std::uint64_t number, Domain domain);
  /// Rejects a pending connection.
  void reject(std::uint64_t number);

 private:
  void run();
  void handle(std::uint64_t number);
  void accept_all(int socket);
  void read_from(std::uint64_t number, PairSocket& link);
  [[nodiscard]] bool take(std::uint64_t number, PairSocket& link, std::span<const std::byte> packet,
                          std::span<memory::Descriptor> descriptors);
  [[nodiscard]] bool take_hello(std::uint64_t number, PairSocket& link,
                                std::span<const std::byte> packet, memory::Descriptor words);
  [[nodiscard]] bool take_note(const PairSocket& link, std::span<const std::byte> packet) const;
  void lose(std::uint64_t number, PairSocket& link);
  void drop_late();
  [[nodiscard]] bool watch(int descriptor, std::uint64_t number) const;
  void unwatch(int descriptor) const;
  [[nodiscard]] std::shared_ptr<PairSocket> find(std::uint64_t number);

  RegionTable& regions_;
  Notice& notice_;
  memory::Descriptor epoll_;
  memory::Descriptor bell_;
  std::atomic<bool> stopping_{false};
  bool resting_ = false;  // of the service's own thread

  std::mutex mutex_;  // of all below
  std::map<std::uint64_t, ListeningSocket> listening_;
  std::unordered_map<std::uint64_t, std::shared_ptr<PairSocket>> links_;
  std::deque<std::uint64_t> knocked_;
  std::size_t unknown_peers_ = 0;  // links that are greeting or knocking
  std::uint64_t next_number_ = 1;

  std::thread thread_;
};

}  // namespace espalier::fabric::shm
