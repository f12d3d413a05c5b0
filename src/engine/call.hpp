// SPDX-License-Identifier: Apache-2.0
// An offload's view of one request: its message, its state between steps, and the ways to end a
// step.
//
// A step runs when the request arrives, and again when what it waited for is ready. Each step
// returns an answer or a wait; the return type Next enforces that it is one of these:
//
//   handed_over  until its executor has finished its part: from_executor() has the result; for maps
//                a walk (walk_call.hpp), for peers completions (peer_posts.hpp)
//   again        until the next turn, so that other requests proceed
//   writable     until the client has read its deferred answers
//   helper       until a helper thread has done some work
//   at           until a time
//   after_release  until versions may have been released
//   with_room    until there may be room for its record; then it starts over
//
// Thread: the scheduler's, during one step.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/helper_job.hpp"
#include "engine/node_parts.hpp"
#include "engine/principal_ref.hpp"
#include "engine/request.hpp"
#include "espalier/error.hpp"
#include "wire/call_codec.hpp"

namespace espalier::catalog {
class Catalog;
}

namespace espalier::offload {

class Scheduler;
struct PrincipalView;

/// How a step ended. Only a Call creates one.
class [[nodiscard]] Next {
 private:
  friend class Call;
  Next() = default;
};

class Call {
 public:
  Call(Scheduler& scheduler, Request& request, const void* from_executor = nullptr,
       std::uint64_t waits_for = 0)
      : scheduler_(scheduler),
        request_(request),
        from_executor_(from_executor),
        waits_for_(waits_for) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // --- what was asked ----------------------------------------------------------------------------

  [[nodiscard]] const Offload& offload() const { return *request_.offload; }
  [[nodiscard]] std::string_view key() const { return request_.key(); }
  [[nodiscard]] std::string_view payload() const { return request_.payload(); }
  /// The whole request, for a codec.
  [[nodiscard]] wire::RequestBytes bytes() const {
    return {map_number(), argument(), key(), payload(), at_snapshot()};
  }
  /// Overwrites a secret key.
  void wipe_key() { request_.wipe_key(); }
  [[nodiscard]] std::uint32_t argument() const { return request_.header.argument; }
  /// Whether it reads at a snapshot; the snapshot's number then begins its payload.
  [[nodiscard]] bool at_snapshot() const { return request_.at_snapshot(); }
  [[nodiscard]] std::optional<std::uint64_t> snapshot_number() const {
    return request_.snapshot_number();
  }
  [[nodiscard]] std::string_view payload_behind_snapshot() const {
    return request_.payload_behind_snapshot();
  }
  [[nodiscard]] std::uint32_t map_number() const { return request_.header.map; }
  [[nodiscard]] Connection& connection() { return *request_.connection; }
  /// The connection's client, or the client on whose behalf it relays.
  [[nodiscard]] PrincipalView principal() const;
  /// Whether the connection's client relays the request for another.
  [[nodiscard]] bool on_behalf() const { return request_.on_behalf(); }
  /// The account that the request is charged to. Cost: a reference count; for a relayed request a
  /// lookup.
  [[nodiscard]] PrincipalRef account() const;
  /// The ring of its answer.
  [[nodiscard]] std::uint32_t response_ring() const { return request_.ring(); }

  // --- what it works on --------------------------------------------------------------------------

