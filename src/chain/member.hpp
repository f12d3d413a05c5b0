// SPDX-License-Identifier: Apache-2.0
// What one member of a chain decides: whom it believes, what it takes and sends on, up to where
// records are acknowledged, whether it may serve, and whom it would leave out. It does nothing
// itself: time is told to it, messages come and go through its owner, and so a simulated world runs
// it from a seed (docs/design/chains.md).
//
// What never happens
// - A record is acknowledged that a member from here to the tail has not on its disk.
// - A message of an epoch that this member has sealed changes anything, or is answered as if it
//   counted: to adopt an epoch is to seal those before.
// - It serves longer than T/2 after it sent the last beat that all others answered in this epoch,
//   who may have joined by its offer among them, and a new head before T has passed since it last
//   answered any member that is left out now.
// - A tail answers for a head while another may be one by its offer and does not answer itself.
// - A view follows the first one before all its members had what its head began with.
// - A new head serves before the tail has acknowledged all that it held when it became the head.
// - One that joins becomes a member without a record that was acknowledged. The tail offers it to
//   the membership only once it has all of them, and from then on acknowledges nothing that it has
//   not, until it knows the epoch behind: whether the offer was taken, and when, it cannot know.
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
    std::uint32_t self = 0;    ///< its number
    std::uint64_t held = 0;    ///< the last sequence of its log, which is on its disk
    std::uint64_t now_ns = 0;  ///< of a clock that goes on while the machine sleeps, as all below
  };
  explicit Member(const Start& start);

  // --- what it is told ---------------------------------------------------------------------------

  /// The membership has this view, which may be the one that it knows.
  void adopt(const View& view, std::uint64_t now_ns);
  /// Time has passed; is to be told every sixteenth of T at least, and who was stopped for longer
  /// accuses nobody for what it did not hear meanwhile.
  void tick(std::uint64_t now_ns);
  struct Received {
    std::optional<Message> answer;
    /// Of an append: the records that are to be taken, from the first on; 0: none are.
    std::uint64_t take_first = 0;
    std::uint64_t take_last = 0;
  };
  /// A message of another member has come. `has_room`: for the records that it may bring.
  [[nodiscard]] Received receive(const Message& message, bool has_room, std::uint64_t now_ns);
  /// One that it sent is not answered, and will not be.
  void lost(const Message& message, std::uint64_t now_ns);
  /// Appended records did not leave, for too much is on its way: they are due again soon.
  void unsent(const Message& message, std::uint64_t now_ns);
  /// Records up to here are on this member's disk; of the head its own.
  void persisted(std::uint64_t sequence);
  /// It can send records from here on, those of its disk included.
  void keeps_from(std::uint64_t sequence) { keeps_from_ = sequence; }
  /// The membership did not take the view that it proposed.
  void proposal_failed();

  // --- what it wants -----------------------------------------------------------------------------

  /// Adds the beats that are due.
  void add_beats(std::uint64_t now_ns, std::vector<Message>& due);
  /// Records that may go to the next member: from `first` to `last`, of which fewer may be sent.
  [[nodiscard]] std::optional<Message> append_due(std::uint64_t now_ns) const;
  /// They were sent, from append_due()'s first on.
  void appended(const Message& message);
  /// The view that the membership is to be offered, once.
  [[nodiscard]] std::optional<View> proposal(std::uint64_t now_ns);
  /// Whether a message told of an epoch that it does not know, once.
  [[nodiscard]] bool take_wants_view() { return std::exchange(wants_view_, false); }

  // --- what is so --------------------------------------------------------------------------------

  [[nodiscard]] const View& view() const { return view_; }
  [[nodiscard]] std::uint32_t self() const { return self_; }
  [[nodiscard]] std::uint64_t epoch() const { return view_.epoch; }
  [[nodiscard]] bool is_head() const { return place_ == 0; }
  [[nodiscard]] bool is_tail() const { return next_ == 0 && place_.has_value(); }
  /// It was in no view that it knows, or is left out: what it holds may be cut.
  [[nodiscard]] bool is_out() const { return !place_.has_value() && !joins_; }
  /// It gets the records of the chain, and is no member yet.
  [[nodiscard]] bool is_joining() const { return joins_; }
  /// Of one that joins: no member has what comes behind its records, and it is to begin anew.
  [[nodiscard]] bool is_behind() const { return is_behind_; }
  /// Of the tail: who joins behind it, and what that one has on its disk, as far as is known.
  struct Joining {
    std::uint32_t number = 0;
    std::uint64_t held = 0;
  };
  [[nodiscard]] std::optional<Joining> feeds() const;
  /// Its log lacks records that were acknowledged, and so were in it: it is no member any more, and
  /// is to end before it says anything.
  [[nodiscard]] bool has_lost() const { return has_lost_; }
  [[nodiscard]] std::uint64_t held() const { return held_; }
  /// Up to here every member from this one to the tail has all on its disk.
  [[nodiscard]] std::uint64_t acknowledged() const { return acknowledged_; }
  /// Up to here its log's mark may rise.
  [[nodiscard]] std::uint64_t releasable() const;
  /// Until when it may answer clients; 0: not now. An answer is good if this is still to come when
  /// it is given, whenever what it says was read.
  [[nodiscard]] std::uint64_t serves_until_ns(std::uint64_t now_ns) const;
  /// What it waits for before it serves, in words; empty: nothing.
  [[nodiscard]] std::string_view waits_for(std::uint64_t now_ns) const;

 private:
  /// Another member of this view, or of one before.
  struct Peer {
    std::uint32_t number = 0;
    std::uint64_t heard_ns = 0;     ///< when it last said something in this epoch
    std::uint64_t answered_ns = 0;  ///< when a beat of it was last answered, in any epoch
    std::uint64_t lease_ns = 0;     ///< when the newest beat was sent that it has answered; 0: none
    std::uint64_t beat_ns = 0;      ///< when the next one is due
    bool was_member = false;        ///< and did not only join
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
  std::optional<std::size_t> place_;  // in it
  std::uint32_t previous_ = 0;        // member; 0: none
  std::uint32_t next_ = 0;
  std::uint32_t receiver_ = 0;  // of records: the next member, or of the tail who joins
  bool joins_ = false;          // itself
  std::vector<Peer> peers_;     // whoever was in a view
  std::uint64_t held_;
  std::uint64_t persisted_;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t next_acknowledged_ = 0;  // by the receiver
  std::uint64_t reported_ = 0;           // the previous one, of acknowledged_
  bool reporting_ = false;               // it has not answered yet
  // Of the way to the receiver:
  bool knows_next_ = false;       // up to where it holds records
  std::uint64_t send_next_ = 0;   // the sequence
  std::uint32_t on_way_ = 0;      // appends without an answer
  std::uint64_t send_at_ns_ = 0;  // after a pause, for it took nothing
  bool is_ahead_ = false;         // the next member holds what this one does not
  // Of the tail, and of who joins behind it:
  bool is_bound_ = false;  // nothing is acknowledged that it has not
  bool offered_ = false;   // it may be a member by now
  bool unsure_ = false;    // it was perhaps offered by an earlier life of the tail
  bool is_wrong_ = false;  // it has what the tail has not
  std::uint64_t bound_ns_ = 0;
  std::uint64_t bind_again_ns_ = 0;
  std::uint64_t keeps_from_ = 0;

  bool is_behind_ = false;
  bool has_lost_ = false;   // what was on its disk
  bool was_whole_ = false;  // all have had what the head of the first epoch began with
  std::uint64_t base_ = 0;  // of a head: what it held when it became the head
  std::uint64_t fence_until_ns_ = 0;
  std::uint64_t adopted_ns_ = 0;  // when it sealed the epoch before
  std::uint64_t ticked_ns_;
  bool proposed_ = false;
  bool wants_view_ = false;
};

}  // namespace espalier::chain
