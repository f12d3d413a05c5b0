// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/remote/one_sided_reader.hpp"

#include <utility>

#include "base/assert.hpp"
#include "kinds/map/walk/walk_impl.hpp"

namespace espalier::tree {
template class Walker<place::OneSidedPlace>;
}  // namespace espalier::tree

namespace espalier::place {
namespace {

std::optional<MapCache> make_cache(const tree::MapView& view,
                                   const OneSidedReader::Options& options,
                                   std::optional<Balancer>& balancer) {
  if (options.cache == nullptr) return std::nullopt;
  std::optional<MapCache> cache(std::in_place, *options.cache, view, options.remembers_leaves);
  if (balancer) cache->set_balancer(&*balancer);
  return cache;
}

std::optional<Balancer> make_balancer(const OneSidedReader::Options& options,
                                      const ReadPort& port) {
  if (options.balance == 0) return std::nullopt;
  return std::optional<Balancer>(std::in_place, options.balance, port);
}

ReaderState make_state(ReadPort& port, LeaseGuard& lease, std::optional<MapCache>& cache,
                       const std::function<std::uint64_t()>& now_ns, std::uint32_t leaves_ahead) {
  ReaderState state;
  state.port = &port;
  state.lease = &lease;
  state.now_ns = [](const void* clock) {
    return (*static_cast<const std::function<std::uint64_t()>*>(clock))();
  };
  state.clock = &now_ns;
  state.cache = cache ? &*cache : nullptr;
  state.leaves_ahead = leaves_ahead;
  state.table_pages.resize(wire::kDirectoryEntries);
  return state;
}

void make_group(std::optional<GetGroup>& gets, ReaderState& state, const tree::MapView& view,
                const OneSidedReader::Options& options) {
  if (options.groups_gets && options.remembers_leaves && options.balance == 0 &&
      state.cache != nullptr && state.port->reads_in_order()) {
    gets.emplace(state, view, options.lanes);
  }
}

}  // namespace

OneSidedReader::OneSidedReader(fabric::Endpoint& endpoint, fabric::QueuePair& pair,
                               fabric::CompletionQueue& completions,
                               const fabric::RemoteRegion& region, const tree::MapView& view,
                               Options options)
    : place_(view, options.terms),
      now_ns_(std::move(options.now_ns)),
      own_port_(std::in_place, pair, completions, region, endpoint.properties()),
      port_(*own_port_),
      balancer_(make_balancer(options, port_)),
      cache_(make_cache(place_.view(), options, balancer_)),
      state_(make_state(port_, place_.guard(), cache_, now_ns_, options.leaves_ahead)),
      walker_(place_, options.lanes, [this](std::uint32_t, base::ReadyQueue& ready) {
        return OneSidedAccess(state_, place_.view(), ready);
      }) {
  make_group(gets_, state_, place_.view(), options);
}

OneSidedReader::OneSidedReader(ReadPort& port, const tree::MapView& view, Options options)
    : place_(view, options.terms),
      now_ns_(std::move(options.now_ns)),
      port_(port),
      balancer_(make_balancer(options, port_)),
      cache_(make_cache(place_.view(), options, balancer_)),
      state_(make_state(port_, place_.guard(), cache_, now_ns_, options.leaves_ahead)),
      walker_(place_, options.lanes, [this](std::uint32_t, base::ReadyQueue& ready) {
        return OneSidedAccess(state_, place_.view(), ready);
      }) {
  make_group(gets_, state_, place_.view(), options);
}

std::uint32_t OneSidedReader::hold_completing() {
  const std::uint32_t tick = walker_.completing_tick();
  place_.guard().hold(tick);
  return tick;
}

void OneSidedReader::submit(const tree::WalkRequest& request) {
  if (gets_ && request.plain()) return submit({request.request, 1}, *request.handler);
  state_.end_batch();
  walker_.submit(request);
}

void OneSidedReader::submit(std::span<const Request> requests, Handler& handler) {
  state_.end_batch();
  if (!gets_) return walker_.submit(requests, handler);
  const auto is_get = [](const Request& request) { return request.op == Op::get; };
  while (!requests.empty()) {
    const bool gets = is_get(requests.front());
    std::size_t count = 1;
    while (count != requests.size() && is_get(requests[count]) == gets) ++count;
    if (gets) {
      walker_.expect(gets_->pending() + count);  // all of them may become walks
      gets_->submit(requests.first(count), handler);
    } else {
      walker_.submit(requests.first(count), handler);
    }
    requests = requests.subspan(count);
  }
}

std::size_t OneSidedReader::poll() {
  state_.end_batch();
  port_.poll();
  if (feed_) feed_->poll(now_ns_());
  if (balancer_) balancer_->set_walks(walker_.pending());
  if (gets_) {
    gets_->poll([this](const tree::WalkRequest& request) { walker_.take_over(request); });
  }
  walker_.poll();
  return pending();
}

void OneSidedReader::read_by_key(KeyedReads keyed) {
  ESPALIER_ASSERT(keyed.bytes % 8 == 0 && keyed.bytes >= sizeof(wire::NodeHeader));
  state_.keyed = std::move(keyed);
  ESPALIER_ASSERT(pending() == 0);
  gets_.reset();
}

void OneSidedReader::follow(const FeedCursor& feed) {
  if (cache_) feed_.emplace(port_, *cache_, feed);
}

wire::Ref OneSidedReader::remembered(std::string_view key) {
  if (!cache_ || key.empty() || key.size() > view().geometry.key_bytes_max) return {};
  tree::SearchKey search;
  search.assign(key);
  return cache_->lowest_known(search);
}

void OneSidedReader::fail() {
  port_.fail();
  place_.guard().end_all();
}

}  // namespace espalier::place
