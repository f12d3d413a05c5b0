// SPDX-License-Identifier: Apache-2.0
// Two pages over HTTP on the loopback interface: /metrics for whoever monitors the node, /healthz
// for whoever asks whether it lives. Nothing can be changed through it.
//
// One thread holds all connections, none of which it waits for: bytes are taken as they come, and
// what an HTTP library gets to see is a whole head of a request, in memory. So a slow client, or
// one that says nothing, holds a descriptor until its time is up, and delays no other. When all
// places are taken and one more client comes, the connection that has lasted longest ends for it,
// unless it is younger than kSafeNs: a client that asks at once and reads has its answer by then.
// So clients that stall delay another by about kSafeNs at most, however long their time is; a flood
// of connections, faster than kConnectionsMax in kSafeNs, can still delay others. The library's
// own sockets are not used: it waits with select(), which knows no descriptor above 1023, and a
// thread of its own for each client, for as long as the client likes.
//
// What never happens
// - No connection lives longer than its time, is sent a second answer, or makes the listener keep
//   more than one head and one answer for it.
// - There are never more connections than kConnectionsMax; others wait in the kernel until one ends
//   or is kSafeNs old.
// - No body of a request is looked at.
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

  /// `metrics` makes the text of /metrics; called on the listener's thread, at each request.
  /// `connection_ns`: the time of a connection, from its first byte to its last.
  explicit HttpListener(std::function<std::string()> metrics,
                        std::uint64_t connection_ns = kConnectionNs);
  ~HttpListener();
  HttpListener(const HttpListener&) = delete;
  HttpListener& operator=(const HttpListener&) = delete;

  /// Listens at 127.0.0.1, and at ::1 where there is one. Port 0: any free one.
  /// Errors: already_exists (detail: the port, at which somebody else listens), invalid_argument
  /// (detail: the port, at which this user may not listen), system (detail: errno).
  Result<void> start(std::uint16_t port);
  /// Ends all connections, whatever they are at.
  void stop();
  /// The port at which it listens; 0 before start().
  [[nodiscard]] std::uint16_t port() const { return port_; }

 private:
  enum class Phase : std::uint8_t {
    reading,   // the head of a request
    writing,   // the answer
    draining,  // what a client sends beyond its head: closing before would take its answer away
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
  std::vector<memory::Descriptor> sockets_;  // at which it listens
  EventFd wake_event_;
  std::uint16_t port_ = 0;
  bool resting_ = false;  // takes nobody in for a moment
  std::vector<Connection> connections_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace espalier::node
