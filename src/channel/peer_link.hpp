// SPDX-License-Identifier: Apache-2.0
// A worker's link to another node: posts that read, write and add to memory there, and calls
// [RAMBDA §III-C]. It is an interface, so that code which posts is independent of the channel;
// docs/design/peers.md describes links.
//
// Nothing here blocks. Each post completes exactly once, with a fabric::PostEnd. While a link is
// down, nothing is sent. A link does not retry: that is up to the poster.
//
//   done      it took effect, and its data has arrived; for a call: it was answered
//   refused   the peer refused a READ or an atomic: no effect
//   unknown   it was sent: it may have taken effect, or may still until the peer has ended the
//             session, which happens before the link has a new one
//   not_sent  it never left this node
//
// A failed post breaks the link for all posters, except for a call that times out; the link
// reconnects by itself, with a new session. Keys of memory and ids of objects are valid only in the
// session in which they were obtained, so each post names its session, and is sent in no other.
//
// Thread: one, the worker's; the counts from any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>

#include "fabric/post_end.hpp"
#include "fabric/types.hpp"
#include "wire/call_message.hpp"
#include "wire/message.hpp"

namespace espalier::channel {

/// Receives the answer to a call. Its address must not change until the call has completed.
struct PeerAnswer {
  std::span<std::byte> into{};  ///< room for the payload; the rest is truncated
  wire::ResponseHeader header{};
  std::size_t payload_bytes = 0;  ///< before truncation
};

/// Receives completions of posts. Must not call the link.
class PeerEnds {
 public:
  virtual void ended(std::uint64_t owner, fabric::PostEnd how, fabric::Status status) = 0;

 protected:
  ~PeerEnds() = default;
};

struct PeerCounts {
  std::atomic<bool> up{false};
  std::atomic<std::uint64_t> posts{0};  ///< on memory, sent
  std::atomic<std::uint64_t> doorbells{0};
  std::atomic<std::uint64_t> completions{0};
  std::atomic<std::uint64_t> calls{0};     ///< sent
  std::atomic<std::uint64_t> failures{0};  ///< posts and calls that did not complete as done
  std::atomic<std::uint64_t> opened{0};    ///< how often the link was connected
};

class PeerLink {
 public:
  virtual ~PeerLink() = default;
  PeerLink(const PeerLink&) = delete;
  PeerLink& operator=(const PeerLink&) = delete;

  /// Any session: for posts that use no key or id of an earlier one.
  static constexpr std::uint64_t kAnySession = ~std::uint64_t{0};

  /// Accepts a post on the peer's memory: a READ, a WRITE or an atomic, which the next ring()
  /// sends. Its local memory must stay valid until it completes. False: no room, for this or any
  /// later one, until something has completed.
  [[nodiscard]] virtual bool post(std::uint64_t session, const fabric::WorkRequest& request,
                                  std::uint64_t owner) = 0;
  /// The same for a post that depends on the last accepted one: if that was not sent because the
  /// link was down, this one is not sent either, even if the link is up again.
  [[nodiscard]] virtual bool post_behind(std::uint64_t session, const fabric::WorkRequest& request,
                                         std::uint64_t owner) = 0;
  /// Accepts a call that has a single answer message; for one with several, the code is
  /// unsupported. Copies the message. A call that came over other nodes may have room where others
  /// have none. False: as for post(), for calls of as many hops alone.
  [[nodiscard]] virtual bool call(std::uint64_t session, const wire::CallMessage& message,
                                  PeerAnswer& answer, std::uint64_t owner) = 0;
  /// Sends all accepted posts, with one doorbell.
  virtual void ring() = 0;
  /// Reports completions, for posts on memory in the order of acceptance, and maintains the link.
  /// Returns whether there were any.
  virtual bool poll(PeerEnds& ends) = 0;
  /// How long the thread may sleep before the next poll(), if waits() is false.
  [[nodiscard]] virtual std::uint64_t sleep_limit_ns() const {
    return std::numeric_limits<std::uint64_t>::max();
  }
  /// Whether posts are in flight whose completion does not wake the thread.
  [[nodiscard]] virtual bool waits() const = 0;

  /// The present session with the peer, one above the previous; 0: the link is down.
  [[nodiscard]] virtual std::uint64_t session() const = 0;
  [[nodiscard]] const PeerCounts& counts() const { return *shared_counts_; }
  /// The same, for readers that may outlive the link.
  [[nodiscard]] std::shared_ptr<const PeerCounts> shared_counts() const { return shared_counts_; }

 protected:
  PeerLink() = default;
  [[nodiscard]] PeerCounts& own_counts() { return *shared_counts_; }

 private:
  const std::shared_ptr<PeerCounts> shared_counts_ = std::make_shared<PeerCounts>();
};

}  // namespace espalier::channel
