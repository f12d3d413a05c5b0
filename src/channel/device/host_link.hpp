// SPDX-License-Identifier: Apache-2.0
// Interface from a device's scheduler to the node in whose memory its objects lie
// (docs/design/device.md): requests that only the host can execute are posted to it. Kinds read the
// host's memory without it (host_part.hpp).
//
// A post never fails and never waits. A later turn() reports its answer; if the host is gone, the
// answer is an error.
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

/// Receives the answers of posts.
class PostedRequests {
 public:
  virtual void answered(offload::Request& request, const HostAnswer& answer) = 0;
  /// Whether there is room for another piece of a long answer. Forwards pieces for which there is.
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

  /// Posts a message for this request, which receives each piece of the answer.
  virtual void post(offload::Request& request, const wire::CallMessage& message,
                    AnswerPace pace) = 0;
  /// Cancels the rest of the answer; the last piece still arrives. If there is no memory to send
  /// the cancel, the link is lost.
  virtual void cancel(const offload::Request& request) noexcept = 0;
  /// Handles what has arrived, and maintains the link. Returns whether anything was done or is
  /// awaited.
  virtual bool turn(PostedRequests& posted) = 0;
  /// Whether an answer is awaited: its arrival does not wake the thread.
  [[nodiscard]] virtual bool waits() const = 0;
  /// How long the thread may sleep before the link needs maintenance.
  [[nodiscard]] virtual std::uint64_t sleep_limit_ns() const = 0;

  // --- for the handlers of kinds -----------------------------------------------------------------

  /// Whether a read that would wait here should be sent to the host: true while few posts await it.
  [[nodiscard]] virtual bool forwards() = 0;
  /// Number of the present connection to the host; ids that the host assigned are valid on one
  /// connection.
  [[nodiscard]] virtual std::uint64_t connection() const = 0;
  /// Sends a message without an answer, such as the release of what the host has numbered for the
  /// device, if the connection is still this one. Copies the message, as HostAsker::ask does.
  virtual void notify(std::uint64_t connection, const wire::CallMessage& message) = 0;

 protected:
  HostLink() = default;
};

}  // namespace espalier::device
