// SPDX-License-Identifier: Apache-2.0
#include "chain/member.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "chain/planted_chain_bugs.hpp"

namespace espalier::chain {
namespace {

constexpr std::uint32_t kOnWayMax = 8;  // appends in flight

}  // namespace

Member::Member(const Start& start)
    : chain_(start.chain),
      self_(start.self),
      held_(start.held),
      persisted_(start.held),
      ticked_ns_(start.now_ns) {
  ESPALIER_ASSERT(start.chain != 0 && start.self != 0);
}

Member::Peer* Member::find(std::uint32_t number) {
  const auto found = std::ranges::find(peers_, number, &Peer::number);
  return found != peers_.end() ? &*found : nullptr;
}

/// Whether it is of this member's present epoch.
bool Member::counts(const Message& message) const {
  if (planted(Bug::old_epoch_accepted)) return message.epoch <= view_.epoch;
  return message.epoch == view_.epoch && !is_out();
}

Message Member::message_to(std::uint32_t to, MessageKind kind) const {
  return {.kind = kind,
          .from = self_,
          .to = to,
          .chain = chain_,
          .epoch = view_.epoch,
          .last = held_,
          .acknowledged = acknowledged_};
}

// --- views ---------------------------------------------------------------------------------------

// The state of the flow to the next member is unknown now: that member reports its position in the
// new epoch.
void Member::adopt(const View& view, std::uint64_t now_ns) {
  if (view.chain != chain_ || view.epoch <= view_.epoch) return;
  const bool first = view_.epoch == 0;
  const bool was_head = is_head();
  view_ = view;
  place_ = view_.place_of(self_);
  joins_ = view_.joining && view_.joining->number == self_;
  knows_next_ = proposed_ = reporting_ = false;
  is_bound_ = offered_ = is_wrong_ = false;
  bind_again_ns_ = 0;
  on_way_ = 0;
  reported_ = 0;
  adopted_ns_ = now_ns;
  find_neighbours(first);
  forget_peers(now_ns);
  if (is_out()) return;
  for (const MemberEntry& entry : view_.members) add_peer(entry, true, now_ns);
  if (view_.joining) add_peer(*view_.joining, false, now_ns);
  if (is_head() && !was_head) become_head(first, now_ns);
  update_acknowledged();
}

// A tail that knows no epoch before this one may have offered the joining node to the membership in
// an earlier run, so it acknowledges nothing before the next epoch.
void Member::find_neighbours(bool first) {
  const std::uint32_t before = receiver_;
  previous_ = next_ = receiver_ = 0;
  unsure_ = false;
  if (joins_) previous_ = view_.members.back().number;
  if (!place_) return;
  if (*place_ != 0) previous_ = view_.members[*place_ - 1].number;
  if (*place_ + 1 < view_.members.size()) next_ = view_.members[*place_ + 1].number;
  receiver_ = next_;
  if (next_ != 0 || !view_.joining) return;
  receiver_ = view_.joining->number;
  if (receiver_ != before) next_acknowledged_ = 0;
  unsure_ = first && !planted(Bug::tail_restarts_sure);
}

// Forgets peers excluded so long ago that answers to them no longer matter.
void Member::forget_peers(std::uint64_t now_ns) {
  std::erase_if(peers_, [&](const Peer& peer) {
    const bool joins = view_.joining && view_.joining->number == peer.number;
    const bool is_there = joins || view_.find(peer.number) != nullptr;
    return !is_there && now_ns > peer.answered_ns + fence_ns();
  });
}

void Member::add_peer(const MemberEntry& entry, bool is_member, std::uint64_t now_ns) {
  if (entry.number == self_) return;
  Peer* peer = find(entry.number);
  if (peer == nullptr) {
    peer = &peers_.emplace_back();
    peer->number = entry.number;
    peer->answered_ns = now_ns;
  }
  peer->was_member = peer->was_member || is_member;
  peer->heard_ns = now_ns;
  peer->lease_ns = 0;
  peer->beat_ns = now_ns;
}

// The previous head serves for less than T after this member last answered it. A member that has
// just started may have answered until a moment ago; in the first epoch there was no other head.
void Member::become_head(bool first, std::uint64_t now_ns) {
  base_ = held_;
  fence_until_ns_ = first && view_.epoch > 1 ? now_ns + fence_ns() : 0;
  for (const Peer& peer : peers_) {
    if (view_.find(peer.number) != nullptr || !peer.was_member) continue;
    fence_until_ns_ = std::max(fence_until_ns_, peer.answered_ns + fence_ns());
  }
}

void Member::tick(std::uint64_t now_ns) {
  if (now_ns - ticked_ns_ > fence_ns() / 4) {
    for (Peer& peer : peers_) peer.heard_ns = peer.answered_ns = now_ns;
  }
  ticked_ns_ = now_ns;
  tend_joining(now_ns);
}

std::optional<View> Member::proposal(std::uint64_t now_ns) {
  if (!place_ || proposed_ || is_ahead_ || has_lost_) return std::nullopt;
  std::vector<std::uint32_t> silent;
  for (const Peer& peer : peers_) {
    const bool is_member = view_.find(peer.number) != nullptr;
    if (is_member && now_ns >= peer.heard_ns + fence_ns()) silent.push_back(peer.number);
  }
  // A head that has had all records itself may continue alone.
  const bool goes_alone = is_head() && silent.size() + 1 == view_.members.size();
  std::optional<View> next;
  if (!silent.empty() && (is_whole() || goes_alone || planted(Bug::left_out_early))) {
    next = view_.without(silent);
    next->whole = true;
  } else {
    next = proposal_of_joining(now_ns);
  }
  proposed_ = next.has_value();
  return next;
}

// Later views are trusted to have all acknowledged records, so no member is excluded before all
// have what the head of the first epoch began with. Only the head has that.
bool Member::is_whole() const {
  return view_.whole || was_whole_ || (is_head() && acknowledged_ >= base_);
}

// --- joining nodes -------------------------------------------------------------------------------

std::optional<Member::Joining> Member::feeds() const {
  if (!has_joining()) return std::nullopt;
  return Joining{receiver_, next_acknowledged_};
}

// Once the joining node was sent all records, acknowledgements wait for it, so it soon has all of
// them. If it has not been offered by a deadline, it is unbound for a while.
void Member::tend_joining(std::uint64_t now_ns) {
  if (!has_joining() || offered_) return;
  const bool was_sent_all = knows_next_ && send_next_ > persisted_;
  const bool may_be_offered = is_whole() && hears_joining(now_ns);
  if (!is_bound_ && was_sent_all && may_be_offered && now_ns >= bind_again_ns_) {
    is_bound_ = true;
    bound_ns_ = now_ns;
  } else if (is_bound_ && now_ns - bound_ns_ > fence_ns() / 4) {
    is_bound_ = false;
    bind_again_ns_ = now_ns + fence_ns();
    update_acknowledged();
  }
}

/// Whether the joining node has answered a beat of this epoch that was sent within the last T/4, so
/// that it is the head of no later epoch before another 3T/4 has passed.
bool Member::hears_joining(std::uint64_t now_ns) const {
  if (planted(Bug::offered_not_heard)) return true;
  const auto peer = std::ranges::find(peers_, receiver_, &Peer::number);
  return peer != peers_.end() && peer->lease_ns != 0 && now_ns <= peer->lease_ns + fence_ns() / 4;
}

/// Whether the joining node might be a member, by an offer of this tail.
bool Member::may_have_joined() const { return has_joining() && (offered_ || unsure_); }

// Only the tail knows the joining node's records. It proposes it as a member; or excludes it, if it
// might be a member by now and is silent: the membership accepts one of the two proposals.
std::optional<View> Member::proposal_of_joining(std::uint64_t now_ns) {
  if (!has_joining()) return std::nullopt;
  if (unsure_) return view_.again();
  const Peer* const peer = find(receiver_);
  const bool is_silent = now_ns >= peer->heard_ns + fence_ns();
  if (is_wrong_ || (offered_ && is_silent)) return view_.without({receiver_});
  const bool has_all = is_bound_ && next_acknowledged_ >= acknowledged_;
  const bool is_early = knows_next_ && planted(Bug::joined_early);
  if (!is_whole() || !hears_joining(now_ns) || !(has_all || is_early)) return std::nullopt;
  offered_ = true;
  View next = view_.with_joined();
  next.whole = true;
  return next;
}

// A proposal that seemed lost may still be accepted later.
void Member::proposal_failed() {
  proposed_ = false;
  if (planted(Bug::offer_forgotten)) is_bound_ = offered_ = false;
}

// --- messages ------------------------------------------------------------------------------------

Member::Received Member::receive(const Message& message, bool has_room, std::uint64_t now_ns) {
  Received received;
  Peer* const peer = find(message.from);
  if (message.chain != chain_ || message.to != self_ || peer == nullptr) return received;
  if (message.epoch > view_.epoch) wants_view_ = true;
  const bool it_counts = counts(message);
  if (it_counts) {
    peer->heard_ns = now_ns;
    note_chain(message);
  }
  switch (message.kind) {
    case MessageKind::invalid: return received;
    case MessageKind::beat:
      // This answer may let the other member serve for a while, whatever the beat's epoch.
      if (it_counts || !planted(Bug::old_beat_counts)) peer->answered_ns = now_ns;
      if (it_counts) note_acknowledged(message);
      // A tail's answer would let the head serve, although the joining node may be a head by now.
      if (it_counts && message.from != receiver_ && may_have_joined() && !hears_joining(now_ns)) {
        return received;
      }
      received.answer = message_to(message.from, MessageKind::beat_answer);
      break;
    case MessageKind::append:
      if (it_counts) take(message, has_room, received);
      received.answer = message_to(message.from, MessageKind::append_answer);
      break;
    case MessageKind::beat_answer:
    case MessageKind::append_answer: note_answer(message, *peer, now_ns); return received;
  }
  received.answer->number = message.number;
  if (planted(Bug::old_epoch_accepted) && it_counts) received.answer->epoch = message.epoch;
  return received;
}

// Whatever an earlier member reports as acknowledged has been on this member's disk, unless it is
// joining. The head of the first epoch may have begun with records that no other had.
void Member::note_chain(const Message& message) {
  if (joins_ && message.kind == MessageKind::beat && message.from == previous_) {
    is_behind_ = is_behind_ || message.first > held_ + 1;
  }
  if (!place_) return;
  const auto place = view_.place_of(message.from);
  if (place && *place < *place_ && message.acknowledged > held_) has_lost_ = true;
  const bool of_head = place == 0 && message.kind == MessageKind::beat;
  if (of_head && message.acknowledged >= message.first) was_whole_ = true;
}

/// Takes records of the previous member that continue this one's.
void Member::take(const Message& message, bool has_room, Received& received) {
  const bool is_previous = message.from == previous_ || planted(Bug::old_epoch_accepted);
  const bool goes_on = message.first <= held_ + 1 || planted(Bug::gap_accepted);
  if (!is_previous || !goes_on || !has_room || message.last <= held_) return;
  received.take_first = std::max(message.first, held_ + 1);
  received.take_last = message.last;
  held_ = message.last;
}

void Member::note_answer(const Message& message, Peer& peer, std::uint64_t now_ns) {
  const bool is_append = message.kind == MessageKind::append_answer;
  if (is_append && message.from == receiver_ && on_way_ != 0) --on_way_;
  if (!is_append && message.from == previous_) reporting_ = false;
  // A member in an earlier epoch gets the next beat soon, since it is reading the membership now.
  if (!is_append && message.epoch < view_.epoch) {
    peer.beat_ns = std::min(peer.beat_ns, now_ns + fence_ns() / 32);
  }
  if (!counts(message)) return;
  // A beat of the previous epoch may be answered in this one, and is no lease in it.
  const bool is_of_epoch = message.number >= adopted_ns_ || planted(Bug::old_beat_counts);
  if (!is_append && is_of_epoch) {
    peer.lease_ns = std::max(peer.lease_ns, std::min(message.number, now_ns));
  }
  if (message.from != receiver_) return;
  note_acknowledged(message);
  if (message.last > held_) (has_joining() ? is_wrong_ : is_ahead_) = true;
  // The position may be stale: it has what it has acknowledged, which may no longer be kept.
  const std::uint64_t lacks = std::max(message.last, next_acknowledged_) + 1;
  if (!is_append && !knows_next_) {
    knows_next_ = true;
    send_next_ = lacks;
    send_at_ns_ = now_ns;
  } else if (!is_append && on_way_ == 0) {
    send_next_ = std::min(send_next_, lacks);  // it may have restarted, and lost some
  } else if (is_append && message.last < message.number) {
    send_next_ = std::min(send_next_, lacks);
    send_at_ns_ = now_ns + fence_ns() / 32;  // it has no room, or an earlier append was lost
  }
}

void Member::note_acknowledged(const Message& message) {
  if (message.from != receiver_) return;
  next_acknowledged_ = std::max(next_acknowledged_, message.acknowledged);
  send_next_ = std::max(send_next_, next_acknowledged_ + 1);  // earlier ones are no longer kept
  update_acknowledged();
}

// Acknowledged records stay so in each later view: its members are some of this one's, and a joined
// node has all of them.
void Member::update_acknowledged() {
  if (is_out() || unsure_) return;
  const bool waits = next_ != 0 || is_bound_;
  const std::uint64_t of_next = waits ? next_acknowledged_ : persisted_;
  acknowledged_ = std::max(acknowledged_, std::min(persisted_, of_next));
}

// The next beat carries the lost report, and its answer the next member's position.
void Member::lost(const Message& message, std::uint64_t now_ns) {
  if (message.to == previous_ && message.kind == MessageKind::beat) reporting_ = false;
  if (message.to != receiver_ || message.kind != MessageKind::append) return;
  if (on_way_ != 0) --on_way_;
  knows_next_ = false;
  send_at_ns_ = now_ns;
}

// Answers are awaited, and each frees room; the next member's position is still known. Retries
// after a pause, so that no thread spins.
void Member::unsent(const Message& message, std::uint64_t now_ns) {
  if (message.epoch != view_.epoch || message.to != receiver_) return;
  if (on_way_ != 0) --on_way_;
  send_next_ = std::min(send_next_, message.first);
  send_at_ns_ = std::max(send_at_ns_, now_ns + fence_ns() / 1024);
}

void Member::persisted(std::uint64_t sequence) {
  persisted_ = std::max(persisted_, sequence);
  held_ = std::max(held_, persisted_);
  update_acknowledged();
}

// --- outputs -------------------------------------------------------------------------------------

void Member::add_beats(std::uint64_t now_ns, std::vector<Message>& due) {
  if (is_out()) return;
  for (Peer& peer : peers_) {
    const bool is_member = view_.find(peer.number) != nullptr;
    const bool is_near = peer.number == previous_ || peer.number == receiver_;
    if (is_near || (is_member && !joins_)) add_beat(peer, now_ns, due);
  }
}

// Sends an acknowledgement immediately, one in flight at a time; later ones go with the next.
void Member::add_beat(Peer& peer, std::uint64_t now_ns, std::vector<Message>& due) {
  const bool tells = peer.number == previous_ && acknowledged_ > reported_ && !reporting_;
  if (now_ns < peer.beat_ns && !tells) return;
  if (now_ns >= peer.beat_ns) peer.beat_ns = now_ns + fence_ns() / 8;
  if (peer.number == previous_) {
    reported_ = acknowledged_;
    reporting_ = true;
  }
  Message& beat = due.emplace_back(message_to(peer.number, MessageKind::beat));
  beat.number = now_ns;
  if (is_head()) beat.first = base_;
  if (has_joining() && peer.number == receiver_) beat.first = keeps_from_;
}

std::optional<Message> Member::append_due(std::uint64_t now_ns) const {
  if (receiver_ == 0 || !knows_next_ || is_ahead_ || is_wrong_) return std::nullopt;
  if (send_next_ > persisted_ || on_way_ == kOnWayMax || now_ns < send_at_ns_) return std::nullopt;
  Message message = message_to(receiver_, MessageKind::append);
  message.first = send_next_;
  message.last = message.number = persisted_;
  return message;
}

void Member::appended(const Message& message) {
  ESPALIER_ASSERT(message.first == send_next_ && message.last >= message.first);
  ESPALIER_ASSERT(message.number == message.last && message.last <= persisted_);
  send_next_ = message.last + 1;
  ++on_way_;
}

// --- state ---------------------------------------------------------------------------------------

std::uint64_t Member::releasable() const {
  return planted(Bug::acknowledged_early) ? persisted_ : acknowledged_;
}

/// Until when no other can be the head, since all members have answered it, and so has a joining
/// node that this tail may have made a member; 0: some have not.
std::uint64_t Member::lease_end_ns(std::uint64_t now_ns) const {
  std::uint64_t begin_ns = now_ns;
  for (const Peer& peer : peers_) {
    const bool may_be_member =
        peer.number == receiver_ && may_have_joined() && !planted(Bug::offered_not_heard);
    const bool is_member = view_.find(peer.number) != nullptr;
    if (is_member || may_be_member) begin_ns = std::min(begin_ns, peer.lease_ns);
  }
  if (planted(Bug::lease_ignored)) begin_ns = now_ns;
  return begin_ns == 0 ? 0 : begin_ns + fence_ns() / 2;
}

std::uint64_t Member::serves_until_ns(std::uint64_t now_ns) const {
  return waits_for(now_ns).empty() ? lease_end_ns(now_ns) : 0;
}

std::string_view Member::waits_for(std::uint64_t now_ns) const {
  if (view_.epoch == 0) return "it does not know its chain yet";
  if (joins_) return "it joins the chain, and has not all records yet";
  if (is_out()) return "it is not in the chain any more";
  if (!is_head()) return "it is not the head of its chain";
  if (has_lost_) return "it has lost records that the chain has acknowledged";
  if (unsure_) return "the next epoch: who joins may have joined in this one";
  if (is_ahead_) return "the next member has records that it has not";
  if (now_ns < fence_until_ns_ && !planted(Bug::fence_ignored)) {
    return "the head before may still serve";
  }
  if (acknowledged_ < base_ && !planted(Bug::head_reads_early)) {
    return "the tail has not acknowledged all that it holds";
  }
  if (lease_end_ns(now_ns) <= now_ns) return "not all members answer";
  return {};
}

}  // namespace espalier::chain
