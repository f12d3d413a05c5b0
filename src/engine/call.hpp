// SPDX-License-Identifier: Apache-2.0
// What an offload sees of a request: what it says, the state that the offload keeps for it, and the
// ways in which a step ends.
//
// An offload is a step, which is called when the request comes, and again whenever what it waited
// for is there. Each step ends with an answer, or with what it waits for next; the types see to it
// that it ends with one of these:
//
//   handed_over  until its executor has done its part, which from_executor() then tells; of maps
//                that is a walk (walk_call.hpp), of peers their ends (peer_posts.hpp)
//   again        until the next turn, so that others go on
//   writable     until the client has taken what is deferred for it
//   helper       until another thread has done some work
//   at           until a time
//   after_release  until versions may have been released
//   with_room    until there may be room for its record; then it begins anew
//
// Thread: that of the scheduler; for the time of one step.
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

/// How a step ended. Only a Call makes one.
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
  /// All of it, for a codec.
  [[nodiscard]] wire::RequestBytes bytes() const {
    return {map_number(), argument(), key(), payload(), at_snapshot()};
  }
  /// Overwrites a key that is secret.
  void wipe_key() { request_.wipe_key(); }
  [[nodiscard]] std::uint32_t argument() const { return request_.header.argument; }
  /// Whether it reads at a snapshot, which begins its payload.
  [[nodiscard]] bool at_snapshot() const { return request_.at_snapshot(); }
  [[nodiscard]] std::optional<std::uint64_t> snapshot_number() const {
    return request_.snapshot_number();
  }
  [[nodiscard]] std::string_view payload_behind_snapshot() const {
    return request_.payload_behind_snapshot();
  }
  [[nodiscard]] std::uint32_t map_number() const { return request_.header.map; }
  [[nodiscard]] Connection& connection() { return *request_.connection; }
  /// Who asks: the connection's client, or the one on whose behalf it relays.
  [[nodiscard]] PrincipalView principal() const;
  /// Whether the connection's client relays it for another.
  [[nodiscard]] bool on_behalf() const { return request_.on_behalf(); }
  /// On whose account that goes. Cost: a reference counted; of a relayed request a look-up.
  [[nodiscard]] PrincipalRef account() const;
  /// That of its answer.
  [[nodiscard]] std::uint32_t response_ring() const { return request_.ring(); }

  // --- what it works on --------------------------------------------------------------------------

  /// As its executor knows it.
  [[nodiscard]] Request& request() { return request_; }
  /// That of this scheduler. Requires: the offload is carried out by it.
  [[nodiscard]] Executor& executor(const ExecutorKind& kind);
  [[nodiscard]] Services& services();
  /// The objects of the node's store.
  [[nodiscard]] catalog::Catalog& catalog();
  /// Whether what is changed there goes to a log, and is answered once it is durable. What has no
  /// records is refused then.
  [[nodiscard]] bool is_durable();
  /// The same of an object that is made with this.
  [[nodiscard]] bool is_durable(std::optional<Durability> own);
  /// Why no object can be made with this; nothing: one can (store/durable_store.hpp).
  [[nodiscard]] std::optional<std::string_view> why_not(std::optional<Durability> own);
  /// Of counters: this scheduler's own.
  [[nodiscard]] std::uint32_t shard() const;
  /// What this scheduler keeps for an offload; made when first asked for.
  template <class P>
  [[nodiscard]] P& scheduler_part() {
    return scheduler_parts().template of<P>();
  }
  /// What this offload keeps for the request; made when first asked for.
  template <class S>
  [[nodiscard]] S& state() {
    S* const made = request_.state.find<S>();
    return made != nullptr ? *made : new_state<S>();
  }
  /// The same, made anew.
  template <class S>
  S& new_state() {
    return request_.state.make<S>(spares());
  }
  /// Null: it was not made yet.
  template <class S>
  [[nodiscard]] S* find_state() {
    return request_.state.find<S>();
  }
  /// Whether what it keeps is an S, and whether it keeps anything.
  template <class S>
  [[nodiscard]] bool has_state() const {
    return request_.state.is<S>();
  }
  [[nodiscard]] bool has_any_state() const { return request_.state.made(); }
  /// What its executor has found or done since the last step, as the executor's own code reads it
  /// (of maps, ended_walk()); it is there until the step returns. Null: this step was not called by
  /// it.
  [[nodiscard]] const void* from_executor() const { return from_executor_; }
  /// Of what the request works on: the version that must be released before its answer may be
  /// given, where that is recorded; 0: none. An answer, or an error that tells what was found,
  /// waits for that when the request is gone.
  [[nodiscard]] std::uint64_t waits_for() const { return waits_for_; }
  void wait_for(std::uint64_t version) { waits_for_ = version; }
  /// Ends what another request of the same client and response ring does, if it can be ended.
  void cancel(std::uint32_t tag);

  // --- how a step ends ---------------------------------------------------------------------------

  /// The last message. Of the header, flags, code and versions count.
  Next answer(const wire::ResponseHeader& header,
              std::initializer_list<std::string_view> payload = {});
  /// The same of a read with a message that was promised to its ring (long_value.hpp).
  Next answer(const wire::ResponseHeader& header, std::vector<std::byte> message);
  /// `words`: for people, behind what the code says.
  Next fail(Error error, std::string_view words = {});
  /// Whether an answer with so many bytes of payload can be sent or deferred now. To be asked
  /// before each that may be long; if not, nothing may be sent before writable().
  [[nodiscard]] bool response_fits(std::uint64_t bytes);
  /// Whether something is deferred for the client's ring, which it has not taken yet.
  [[nodiscard]] bool has_deferred();
  /// A message before the last: a part of a streamed answer. Ends nothing.
  void send_chunk(wire::ChunkKind kind, wire::ResponseHeader header,
                  std::initializer_list<std::string_view> payload);
  void send_chunk(wire::ChunkKind kind, wire::ResponseHeader header,
                  std::vector<std::byte> message);
  /// Whether one was sent.
  [[nodiscard]] bool has_streamed() const { return request_.streamed; }

  /// An executor has it, and calls the step again.
  Next handed_over() { return {}; }
  Next again();
  Next writable();
  /// Runs `work` on a helper. The request's state and bytes may be used by it, and by nobody else
  /// meanwhile. Answers out_of_memory, and runs nothing, if the client has too many jobs.
  Next helper(std::function<void()> work);
  /// The same in steps (helper_job.hpp), between which other clients have their turns. Ends without
  /// another step when the client ends, and behind a deadline, on base::monotonic_ns().
  Next helper_steps(std::function<JobStep(StepContext&)> work,
                    std::uint64_t deadline_ns = JobOptions::kNoDeadline);
  /// The same without a deadline; where the client has too many jobs the step is called again after
  /// a moment, and nothing has run.
  Next helper_steps_when_possible(std::function<JobStep(StepContext&)> work);
  /// Until base::monotonic_ns() is at least this.
  Next at(std::uint64_t monotonic_ns);
  /// Until versions may have been released: where records are to be durable, until more are; else
  /// until the next turn. It keeps no place of the scheduler meanwhile.
  Next after_release();
  /// Whether a write that found no room for its record may wait for some (with_room). Else it is
  /// refused as its sink says: the log has failed.
  [[nodiscard]] bool may_wait_for_room();
  /// Begins anew, without what is kept for the request, when there may be room for its record.
  /// Requires: may_wait_for_room(); nothing was done.
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
