// SPDX-License-Identifier: Apache-2.0
// The requests on hash maps of one scheduler, which it takes in a turn of its own: they stand in
// one rolling queue (kinds/hash/rolling_queue.hpp), whatever their map, connection and call, so
// that the lines of those behind are on their way while those before them are carried out. What
// handlers ask of it: hash_call.hpp.
//
//   the scheduler takes requests    each step has its key hashed, and asks for a turn
//   turn()                          bins are asked for, then records; gets read under one epoch,
//                                   and are answered from where they lie; writes begin under none
//
// Nobody waits for those who come later: who was there at the last turn has its turn in this one,
// and so has who comes almost alone. Others stay until the next, as many as are to be in flight.
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
  /// So few that come while nobody waits have their turns at once: there is nothing to be done
  /// meanwhile.
  static constexpr std::size_t kFew = 2;

  explicit HashQueue(const ExecutorContext& context);
  bool admit(Request& request) override;
  bool turn() override;
  [[nodiscard]] bool has_news() const override { return !queue_.empty(); }
  /// Lets go of maps that were dropped and that no request works on.
  void maintain() override;
  void make_room(std::size_t places) override { queue_.make_room(places); }
  /// What waits here has its turn in the next turn, whoever has gone.
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
  ServedHash* last_ = nullptr;  // that was found, of this number
  std::uint32_t last_number_ = 0;
  Queue queue_;
  std::size_t came_ = 0;  // since the last turn
};

}  // namespace espalier::offload
