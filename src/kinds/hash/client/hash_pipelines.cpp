// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/client/hash_pipelines.hpp"

#include <algorithm>
#include <deque>
#include <span>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "catalog/unflushed_age.hpp"
#include "channel/one_sided/one_sided_pipeline_impl.hpp"
#include "channel/rings/remote_sessions.hpp"
#include "kinds/hash/calls.hpp"
#include "kinds/hash/client/one_sided_hashes.hpp"
#include "kinds/hash/hash_pipeline.hpp"
#include "kinds/hash/hash_threads.hpp"

namespace espalier::client {
namespace {

class OwnHashPipeline final : public PipelineImpl {
 public:
  OwnHashPipeline(std::shared_ptr<channel::Channel> channel,
                  const channel::Reached<hash::HashMap>& object,
                  std::shared_ptr<hash::HashThreads> threads, hash::HashThreads::Place* place,
                  std::uint32_t in_flight)
      : channel_(std::move(channel)),
        object_(object),
        threads_(std::move(threads)),
        place_(place),
        queue_(*object.own(), place->thread,
               hash::PipelineDistances::of_machine().within(in_flight)) {}
  // Requests in flight point to the caller's handlers, which are called before it ends.
  ~OwnHashPipeline() override {
    while (pending() != 0) poll();
    threads_->release(place_);
  }

  void submit(std::span<const Request> requests, Handler& handler) override {
    if (requests.empty()) return;
    writes_ = writes_ || (object_.own()->is_async() && std::ranges::any_of(requests, is_write));
    batches_.push_back({requests, &handler});
    waiting_ += requests.size();
  }
  void run(std::span<const Request> requests, Handler& handler) override {
    submit(requests, handler);
    while (pending() != 0) poll();
  }
  std::size_t poll() override {
    wait_before_writes();
    const std::uint64_t before = completed_;
    while (pending() != 0 && completed_ == before) {
      const bool only_wait = waiting_ == 0 && queue_.pending() == queue_.unreleased();
      if (waiting_ != 0) {
        push_next();
      } else {
        queue_.turn(Complete{*this});
      }
      if (only_wait && completed_ == before) std::this_thread::yield();
    }
    return pending();
  }
  // A queued request waits only for its turn. Requests that came since the last call advance the
  // queue, so that it stays full; without new ones all have their turns. None has if writes would
  // have to wait.
  std::size_t advance() override {
    if (writes_must_wait()) return pending();
    const bool came = waiting_ != 0;
    while (waiting_ != 0 && !writes_must_wait()) push_next();
    if (!came) {
      while (queue_.pending() != queue_.unreleased()) queue_.turn(Complete{*this});
      if (queue_.pending() != 0) queue_.turn(Complete{*this});
    }
    return pending();
  }

 private:
  struct Batch {
    std::span<const Request> requests;
    Handler* handler;
  };
  struct Complete {
    OwnHashPipeline& of;
    void operator()(const Completion& completion, Handler* handler) const {
      ++of.completed_;
      handler->done(completion);
    }
  };

  static bool is_write(const Request& request) {
    return request.op >= Op::put && request.op <= Op::erase;
  }
  // A request may write in its turn, which may be long after its submission.
  void wait_before_writes() {
    writes_ = writes_ && pending() != 0;
    if (writes_) catalog::wait_for_disk(*object_.own());
  }
  bool writes_must_wait() {
    writes_ = writes_ && pending() != 0;
    return writes_ && catalog::must_wait_for_disk(*object_.own());
  }
  [[nodiscard]] std::size_t pending() const { return waiting_ + queue_.pending(); }
  // Enqueues several at a time, which shares the cost of each call.
  void push_next() {
    Batch& batch = batches_.front();
    const std::span<const Request> all = batch.requests;
    const std::size_t some = std::min(all.size(), queue_.kTogether);
    Handler* const handler = batch.handler;
    batch.requests = all.subspan(some);
    if (batch.requests.empty()) batches_.pop_front();
    waiting_ -= some;
    const auto left = queue_.push(all, handler, Complete{*this});
    ESPALIER_ASSERT(left.size() == all.size() - some);
  }

  const std::shared_ptr<channel::Channel> channel_;  // keeps the store alive
  const channel::Reached<hash::HashMap> object_;
  const std::shared_ptr<hash::HashThreads> threads_;
  hash::HashThreads::Place* const place_;
  hash::HashPipeline queue_;
  std::deque<Batch> batches_;  // not in the queue yet
  std::size_t waiting_ = 0;    // requests of them
  bool writes_ = false;        // some requests in flight may write, if writes may have to wait
  std::uint64_t completed_ = 0;
};

wire::OffloadId hash_call_of(Op op) {
  switch (op) {
    case Op::get: return hash_calls::Get::kCall.id;
    case Op::put: return hash_calls::Put::kCall.id;
    case Op::insert: return hash_calls::Insert::kCall.id;
    case Op::update: return hash_calls::Update::kCall.id;
    case Op::erase: return hash_calls::Erase::kCall.id;
    default: return wire::OffloadId::invalid;
  }
}

// Opens one lane for gets by the rings, and one for requests about the lease.
Result<std::unique_ptr<PipelineImpl>> open_alone(RemoteSessions& sessions, const Scope& scope,
                                                 channel::NodeNumber node,
                                                 std::uint32_t in_flight) {
  auto rings = sessions.open_lane();
  if (!rings) return std::unexpected(rings.error());
  auto control = sessions.open_lane();
  if (!control) {
    sessions.release(std::move(*rings));
    return std::unexpected(control.error());
  }
  if ((*rings)->connection().node_id() != node || (*control)->connection().node_id() != node) {
    sessions.release(std::move(*rings));
    sessions.release(std::move(*control));
    return fail(Code::not_found);
  }
  return std::make_unique<OneSidedPipeline<OneSidedHashes>>(
      sessions.shared_from_this(), std::move(*rings), std::move(*control), scope, in_flight);
}

}  // namespace

Result<std::unique_ptr<PipelineImpl>> open_own_pipeline(
    std::shared_ptr<channel::Channel> channel, const channel::Reached<hash::HashMap>& object,
    std::uint32_t in_flight) {
  std::shared_ptr<hash::HashThreads> threads = object.own()->store().threads;
  const auto place = threads->acquire();
  if (!place) return std::unexpected(place.error());
  try {
    return std::make_unique<OwnHashPipeline>(std::move(channel), object, threads, *place,
                                             in_flight);
  } catch (...) {
    threads->release(*place);
    throw;
  }
}

Result<std::unique_ptr<PipelineImpl>> open_pipeline_of_node(
    channel::Channel& channel, const channel::Reached<hash::HashMap>& object,
    std::uint32_t in_flight) {
  auto* const sessions = dynamic_cast<RemoteSessions*>(&channel);
  if (sessions == nullptr) return fail(Code::unsupported);
  const Scope scope{object.number(), hash_calls::kKeyBytesMax, 0, &hash_call_of};
  if (sessions->reads_alone()) return open_alone(*sessions, scope, object.node(), in_flight);
  return sessions->open_pipeline(scope, object.node(), in_flight);
}

}  // namespace espalier::client
