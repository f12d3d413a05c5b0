// SPDX-License-Identifier: Apache-2.0
// Whose turn it is: deficit round robin over flows, by the time that their steps took.
//
// Deficit round robin [Shreedhar and Varghese, Efficient fair queueing using deficit round robin,
// 1995] gives each flow a quantum in each round and serves it while its deficit counter covers the
// next packet. How long a step takes is known only afterwards, so here a flow is served while its
// counter is positive, and a step that took longer makes the counter negative: the flow owes, and
// the next rounds pay that first (surplus round robin [Adiseshu, Parulkar and Varghese, A reliable
// and scalable striping protocol, 1996]).
//
//   this round   A +150 us | B +200 us      pop() serves the first while it has credit
//   next round   C  -30 us | D   -5 us      ready, but used up; each gets a quantum when it begins
//   in neither   E +200 us                  nothing ready: idle, or all it has is running
//
// With steps of at most L and n servers, two flows that both always have n items ready are served
// within 2 (quantum + n L) of each other, over any interval; one that has not always gains no more
// than n L beyond that on one that has. A flow without ready items has at most one quantum of
// credit, however long it was idle; what it owes is forgiven by a quantum in each round that it
// misses, and altogether when nothing is ready or running. A flow of which a step is running keeps
// its turn, so that one with a single item is not put behind those with many.
//
// Thread: one at a time. No clock of its own: whoever serves measures.
#pragma once

#include <cstdint>
#include <list>

namespace espalier::offload {

class FairQueue {
 public:
  class Flow;

  /// What is served in steps. Belongs to its owner, who keeps it where it is.
  class Item {
   public:
    explicit Item(Flow& flow) : flow_(flow) {}
    Item(const Item&) = delete;
    Item& operator=(const Item&) = delete;
    [[nodiscard]] Flow& flow() const { return flow_; }
    /// Whether it waits for pop().
    [[nodiscard]] bool ready() const { return state_ == State::ready; }

   private:
    friend class FairQueue;
    enum class State : std::uint8_t { outside, ready, running };
    Flow& flow_;
    State state_ = State::outside;
    std::list<Item*> node_ = {this};  // its node, when in no list: moving it allocates nothing
    std::list<Item*>::iterator at_ = node_.begin();
  };

  /// Those among whom time is shared. Belongs to its owner, who keeps it where it is.
  class Flow {
   public:
    Flow() = default;
    Flow(const Flow&) = delete;
    Flow& operator=(const Flow&) = delete;
    /// The time of all its steps.
    [[nodiscard]] std::uint64_t served_ns() const { return served_ns_; }
    [[nodiscard]] std::int64_t deficit_ns() const { return deficit_ns_; }

   private:
    friend class FairQueue;
    std::list<Item*> ready_;
    std::uint64_t served_ns_ = 0;
    std::int64_t deficit_ns_ = 0;    // as of round_ and busy_period_; never above a quantum
    std::uint64_t round_ = 0;        // the last whose quantum it got
    std::uint64_t busy_period_ = 0;  // the queue's, then
    std::uint32_t running_ = 0;      // items
    std::list<Flow*>* in_ = nullptr;
    std::list<Flow*> node_ = {this};
    std::list<Flow*>::iterator at_ = node_.begin();
  };

  /// Requires: quantum_ns is not 0 and less than 2^62.
  explicit FairQueue(std::uint64_t quantum_ns);

  /// Makes an item ready, behind the others of its flow. Cost: O(1). Requires: it is in no list and
  /// not running.
  void push(Item& item);
  /// Takes out the item to be served next; null if none is ready. It runs until charge().
  /// Cost: O(1) on average, for flows whose steps take at most a quantum.
  [[nodiscard]] Item* pop();
  /// A step of this item ended and took so long; `again` makes the item ready. Cost: O(1).
  /// Requires: pop() returned it.
  void charge(Item& item, std::uint64_t took_ns, bool again);
  /// Time that a flow took outside of steps. Cost: O(1).
  void charge(Flow& flow, std::uint64_t took_ns);
  /// Takes out an item that is ready. Cost: O(1).
  void erase(Item& item);

  [[nodiscard]] std::uint32_t running() const { return running_; }

 private:
  using Flows = std::list<Flow*>;
  void replenish(Flow& flow) const;
  void append(Item& item);
  void place(Flow& flow, bool in_turn);
  void begin_round();
  static void move(Flow& flow, Flows& to, Flows::iterator before);
  static void take_out(Flow& flow);

  const std::int64_t quantum_ns_;
  Flows this_round_;
  Flows next_round_;
  std::uint64_t round_ = 0;
  std::uint64_t busy_period_ = 0;  // begins when an item comes and nothing is ready or running
  std::uint32_t running_ = 0;
};

}  // namespace espalier::offload
