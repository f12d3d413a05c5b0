// SPDX-License-Identifier: Apache-2.0
// Shared state of the clients that read a kind's objects by one-sided READs: a lane for lease calls
// to the node, the renewal of all readers' leases, and recent failures to open.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/clock.hpp"
#include "channel/rings/remote_sessions.hpp"
#include "reach/lease_guard.hpp"
#include "wire/session_calls.hpp"

namespace espalier::client {

/// A lane with rings of its own: a session has one pair for READs, so each kind uses another
/// session.
class LeaseLane {
 public:
  /// Whether there is a lane to this node; opens one if needed. Calls `lost()` to discard what was
  /// read through a lane that was lost.
  template <class Lost>
  [[nodiscard]] bool is_to(RemoteSessions& sessions, channel::NodeNumber node, const Lost& lost) {
    if (rings_ && rings_->ask_lost_idle()) {
      lost();
      requests_.reset();
      rings_.reset();
    }
    return (rings_ || open(sessions)) && rings_->connection().node_id() == node;
  }
  /// Requires: is_to().
  [[nodiscard]] RemoteRequests& requests() { return *requests_; }
  [[nodiscard]] NodeConnection& connection() { return rings_->connection(); }

 private:
  [[nodiscard]] bool open(RemoteSessions& sessions);

  std::unique_ptr<ThreadRings> rings_;
  std::unique_ptr<RemoteRequests> requests_;  // of rings_
};

/// Caches failures to open, so that retries fail immediately for a while: failures of a link, for
/// all objects (a handshake with a node that does not answer may take seconds); of leases, for all
/// objects without one; of an object.
class OpenFailures {
 public:
  /// Least pause after a failure, so that retries take little of a thread's time.
  static constexpr std::uint64_t kPauseNs = 100'000'000;

  /// The cached failure; null: it may be tried.
  [[nodiscard]] const Error* find(std::uint32_t object, bool has_link, std::uint64_t now_ns) const;
  /// Records a failure to open, which began at `began_ns`. Without memory to record it, nothing
  /// delays a retry.
  void note(std::uint32_t object, bool has_link, const Error& error, std::uint64_t began_ns);
  /// Called when there is another link.
  void forget_leases() { no_lease_ = {}; }

 private:
  static constexpr std::uint64_t kPauseFactor = 4;  // times the time that the failure took
  static constexpr std::size_t kObjectsMax = 1024;
  struct Failure {
    std::uint64_t until_ns = 0;
    Error error{};
  };

  Failure no_link_;
  Failure no_lease_;  // of this link
  std::unordered_map<std::uint32_t, Failure> of_objects_;
};

/// Renews a lease at the node; if the node refuses, or there is no memory, ends it.
void renew_lease(RemoteRequests& requests, place::LeaseGuard& lease,
                 const place::LeaseGuard::Asked& due);
/// Gives a lease back. False: the node did not accept it, and ends it with the session.
[[nodiscard]] bool give_back_lease(RemoteRequests& requests, const place::LeaseGuard::Asked& given);

/// Renews this lease, which belongs to one of the readers, and the leases of the others, if it is
/// due: a session needs all its leases, those of idle readers included. `readers`: by the numbers
/// of their objects.
template <class Readers>
void renew_leases(RemoteRequests& requests, Readers& readers, place::LeaseGuard& lease) {
  const std::uint64_t now = base::monotonic_ns();
  const auto asked = lease.due(now);
  if (!asked) return;
  for (const auto& [object, reader] : readers) {
    place::LeaseGuard& each = reader->lease();
    if (const auto due = &each == &lease ? asked : each.idle_due(now)) {
      renew_lease(requests, each, *due);
    }
  }
}

/// Destroys an object's reader. False: as give_back_lease().
template <class Readers>
[[nodiscard]] bool forget_reader(RemoteRequests& requests, Readers& readers, std::uint32_t object) {
  const auto known = readers.find(object);
  if (known == readers.end()) return true;
  const auto lease = known->second->lease().give_back();
  readers.erase(known);
  return !lease || give_back_lease(requests, *lease);
}

}  // namespace espalier::client
