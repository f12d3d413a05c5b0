// SPDX-License-Identifier: Apache-2.0
// The requester of a reliable connection: turns work requests into packets, completes them by the
// answers, and retransmits what gets lost (go-back-N) [IBTA chapter 9.7].
//
//   oldest_          begun, waits for answers        cursor_      not begun yet      end_
//   +----------------+------------------------------+------------------------------+
//   acked_: no PSN before it is missing              next_psn_: of the next packet
//
// A request takes one PSN for each of its packets, a READ one for each packet of the answer. Going
// back moves the cursor: everything from some PSN on is retransmitted. A READ that goes back asks
// only for the missing part, and a long one asks for a part at a time, so that no answer exceeds
// the receive buffer.
//
// Invariants
// I1. Requests complete in order, each after its last packet was acknowledged; a READ or an atomic
//     only by its own answer, whatever an acknowledgement says of the PSNs behind it.
// I2. acked_ never goes back, and never beyond what was sent.
// I3. At most `window` packets, and reads_in_flight READs and atomics, are in flight.
//
// Thread: that of the endpoint.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fabric/roce/packet.hpp"
#include "fabric/types.hpp"

namespace espalier::fabric::roce {

class Pair;

struct RequesterLimits {
  std::uint32_t depth = 128;
  std::uint32_t mtu = 4096;
  std::uint32_t window = 256;  // packets in flight, those of answers counted
  std::uint32_t reads_in_flight = 16;
  std::uint32_t retries = 7;
  std::uint32_t receive_retries = 7;
  std::uint64_t timeout_ns = 67'000'000;
  std::uint32_t first_psn = 0;
};

class Requester {
 public:
  /// Packets of a READ that are asked for at a time.
  static constexpr std::uint32_t kReadPackets = 16;
  static constexpr std::uint32_t kWindowMin = kReadPackets;
  static constexpr std::uint32_t kWindowMax = 256;
  static constexpr std::uint32_t kInlineBytesMax = 128;

  Requester(Pair& pair, const RequesterLimits& limits);

  /// Limits READs and atomics in flight to what the peer has agreed to.
  void limit_reads(std::uint32_t reads);
  /// Takes requests into the queue; returns how many there was room for.
  std::size_t take(std::span<const WorkRequest> requests);
  /// Sends what may be sent, at most so many packets. Returns whether there is more.
  bool transmit(std::uint32_t packets);
  /// Whether this PSN was sent and is not long acknowledged: whether the peer can answer it.
  [[nodiscard]] bool in_window(std::uint32_t psn) const {
    return psn_distance(psn, acked_) <= static_cast<std::int32_t>(kWindowMax) &&
           psn_distance(psn, highest_sent_) > 0;
  }
  /// Handles an acknowledgement, an answer or a NAK. Requires: in_window().
  void answer(const Packet& packet);
  /// Checks the retransmission timeout. Returns the next deadline; 0: none.
  std::uint64_t expire(std::uint64_t now_ns);
  /// Completes all that is left as flushed.
  void flush();
  [[nodiscard]] bool idle() const { return oldest_ == end_; }
  /// The retransmission timeout (RTO).
  [[nodiscard]] std::uint64_t rto_ns() const { return rto_ns_; }

 private:
  struct Entry {
    WorkRequest request;
    std::uint32_t first_psn = 0;
    std::uint32_t packets = 0;   // PSNs that it takes; 0: it has none yet
    std::uint32_t answered = 0;  // packets of the answer that have come, of READs and atomics
    std::uint64_t old_value = 0;
  };