  /// As its executor uses it.
  [[nodiscard]] Request& request() { return request_; }
  /// This scheduler's executor of the kind. Requires: the executor carries out the offload.
  [[nodiscard]] Executor& executor(const ExecutorKind& kind);
  [[nodiscard]] Services& services();
  /// The objects of the node's store.
  [[nodiscard]] catalog::Catalog& catalog();
  /// Whether changes to the store go to a log and are answered once durable. Calls that make no
  /// records are then refused.
  [[nodiscard]] bool is_durable();
  /// The same for an object that is created with this.
  [[nodiscard]] bool is_durable(std::optional<Durability> own);
  /// Why no object can be created with this; nothing: one can (store/durable_store.hpp).
  [[nodiscard]] std::optional<std::string_view> why_not(std::optional<Durability> own);
  /// This scheduler's number among counters.
  [[nodiscard]] std::uint32_t shard() const;
  /// The scheduler's state for an offload; created on first use.
  template <class P>
  [[nodiscard]] P& scheduler_part() {
    return scheduler_parts().template of<P>();
  }
  /// The offload's state for the request; created on first use.
  template <class S>
  [[nodiscard]] S& state() {
    S* const made = request_.state.find<S>();
    return made != nullptr ? *made : new_state<S>();
  }
  /// The same, created anew.
  template <class S>
  S& new_state() {
    return request_.state.make<S>(spares());
  }
  /// Null: not created yet.
  template <class S>
  [[nodiscard]] S* find_state() {
    return request_.state.find<S>();
  }
  /// Whether the state is an S, and whether there is any.
  template <class S>
  [[nodiscard]] bool has_state() const {
    return request_.state.is<S>();
  }
  [[nodiscard]] bool has_any_state() const { return request_.state.made(); }
  /// The executor's result since the last step, of a type that the executor's own code reads (for
  /// maps, ended_walk()); valid until the step returns. Null: the executor did not call this step.
  [[nodiscard]] const void* from_executor() const { return from_executor_; }
  /// The version of the object that must be released before the answer may be sent, where that is
  /// recorded; 0: none. An answer, or an error that shows what was read, waits for it after the
  /// request has been freed.
  [[nodiscard]] std::uint64_t waits_for() const { return waits_for_; }
  void wait_for(std::uint64_t version) { waits_for_ = version; }
  /// Cancels another request of the same client and response ring, if its offload supports that.
  void cancel(std::uint32_t tag);

  // --- how a step ends ---------------------------------------------------------------------------

  /// Sends the last message. Of the header, flags, code and versions count.
  Next answer(const wire::ResponseHeader& header,
              std::initializer_list<std::string_view> payload = {});
  /// The same for a read whose message was promised to its ring (long_value.hpp).
  Next answer(const wire::ResponseHeader& header, std::vector<std::byte> message);
  /// `words`: for people, after the text of the code.
  Next fail(Error error, std::string_view words = {});
  /// Whether an answer with so many bytes of payload can be sent or deferred now. Call it before
  /// each answer that may be long; if false, send nothing before writable().
  [[nodiscard]] bool response_fits(std::uint64_t bytes);
  /// Whether the client has deferred messages that it has not read yet.
  [[nodiscard]] bool has_deferred();
  /// Sends a message before the last: a part of a streamed answer. Does not end the step.
  void send_chunk(wire::ChunkKind kind, wire::ResponseHeader header,
                  std::initializer_list<std::string_view> payload);
  void send_chunk(wire::ChunkKind kind, wire::ResponseHeader header,
                  std::vector<std::byte> message);
  /// Whether a part was sent.
  [[nodiscard]] bool has_streamed() const { return request_.streamed; }

  /// The executor has the request, and calls the step again.
  Next handed_over() { return {}; }
  Next again();
  Next writable();
  /// Runs `work` on a helper, which has exclusive use of the request's state and bytes meanwhile.
  /// Answers out_of_memory, and runs nothing, if the client has too many jobs.
  Next helper(std::function<void()> work);
  /// The same in steps (helper_job.hpp), interleaved with those of other clients. The request ends
  /// without another step when its client ends, and at a deadline, on base::monotonic_ns().
  Next helper_steps(std::function<JobStep(StepContext&)> work,
                    std::uint64_t deadline_ns = JobOptions::kNoDeadline);
  /// The same without a deadline. If the client has too many jobs, nothing runs and the step is
  /// called again shortly after.
  Next helper_steps_when_possible(std::function<JobStep(StepContext&)> work);
  /// Until base::monotonic_ns() is at least this.
  Next at(std::uint64_t monotonic_ns);
  /// Waits until versions may have been released: where records must be durable, until more are;
  /// else until the next turn. The request occupies no place of the scheduler meanwhile.
  Next after_release();
  /// Whether a write that found no room for its record may wait for some (with_room). If not, the
  /// request fails with the sink's error: the log has failed.
  [[nodiscard]] bool may_wait_for_room();
  /// Starts the request over, without its state, when there may be room for its record. Requires:
  /// may_wait_for_room(); nothing was changed.
  Next with_room();

 private:
  [[nodiscard]] HandlerState::Spares& spares();
  [[nodiscard]] TypedSlots<SchedulerPart>& scheduler_parts();
  [[nodiscard]] std::unique_ptr<HelperJob> job_of(std::function<JobStep(StepContext&)> work);

  Scheduler& scheduler_;
  Request& request_;
  const void* from_executor_;
  std::uint64_t waits_for_;
};

}  // namespace espalier::offload
