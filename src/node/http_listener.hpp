// SPDX-License-Identifier: Apache-2.0
// Two pages over HTTP on the loopback interface: /metrics for monitoring, /healthz for checks
// whether the program serves. Nothing can be changed through it.
//
// One thread serves all connections and blocks on none: it reads bytes as they arrive, and passes
// an HTTP library only a complete request head, in memory. So a slow or silent client holds a
// descriptor until its timeout, and delays no other. When all places are taken and one more client
// connects, the oldest connection is evicted, unless it is younger than kSafeNs: a client that
// sends its request immediately and reads has its answer by then. So stalled clients delay another
// by about kSafeNs at most, whatever the timeout; a flood of connections, faster than
// kConnectionsMax in kSafeNs, can still delay others. The library's own sockets are not used: it
// waits with select(), which supports no descriptor above 1023, and needs a thread for each client,
// for as long as the client likes.
//
// Invariants
// - No connection outlives its timeout, is sent a second answer, or makes the listener store more
//   than one head and one answer for it.
// - There are never more connections than kConnectionsMax; others wait in the kernel until one ends
//   or is kSafeNs old.
// - No body of a request is read.
//
// Thread: its own; start and stop one at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "espalier/error.hpp"
#include "memory/shared_memory.hpp"
#include "node/event_fd.hpp"

namespace espalier::node {

class HttpListener {
 public:
  static constexpr std::size_t kConnectionsMax = 32;
  static constexpr std::size_t kHeadBytesMax = 8192;
  static constexpr std::uint64_t kConnectionNs = 5'000'000'000;
  static constexpr std::uint64_t kSafeNs = 100'000'000;

  /// `metrics` makes the text of /metrics; called on the listener's thread, for each request.
  /// `connection_ns`: the timeout of a connection, from its first byte to its last. `serves`: what
  /// /healthz answers; null: always.
  explicit HttpListener(std::function<std::string()> metrics,
                        std::uint64_t connection_ns = kConnectionNs,
                        std::function<bool()> serves = nullptr);
  ~HttpListener();
  HttpListener(const HttpListener&) = delete;
  HttpListener& operator=(const HttpListener&) = delete;

  /// Listens at 127.0.0.1, and at ::1 if it exists. Port 0: any free one.
  /// Errors: already_exists (detail: the port, which is in use), invalid_argument (detail: the
  /// port, which this user may not use), system (detail: errno).
  Result<void> start(std::uint16_t port);
  /// Closes all connections, in any phase.
  void stop();
  /// The port at which it listens; 0 before start().
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  enum class Phase : std::uint8_t {
    reading,   // the head of a request
    writing,   // the answer
    draining,  // reads bytes after the head: closing earlier would discard the answer
  };
  struct Connection {
    memory::Descriptor socket;
    std::uint64_t since_ns = 0;
    std::uint64_t until_ns = 0;
    Phase phase = Phase::reading;
    std::string head;
    std::string answer;
    std::size_t written = 0;
    std::size_t drained = 0;
  };
  class Pages;

  Result<void> bind_to(int family, std::uint16_t port);
  void run();
  void accept_from(int socket);
  [[nodiscard]] bool has_room() const;
  void make_room();
  [[nodiscard]] bool go_on(Connection& connection);
  [[nodiscard]] bool read_head(Connection& connection);
  [[nodiscard]] bool write_answer(Connection& connection);
  [[nodiscard]] static bool drain(Connection& connection);
  [[nodiscard]] int milliseconds_left() const;

  std::unique_ptr<Pages> pages_;
  std::uint64_t connection_ns_;
  std::vector<memory::Descriptor> sockets_;  // listening
  EventFd wake_event_;
  std::uint16_t port_ = 0;
  bool resting_ = false;  // accepts no client for a moment
  std::vector<Connection> connections_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace espalier::node
