// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/client/one_sided_hashes.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/clock.hpp"
#include "channel/no_memory.hpp"
#include "channel/rings/typed_call.hpp"
#include "kinds/hash/calls.hpp"
#include "kinds/hash/client/hash_opening.hpp"
#include "wire/session_calls.hpp"

namespace espalier::client {
namespace {

constexpr std::uint64_t kHashesNapNs = 1'000'000;
// After a failure, so that little of a thread's time goes into trying again.
constexpr std::uint64_t kFailurePauseNs = 100'000'000;
constexpr std::uint64_t kFailurePauseFactor = 4;
// Of what is remembered, so large a part at most is for directories.
constexpr std::uint64_t kDirectoriesShare = 8;
// Maps of which failures are remembered.
constexpr std::size_t kFailuresMost = 1024;
constexpr int kHashTries = 2;  // the second with a new session's key and lease

Result<session_calls::Renewed> ask_of_lease(RemoteRequests& requests,
                                            const place::LeaseGuard::Asked& asked) {
  const session_calls::RenewLease renewal{0, {asked.id, asked.oldest}, {}};
  return or_out_of_memory([&] { return ask(requests, renewal); });
}

}  // namespace

OneSidedHashes::OneSidedHashes(std::uint32_t in_flight, const WalkOptions& options)
    : in_flight_(in_flight),
      options_(options),
      directories_(options.cache_bytes / kDirectoriesShare) {}

OneSidedHashes::~OneSidedHashes() = default;

Result<place::HashGets*> OneSidedHashes::open(RemoteRequests& requests, NodeConnection& connection,
                                              std::uint32_t map) {
  if (link_ && link_->pair().state() == fabric::QueuePair::State::error) close();
  if (const auto known = maps_.find(map); known != maps_.end()) return known->second.get();
  if (connection.lost()) return std::unexpected(connection.lost_error());
  const std::uint64_t began = base::monotonic_ns();
  if (const Failure* const before = failure_of(map, began)) return std::unexpected(before->error);
  const auto opened = open_or_close(requests, connection, map);
  if (opened) return opened;
  const std::uint64_t now = base::monotonic_ns();
  const std::uint64_t pause = std::max(kFailurePauseNs, kFailurePauseFactor * (now - began));
  note_failure(map, {now + pause, opened.error()});
  return opened;
}

const OneSidedHashes::Failure* OneSidedHashes::failure_of(std::uint32_t map,
                                                          std::uint64_t now_ns) const {
  const Failure& of_all = link_ ? no_lease_ : no_link_;
  if (now_ns < of_all.until_ns) return &of_all;
  const auto found = failures_.find(map);
  return found != failures_.end() && now_ns < found->second.until_ns ? &found->second : nullptr;
}

void OneSidedHashes::note_failure(std::uint32_t map, const Failure& failure) {
  if (!link_) {
    no_link_ = failure;
  } else if (failure.error.code == Code::out_of_memory) {
    no_lease_ = failure;
  } else {
    if (failures_.size() == kFailuresMost) failures_.clear();
    try {
      failures_[map] = failure;
    } catch (const std::bad_alloc&) {  // then it is tried again
    }
  }
}

// Where there is no memory the node may have granted a lease that nobody keeps, with which the
// session falls.
Result<place::HashGets*> OneSidedHashes::open_or_close(RemoteRequests& requests,
                                                       NodeConnection& connection,
                                                       std::uint32_t map) {
  try {
    return open_anew(requests, connection, map);
  } catch (const std::bad_alloc&) {
    close();
    return fail(Code::out_of_memory);
  }
}

Result<place::HashGets*> OneSidedHashes::open_anew(RemoteRequests& requests,
                                                   NodeConnection& connection, std::uint32_t map) {
  if (!link_) {
    auto link = connection.open_beside(wire::LinkWay::reads);
    if (!link) return std::unexpected(link.error());
    if (options_.cache_bytes != 0 && (cache_ == nullptr || cache_of_ != connection.node_id())) {
      cache_ = std::make_unique<place::BinCache>(options_.cache_bytes);
      cache_of_ = connection.node_id();
    }
    link_ = std::move(*link);
  }
  const std::uint64_t asked_ns = base::monotonic_ns();
  Reply answer;
  const auto opened = ask(requests, hash_calls::OpenReads{map}, answer);
  if (!opened) return std::unexpected(opened.error());
  const auto opening = HashOpening::read(opened->described);
  if (!opening) return std::unexpected(opening.error());
  const auto target = opening->target_of(map);
  if (!target) return std::unexpected(target.error());
  const fabric::RemoteRegion region{opening->region.base, opening->region.bytes,
                                    opening->region.key, 0};
  const fabric::Properties& properties = link_->endpoint().properties();
  if (!port_) {
    port_.emplace(link_->pair(), link_->completions(), region, properties);
  } else if (port_->region() != region) {
    // The session has another key, so what all maps were read by is void.
    close();
    return open_anew(requests, connection, map);
  }
  const wire::LeaseGrant& grant = opening->lease;
  auto gets = std::make_unique<place::HashGets>(
      *port_, *target,
      place::HashGets::Options{.in_flight = in_flight_,
                               .terms = {.renew_every_ns = grant.renew_every_ns,
                                         .believed_for_ns = grant.believed_for_ns,
                                         .lost_after_ns = grant.lost_after_ns},
                               .now_ns = base::monotonic_ns,
                               .cache = cache_.get(),
                               .directories = &directories_,
                               .together = properties.reads_end_in_post});
  gets->lease().granted(grant.lease, grant.epoch, asked_ns, base::monotonic_ns());
  return maps_.emplace(map, std::move(gets)).first->second.get();
}

void OneSidedHashes::renew(RemoteRequests& requests, place::LeaseGuard& lease) {
  const std::uint64_t now = base::monotonic_ns();
  const auto asked = lease.due(now);
  if (!asked) return;
  // A session stands and falls with all its leases, those of maps that are not read now too.
  for (const auto& [map, gets] : maps_) {
    place::LeaseGuard& each = gets->lease();
    if (const auto due = &each == &lease ? asked : each.idle_due(now)) {
      renew_one(requests, each, *due);
    }
  }
}

void OneSidedHashes::renew_one(RemoteRequests& requests, place::LeaseGuard& lease,
                               const place::LeaseGuard::Asked& due) {
  if (due.id == 0) return lease.end_all();  // another comes with another opening
  const auto renewed = ask_of_lease(requests, due);
  if (renewed) {
    lease.renewed(renewed->epoch, base::monotonic_ns());
  } else {
    lease.end_all();
  }
}

// What the node does not take back it ends with the session.
void OneSidedHashes::forget(RemoteRequests& requests, std::uint32_t map) {
  const auto known = maps_.find(map);
  if (known == maps_.end()) return;
  const auto lease = known->second->lease().give_back();
  maps_.erase(known);
  if (lease && !ask_of_lease(requests, *lease)) close();
}

void OneSidedHashes::wait() {
  if (!port_) return;
  try {
    link_->endpoint().wait(kHashesNapNs);
  } catch (const std::bad_alloc&) {
    port_->fail();
  }
}

void OneSidedHashes::close() {
  ended_ = traffic();
  if (link_) link_->pair().close();  // nothing that is in flight arrives after that
  maps_.clear();
  no_lease_ = {};
  link_.reset();
  port_.reset();
}

tree::WalkTraffic OneSidedHashes::traffic() const {
  tree::WalkTraffic sum = ended_;
  if (port_) sum += port_->traffic();
  return sum;
}

// --- one by one ----------------------------------------------------------------------------------

/// Hands on what it is told, but for failures that the rings may do better.
class OneSidedHashCaller::Forward final : public Handler {
 public:
  explicit Forward(Handler& to) : to_(to) {}
  void done(const Completion& completion) override {
    const Code code = completion.error.code;
    failed = !completion.ok &&
             (code == Code::contended || code == Code::connection_lost || code == Code::not_found);
    contended = failed && code == Code::contended;
    dropped = failed && code == Code::not_found;
    if (!failed) to_.done(completion);
  }
  bool failed = false;
  bool contended = false;
  bool dropped = false;

