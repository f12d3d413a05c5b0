// SPDX-License-Identifier: Apache-2.0
#include "channel/device/host_posts.hpp"

#include <memory>
#include <new>

#include "base/assert.hpp"
#include "engine/connection.hpp"
#include "engine/registry.hpp"
#include "engine/scheduler.hpp"
#include "engine/services.hpp"

namespace espalier::device {
namespace {

using offload::Call;
using offload::Request;

HostLink& link_of(const offload::ExecutorContext& context) {
  const NodeHost& host = context.services.part<NodeHost>();
  ESPALIER_ASSERT(context.shard < host.links.size());
  return *host.links[context.shard];
}

const PostHandler& handler_of(const Request& request) {
  static constexpr PostHandler kNone;
  const offload::Offload& offload = *request.offload;
  const bool posts = offload.executor == &kHostPosts && offload.for_executor != nullptr;
  return posts ? *static_cast<const PostHandler*>(offload.for_executor) : kNone;
}

}  // namespace

const offload::ExecutorKind kHostPosts{
    [](const offload::ExecutorContext& context) -> std::unique_ptr<offload::Executor> {
      return std::make_unique<HostPosts>(context);
    }};

HostPosts::HostPosts(const offload::ExecutorContext& context)
    : scheduler_(context.scheduler), link_(link_of(context)) {}

void HostPosts::answered(Request& request, const HostAnswer& answer) {
  if (request.connection->closing) {
    if (!answer.last) return link_.cancel(request);
    const PostHandler& handler = handler_of(request);
    if (handler.client_gone != nullptr) {
      Call call(scheduler_, request, &answer);
      handler.client_gone(call);
    }
    return scheduler_.release(request);
  }
  if (request.no_memory) [[unlikely]]
    return end_without_memory(request, answer.last);
  try {
    Call call(scheduler_, request, &answer);
    static_cast<void>(request.offload->step(call));
  } catch (const std::bad_alloc&) {
    end_without_memory(request, answer.last);
  }
}

// Cannot answer while the host has the request: its last piece comes first.
void HostPosts::end_without_memory(Request& request, bool last) {
  request.no_memory = true;
  if (last) return scheduler_.go_on_with(request);
  link_.cancel(request);
}

bool HostPosts::wants_more(Request& request) {
  if (request.connection->closing) {
    link_.cancel(request);
    return true;
  }
  const PostHandler& handler = handler_of(request);
  if (handler.wants_more == nullptr || request.no_memory) return true;
  try {
    Call call(scheduler_, request);
    return handler.wants_more(call);
  } catch (const std::bad_alloc&) {
    end_without_memory(request, false);
    return true;
  }
}

// --- what steps call -----------------------------------------------------------------------------

offload::Next post_to_host(Call& call, const wire::CallMessage& message, AnswerPace pace) {
  HostPosts::of(call).link().post(call.request(), message, pace);
  return call.handed_over();
}

const HostAnswer* host_answer(const Call& call) {
  return static_cast<const HostAnswer*>(call.from_executor());
}

void cancel_post(Call& call) { HostPosts::of(call).link().cancel(call.request()); }

HostLink& host_link(Call& call) { return HostPosts::of(call).link(); }

}  // namespace espalier::device
