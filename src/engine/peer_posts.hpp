// SPDX-License-Identifier: Apache-2.0
// Posts from steps to other nodes (channel/peer_link.hpp, docs/design/peers.md). A step posts to
// one or several peers and waits until the last post has completed; its next call gets the result
// of each, in the order of its posts.
//
//   Next step(Call& call) {
//     State& state = call.state<State>();
//     if (const auto ends = peer_ends(call); !ends.empty()) return call.answer(...);
//     PeerBatch batch(call);
//     batch.read(b, session, state.word, key, address);
//     return batch.completed();
//   }
//
// The offload's executor is kPeerPosts. Local buffers of a post lie in the request's state, which
// stays until all posts have completed, even if the client has gone.
//
// All posts to a peer in one turn share one doorbell. Posts that find a link full wait in order, in
// separate queues: calls do not wait for posts on memory, nor calls of requests that came over a
// node for those of clients.
//
// A request that waits for peers does not count as in flight at its scheduler, but one principal
// may have only so many (Scheduler::kPeerWaitsMax). Beyond that no more of its requests are taken,
// and posts of requests that a device relays for it end as not_sent. So do posts that include a
// call, of requests at the hop limit.
//
// Thread: the scheduler's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "channel/peer_link.hpp"
#include "engine/call.hpp"
#include "engine/executor.hpp"
#include "engine/peer_totals.hpp"

namespace espalier::offload {

/// The peers of a node, and the factories of a scheduler's links to them. Thread: any.
struct NodePeers final : NodePart {
  struct Peer {
    std::string name;
    /// `wake`: wakes the scheduler's thread; any thread calls it while the link lives.
    std::function<std::unique_ptr<channel::PeerLink>(std::function<void()> wake)> make_link;
  };
  explicit NodePeers(std::vector<Peer> all) : peers(std::move(all)), counts_(peers.size()) {}
  const std::vector<Peer> peers;

  /// Adds the counters of a scheduler's link to this peer.
  void add_counts(std::size_t peer, std::shared_ptr<const channel::PeerCounts> counts);
  /// Each is exact; together they are no snapshot.
  [[nodiscard]] PeerTotals totals(std::size_t peer) const;

 private:
  mutable std::mutex mutex_;                                                     // guards counts_
  std::vector<std::vector<std::shared_ptr<const channel::PeerCounts>>> counts_;  // by peer
};

extern const ExecutorKind kPeerPosts;

/// The outcome of one post.
struct PeerEnd {
  fabric::PostEnd how = fabric::PostEnd::not_sent;
  fabric::Status status = fabric::Status::flushed;
  friend bool operator==(const PeerEnd&, const PeerEnd&) = default;
};

/// The posts of a request, as the executor stores them in the request.
struct PostsOfRequest {
  static constexpr std::size_t kMost = 24;
  std::uint32_t posted = 0;
  std::uint32_t pending = 0;
  std::array<PeerEnd, kMost> ends{};
};

class PeerPosts final : public Executor, private channel::PeerEnds {
 public:
  explicit PeerPosts(const ExecutorContext& context);
  static PeerPosts& of(Call& call) { return static_cast<PeerPosts&>(call.executor(kPeerPosts)); }

  [[nodiscard]] bool admit(Request& request) override;
  bool turn() override;
  [[nodiscard]] bool has_news() const override;
  [[nodiscard]] std::uint64_t sleep_limit_ns() const override;
  void make_room(std::size_t places) override;
  void drop(const Connection&) override {}

  [[nodiscard]] std::size_t peers() const { return links_.size(); }
  /// The index of a peer; none: unknown.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;
  [[nodiscard]] const channel::PeerLink& link(std::size_t peer) const { return *links_[peer].link; }

  /// One post before its link accepts it.
  struct Post {
    std::size_t peer = 0;
    std::uint64_t session = 0;
    fabric::WorkRequest request{};
    const wire::CallMessage* message = nullptr;  // null: not a call
    channel::PeerAnswer* answer = nullptr;
  };
  /// Accepts the posts of a step, all or none: those that are not permitted end as not_sent, and
  /// without memory it throws. Requires: 1 to PostsOfRequest::kMost.
  void take(Request& request, std::span<const Post> posts);