 private:
  Handler& to_;
};

bool OneSidedHashCaller::has_lane(RemoteSessions& sessions, channel::NodeNumber node) {
  if (rings_ && rings_->ask_lost_idle()) {
    hashes_.close();
    requests_.reset();
    rings_.reset();
  }
  if (!rings_) {
    auto rings = sessions.open_lane();
    if (!rings) return false;
    requests_ = std::make_unique<RemoteRequests>(**rings, 1);
    rings_ = std::move(*rings);
  }
  return rings_->connection().node_id() == node;
}

bool OneSidedHashCaller::run(RemoteSessions& sessions, channel::NodeNumber node, std::uint32_t map,
                             const Request& request, Handler& handler) {
  Forward forward(handler);
  for (int i = 0; i < kHashTries && has_lane(sessions, node); ++i) {
    const auto opened = hashes_.open(*requests_, rings_->connection(), map);
    if (!opened) break;
    try {
      (*opened)->submit({&request, 1}, forward);
      go_on(**opened);
    } catch (...) {  // nothing is told of this get any more
      hashes_.close();
      throw;
    }
    if (!forward.failed) return true;
    if (forward.contended) break;
    if (forward.dropped) {
      hashes_.forget(*requests_, map);
      break;
    }
    hashes_.close();
  }
  ++by_rings_;
  return false;
}

void OneSidedHashCaller::go_on(place::HashGets& gets) {
  std::uint32_t quiet = 0;  // looks since the get last asked for something
  for (std::uint64_t trips = 0; gets.poll() != 0; ++quiet) {
    const std::uint64_t now = gets.traffic().round_trips;
    if (std::exchange(trips, now) != now) quiet = 0;
    hashes_.renew(*requests_, gets.lease());
    if (gets.lease().ended()) gets.fail();
    if (quiet > kReadSpins) hashes_.wait();
  }
}

tree::WalkTraffic OneSidedHashCaller::traffic() const {
  tree::WalkTraffic traffic = hashes_.traffic();
  traffic.by_rings = by_rings_;
  return traffic;
}

}  // namespace espalier::client
