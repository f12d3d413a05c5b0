// SPDX-License-Identifier: Apache-2.0
// Executor of a device's posts to its host: a step posts a message, and is called again with each
// piece of the answer, until it answers its own client.
//
//   Next step(Call& call) {
//     if (const HostAnswer* answer = host_answer(call)) return call.answer(answer->header);
//     return post_to_host(call, message);
//   }
//
// The offload's executor is kHostPosts. A handler with another executor (of maps, whose walks run
// here) may post too, once that executor has released the request.
//
// Thread: that of the scheduler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "channel/device/host_link.hpp"
#include "engine/call.hpp"
#include "engine/executor.hpp"
#include "engine/node_parts.hpp"

namespace espalier::device {

extern const offload::ExecutorKind kHostPosts;

/// A device's links to its host; made before its schedulers. Thread: any.
struct NodeHost final : offload::NodePart {
  std::vector<HostLink*> links;  ///< by the schedulers' shard; they outlive the schedulers
};

/// Callbacks that an offload may give kHostPosts (CallHandler::for_executor; null: none).
struct PostHandler {
  /// The host's last answer has arrived, and the client is gone: release what the host keeps for
  /// it. Null: nothing to release.
  void (*client_gone)(offload::Call&) = nullptr;
  /// Whether the client has room for another piece of the host's long answer. Null: always.
  bool (*wants_more)(offload::Call&) = nullptr;
};

class HostPosts final : public offload::Executor, private PostedRequests {
 public:
  /// Requires: the node has a link for this scheduler.
  explicit HostPosts(const offload::ExecutorContext& context);
  [[nodiscard]] static HostPosts& of(offload::Call& call) {
    return static_cast<HostPosts&>(call.executor(kHostPosts));
  }
  [[nodiscard]] HostLink& link() { return link_; }

  [[nodiscard]] bool admit(offload::Request&) override { return true; }
  bool turn() override {
    ask_for_turn();  // the link is polled in each turn
    return link_.turn(*this);
  }
  [[nodiscard]] bool has_news() const override { return link_.waits(); }
  [[nodiscard]] std::uint64_t sleep_limit_ns() const override { return link_.sleep_limit_ns(); }
  void make_room(std::size_t) override {}
  /// Posts of a client that is gone stay until the host has answered.
  void drop(const offload::Connection&) override {}

 private:
  void answered(offload::Request& request, const HostAnswer& answer) override;
  bool wants_more(offload::Request& request) override;
  void end_without_memory(offload::Request& request, bool last);

  offload::Scheduler& scheduler_;
  HostLink& link_;
};

/// Posts a message, and suspends the request until an answer or a piece of it has arrived:
/// host_answer(). What the message points to must stay valid until then.
offload::Next post_to_host(offload::Call& call, const wire::CallMessage& message,
                           AnswerPace pace = AnswerPace::at_once);
/// The piece of the host's answer that has arrived. Null: this step was not called for one.
/// Requires: it is the first step, or the request was posted.
[[nodiscard]] const HostAnswer* host_answer(const offload::Call& call);
/// Cancels the rest of the answer, except for its last piece.
void cancel_post(offload::Call& call);
[[nodiscard]] HostLink& host_link(offload::Call& call);

}  // namespace espalier::device
