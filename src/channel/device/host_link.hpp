// SPDX-License-Identifier: Apache-2.0
// How a device's scheduler reaches the node in whose memory its objects lie
// (docs/design/device.md): what only the host can do is posted to it. What kinds read of the host's
// memory, they do by themselves (host_part.hpp).
//
// A post never fails and never waits: whatever becomes of it is told by an answer in a later turn,
// and if the host is gone by one that says so.
//
// Thread: that of the scheduler.
#pragma once

#include <cstdint>

#include "channel/device/host_answer.hpp"

namespace espalier::offload {
struct Request;
}
namespace espalier::wire {
struct CallMessage;
}

namespace espalier::device {

/// Is told what becomes of posts.
class PostedRequests {
 public:
  virtual void answered(offload::Request& request, const HostAnswer& answer) = 0;
  /// Whether there is room for another piece of a long answer. Passes on what can be passed on.
  virtual bool wants_more(offload::Request& request) = 0;

 protected:
  ~PostedRequests() = default;
};

class HostLink {
 public:
  virtual ~HostLink() = default;
  HostLink(const HostLink&) = delete;
  HostLink& operator=(const HostLink&) = delete;

  // --- for the scheduler -------------------------------------------------------------------------

  /// Has the host do something for this request, which is told of each piece of the answer.
  virtual void post(offload::Request& request, const wire::CallMessage& message,
                    AnswerPace pace) = 0;
  /// The rest of the answer is not wanted; the last piece still comes. Where there is no memory to
  /// tell the host so, the link is lost.
  virtual void cancel(const offload::Request& request) noexcept = 0;
  /// Takes what has come, and keeps the link. Returns whether anything was done or is awaited.
  virtual bool turn(PostedRequests& posted) = 0;
  /// Whether an answer is awaited: nobody wakes the thread for it.
  [[nodiscard]] virtual bool waits() const = 0;
  /// How long one may sleep before the link must be kept.
  [[nodiscard]] virtual std::uint64_t sleep_limit_ns() const = 0;

  // --- for the handlers of kinds -----------------------------------------------------------------

  /// Whether the host is to do a read that could wait for its turn here. It has room while few
  /// posts wait for it.
  [[nodiscard]] virtual bool forwards() = 0;
  /// Which connection to the host this is: what was numbered by one means nothing to another.
  [[nodiscard]] virtual std::uint64_t connection() const = 0;
  /// Has the host do what nobody waits for, such as to let go of what it numbered for the device,
  /// if the connection is still this one. The message is copied, as HostAsker::ask does.
  virtual void notify(std::uint64_t connection, const wire::CallMessage& message) = 0;

 protected:
  HostLink() = default;
};

}  // namespace espalier::device
