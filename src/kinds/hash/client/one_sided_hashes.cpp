// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/client/one_sided_hashes.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/clock.hpp"
#include "channel/rings/typed_call.hpp"
#include "kinds/hash/calls.hpp"
#include "kinds/hash/client/hash_opening.hpp"

namespace espalier::client {
namespace {

constexpr std::uint64_t kHashesNapNs = 1'000'000;
// Share of the cache for directories, at most: one part in so many.
constexpr std::uint64_t kDirectoriesShare = 8;
constexpr int kHashTries = 2;  // the second with a new session's key and lease

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
  const Error* const before = failures_.find(map, link_ != nullptr, began);
  if (before != nullptr) return std::unexpected(*before);
  const auto opened = open_or_close(requests, connection, map);
  if (!opened) failures_.note(map, link_ != nullptr, opened.error(), began);
  return opened;
}

// Without memory the node may have granted a lease that this process does not know, and with which
// its session will be fenced.
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
    // The session has another key, so the connections of all maps are void.
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
  renew_leases(requests, maps_, lease);
}

void OneSidedHashes::forget(RemoteRequests& requests, std::uint32_t map) {
  if (!forget_reader(requests, maps_, map)) close();
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
  if (link_) link_->pair().close();  // nothing in flight arrives after that
  maps_.clear();
  failures_.forget_leases();
  link_.reset();
  port_.reset();
}

tree::WalkTraffic OneSidedHashes::traffic() const {
  tree::WalkTraffic sum = ended_;
  if (port_) sum += port_->traffic();
  return sum;
}

// --- single gets ---------------------------------------------------------------------------------

/// Passes completions on, except failures that the rings may avoid.
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

bool OneSidedHashCaller::run(RemoteSessions& sessions, channel::NodeNumber node, std::uint32_t map,
                             const Request& request, Handler& handler) {
  Forward forward(handler);
  for (int i = 0; i < kHashTries && lane_.is_to(sessions, node, [this] { hashes_.close(); }); ++i) {
    const auto opened = hashes_.open(lane_.requests(), lane_.connection(), map);
    if (!opened) break;
    try {
      (*opened)->submit({&request, 1}, forward);
      go_on(**opened);
    } catch (...) {  // the handler is not called for this get any more
      hashes_.close();
      throw;
    }
    if (!forward.failed) return true;
    if (forward.contended) break;
    if (forward.dropped) {
      hashes_.forget(lane_.requests(), map);
      break;
    }
    hashes_.close();
  }
  ++by_rings_;
  return false;
}

void OneSidedHashCaller::go_on(place::HashGets& gets) {
  std::uint32_t quiet = 0;  // polls since the get last posted READs
  for (std::uint64_t trips = 0; gets.poll() != 0; ++quiet) {
    const std::uint64_t now = gets.traffic().round_trips;
    if (std::exchange(trips, now) != now) quiet = 0;
    hashes_.renew(lane_.requests(), gets.lease());
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
