// SPDX-License-Identifier: Apache-2.0
// What steps post to other nodes (channel/peer_link.hpp, docs/design/peers.md): a step posts
// several things to several peers and then waits until the last has ended; its next call finds what
// became of each, in the order of its posts.
//
//   Next step(Call& call) {
//     State& state = call.state<State>();
//     if (const auto ends = peer_ends(call); !ends.empty()) return call.answer(...);
//     PeerBatch batch(call);
//     batch.read(b, session, state.word, key, address);
//     return batch.completed();
//   }
//
// The offload's executor is kPeerPosts. What a post reads and writes of this process lies in the
// state of the request, which stays until all has ended, also if the client is gone by then.
//
// All that is posted to a peer in one turn leaves by one doorbell. Posts for which a link has no
// room wait, in the order in which they came, and keep nothing else waiting: calls do not wait for
// posts on memory, nor calls of requests that came over a node for those of clients.
//
// A request that waits for peers counts for nothing among those that its scheduler has in flight;
// of one principal so many may (Scheduler::kPeerWaitsMax). Beyond that no more of its requests are
// taken, and posts of requests that a device relays for it end as not_sent. So do those of requests
// that came over as many nodes as may be, if there is a call among them.
//
// Thread: that of the scheduler.
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

/// The peers of a node, and how a scheduler's links to them are made. Thread: any.
struct NodePeers final : NodePart {
  struct Peer {
    std::string name;
    /// `wake`: has the scheduler's thread look; called by any thread while the link lives.
    std::function<std::unique_ptr<channel::PeerLink>(std::function<void()> wake)> make_link;
  };
  explicit NodePeers(std::vector<Peer> all) : peers(std::move(all)), counts_(peers.size()) {}
  const std::vector<Peer> peers;

  /// A scheduler has a link to a peer of this number.
  void add_counts(std::size_t peer, std::shared_ptr<const channel::PeerCounts> counts);
  /// Each is right; they are not of one instant.
  [[nodiscard]] PeerTotals totals(std::size_t peer) const;

 private:
  mutable std::mutex mutex_;                                                     // guards counts_
  std::vector<std::vector<std::shared_ptr<const channel::PeerCounts>>> counts_;  // by peer
};

extern const ExecutorKind kPeerPosts;

/// What became of one post.
struct PeerEnd {
  fabric::PostEnd how = fabric::PostEnd::not_sent;
  fabric::Status status = fabric::Status::flushed;
  friend bool operator==(const PeerEnd&, const PeerEnd&) = default;
};

/// What a request waits for, as the executor keeps it in the request.
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
  /// The number of a peer; none: it has no such.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;
  [[nodiscard]] const channel::PeerLink& link(std::size_t peer) const { return *links_[peer].link; }

  /// One post before it is a link's.
  struct Post {
    std::size_t peer = 0;
    std::uint64_t session = 0;
    fabric::WorkRequest request{};
    const wire::CallMessage* message = nullptr;  // null: it is no call
    channel::PeerAnswer* answer = nullptr;
  };
  /// Takes what a step has posted, all of it or none: what may not be posted ends as not_sent, and
  /// where the heap has nothing, it throws. Requires: 1 to PostsOfRequest::kMost.
  void take(Request& request, std::span<const Post> posts);

 private:
  struct Waiting {
    Post post;
    std::uint64_t owner;
    bool behind;  // it belongs with the one before it
  };
  /// What a link has no room for, in order.
  struct Queue {
    std::vector<Waiting> waiting;
    std::size_t first = 0;  // of them, that waits
  };
  /// A peer's link, and what waits for it: posts on memory, and calls by the hops that they will
  /// have behind them.
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
  NodePeers* const node_;       // null: it has none
  std::vector<Link> links_;     // by number
  std::vector<Request*> done_;  // of which the last post has ended
  std::vector<Request*> going_on_;
  std::vector<PrincipalRef> accounts_;  // of requests that wait, by their index
};

/// What one step posts.
class PeerBatch {
 public:
  explicit PeerBatch(Call& call) : call_(call), executor_(PeerPosts::of(call)) {}
  PeerBatch(const PeerBatch&) = delete;
  PeerBatch& operator=(const PeerBatch&) = delete;

  // Of each: the peer's number, and the session by which the key, or the number of an object, was
  // told; of another session nothing leaves. Bounds of a client's are the step's to check: a post
  // that the peer refuses ends the link for all. WRITEs and atomics on one peer take effect in
  // order; a READ may bring what was posted behind it, for it may be asked for twice; and a call
  // may overtake what was posted on memory, or be overtaken. Requires: at most
  // PostsOfRequest::kMost.

  void read(std::size_t peer, std::uint64_t session, std::span<std::byte> into,
            fabric::RegionKey key, std::uint64_t remote) {
    add(peer, session, fabric::WorkRequest::read(0, into, key, remote));
  }
  void write(std::size_t peer, std::uint64_t session, std::span<const std::byte> from,
             fabric::RegionKey key, std::uint64_t remote) {
    add(peer, session, fabric::WorkRequest::write(0, from, key, remote));
  }
  /// The old value goes to `old_value`, if that is not null: 8 bytes.
  void fetch_add(std::size_t peer, std::uint64_t session, fabric::RegionKey key,
                 std::uint64_t remote, std::uint64_t add_value, std::byte* old_value) {
    add(peer, session, fabric::WorkRequest::fetch_add(0, key, remote, add_value, old_value));
  }
  void compare_swap(std::size_t peer, std::uint64_t session, fabric::RegionKey key,
                    std::uint64_t remote, std::uint64_t compare, std::uint64_t swap,
                    std::byte* old_value) {
    add(peer, session, fabric::WorkRequest::compare_swap(0, key, remote, compare, swap, old_value));
  }
  /// `message`, with what it points to, and `answer` stay until the call has ended.
  void call(std::size_t peer, std::uint64_t session, const wire::CallMessage& message,
            channel::PeerAnswer& answer);

  /// Posts all of it. The step is called again when the last has ended. Requires: there is some.
  Next completed();

 private:
  void add(std::size_t peer, std::uint64_t session, const fabric::WorkRequest& request);

  Call& call_;
  PeerPosts& executor_;
  std::array<PeerPosts::Post, PostsOfRequest::kMost> posts_;
  std::size_t count_ = 0;
};

/// What became of the step's posts, in their order, until the step returns or posts again. Empty:
/// it was not called for that.
[[nodiscard]] std::span<const PeerEnd> peer_ends(const Call& call);

}  // namespace espalier::offload
