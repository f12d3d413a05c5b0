// SPDX-License-Identifier: Apache-2.0
// A pipeline whose reads are walks of this thread's own, by one-sided READs, and whose writes go by
// the rings.
//
//   submit -> read  -> queue -> place -> reader ---> done
//          |                      ^        | the lease or the pair was lost: once more
//          |                      +--------+
//          |                               | again, or `contended`: by the rings
//          +> write --------------------> requests -> done
//
// A scan that has delivered items is not begun again: it ends with its error. What finds no memory
// in any of these ends with out_of_memory; whatever happens, each request is told once.
//
// `Readers` is what a kind's objects are read by, through one connection for READs:
//
//   static bool serves(Op)            which requests a client can do alone
//   kAskedForAlone                    whether what the node or the object does not allow is
//                                     refused; else the rings answer
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
  /// Lanes to the node, both this pipeline's own: one for requests, one for what the lease needs,
  /// which waits for its answers. The sessions have them back at the end, and are told what reads
  /// took whenever none is left.
  OneSidedPipeline(std::shared_ptr<RemoteSessions> sessions, std::unique_ptr<ThreadRings> rings,
                   std::unique_ptr<ThreadRings> control, const Scope& scope,
                   std::uint32_t in_flight);
  ~OneSidedPipeline() override;

  void submit(std::span<const Request> requests, Handler& handler) override;
  std::size_t poll() override;
  std::size_t advance() override;
  void run(std::span<const Request> requests, Handler& handler) override;

  /// What its reads took.
  [[nodiscard]] tree::WalkTraffic traffic() const {
    tree::WalkTraffic traffic = readers_.traffic();
    traffic.by_rings = by_rings_;
    return traffic;
  }

 private:
  struct Queued {
    const Request* request = nullptr;
    Handler* handler = nullptr;
    bool again = false;  // it was lost once
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
  typename Readers::Reader* reader_ = nullptr;  // null: none, or it is to be made anew
  bool broken_ = false;                         // it is let go of when its walks have ended
  std::vector<Place> places_;
  std::vector<std::uint32_t> free_;
  std::deque<Queued> queue_;
  std::size_t reading_ = 0;  // places in use
  std::uint64_t completed_ = 0;
  std::uint64_t by_rings_ = 0;  // reads that went by the rings after all
  tree::WalkTraffic published_;
  std::uint32_t quiet_ = 0;  // looks since a READ was last posted
  std::uint64_t trips_ = 0;  // as of the last look
};

}  // namespace espalier::client
