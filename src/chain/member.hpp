// SPDX-License-Identifier: Apache-2.0
// The protocol state machine of one member of a chain: which epoch it accepts, which records it
// takes and forwards, up to where records are acknowledged, whether it may serve, and which members
// it proposes to exclude. It performs no I/O and reads no clock: its owner passes the time and the
// messages, so a simulation can run it from a seed (docs/design/chains.md).
//
// Invariants
// - A record is acknowledged only when each member from here to the tail has it on its disk.
// - A message of an epoch that this member has sealed changes nothing, and its answer counts for
//   nothing: adopting an epoch seals the earlier ones.
// - It serves no longer than T/2 after it sent the last beat that all others answered in this
//   epoch, including a joining node that it has offered. A new head does not serve before T has
//   passed since it last answered any member that is excluded now.
// - A tail does not answer a head while a joining node that it has offered might be a head and does
//   not answer.
// - No view follows the first one before all its members had what its head began with.
// - A new head does not serve before the tail has acknowledged all that it held when it became
//   head.
// - A joining node becomes a member only with all acknowledged records. The tail offers it to the
//   membership only once it has them, and from then on acknowledges nothing that it lacks, until
//   the tail knows the next epoch: it cannot know whether, and when, the offer was accepted.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "chain/message.hpp"
#include "chain/view.hpp"

namespace espalier::chain {

class Member {
 public:
  struct Start {
    std::uint64_t chain = 0;
    std::uint32_t self = 0;    ///< its member number
    std::uint64_t held = 0;    ///< the last sequence of its log, on its disk
    std::uint64_t now_ns = 0;  ///< of a clock that runs while the machine sleeps, as all below
  };
  explicit Member(const Start& start);

  // --- inputs ------------------------------------------------------------------------------------

  /// The membership has this view, which may be the known one.
  void adopt(const View& view, std::uint64_t now_ns);
  /// Time has passed. Call it at least every T/16. After a longer pause the member accuses no other
  /// for messages missed meanwhile.
  void tick(std::uint64_t now_ns);
  struct Received {
    std::optional<Message> answer;
    /// For an append: the records to take, from the first on; 0: none.
    std::uint64_t take_first = 0;
    std::uint64_t take_last = 0;
  };
  /// A message of another member has arrived. `has_room`: for the records that it may bring.
  [[nodiscard]] Received receive(const Message& message, bool has_room, std::uint64_t now_ns);
  /// A message that it sent will not be answered.
  void lost(const Message& message, std::uint64_t now_ns);
  /// Appended records were not sent, since too much is in flight: they are due again soon.
  void unsent(const Message& message, std::uint64_t now_ns);
  /// Records up to here are on this member's disk; on the head its own.
  void persisted(std::uint64_t sequence);
  /// It can send records from here on, those of its disk included.
  void keeps_from(std::uint64_t sequence) { keeps_from_ = sequence; }
  /// The membership rejected the view that it proposed.
  void proposal_failed();

  // --- outputs -----------------------------------------------------------------------------------

  /// Adds the beats that are due.
  void add_beats(std::uint64_t now_ns, std::vector<Message>& due);
  /// Records to send to the next member: `first` to `last`, of which a prefix may be sent.
  [[nodiscard]] std::optional<Message> append_due(std::uint64_t now_ns) const;
  /// They were sent, from append_due()'s first on.
  void appended(const Message& message);
  /// The view to propose to the membership, once.
  [[nodiscard]] std::optional<View> proposal(std::uint64_t now_ns);
  /// Whether a message had a newer epoch, once.
  [[nodiscard]] bool take_wants_view() { return std::exchange(wants_view_, false); }

  // --- state -------------------------------------------------------------------------------------

  [[nodiscard]] const View& view() const { return view_; }
  [[nodiscard]] std::uint32_t self() const { return self_; }
  [[nodiscard]] std::uint64_t epoch() const { return view_.epoch; }
  [[nodiscard]] bool is_head() const { return place_ == 0; }
  [[nodiscard]] bool is_tail() const { return next_ == 0 && place_.has_value(); }
  /// It is in no view that it knows, or is excluded: its records may be truncated.
  [[nodiscard]] bool is_out() const { return !place_.has_value() && !joins_; }
  /// It receives the chain's records, and is no member yet.
  [[nodiscard]] bool is_joining() const { return joins_; }
  /// For a joining node: no member has the records after its own, so it must start over.
  [[nodiscard]] bool is_behind() const { return is_behind_; }
  /// At the tail: the joining node behind it, and the records on that node's disk, as far as known.
  struct Joining {
    std::uint32_t number = 0;
    std::uint64_t held = 0;
  };
  [[nodiscard]] std::optional<Joining> feeds() const;
  /// Its log has lost acknowledged records: it is no member any more, and must stop before it sends
  /// anything.
  [[nodiscard]] bool has_lost() const { return has_lost_; }
  [[nodiscard]] std::uint64_t held() const { return held_; }
  /// Each member from this one to the tail has everything up to here on its disk.
  [[nodiscard]] std::uint64_t acknowledged() const { return acknowledged_; }
  /// The log's mark may rise up to here.
  [[nodiscard]] std::uint64_t releasable() const;
  /// Until when it may answer clients; 0: not now. An answer is valid if this time is in the future
  /// when it is sent, whenever its data was read.
  [[nodiscard]] std::uint64_t serves_until_ns(std::uint64_t now_ns) const;
  /// What it waits for before it serves, in words; empty: nothing.
  [[nodiscard]] std::string_view waits_for(std::uint64_t now_ns) const;

