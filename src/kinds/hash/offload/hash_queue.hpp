// SPDX-License-Identifier: Apache-2.0
// The requests on hash maps of one scheduler, as an executor: those of all maps, connections and
// calls share one rolling queue (kinds/hash/rolling_queue.hpp), so that the lines of later requests
// are prefetched while earlier ones are executed. Its interface for handlers: hash_call.hpp.
//
//   the scheduler takes requests    each step hashes its key, and requests a turn
//   turn()                          bins are prefetched, then records; gets read under one epoch,
//                                   and are answered from where they lie; writes begin under none
//
// No request waits for later ones: one that was queued at the last turn is executed in this one,
// and so is one that arrives almost alone. The others stay until the next turn, as many as are to
// be in flight.
//
// Thread: that of the scheduler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "engine/executor.hpp"
#include "espalier/error.hpp"
#include "kinds/hash/offload/hash_call.hpp"
#include "kinds/hash/rolling_queue.hpp"

namespace espalier::offload {

class HashQueue final : public Executor {
 public:
  /// If at most so many arrive while the queue is empty, they are executed immediately: there is no
  /// work to overlap.
  static constexpr std::size_t kFew = 2;

  explicit HashQueue(const ExecutorContext& context);
  bool admit(Request& request) override;
  bool turn() override;
  [[nodiscard]] bool has_news() const override { return !queue_.empty(); }
  /// Releases maps that were dropped and that no request works on.
  void maintain() override;
  void make_room(std::size_t places) override { queue_.make_room(places); }
  /// Requests that wait here have their turn in the next turn, even if their connection is gone.
  void drop(const Connection&) override {}

  void push(Request& request, bool reads);

 private:
  struct Waiting {
    Request* request;
    bool reads;
  };
  using Queue = hash::RollingQueue<Waiting>;
  using Maps = std::unordered_map<std::uint32_t, std::unique_ptr<ServedHash>>;

  [[nodiscard]] ServedHash* find(std::uint32_t number);
  [[nodiscard]] Result<void> read(std::size_t left);
  void answer(const Queue::Place& place, hash::HashThread& thread);
  void refuse_next(const Error& why);

  Scheduler& scheduler_;
  Services& services_;
  Maps maps_;
  ServedHash* last_ = nullptr;  // the one that was found last, of this number
  std::uint32_t last_number_ = 0;
  Queue queue_;
  std::size_t came_ = 0;  // since the last turn
};

}  // namespace espalier::offload
