// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/requester.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/atomic_bytes.hpp"
#include "base/bytes.hpp"
#include "fabric/planted_fabric_bugs.hpp"
#include "fabric/roce/pair.hpp"

namespace espalier::fabric::roce {
namespace {

// Loss recovery by go-back-N: three signals of a loss, and how soon each is acted on.
//
// 1. The peer reports it (NAK), or an answer arrives whose predecessor is missing. That is acted on
//    immediately, and again when it cannot be an echo of packets sent before going back: not sooner
//    than the minimum RTT, and from a PSN no further on than the one that showed it last. For the
//    network may lose the retransmission as well.
// 2. The retransmission timeout (RTO) expires. The peer's thread may merely not be running; so only
//    a few packets probe, and each timeout is longer (backoff). It grows slowly as long as the
//    network is known to lose packets: then the peer runs, and each wait is lost time.
// 3. What counts against `retries` is time as long as the pair's timeout in which nothing more was
//    acknowledged, and nothing else: whether the peer is silent, or reports again and again that
//    the same packet is missing, for one that exceeds the path MTU never arrives. Time in which no
//    thread called progress() does not count: posted requests may not have left yet, and a thread
//    that returns after a second has waited once, not eight times.
// A packet that the peer reports missing is retransmitted immediately a few times; then each time
// the wait doubles, for a packet that is lost so often is not lost by chance.
//
// The RTO starts from the minimum RTT measured lately. A mean will not do: where threads wait for
// processors it is a thousand times longer, and a requester that waits so long after a loss misses
// the time in which both run. Measured are packets sent once, or retransmitted because the peer
// had not received them; never those retransmitted on a timeout, since an answer may be to either
// [Karn]. Until the next measurement the RTO keeps its backed-off value, so that a peer that has
// become slow is not sent duplicates for ever.
// become slow is not asked twice for ever.
constexpr std::uint64_t kRtoMinNs = 20'000;  // and twice as long as answers take
// While no RTT is known.
constexpr std::uint64_t kRtoInitialNs = 4'000'000;
// Tries in each timeout, but for the first; and where packets are known to get lost.
constexpr std::uint64_t kTriesMin = 4;
constexpr std::uint64_t kTriesWhereLost = 64;
// Timeouts that one packet lost for sure explains.
constexpr std::uint32_t kLossEvidence = 16;
// Immediate retransmissions of one packet, and how many until it counts as one that never arrives.
constexpr std::uint32_t kTriesAtOnce = 4;
constexpr std::uint32_t kTriesMany = 16;
// Packets of a tail-loss probe: more than one, so that one that arrives reveals the loss of
// another.
constexpr std::uint32_t kProbePackets = 3;
// Packets retransmitted when a retransmission got lost, at least: one that arrives should not cause
// hundreds each time.
constexpr std::uint32_t kAgainPackets = 8;
// Answers may have been the soonest for so many measurements, and for twice as many at most.
constexpr std::uint32_t kMeasurements = 4;
// An acknowledgement is asked for at least every so many packets.
constexpr std::uint32_t kAskEvery = 32;

bool before_or_at(std::uint32_t a, std::uint32_t b) { return psn_distance(a, b) >= 0; }
bool before(std::uint32_t a, std::uint32_t b) { return psn_distance(a, b) > 0; }

/// The opcode of one packet of a WRITE or SEND.
PacketOpcode opcode_of(Opcode opcode, bool first, bool last) {
  using enum PacketOpcode;
  const bool number = has_immediate(opcode);
  if (is_send(opcode)) {
    if (first) return !last ? send_first : number ? send_only_immediate : send_only;
    return !last ? send_middle : number ? send_last_immediate : send_last;
  }
  if (first) return !last ? write_first : number ? write_only_immediate : write_only;
  return !last ? write_middle : number ? write_last_immediate : write_last;
}

Status status_of(std::uint8_t nak) {
  switch (static_cast<NakCode>(nak)) {
    case NakCode::invalid_request: return Status::remote_invalid;
    case NakCode::remote_access: return Status::remote_access;
    default: return Status::remote_operation;
  }
}

}  // namespace

Requester::Requester(Pair& pair, const RequesterLimits& limits)
    : pair_(pair),
      limits_(limits),
      mask_(std::bit_ceil(limits.depth) - 1),
      entries_(std::make_unique<Entry[]>(std::size_t{mask_} + 1)),
      acked_(limits.first_psn),
      next_psn_(limits.first_psn),
      highest_sent_(limits.first_psn),
      congestion_window_(limits.window),
      rto_ns_(std::min(limits.timeout_ns, kRtoInitialNs)) {}

void Requester::limit_reads(std::uint32_t reads) {
  limits_.reads_in_flight = std::max(1u, std::min(limits_.reads_in_flight, reads));
}

std::size_t Requester::take(std::span<const WorkRequest> requests) {
  std::size_t taken = 0;
  for (; taken < requests.size() && end_ - oldest_ < limits_.depth; ++taken, ++end_) {
    Entry& slot = entry(end_);
    slot = {};
    slot.request = requests[taken];
    if (slot.request.inlined && slot.request.bytes != 0) {
      if (!inlined_) {
        inlined_ = std::make_unique<std::byte[]>((std::size_t{mask_} + 1) * kInlineBytesMax);
      }
      std::byte* const copy = inlined_.get() + (end_ & mask_) * kInlineBytesMax;
      std::memcpy(copy, slot.request.local, slot.request.bytes);
      slot.request.local = copy;
    }
  }
  return taken;
}

std::uint32_t Requester::packets_of(const WorkRequest& request) const {
  if (is_atomic(request.opcode)) return 1;
  return std::max(1u, base::divide_up(request.bytes, limits_.mtu));
}

std::uint32_t Requester::cursor_psn() {
  if (cursor_ == end_ || !begun(entry(cursor_))) return next_psn_;
  return psn_plus(entry(cursor_).first_psn, cursor_packet_);
}

// Parts of READs end at the same places whenever they are asked for, since the peer remembers each
// part by itself.
std::uint32_t Requester::next_packets(const Entry& entry) const {
  if (entry.request.opcode != Opcode::read) return 1;
  const std::uint32_t to_end_of_part = kReadPackets - cursor_packet_ % kReadPackets;
  return std::min(to_end_of_part, packets_of(entry.request) - cursor_packet_);
}

bool Requester::waits_for_fence(const Entry& fenced) {
  if (!fenced.request.fence || begun(fenced)) return false;
  for (std::uint64_t number = oldest_; number != cursor_; ++number) {
    if (is_read(entry(number))) return true;
  }
  return false;
}

bool Requester::may_send(Entry& next) {
  if (waits_for_fence(next)) return false;
  if (is_read(next) && reads_.size() >= limits_.reads_in_flight) return false;
  const auto under_way = static_cast<std::uint32_t>(psn_distance(acked_, cursor_psn()));
  return under_way == 0 || under_way + next_packets(next) <= congestion_window_;
}

bool Requester::transmit(std::uint32_t packets) {
  if (pair_.now_ns() < blocked_until_ns_) return false;
  for (; cursor_ != end_; --packets) {
    Entry& next = entry(cursor_);
    if (!may_send(next)) return false;
    if (packets == 0) return true;
    if (!begun(next)) {
      next.first_psn = next_psn_;
      next.packets = packets_of(next.request);
      next_psn_ = psn_plus(next_psn_, next.packets);
    }
    if (!send_next(next)) return true;
  }
  return false;
}

bool Requester::send_next(Entry& next) {
  const std::uint32_t psn = psn_plus(next.first_psn, cursor_packet_);
  const std::uint32_t packets = next_packets(next);
  const bool done = next.request.opcode == Opcode::read ? send_read(next, psn, packets)
                    : is_atomic(next.request.opcode)    ? send_atomic(next, psn)
                                                        : send_part(next, psn);
  if (done) sent(next, psn, packets);
  return done;
}

void Requester::sent(Entry& next, std::uint32_t psn, std::uint32_t packets) {
  const std::uint32_t behind = psn_plus(psn, packets);
  if (psn == acked_) {  // nothing was waited for before it
    heard_ns_ = pair_.now_ns();
    pair_.look_again_at(heard_ns_ + rto_ns_);
  }
  if (is_read(next)) reads_.push_back(behind);
  if (before(highest_sent_, behind)) {
    if (psn == acked_) moved_ns_ = pair_.now_ns();
    highest_sent_ = behind;
    times_resent_ = true;
  }
  if (!timing_ && times_resent_) {
    timing_ = true;
    timed_psn_ = psn;
    timed_since_ns_ = pair_.now_ns();
  }
  times_resent_ = false;
  cursor_packet_ += packets;
  if (cursor_packet_ == next.packets) {
    ++cursor_;
    // What follows may have gone once already, and then has its PSNs.
    cursor_packet_ = 0;
  }
}

bool Requester::send_read(Entry& next, std::uint32_t psn, std::uint32_t packets) {
  const std::uint32_t into_part = cursor_packet_ % kReadPackets;
  const std::uint32_t from =
      planted(Bug::read_resumes_elsewhere) ? cursor_packet_ - into_part : cursor_packet_;
  const std::uint64_t offset = std::uint64_t{from} * limits_.mtu;
  const std::uint64_t left = next.request.bytes - offset;
  Headers headers;
  headers.bth.opcode = PacketOpcode::read_request;
  headers.bth.psn = psn;
  headers.bth.ask_acknowledge = true;
  headers.reth = {next.request.remote + offset, next.request.key,
                  static_cast<std::uint32_t>(
                      std::min<std::uint64_t>(left, std::uint64_t{packets} * limits_.mtu))};
  if (pair_.begin_packet(headers, 0) == nullptr) return false;
  pair_.end_packet();
  if (into_part != 0) ++pair_.counters().reads_resumed;
  unacknowledged_ = 0;
  return true;
}

bool Requester::send_atomic(Entry& next, std::uint32_t psn) {
  const WorkRequest& request = next.request;
  Headers headers;
  headers.bth.opcode =
      request.opcode == Opcode::fetch_add ? PacketOpcode::fetch_add : PacketOpcode::compare_swap;
  headers.bth.psn = psn;
  headers.bth.ask_acknowledge = true;
  headers.atomic = {request.remote, request.key, request.operand, request.compare};
  if (pair_.begin_packet(headers, 0) == nullptr) return false;
  pair_.end_packet();
  unacknowledged_ = 0;
  return true;
}

bool Requester::send_part(Entry& next, std::uint32_t psn) {
  const WorkRequest& request = next.request;
  const std::uint32_t offset = cursor_packet_ * limits_.mtu;
  const std::uint32_t bytes = std::min(limits_.mtu, request.bytes - offset);
  const bool last = cursor_packet_ + 1 == next.packets;
  Headers headers;
  headers.bth.opcode = opcode_of(request.opcode, cursor_packet_ == 0, last);
  headers.bth.psn = psn;
  const bool end_of_all = last && cursor_ + 1 == end_;
  headers.bth.ask_acknowledge =
      (last && request.signalled) || end_of_all || ++unacknowledged_ >= kAskEvery;
  if (headers.bth.ask_acknowledge) unacknowledged_ = 0;
  headers.reth = {request.remote, request.key, request.bytes};
  headers.immediate.immediate = request.immediate;
  std::byte* const payload = pair_.begin_packet(headers, bytes);
  if (payload == nullptr) return false;
  if (bytes != 0) std::memcpy(payload, request.local + offset, bytes);
  pair_.end_packet();
  return true;
}

void Requester::answer(const Packet& packet) {
  const std::uint32_t psn = packet.bth.psn;
  if (before(psn, acked_)) return;  // is old
  switch (packet.bth.opcode) {
    case PacketOpcode::acknowledge:
      switch (packet.aeth.kind()) {
        case Aeth::Kind::ack:
          if (!acknowledge_before(psn_plus(psn, 1))) missing_before(psn);
          return;
        case Aeth::Kind::rnr: return not_ready(packet);
        case Aeth::Kind::nak: return refusal(packet);
        case Aeth::Kind::reserved: return;
      }
      return;
    case PacketOpcode::atomic_acknowledge: return atomic_response(packet);
    default: return read_response(packet);
  }
}

// Completes what ends before `psn`. Returns false if an answer is missing there.
bool Requester::acknowledge_before(std::uint32_t psn) {
  while (oldest_ != end_ && begun(entry(oldest_))) {
    const Entry& first = entry(oldest_);
    if (is_read(first) && !planted(Bug::acknowledgement_is_answer)) {
      const std::uint32_t next_answer = psn_plus(first.first_psn, first.answered);
      if (before(acked_, next_answer)) heard(next_answer);
      return !before(next_answer, psn);
    }
    if (!before_or_at(psn_plus(first.first_psn, first.packets), psn)) break;
    complete_oldest();
  }
  if (before(acked_, psn)) heard(psn);
  return true;
}

void Requester::complete_oldest() {
  const Entry& first = entry(oldest_);
  const std::uint32_t behind = psn_plus(first.first_psn, first.packets);
  const WorkRequest request = first.request;
  const std::uint64_t old_value = first.old_value;
  ++oldest_;
  if (before(acked_, behind)) heard(behind);
  pair_.complete_request(request, Status::success, old_value);
}

// Nothing before this PSN is missing any more.
void Requester::heard(std::uint32_t psn) {
  const auto packets = static_cast<std::uint32_t>(psn_distance(acked_, psn));
  acked_ = psn;
  const std::uint64_t now = pair_.now_ns();
  heard_ns_ = now;
  moved_ns_ = now;
  in_recovery_ = false;
  tries_ = 0;
  receive_retries_ = 0;
  congestion_window_ = std::min(congestion_window_ + packets, limits_.window);
  if (loss_evidence_ != 0) rto_ns_ = rto_min_ns();
  if (timing_ && before(timed_psn_, acked_)) {
    timing_ = false;
    measured(now - timed_since_ns_);
  }
  std::erase_if(reads_, [&](std::uint32_t behind) { return before_or_at(behind, acked_); });
  catch_up();
  if (acked_ != highest_sent_) pair_.look_again_at(heard_ns_ + rto_ns_);
  if (cursor_ != end_) pair_.has_work();  // what waited for this
}

void Requester::measured(std::uint64_t took_ns) {
  min_rtt_ns_[0] = std::min(min_rtt_ns_[0], took_ns);
  rto_ns_ = rto_min_ns();
  if (++measurements_ % kMeasurements == 0) {
    min_rtt_ns_[1] = std::exchange(min_rtt_ns_[0], kNever);
  }
}

std::uint64_t Requester::rto_min_ns() const {
  if (measurements_ == 0) return rto_ns_;
  return std::min(kRtoMinNs + 2 * min_rtt_ns(), limits_.timeout_ns);
}

// After going back, what had been sent before may be acknowledged after all.
void Requester::catch_up() {
  if (cursor_ < oldest_) {
    cursor_ = oldest_;
    cursor_packet_ = 0;
  }
  if (cursor_ == end_ || !begun(entry(cursor_))) return;
  const std::int32_t ahead = psn_distance(cursor_psn(), acked_);
  if (ahead <= 0) return;
  cursor_packet_ += static_cast<std::uint32_t>(ahead);
  if (cursor_packet_ < entry(cursor_).packets) return;
  ++cursor_;
  cursor_packet_ = 0;
}

void Requester::read_response(const Packet& packet) {
  const std::uint32_t psn = packet.bth.psn;
  if (!acknowledge_before(psn)) return missing_before(psn);
  if (oldest_ == end_) return;
  Entry& first = entry(oldest_);
  if (!begun(first) || first.request.opcode != Opcode::read) return;
  if (psn != psn_plus(first.first_psn, first.answered)) return;
  const std::uint64_t offset = std::uint64_t{first.answered} * limits_.mtu;
  const std::uint64_t wanted = std::min<std::uint64_t>(limits_.mtu, first.request.bytes - offset);
  if (packet.payload.size() != wanted) return fail_at(psn, Status::remote_operation);
  if (wanted != 0) std::memcpy(first.request.local + offset, packet.payload.data(), wanted);
  if (++first.answered == first.packets) return complete_oldest();
  heard(psn_plus(psn, 1));
}

void Requester::atomic_response(const Packet& packet) {
  const std::uint32_t psn = packet.bth.psn;
  if (!acknowledge_before(psn)) return missing_before(psn);
  if (oldest_ == end_) return;
  Entry& first = entry(oldest_);
  if (!begun(first) || !is_atomic(first.request.opcode) || psn != first.first_psn) return;
  first.answered = 1;
  first.old_value = packet.atomic_ack.original;
  if (first.request.local != nullptr) base::store_plain(first.request.local, first.old_value);
  complete_oldest();
}

void Requester::refusal(const Packet& packet) {
  const std::uint32_t psn = packet.bth.psn;
  // If an answer is missing before it, that can come no more: the peer has ended the pair.
  static_cast<void>(acknowledge_before(psn));
  const bool gap = packet.aeth.value() == static_cast<std::uint8_t>(NakCode::sequence_error);
  if (gap) ++pair_.counters().sequence_naks;
  return gap ? missing_before(psn) : fail_at(psn, status_of(packet.aeth.value()));
}

void Requester::not_ready(const Packet& packet) {
  const std::uint32_t psn = packet.bth.psn;
  static_cast<void>(acknowledge_before(psn));
  ++pair_.counters().receiver_not_ready_naks;
  constexpr std::uint32_t kForEver = 7;
  if (limits_.receive_retries != kForEver && receive_retries_++ >= limits_.receive_retries) {
    return fail_at(psn, Status::no_receive);
  }
  blocked_until_ns_ = pair_.now_ns() + rnr_timer_ns(packet.aeth.value());
  pair_.look_again_at(blocked_until_ns_);
  go_back();
}

void Requester::fail_at(std::uint32_t psn, Status status) {
  if (status == Status::retry_exceeded) pair_.set_undelivered(first_missing_bytes());
  while (oldest_ != end_) {
    const Entry& first = entry(oldest_);
    const std::int32_t into = psn_distance(first.first_psn, psn);
    const bool here = !begun(first) || into < static_cast<std::int32_t>(first.packets);
    const WorkRequest request = first.request;
    ++oldest_;
    pair_.complete_request(request, here ? status : Status::flushed, 0);
    if (here) break;
  }
  pair_.end(status);
}

void Requester::flush() {
  for (; oldest_ != end_; ++oldest_)
    pair_.complete_request(entry(oldest_).request, Status::flushed, 0);
  cursor_ = end_;
  cursor_packet_ = 0;
}

// Something with this PSN has come, and what is before it has not.
void Requester::missing_before(std::uint32_t psn) {
  const bool again = in_recovery_;
  loss_evidence_ = kLossEvidence;
  if (again) {
    const std::uint64_t now = pair_.now_ns();
    const std::uint64_t since = now - recovery_since_ns_;
    const bool in_time = since >= next_try_ns();
    const bool further_on = before(seen_psn_, psn);
    if (further_on) seen_psn_ = psn;
    if (!in_time || (further_on && since < rto_ns_)) return;
    if (retries_used_up(now)) return fail_at(acked_, Status::retry_exceeded);
    heard_ns_ = now;
    ++tries_;
    congestion_window_ = std::max(congestion_window_ / 2, kAgainPackets);
  }
  seen_psn_ = psn;
  go_back();
  times_resent_ = !again;
}

// How long after going back it is believed that the same packet got lost again.
std::uint64_t Requester::next_try_ns() const {
  if (tries_ <= kTriesAtOnce || min_rtt_ns() == kNever) return min_rtt_ns();
  const std::uint32_t doublings = std::min(tries_ - kTriesAtOnce, kTriesMany);
  return std::max(min_rtt_ns(),
                  std::min(min_rtt_ns() << doublings, limits_.timeout_ns / kTriesMin));
}

// Whether nothing was acknowledged for as long as `retries` say.
bool Requester::retries_used_up(std::uint64_t now_ns) {
  const std::uint64_t due_ns = heard_ns_ + rto_ns_ + limits_.timeout_ns;
  if (now_ns > due_ns) moved_ns_ += now_ns - due_ns;
  if (planted(Bug::retries_in_silence_only) && in_recovery_ && tries_ != 0) return false;
  return now_ns - moved_ns_ >= (limits_.retries + std::uint64_t{1}) * limits_.timeout_ns;
}

std::uint32_t Requester::first_missing_bytes() const {
  for (std::uint64_t number = oldest_; number != end_; ++number) {
    const Entry& entry = entries_[number & mask_];
    if (!begun(entry)) return 0;
    const std::int32_t into = psn_distance(entry.first_psn, acked_);
    if (into < 0 || into >= static_cast<std::int32_t>(entry.packets)) continue;
    const WorkRequest& request = entry.request;
    if (is_atomic(request.opcode)) return 0;  // the shortest that there are
    const auto packet = static_cast<std::uint32_t>(into);
    const std::uint32_t payload = std::min(limits_.mtu, request.bytes - packet * limits_.mtu);
    const bool last = packet + 1 == entry.packets;
    const PacketOpcode opcode = request.opcode == Opcode::read
                                    ? PacketOpcode::read_response_first
                                    : opcode_of(request.opcode, packet == 0, last);
    return static_cast<std::uint32_t>(packet_bytes(opcode, payload));
  }
  return 0;
}

// Whatever is not acknowledged is sent once more.
void Requester::go_back() {
  in_recovery_ = true;
  recovery_since_ns_ = pair_.now_ns();
  ++pair_.counters().go_back_n_events;
  timing_ = false;
  times_resent_ = false;
  unacknowledged_ = kAskEvery;
  std::uint64_t number = oldest_;
  while (number != end_ && begun(entry(number)) &&
         before_or_at(psn_plus(entry(number).first_psn, entry(number).packets), acked_)) {
    ++number;
  }
  if (number == end_ || !begun(entry(number))) return;
  cursor_ = number;
  cursor_packet_ =
      static_cast<std::uint32_t>(std::max(0, psn_distance(entry(number).first_psn, acked_)));
  std::erase_if(reads_, [&](std::uint32_t behind) { return before(acked_, behind); });
  pair_.has_work();
}

std::uint64_t Requester::expire(std::uint64_t now_ns) {
  if (now_ns < blocked_until_ns_) return blocked_until_ns_;
  if (blocked_until_ns_ != 0) {
    blocked_until_ns_ = 0;
    heard_ns_ = now_ns;
    moved_ns_ = now_ns;
    pair_.has_work();
  }
  if (oldest_ == end_ || acked_ == highest_sent_) return 0;
  const std::uint64_t due_ns = heard_ns_ + rto_ns_;
  if (now_ns < due_ns) return due_ns;
  if (retries_used_up(now_ns)) {
    fail_at(acked_, Status::retry_exceeded);
    return 0;
  }
  // There are more tries than `retries`, in the time that so many take: where a fifth of the
  // packets gets lost, eight are too few.
  const bool by_chance = loss_evidence_ != 0 && tries_ < kTriesMany;
  const std::uint64_t tries = by_chance ? kTriesWhereLost : kTriesMin;
  const std::uint64_t at_most = std::max(rto_min_ns(), limits_.timeout_ns / tries);
  rto_ns_ = std::min(rto_ns_ + rto_ns_ / 2, at_most);
  heard_ns_ = now_ns;
  ++pair_.counters().timeouts;
  if (loss_evidence_ != 0) --loss_evidence_;
  congestion_window_ = kProbePackets;
  ++tries_;
  go_back();
  return heard_ns_ + rto_ns_;
}

}  // namespace espalier::fabric::roce
