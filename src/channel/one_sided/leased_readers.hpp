// SPDX-License-Identifier: Apache-2.0
// What clients that read objects alone keep for each kind of these: a lane by which the node is
// asked for leases, the leases of all readers, and what could not be had for a while.
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

/// Rings of its own: a session has one pair for READs, so that of other kinds is another session's.
class LeaseLane {
 public:
  /// Whether there is one, to this node. `lost()` lets go of what was read by one that is gone.
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
  std::unique_ptr<RemoteRequests> requests_;  // of these
};

/// What could not be had, and is told again at once for a while: of a link for all objects, for a
/// handshake with a node that does not answer may take seconds; of leases, for all objects that
/// have none; of an object.
class OpenFailures {
 public:
  /// How long at least, so that little of a thread's time goes into trying again.
  static constexpr std::uint64_t kPauseNs = 100'000'000;

  /// Null: it may be tried.
  [[nodiscard]] const Error* find(std::uint32_t object, bool has_link, std::uint64_t now_ns) const;
  /// Opening failed, which began then. Where there is no memory to remember it, it is tried again.
  void note(std::uint32_t object, bool has_link, const Error& error, std::uint64_t began_ns);
  /// There is another link.
  void forget_leases() { no_lease_ = {}; }

 private:
  static constexpr std::uint64_t kPauseFactor = 4;  // of the time that it took
  static constexpr std::size_t kObjectsMax = 1024;
  struct Failure {
    std::uint64_t until_ns = 0;
    Error error{};
  };

  Failure no_link_;
  Failure no_lease_;  // by this link
  std::unordered_map<std::uint32_t, Failure> of_objects_;
};

/// Asks the node for what one lease needs; what it does not renew, or there is no memory for, ends.
void renew_lease(RemoteRequests& requests, place::LeaseGuard& lease,
                 const place::LeaseGuard::Asked& due);
/// Gives a lease back. False: the node does not take it, and ends it with the session.
[[nodiscard]] bool give_back_lease(RemoteRequests& requests, const place::LeaseGuard::Asked& given);

/// Asks for what this lease, of one of the readers, needs now, and for those of the others: a
/// session stands and falls with all its leases, those of objects that are not read now too.
/// `readers`: by the numbers of their objects.
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

/// Lets go of an object's reader. False: as give_back_lease().
template <class Readers>
[[nodiscard]] bool forget_reader(RemoteRequests& requests, Readers& readers, std::uint32_t object) {
  const auto known = readers.find(object);
  if (known == readers.end()) return true;
  const auto lease = known->second->lease().give_back();
  readers.erase(known);
  return !lease || give_back_lease(requests, *lease);
}

}  // namespace espalier::client