  [[nodiscard]] Entry& entry(std::uint64_t number) { return entries_[number & mask_]; }
  [[nodiscard]] static bool is_read(const Entry& entry) {
    return entry.request.opcode == Opcode::read || is_atomic(entry.request.opcode);
  }
  [[nodiscard]] bool begun(const Entry& entry) const { return entry.packets != 0; }
  [[nodiscard]] std::uint32_t packets_of(const WorkRequest& request) const;
  /// The PSN of the packet that is sent next.
  [[nodiscard]] std::uint32_t cursor_psn();
  /// Packets that the next one to be sent stands for: those of an answer.
  [[nodiscard]] std::uint32_t next_packets(const Entry& entry) const;
  [[nodiscard]] bool waits_for_fence(const Entry& entry);
  [[nodiscard]] bool may_send(Entry& entry);
  bool send_next(Entry& entry);
  bool send_read(Entry& entry, std::uint32_t psn, std::uint32_t packets);
  bool send_atomic(Entry& entry, std::uint32_t psn);
  bool send_part(Entry& entry, std::uint32_t psn);
  void sent(Entry& entry, std::uint32_t psn, std::uint32_t packets);

  bool acknowledge_before(std::uint32_t psn);
  void complete_oldest();
  void catch_up();
  void read_response(const Packet& packet);
  void atomic_response(const Packet& packet);
  void refusal(const Packet& packet);
  void not_ready(const Packet& packet);
  void fail_at(std::uint32_t psn, Status status);
  void go_back();
  void missing_before(std::uint32_t psn);
  [[nodiscard]] std::uint64_t next_try_ns() const;
  [[nodiscard]] bool retries_used_up(std::uint64_t now_ns);
  /// Bytes of the packet that is missing first, be it ours or one of an answer, BTH to ICRC.
  [[nodiscard]] std::uint32_t first_missing_bytes() const;
  void heard(std::uint32_t psn);
  void measured(std::uint64_t took_ns);
  /// The minimum RTT lately; kNever if unknown.
  [[nodiscard]] std::uint64_t min_rtt_ns() const {
    return std::min(min_rtt_ns_[0], min_rtt_ns_[1]);
  }
  [[nodiscard]] std::uint64_t rto_min_ns() const;

  Pair& pair_;
  RequesterLimits limits_;
  std::uint32_t mask_;
  std::unique_ptr<Entry[]> entries_;
  std::unique_ptr<std::byte[]> inlined_;  // kInlineBytesMax for each entry, once one is needed

  std::uint64_t oldest_ = 0;
  std::uint64_t cursor_ = 0;         // the entry that is being sent,
  std::uint32_t cursor_packet_ = 0;  // and from which packet on
  std::uint64_t end_ = 0;

  std::uint32_t acked_;
  std::uint32_t next_psn_;      // of the next entry that begins
  std::uint32_t highest_sent_;  // the PSN behind the highest that was ever sent
  /// The PSNs behind the parts of READs, and the atomics, that are under way.
  std::vector<std::uint32_t> reads_;
  std::uint32_t unacknowledged_ = 0;  // packets since one asked for an acknowledgement

  // Loss recovery (requester.cpp says when).
  bool in_recovery_ = false;             // since acked_ last moved,
  std::uint64_t recovery_since_ns_ = 0;  // then
  std::uint32_t seen_psn_ = 0;          // of what showed last that something before it is missing
  std::uint32_t tries_ = 0;             // for the packet that is missing first
  std::uint32_t congestion_window_;     // packets that may be under way, of `window`
  std::uint64_t blocked_until_ns_ = 0;  // the peer had no receive
  std::uint64_t heard_ns_ = 0;          // or retransmitted
  std::uint64_t moved_ns_ = 0;          // acked_ did, or there was nothing to wait for
  std::uint64_t rto_ns_;                // until the next probe
  std::uint32_t loss_evidence_ = 0;     // timeouts explained by packets that were lost for sure

  // RTT measurement.
  bool timing_ = false;        // that to timed_psn_,
  bool times_resent_ = false;  // or, as soon as that is sent, to what is missing
  std::uint32_t timed_psn_ = 0;
  std::uint64_t timed_since_ns_ = 0;
  std::uint64_t measurements_ = 0;
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  std::array<std::uint64_t, 2> min_rtt_ns_{kNever, kNever};  // of the last few, and those before
  std::uint32_t receive_retries_ = 0;
};

}  // namespace espalier::fabric::roce
