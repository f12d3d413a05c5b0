// SPDX-License-Identifier: Apache-2.0
#include "engine/peer_posts.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/try_reserve.hpp"
#include "engine/connection.hpp"
#include "engine/planted_engine_bugs.hpp"
#include "engine/principal_accounts.hpp"
#include "engine/scheduler.hpp"
#include "engine/services.hpp"

namespace espalier::offload {
namespace {

constexpr unsigned kPostBits = 8;
static_assert(PostsOfRequest::kMost < 1u << kPostBits);
constexpr std::size_t kCompactFrom = 64;

}  // namespace

const ExecutorKind kPeerPosts{[](const ExecutorContext& context) -> std::unique_ptr<Executor> {
  return std::make_unique<PeerPosts>(context);
}};

PeerPosts::PeerPosts(const ExecutorContext& context)
    : scheduler_(context.scheduler), node_(context.services.parts.find<NodePeers>()) {
  if (node_ == nullptr) return;
  const auto wake = [&scheduler = scheduler_] { scheduler.wake(); };
  for (std::size_t i = 0; i < node_->peers.size(); ++i) {
    links_.push_back({node_->peers[i].make_link(wake), {}});
    node_->add_counts(i, links_[i].link->shared_counts());
  }
}

void NodePeers::add_counts(std::size_t peer, std::shared_ptr<const channel::PeerCounts> counts) {
  const std::lock_guard lock(mutex_);
  counts_[peer].push_back(std::move(counts));
}

PeerTotals NodePeers::totals(std::size_t peer) const {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  PeerTotals totals;
  const std::lock_guard lock(mutex_);
  for (const auto& counts : counts_[peer]) {
    totals.links_up += counts->up.load(kRelaxed) ? 1 : 0;
    totals.opened += counts->opened.load(kRelaxed);
    totals.posts += counts->posts.load(kRelaxed);
    totals.doorbells += counts->doorbells.load(kRelaxed);
    totals.completions += counts->completions.load(kRelaxed);
    totals.failures += counts->failures.load(kRelaxed);
  }
  return totals;
}

std::optional<std::size_t> PeerPosts::find(std::string_view name) const {
  if (node_ == nullptr) return std::nullopt;
  const auto at = std::ranges::find(node_->peers, name, &NodePeers::Peer::name);
  if (at == node_->peers.end()) return std::nullopt;
  return static_cast<std::size_t>(at - node_->peers.begin());
}

bool PeerPosts::admit(Request& request) {
  request.executor_state.make<PostsOfRequest>();
  return true;
}

void PeerPosts::make_room(std::size_t places) {
  base::reserve_more(done_, places - done_.size());
  base::reserve_more(going_on_, places - going_on_.size());
  accounts_.resize(places);
}

// --- posting -------------------------------------------------------------------------------------

PeerPosts::Queue& PeerPosts::queue_of(Link& link, const Request& request, const Post& post) {
  return link.queues[post.message == nullptr ? 0 : request.hops() + 1];
}

// Beyond its share, a client's own connection gets no request taken in the first place, except for
// a few that were under way.
bool PeerPosts::may_post(const Request& request, std::span<const Post> posts,
                         const PrincipalAccount& account) const {
  const auto calls = [](const Post& post) { return post.message != nullptr; };
  if (request.hops() == wire::kHopsMax) return std::ranges::none_of(posts, calls);
  if (request.hops() != 0 || !request.on_behalf()) return true;
  return account.peer_waits.load(std::memory_order_relaxed) < Scheduler::kPeerWaitsMax;
}

void PeerPosts::take(Request& request, std::span<const Post> posts) {
  PrincipalRef account = scheduler_.account_of(request);
  const bool may = may_post(request, posts, *account);
  if (may) {
    for (const Post& post : posts) {
      base::reserve_more(queue_of(links_[post.peer], request, post).waiting, posts.size());
    }
  }
  auto& state = request.executor_state.make<PostsOfRequest>();
  scheduler_.begin_peer_wait(request, *account);
  accounts_[request.index] = std::move(account);
  for (const Post& post : posts) {
    const std::uint64_t owner = std::uint64_t{request.index} << kPostBits | state.posted++;
    if (!may) continue;
    auto& waiting = queue_of(links_[post.peer], request, post).waiting;
    const bool behind = !waiting.empty() && waiting.back().owner >> kPostBits == request.index;
    waiting.push_back({post, owner, behind});
  }
  state.pending = may ? state.posted : 0;
  if (!may) done_.push_back(&request);
}

// In order: a post that finds no room blocks later ones of its queue.
void PeerPosts::feed(channel::PeerLink& link, Queue& queue, std::uint8_t hops) {
  for (; queue.first != queue.waiting.size(); ++queue.first) {
    const auto& [post, owner, behind] = queue.waiting[queue.first];
    bool taken = false;
    if (post.message == nullptr) {
      taken = behind ? link.post_behind(post.session, post.request, owner)
                     : link.post(post.session, post.request, owner);
    } else {
      wire::CallMessage message = *post.message;
      message.hops = hops;
      taken = link.call(post.session, message, *post.answer, owner);
    }
    if (!taken && planted(Bug::peer_post_overtakes) && queue.first + 1 != queue.waiting.size()) {
      std::swap(queue.waiting[queue.first], queue.waiting[queue.first + 1]);
    }
    if (!taken) break;
  }
  if (queue.first == queue.waiting.size()) {
    queue.waiting.clear();
    queue.first = 0;
  } else if (queue.first >= kCompactFrom && queue.first >= queue.waiting.size() / 2) {
    queue.waiting.erase(queue.waiting.begin(),
                        queue.waiting.begin() + static_cast<std::ptrdiff_t>(queue.first));
    queue.first = 0;
  }
}

// Continued requests may post again, so a turn's posts to a peer share a doorbell. Links are polled
// in each turn; a node without peers gets one turn, and no more.
bool PeerPosts::turn() {
  bool moved = false;
  if (!links_.empty()) ask_for_turn();
  for (Link& each : links_) moved = each.link->poll(*this) || moved;
  going_on_.swap(done_);
  for (Request* const request : going_on_) {
    const PrincipalRef account = std::exchange(accounts_[request->index], nullptr);
    scheduler_.end_peer_wait(*request, *account);
    if (request->connection->closing) {
      scheduler_.release(*request);
    } else {
      scheduler_.go_on_with(*request, &request->executor_state.get<PostsOfRequest>());
    }
  }
  going_on_.clear();
  for (Link& each : links_) {
    for (std::uint8_t hops = 0; hops != each.queues.size(); ++hops) {
      if (!each.queues[hops].waiting.empty()) feed(*each.link, each.queues[hops], hops);
    }
    each.link->ring();
  }
  return moved;
}

bool PeerPosts::has_news() const {
  const auto waits = [](const Queue& queue) { return !queue.waiting.empty(); };
  return !done_.empty() || std::ranges::any_of(links_, [&](const Link& each) {
    return std::ranges::any_of(each.queues, waits) || each.link->waits();
  });
}

std::uint64_t PeerPosts::sleep_limit_ns() const {
  std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
  for (const Link& each : links_) limit = std::min(limit, each.link->sleep_limit_ns());
  return limit;
}

void PeerPosts::ended(std::uint64_t owner, fabric::PostEnd how, fabric::Status status) {
  Request& request = scheduler_.place(owner >> kPostBits);
  auto& state = request.executor_state.get<PostsOfRequest>();
  ESPALIER_ASSERT(state.pending != 0);
  if (planted(Bug::peer_failure_believed)) how = fabric::PostEnd::done;
  state.ends[owner & ((1u << kPostBits) - 1)] = {how, status};
  if (--state.pending == 0) done_.push_back(&request);  // reserved
}

// --- for steps -----------------------------------------------------------------------------------

void PeerBatch::add(std::size_t peer, std::uint64_t session, const fabric::WorkRequest& request) {
  ESPALIER_ASSERT(count_ < posts_.size() && peer < executor_.peers());
  posts_[count_++] = {peer, session, request, nullptr, nullptr};
}

void PeerBatch::call(std::size_t peer, std::uint64_t session, const wire::CallMessage& message,
                     channel::PeerAnswer& answer) {
  ESPALIER_ASSERT(count_ < posts_.size() && peer < executor_.peers());
  posts_[count_++] = {peer, session, {}, &message, &answer};
}

Next PeerBatch::completed() {
  ESPALIER_ASSERT(count_ != 0);
  executor_.take(call_.request(), {posts_.data(), count_});
  count_ = 0;
  return call_.handed_over();
}

std::span<const PeerEnd> peer_ends(const Call& call) {
  const auto* const posts = static_cast<const PostsOfRequest*>(call.from_executor());
  if (posts == nullptr) return {};
  return std::span(posts->ends).first(posts->posted);
}

}  // namespace espalier::offload