 private:
  /// Another member of this view, or of an earlier one.
  struct Peer {
    std::uint32_t number = 0;
    std::uint64_t heard_ns = 0;     ///< its last message of this epoch
    std::uint64_t answered_ns = 0;  ///< when a beat of it was last answered, in any epoch
    std::uint64_t lease_ns = 0;     ///< when the newest beat that it answered was sent; 0: none
    std::uint64_t beat_ns = 0;      ///< when the next one is due
    bool was_member = false;        ///< not only a joining node
  };
  [[nodiscard]] Peer* find(std::uint32_t number);
  [[nodiscard]] bool counts(const Message& message) const;
  [[nodiscard]] Message message_to(std::uint32_t to, MessageKind kind) const;
  [[nodiscard]] std::uint64_t fence_ns() const { return view_.fence_ms * 1'000'000; }
  [[nodiscard]] std::uint64_t lease_end_ns(std::uint64_t now_ns) const;
  [[nodiscard]] bool is_whole() const;
  [[nodiscard]] bool has_joining() const { return receiver_ != next_; }
  void find_neighbours(bool first);
  void forget_peers(std::uint64_t now_ns);
  void add_peer(const MemberEntry& entry, bool is_member, std::uint64_t now_ns);
  void become_head(bool first, std::uint64_t now_ns);
  void tend_joining(std::uint64_t now_ns);
  [[nodiscard]] bool hears_joining(std::uint64_t now_ns) const;
  [[nodiscard]] bool may_have_joined() const;
  [[nodiscard]] std::optional<View> proposal_of_joining(std::uint64_t now_ns);
  void add_beat(Peer& peer, std::uint64_t now_ns, std::vector<Message>& due);
  void note_chain(const Message& message);
  void note_acknowledged(const Message& message);
  void note_answer(const Message& message, Peer& peer, std::uint64_t now_ns);
  void take(const Message& message, bool has_room, Received& received);
  void update_acknowledged();

  const std::uint64_t chain_;
  const std::uint32_t self_;
  View view_;
  std::optional<std::size_t> place_;  // in the view
  std::uint32_t previous_ = 0;        // member; 0: none
  std::uint32_t next_ = 0;
  std::uint32_t receiver_ = 0;  // of records: the next member, or at the tail the joining node
  bool joins_ = false;          // this node itself
  std::vector<Peer> peers_;     // all that were in a view
  std::uint64_t held_;
  std::uint64_t persisted_;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t next_acknowledged_ = 0;  // by the receiver
  std::uint64_t reported_ = 0;           // acknowledged_, as reported to the previous member
  bool reporting_ = false;               // that report is not answered yet
  // Flow of records to the receiver:
  bool knows_next_ = false;       // up to where it holds records
  std::uint64_t send_next_ = 0;   // the sequence
  std::uint32_t on_way_ = 0;      // appends in flight
  std::uint64_t send_at_ns_ = 0;  // after a pause, since it accepted nothing
  bool is_ahead_ = false;         // the next member holds records that this one lacks
  // At the tail, for the joining node:
  bool is_bound_ = false;  // acknowledgements wait for it
  bool offered_ = false;   // it may be a member by now
  bool unsure_ = false;    // an earlier run of the tail may have offered it
  bool is_wrong_ = false;  // it has records that the tail lacks
  std::uint64_t bound_ns_ = 0;
  std::uint64_t bind_again_ns_ = 0;
  std::uint64_t keeps_from_ = 0;

  bool is_behind_ = false;
  bool has_lost_ = false;   // records that were on its disk
  bool was_whole_ = false;  // all members have had what the head of the first epoch began with
  std::uint64_t base_ = 0;  // of a head: what it held when it became head
  std::uint64_t fence_until_ns_ = 0;
  std::uint64_t adopted_ns_ = 0;  // when it sealed the previous epoch
  std::uint64_t ticked_ns_;
  bool proposed_ = false;
  bool wants_view_ = false;
};

}  // namespace espalier::chain
