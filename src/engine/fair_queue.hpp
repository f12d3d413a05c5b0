// SPDX-License-Identifier: Apache-2.0
// Fair scheduling: deficit round robin over groups, and over the flows of each, by the time that
// their steps took.
//
// Deficit round robin [Shreedhar and Varghese, Efficient fair queueing using deficit round robin,
// 1995] gives each flow a quantum in each round and serves it while its deficit counter covers the
// next packet. The duration of a step is known only afterwards, so a flow is served while its
// counter is positive, and a longer step makes the counter negative: the next rounds repay that
// first (surplus round robin [Adiseshu, Parulkar and Varghese, A reliable and scalable striping
// protocol, 1996]).
//
//   this round   A +150 us | B +200 us      pop() serves the first while it has credit
//   next round   C  -30 us | D   -5 us      ready, no credit; each gets a quantum when it begins
//   in neither   E +200 us                  nothing ready: idle, or all its items are running
//
// There are two levels: a group, such as the connections of one principal, takes turns among
// groups, and within its turn its flows take theirs. So a group's share does not depend on how many
// flows it has. A flow without a group forms one by itself.
//
// On each level: with steps of at most L and n servers, two members that both always have n items
// ready are served within 2 (quantum + n L) of each other, over any interval; a member that is not
// always ready gains no more than n L beyond that. A member without ready items has at most one
// quantum of credit, however long it was idle; its debt is reduced by a quantum in each round that
// it misses, and cancelled when nothing on its level is ready or running. A member of which a step
// is running keeps its turn, so that one with a single item is not put behind those with many.
//
// Thread: one at a time. Has no clock: the server measures.
#pragma once

#include <cstdint>
#include <list>
#include <memory>

namespace espalier::offload {

class FairQueue {
 public:
  class Flow;
  class Group;

  /// What is served in steps. Its owner keeps its address fixed.
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

 private:
  /// A member of a level: a group, or a flow of one.
  class Member {
   public:
    Member() = default;
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;
    /// The time of all its steps.
    [[nodiscard]] std::uint64_t served_ns() const { return served_ns_; }
    [[nodiscard]] std::int64_t deficit_ns() const { return deficit_ns_; }

   private:
    friend class FairQueue;
    std::uint64_t served_ns_ = 0;
    std::int64_t deficit_ns_ = 0;    // as of round_ and busy_period_; never above a quantum
    std::uint64_t round_ = 0;        // the last round whose quantum it got
    std::uint64_t busy_period_ = 0;  // the level's, at that time
    std::uint32_t running_ = 0;      // items
    std::list<Member*>* in_ = nullptr;
    std::list<Member*> node_ = {this};
    std::list<Member*>::iterator at_ = node_.begin();
  };
  using Members = std::list<Member*>;

  /// Members that take turns.
  struct Level {
    Members this_round;
    Members next_round;
    std::uint64_t round = 0;
    std::uint64_t busy_period = 0;  // begins when an item arrives and nothing is ready or running
    std::uint32_t running = 0;

    [[nodiscard]] bool has_ready() const { return !this_round.empty() || !next_round.empty(); }
    void begin_busy_period() {
      if (!has_ready() && running == 0) ++busy_period;
    }
  };

 public:
  /// Shares the time of its group with the other flows. Its owner keeps its address fixed.
  class Flow : public Member {
   public:
    /// In a group of its own.
    Flow() : own_(std::make_unique<Group>()), group_(*own_) {}
    /// The group outlives it.
    explicit Flow(Group& group) : group_(group) {}
    [[nodiscard]] Group& group() const { return group_; }

   private:
    friend class FairQueue;
    const std::unique_ptr<Group> own_;
    Group& group_;
    std::list<Item*> ready_;
  };

  /// Shares the time with the other groups. Its owner keeps its address fixed.
  class Group : public Member {
   private:
    friend class FairQueue;
    Level flows_;
  };

  /// Requires: quantum_ns is not 0 and less than 2^62.
  explicit FairQueue(std::uint64_t quantum_ns);

  /// Makes an item ready, behind the others of its flow. Cost: O(1). Requires: it is in no list and
  /// not running.
  void push(Item& item);
  /// Removes the item to serve next; null: none is ready. It runs until charge(). Cost: O(1) on
  /// average, for flows whose steps take at most a quantum.
  [[nodiscard]] Item* pop();
  /// Charges a step of this item; `again` makes the item ready. Cost: O(1). Requires: pop()
  /// returned it.
  void charge(Item& item, std::uint64_t took_ns, bool again);
  /// Charges time that a flow took outside of steps. Cost: O(1).
  void charge(Flow& flow, std::uint64_t took_ns);
  /// Refunds a part of a charge, such as one in advance. Cost: O(1).
  void refund(Flow& flow, std::uint64_t ns);
  /// Removes an item that is ready. Cost: O(1).
  void erase(Item& item);

  [[nodiscard]] std::uint32_t running() const { return groups_.running; }
  /// Whether any item waits for pop().
  [[nodiscard]] bool has_ready() const { return groups_.has_ready(); }

 private:
  [[nodiscard]] Member* next(Level& level) const;
  void replenish(const Level& level, Member& member) const;
  void begin_round(Level& level) const;
  void append(Item& item);
  void place(Level& level, Member& member, bool in_turn) const;
  void take_out_if_idle(Flow& flow);
  static void charge(Member& member, std::uint64_t took_ns);
  static void move(Member& member, Members& to, Members::iterator before);
  static void take_out(Member& member);

  const std::int64_t quantum_ns_;
  Level groups_;
};

}  // namespace espalier::offload