 private:
  struct Waiting {
    Post post;
    std::uint64_t owner;
    bool behind;  // it belongs with the one before it
  };
  /// Posts that a link has no room for, in order.
  struct Queue {
    std::vector<Waiting> waiting;
    std::size_t first = 0;  // the first that waits
  };
  /// A peer's link, and what waits for it: posts on memory, and calls by their number of hops at
  /// the peer.
  struct Link {
    std::unique_ptr<channel::PeerLink> link;
    std::array<Queue, wire::kHopsMax + 1> queues;
  };

  void ended(std::uint64_t owner, fabric::PostEnd how, fabric::Status status) override;
  [[nodiscard]] static Queue& queue_of(Link& link, const Request& request, const Post& post);
  [[nodiscard]] bool may_post(const Request& request, std::span<const Post> posts,
                              const PrincipalAccount& account) const;
  static void feed(channel::PeerLink& link, Queue& queue, std::uint8_t hops);

  Scheduler& scheduler_;
  NodePeers* const node_;       // null: no peers
  std::vector<Link> links_;     // by index
  std::vector<Request*> done_;  // whose last post has completed
  std::vector<Request*> going_on_;
  std::vector<PrincipalRef> accounts_;  // of waiting requests, by request index
};

/// The posts of one step.
class PeerBatch {
 public:
  explicit PeerBatch(Call& call) : call_(call), executor_(PeerPosts::of(call)) {}
  PeerBatch(const PeerBatch&) = delete;
  PeerBatch& operator=(const PeerBatch&) = delete;

  // Each takes the peer's index, and the session in which the key, or the object's id, is valid; in
  // another session nothing is sent. The step must check bounds of a client's arguments: a post
  // that the peer refuses ends the link for all. WRITEs and atomics on one peer take effect in
  // order. A READ may return data that was posted after it, since it may be retransmitted; and
  // calls and posts on memory may overtake each other. Requires: at most PostsOfRequest::kMost.

  void read(std::size_t peer, std::uint64_t session, std::span<std::byte> into,
            fabric::RegionKey key, std::uint64_t remote) {
    add(peer, session, fabric::WorkRequest::read(0, into, key, remote));
  }
  void write(std::size_t peer, std::uint64_t session, std::span<const std::byte> from,
             fabric::RegionKey key, std::uint64_t remote) {
    add(peer, session, fabric::WorkRequest::write(0, from, key, remote));
  }
  /// The old value, 8 bytes, goes to `old_value` if that is not null.
  void fetch_add(std::size_t peer, std::uint64_t session, fabric::RegionKey key,
                 std::uint64_t remote, std::uint64_t add_value, std::byte* old_value) {
    add(peer, session, fabric::WorkRequest::fetch_add(0, key, remote, add_value, old_value));
  }
  void compare_swap(std::size_t peer, std::uint64_t session, fabric::RegionKey key,
                    std::uint64_t remote, std::uint64_t compare, std::uint64_t swap,
                    std::byte* old_value) {
    add(peer, session, fabric::WorkRequest::compare_swap(0, key, remote, compare, swap, old_value));
  }
  /// `message`, the data that it points to, and `answer` must live until the call has completed.
  void call(std::size_t peer, std::uint64_t session, const wire::CallMessage& message,
            channel::PeerAnswer& answer);

  /// Posts the batch. The step is called again when the last post has completed. Requires: it is
  /// not empty.
  Next completed();

 private:
  void add(std::size_t peer, std::uint64_t session, const fabric::WorkRequest& request);

  Call& call_;
  PeerPosts& executor_;
  std::array<PeerPosts::Post, PostsOfRequest::kMost> posts_;
  std::size_t count_ = 0;
};

/// The outcomes of the step's posts, in order; valid until the step returns or posts again. Empty:
/// no post has completed before this call of the step.
[[nodiscard]] std::span<const PeerEnd> peer_ends(const Call& call);

}  // namespace espalier::offload
