// SPDX-License-Identifier: Apache-2.0
// A pipeline that executes reads as walks on this thread, by one-sided READs, and sends writes
// through the rings.
//
//   submit -> read  -> queue -> place -> reader ---> done
//          |                      ^        | the lease or the pair was lost: once more
//          |                      +--------+
//          |                               | lost again, or `contended`: by the rings
//          +> write --------------------> requests -> done
//
// A scan that has delivered items is not restarted: it completes with its error. A request for
// which there is no memory completes with out_of_memory. Each request completes exactly once.
//
// `Readers` reads a kind's objects through one connection for READs:
//
//   static bool serves(Op)            which requests a client can execute alone
//   kAskedForAlone                    whether a request that the node or the object does not
//                                     permit is refused; else the rings answer it
//   open(requests, connection, n)     the reader of object n, kept once it is made
//   renew(requests, lease)            asks the node for what the lease needs now
//   wait(), close(), traffic()
//
// and a reader has submit(), poll(), pending(), lease(), fail() and traffic().
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "channel/rings/pipeline_impl.hpp"
#include "channel/rings/remote_pipeline.hpp"
#include "channel/rings/remote_sessions.hpp"
#include "channel/rings/thread_rings.hpp"
#include "reach/walk_traffic.hpp"

namespace espalier::client {

template <class Readers>
class OneSidedPipeline final : public PipelineImpl {
 public:
  /// Owns two lanes to the node: `rings` for requests, `control` for lease calls, which wait for
  /// their answers. Returns them to the sessions at the end. Adds its traffic to theirs whenever no
  /// request is pending.
  OneSidedPipeline(std::shared_ptr<RemoteSessions> sessions, std::unique_ptr<ThreadRings> rings,
                   std::unique_ptr<ThreadRings> control, const Scope& scope,
                   std::uint32_t in_flight);
  ~OneSidedPipeline() override;

  void submit(std::span<const Request> requests, Handler& handler) override;
  std::size_t poll() override;
  std::size_t advance() override;
  void run(std::span<const Request> requests, Handler& handler) override;

  /// The traffic of its reads.
  [[nodiscard]] tree::WalkTraffic traffic() const {
    tree::WalkTraffic traffic = readers_.traffic();
    traffic.by_rings = by_rings_;
    return traffic;
  }

 private:
  struct Queued {
    const Request* request = nullptr;
    Handler* handler = nullptr;
    bool again = false;  // second attempt
  };
  /// A read in flight.
  class Place final : public Handler {
   public:
    void begin(OneSidedPipeline& owner, const Queued& queued, std::uint32_t number);
    void done(const Completion& completion) override;
    bool items(std::uint64_t tag, std::span<const Item> items) override;

   private:
    OneSidedPipeline* owner_ = nullptr;
    Queued queued_;
    std::uint32_t number_ = 0;
    bool delivered_ = false;
  };

  void start();
  [[nodiscard]] bool open_reader(const Queued& queued);
  void publish();
  void walk();
  void enqueue(const Queued& queued);
  void give_place(const Queued& queued);
  void refuse(const Queued& queued, const Error& error);
  void go_by_rings(const Queued& queued);
  void send(std::span<const Request> requests, Handler& handler);
  [[nodiscard]] std::size_t pending() const {
    return queue_.size() + reading_ + requests_->pending();
  }

  const std::shared_ptr<RemoteSessions> sessions_;
  std::unique_ptr<ThreadRings> rings_;
  std::unique_ptr<ThreadRings> control_rings_;
  const Scope scope_;
  std::unique_ptr<RemoteRequests> requests_;
  std::unique_ptr<RemoteRequests> control_;
  Readers readers_;
  typename Readers::Reader* reader_ = nullptr;  // null: none, or it must be opened again
  bool broken_ = false;                         // destroy it when its walks have ended
  std::vector<Place> places_;
  std::vector<std::uint32_t> free_;
  std::deque<Queued> queue_;
  std::size_t reading_ = 0;  // places in use
  std::uint64_t completed_ = 0;
  std::uint64_t by_rings_ = 0;  // reads that the rings answered
  tree::WalkTraffic published_;
  std::uint32_t quiet_ = 0;  // polls since a READ was last posted
  std::uint64_t trips_ = 0;  // as of the last poll
};

}  // namespace espalier::client
