// SPDX-License-Identifier: Apache-2.0
// One worker's way to another node: posts that read, write and add to memory there, and calls
// [RAMBDA §III-C]. It is an interface, for what posts knows no way of the channel;
// docs/design/peers.md says what a link is.
//
// Nothing here waits. Each post ends once, and what became of it is one of fabric::PostEnd; a link
// that is down lets nothing leave. A link repeats nothing: whoever posted knows best.
//
//   done      it took effect, and what it brings is there; of a call: it was answered
//   refused   the peer said so of a READ or an atomic: no effect
//   unknown   it left: it may have taken effect, or may yet until the peer has ended the session,
//             which it has before the link has a new one
//   not_sent  it never left this node
//
// A failed post ends the link, whoever posted it, but for a call that is given up because it takes
// too long; it is made again by itself, with a session of its own. Keys of memory and numbers of
// objects are good for the session in which they were told, so each post says which one it means,
// and leaves by no other.
//
// Thread: one, that of the worker; the counts from any.
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

/// Where the answer to a call goes. Stays where it is until the call has ended.
struct PeerAnswer {
  std::span<std::byte> into{};  ///< room for its payload; what is longer is cut off
  wire::ResponseHeader header{};
  std::size_t payload_bytes = 0;  ///< of all of it
};

/// Is told what became of posts. Must not call the link.
class PeerEnds {
 public:
  virtual void ended(std::uint64_t owner, fabric::PostEnd how, fabric::Status status) = 0;

 protected:
  ~PeerEnds() = default;
};

struct PeerCounts {
  std::atomic<bool> up{false};
  std::atomic<std::uint64_t> posts{0};  ///< on memory that left
  std::atomic<std::uint64_t> doorbells{0};
  std::atomic<std::uint64_t> completions{0};
  std::atomic<std::uint64_t> calls{0};     ///< that left
  std::atomic<std::uint64_t> failures{0};  ///< posts and calls that did not end as done
  std::atomic<std::uint64_t> opened{0};    ///< how often the link was made
};

class PeerLink {
 public:
  virtual ~PeerLink() = default;
  PeerLink(const PeerLink&) = delete;
  PeerLink& operator=(const PeerLink&) = delete;

  /// Any session, for what names nothing that an earlier one was told.
  static constexpr std::uint64_t kAnySession = ~std::uint64_t{0};

  /// Takes a post on the peer's memory: a READ, a WRITE or an atomic, which leaves with the next
  /// ring(). What it names of this process stays until its end is told. False: there is no room,
  /// for it or for any after it, until something has ended.
  [[nodiscard]] virtual bool post(std::uint64_t session, const fabric::WorkRequest& request,
                                  std::uint64_t owner) = 0;
  /// The same of one that belongs with the last one that was taken: if that never left because
  /// there was no way for it, neither does this, though there be one by now.
  [[nodiscard]] virtual bool post_behind(std::uint64_t session, const fabric::WorkRequest& request,
                                         std::uint64_t owner) = 0;
  /// Takes a call, which is answered by one message; of one that is answered by several, the code
  /// is unsupported. The message is copied; one that says over how many nodes it has come may have
  /// room where others have not. False: as of post(), and of calls of as many hops alone.
  [[nodiscard]] virtual bool call(std::uint64_t session, const wire::CallMessage& message,
                                  PeerAnswer& answer, std::uint64_t owner) = 0;
  /// Has all that was taken leave, by one doorbell.
  virtual void ring() = 0;
  /// Tells what has ended, posts on memory in the order in which they were taken, and keeps the
  /// link. Returns whether anything has.
  virtual bool poll(PeerEnds& ends) = 0;
  /// How long one may sleep before the next poll(), if nothing waits.
  [[nodiscard]] virtual std::uint64_t sleep_limit_ns() const {
    return std::numeric_limits<std::uint64_t>::max();
  }
  /// Whether something has not ended, of which nobody wakes the thread.
  [[nodiscard]] virtual bool waits() const = 0;

  /// The session that it has with the peer, one above the one before; 0: it is down.
  [[nodiscard]] virtual std::uint64_t session() const = 0;
  [[nodiscard]] const PeerCounts& counts() const { return *shared_counts_; }
  /// The same, for who may look when the link is gone.
  [[nodiscard]] std::shared_ptr<const PeerCounts> shared_counts() const { return shared_counts_; }

 protected:
  PeerLink() = default;
  [[nodiscard]] PeerCounts& own_counts() { return *shared_counts_; }

 private:
  const std::shared_ptr<PeerCounts> shared_counts_ = std::make_shared<PeerCounts>();
};

}  // namespace espalier::channel
