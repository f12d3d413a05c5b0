// SPDX-License-Identifier: Apache-2.0
// The responder of a reliable connection: executes requests in the order of their PSNs, each once,
// and answers [IBTA chapter 9.7].
//
// Answers leave in the order of the requests. A READ is answered packet by packet as the port has
// room, and looks its region up for each: a key that is revoked meanwhile ends it, and of one that
// is made void the rest is zeros.
//
// Invariants
// I1. Nothing takes effect but the request that carries the expected PSN. A duplicate of a WRITE or
//     SEND is acknowledged again, one of a READ is read again within the original range, and one of
//     an atomic is answered from memory; one that is not remembered is dropped. A duplicate ends
//     nothing: it may be late, and the region that it names gone. A READ by a shared key is read
//     again by whichever of the map's keys its duplicate carries, at the address that it carries:
//     a switch on the path has other tables by now.
// I2. A gap is reported (NAK) once for each time that the peer sends what is behind it: when PSNs
//     go back and the missing packet is still missing, it got lost again.
// I3. A packet outside the window (in_window()) is not answered: else an attacker that spoofs the
//     peer's address and guesses PSNs would learn from the answers where the window is.
// I4. What a peer can make this remember is bounded: kRemembered READs and atomics, and
//     kAnswersMax answers that wait to leave.
//
// Thread: that of the endpoint.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "fabric/planted_fabric_bugs.hpp"
#include "fabric/roce/packet.hpp"
#include "fabric/roce/requester.hpp"
#include "fabric/types.hpp"

namespace espalier::fabric::roce {

class Pair;

class Responder {
 public:
  /// READs and atomics of the peer that are remembered, to answer duplicates.
  static constexpr std::uint32_t kRemembered = 128;
  /// Answers that wait: to as many, and an acknowledgement between each two.
  static constexpr std::size_t kAnswersMax = 2 * kRemembered + 1;

  Responder(Pair& pair, std::uint32_t mtu, std::uint32_t message_bytes_max);

  /// PSNs that a network card is taken to have outstanding, at most, but for those of READs: as
  /// many as a fast network carries in some ten round trips. A peer of this software has as many as
  /// its requester's window.
  static constexpr std::uint32_t kCardWindow = 1u << 16;

  /// Sets the peer's first PSN, which it sent when connecting.
  void expect(std::uint32_t psn, bool peer_is_card) {
    expected_ = psn;
    if (peer_is_card) {
      window_ = kCardWindow;
      read_window_ = kPsnsMax;
    }
  }
  /// Whether the peer can have a request with this PSN outstanding: it is the next one, a duplicate
  /// of what may have to be answered again, or behind a gap.
  [[nodiscard]] bool in_window(const Packet& packet) const {
    if (planted(Bug::any_psn_in_window)) return true;
    const std::int32_t ahead = psn_distance(expected_, packet.bth.psn);
    if (ahead >= 0) return ahead < window_;
    return -ahead <= (is_write_or_send(packet.bth.opcode) ? window_ : read_window_);
  }
  /// Requires: in_window().
  void request(const Packet& packet);
  /// Sends answers, at most so many packets. Returns whether there are more.
  bool transmit(std::uint32_t packets);
  /// Completes the receive of a partial message as flushed.
  void flush();
  /// Acknowledges what has come so far.
  void acknowledge();
  /// Whether it has refused a request, and is sending the NAK.
  [[nodiscard]] bool refusing() const { return refusing_; }
  /// Answers that wait to leave; for tests.
  [[nodiscard]] std::size_t answers_waiting() const { return answers_.size(); }

 private:
  /// Half of those that there are: more have no order.
  static constexpr std::int32_t kPsnsMax = 1 << 23;

  /// A message of which more is to come.
  enum class Within : std::uint8_t { nothing, send, write };

  struct Remembered {
    PacketOpcode opcode = PacketOpcode::acknowledge;
    std::uint32_t psn = 0;
    std::uint32_t packets = 0;
    Reth reth;
    std::uint64_t old_value = 0;
    std::uint64_t map = 0;  // of a READ by a shared key
  };
  struct Answer {
    enum class Kind : std::uint8_t { acknowledge, read, atomic };
    Kind kind = Kind::acknowledge;
    std::uint32_t psn = 0;
    std::uint32_t packets = 1;
    std::uint32_t sent = 0;
    Reth reth;
    std::uint64_t old_value = 0;
    Aeth aeth;
    bool last = false;      // behind it, the pair ends
    bool repeated = false;  // to a duplicate
    bool shared = false;    // of a READ by a shared key
  };

  [[nodiscard]] static bool is_write_or_send(PacketOpcode opcode) {
    return opcode <= PacketOpcode::write_only_immediate;
  }
  /// Whether no more answers can wait. What would need one is then as if it were lost.
  [[nodiscard]] bool full() const { return answers_.size() >= kAnswersMax; }
  void execute(const Packet& packet);
  void repeat(const Packet& packet);
  void repeat_read(const Packet& packet);
  void execute_read(const Packet& packet);
  [[nodiscard]] std::uint64_t shared_map_of(const Reth& reth);
  void execute_atomic(const Packet& packet);
  [[nodiscard]] bool change_word(const Packet& packet, std::uint64_t& old_value);
  void execute_part(const Packet& packet);
  [[nodiscard]] bool begin_message(const Packet& packet, bool send);
  [[nodiscard]] bool part_fits(const Packet& packet, bool first, bool last) const;
  [[nodiscard]] bool place_send(const Packet& packet);
  [[nodiscard]] bool place_write(const Packet& packet);
  void end_message(const Packet& packet, bool send);
  void done(std::uint32_t packets);
  void remember(const Remembered& what);
  [[nodiscard]] const Remembered* recall(std::uint32_t psn) const;

  void refuse(NakCode code, Status status);
  void not_ready();
  bool send(Answer& answer);
  bool send_read_part(Answer& answer);
  [[nodiscard]] bool send_shared(const Answer& answer, Headers& headers, bool& room);
  bool send_short(const Answer& answer);

  Pair& pair_;
  std::uint32_t mtu_;
  std::uint32_t message_bytes_max_;
  std::uint32_t expected_ = 0;
  std::int32_t window_ = Requester::kWindowMax;
  // A READ takes the PSNs of its answer, so a card's last ones may have any number of them. Of
  // those only what is remembered is answered.
  std::int32_t read_window_ = Requester::kWindowMax;
  std::uint32_t msn_ = 0;
  bool sequence_nak_sent_ = false;
  std::uint32_t beyond_gap_ = 0;  // the PSN that came last while something was missing
  bool refusing_ = false;         // nothing more is executed
  Answer refusal_;
  Status why_ = Status::success;

  Within within_ = Within::nothing;
  std::optional<Receive> receive_;
  Reth write_;                // where the rest of the message goes
  std::uint32_t placed_ = 0;  // bytes of the message

  std::vector<Remembered> remembered_;  // kRemembered, once there is the first
  std::uint32_t remembered_next_ = 0;
  std::deque<Answer> answers_;
};

}  // namespace espalier::fabric::roce
