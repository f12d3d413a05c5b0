// SPDX-License-Identifier: Apache-2.0
// What a device's handlers post to its host: a step posts a message and is called again with each
// piece of the answer, until it answers its own client.
//
//   Next step(Call& call) {
//     if (const HostAnswer* answer = host_answer(call)) return call.answer(answer->header);
//     return post_to_host(call, message);
//   }
//
// The offload's executor is kHostPosts; a handler that another executor carries out (of maps, which
// are walked here) may post too, once that has let go of the request.
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

/// The links of a device to its host. Made before its schedulers. Thread: any.
struct NodeHost final : offload::NodePart {
  std::vector<HostLink*> links;  ///< by the schedulers' shard; they outlive the schedulers
};

/// What kHostPosts wants to know of an offload (CallHandler::for_executor; null: nothing).
struct PostHandler {
  /// The host's last answer has come, and the client is gone: to give back what the host keeps for
  /// it. Null: there is nothing.
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
    ask_for_turn();  // the link is looked at in each turn
    return link_.turn(*this);
  }
  [[nodiscard]] bool has_news() const override { return link_.waits(); }
  [[nodiscard]] std::uint64_t sleep_limit_ns() const override { return link_.sleep_limit_ns(); }
  void make_room(std::size_t) override {}
  /// What a client that has ended had posted stays until the host has answered.
  void drop(const offload::Connection&) override {}

 private:
  void answered(offload::Request& request, const HostAnswer& answer) override;
  bool wants_more(offload::Request& request) override;
  void end_without_memory(offload::Request& request, bool last);

  offload::Scheduler& scheduler_;
  HostLink& link_;
};

/// Until the host has answered, or a piece of its answer has come: host_answer().
/// What it points to must stay until then.
offload::Next post_to_host(offload::Call& call, const wire::CallMessage& message,
                           AnswerPace pace = AnswerPace::at_once);
/// The piece of the host's answer that has come. Null: this step was not called by one. Requires:
/// it is the first step, or the request was posted.
[[nodiscard]] const HostAnswer* host_answer(const offload::Call& call);
/// The host need say no more than its last piece.
void cancel_post(offload::Call& call);
[[nodiscard]] HostLink& host_link(offload::Call& call);

}  // namespace espalier::device
