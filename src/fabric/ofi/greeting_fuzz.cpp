// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes of somebody who has dialled and is not let in yet: frames to a guest, what comes
// through the connection of TCP beside datagrams, and numbers of frames that come in any order.
// Who greets rightly is heard once; everybody else is told no, or has gone, and is heard no more.
//
// Input: one byte that selects which of the three, then
//   guest     steps: a byte of choices, two bytes of length, and as many bytes; records, unless the
//             choice is to take them as they are, to which the harness adds the frame's head, and
//             if so chosen the beginning of a good hello
//   control   pieces of what is said: a byte of length, and as many bytes; of length 255: the end
//   order     a byte of what to do, and of how far from the next number
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/testing/fuzz_input.hpp"
#include "fabric/endpoint.hpp"
#include "fabric/ofi/arrival_order.hpp"
#include "fabric/ofi/control.hpp"
#include "fabric/ofi/guest.hpp"
#include "fabric/ofi/testing/fake_line.hpp"

namespace espalier::fabric::ofi {
namespace {

using base::FuzzInput;
using base::want;

using Bytes = std::span<const std::byte>;
using wire::ofi::Greeting;
using wire::ofi::Introduction;
using wire::ofi::kFrames;
using wire::ofi::RecordKind;

class GuestHarness {
 public:
  void step(FuzzInput& input) {
    const std::uint8_t choices = input.byte();
    std::vector<std::byte> bytes(input.number<std::uint16_t>());
    input.fill(bytes);
    const bool was_gone = guest_.is_gone();
    switch (choices >> 6) {
      case 2: act(choices); break;
      case 3: line_.leave(); break;
      default: bring(frame_of(choices, bytes)); break;
    }
    if (was_gone) want(guest_.is_gone(), "who is gone comes again");
    check();
  }

 private:
  [[nodiscard]] std::vector<std::byte> frame_of(std::uint8_t choices, Bytes bytes) const {
    if ((choices & 1) != 0) return {bytes.begin(), bytes.end()};
    if ((choices & 2) != 0) {
      return FrameByHand(line_.carried()).add(RecordKind::hello, greeting_bytes(bytes)).bytes();
    }
    std::vector<std::byte> frame = FrameByHand(line_.carried()).bytes();
    frame.insert(frame.end(), bytes.begin(), bytes.end());
    const auto frame_bytes = static_cast<std::uint32_t>(frame.size());
    base::store_plain(frame.data(), frame_bytes);
    return frame;
  }

  void act(std::uint8_t choices) {
    switch (choices & 3) {
      case 0:
        if (!guest_.is_gone()) guest_.flush();
        break;
      case 1:
        lost_ = lost_ || !guest_.is_gone();
        guest_.lose_line();
        break;
      case 2:
        refused_ = refused_ || !guest_.is_gone();
        guest_.turn_away();
        break;
      default: line_.refuses = !line_.refuses; break;
    }
  }

  void bring(const std::vector<std::byte>& frame) {
    if (guest_.is_gone()) {
      const auto before = guest_.data();
      want(!line_.bring(frame), "who is gone hears");
      want(guest_.data() == before, "what was asked changes");
      return;
    }
    const Said said = read(frame);
    line_.bring(frame);
    lost_ = said == Said::farewell;
    refused_ = said == Said::nonsense;
  }

  enum class Said : std::uint8_t { good, farewell, nonsense };
  /// What a guest should make of a frame, record by record.
  Said read(Bytes frame) {
    auto reader = RecordReader::open(frame);
    // Frames that were never sent cannot have been taken, nor can any be untaken.
    const std::uint32_t carried = line_.carried();
    if (!reader || reader->head().taken > carried || reader->head().taken < peer_took_) {
      return Said::nonsense;
    }
    peer_took_ = reader->head().taken;
    while (!reader->at_end()) {
      const auto record = reader->next();
      if (record && record->kind() == RecordKind::end) return Said::farewell;
      if (!record || record->kind() != RecordKind::hello || asked_ ||
          record->payload.size() < sizeof(Greeting) ||
          record->payload.size() > sizeof(Greeting) + kConnectDataMax) {
        return Said::nonsense;
      }
      const auto greeting = base::load_plain<Greeting>(record->payload.data());
      if (greeting.magic != wire::ofi::kMagic || greeting.format != wire::ofi::kFormat) {
        return Said::nonsense;
      }
      const Bytes data = record->payload.subspan(sizeof greeting);
      asked_.emplace(data.begin(), data.end());
    }
    return Said::good;
  }

  void check() const {
    want(guest_.asks() == asked_.has_value(), "a guest asks who did not, or the other way");
    if (asked_) want(guest_.data() == *asked_, "what was asked is something else");
    want(guest_.is_gone() == (lost_ || refused_), "a guest stays or goes who should not");
    want(guest_.is_gone() == line_.is_let_go(), "a line is kept that is nobody's");
    if (guest_.is_gone()) want(line_.ended_at_once() == lost_, "a line ends at the wrong time");
    std::size_t refusals = 0;
    for (const Record& record : line_.records()) {
      want(record.kind() == RecordKind::refused, "a guest is told something else");
      ++refusals;
    }
    want(refusals <= (refused_ ? 1u : 0u), "a guest is told no, and may come, or twice");
  }

  FakeLine line_;
  Guest guest_{1, "somebody", line_};
  std::uint32_t peer_took_ = 0;
  std::optional<std::vector<std::byte>> asked_;
  bool lost_ = false;
  bool refused_ = false;
};

/// One end of a connection beside datagrams, and who says what he likes at the other.
class ControlHarness {
 public:
  ControlHarness() {
    int ends[2];
    want(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0,
         "there are no sockets");
    peer_ = memory::Descriptor(ends[0]);
    control_.emplace(memory::Descriptor(ends[1]));
    Introduction own{};
    own.magic = wire::ofi::kIntroductionMagic;
    own.number = 0x0102'0304'0506'0708;
    own.address[0] = 0x99;
    control_->introduce(own);
    std::memcpy(own_.data(), &own, sizeof own);
  }

  void step(FuzzInput& input) {
    const std::uint8_t count = input.byte();
    if (count == 255) {
      hung_up_ = peer_ ? shutdown(peer_.number(), SHUT_WR) == 0 : hung_up_;
    } else {
      std::vector<std::byte> bytes(count);
      input.fill(bytes);
      say(bytes);
    }
    control_->turn();
    check();
  }

 private:
  void say(Bytes bytes) {
    if (hung_up_ || bytes.empty()) return;
    want(send(peer_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
             static_cast<ssize_t>(bytes.size()),
         "there is no room for what is said");
    said_.insert(said_.end(), bytes.begin(), bytes.end());
  }

  void check() {
    const auto heard = control_->heard();
    want(heard.has_value() == (said_.size() >= sizeof(Introduction)), "too early, or not");
    if (heard) {
      want(std::memcmp(&*heard, said_.data(), sizeof *heard) == 0, "something else is heard");
    }
    // Nothing may follow.
    want(control_->is_over() == (hung_up_ || said_.size() > sizeof(Introduction)),
         "it is over, or not, for nothing");
    std::array<std::byte, 512> room;
    const auto came = recv(peer_.number(), room.data(), room.size(), MSG_DONTWAIT);
    if (came > 0) told_.insert(told_.end(), room.begin(), room.begin() + came);
    want(told_.size() == own_.size() && std::ranges::equal(told_, own_),
         "an end introduces itself wrongly, or more than once");
  }

  memory::Descriptor peer_;
  std::optional<Control> control_;
  std::array<std::byte, sizeof(Introduction)> own_{};
  std::vector<std::byte> said_;
  std::vector<std::byte> told_;
  bool hung_up_ = false;
};

/// What waits is told by number, and looked for.
class OrderHarness {
 public:
  void step(FuzzInput& input) {
    const std::uint8_t what = input.byte();
    const std::uint8_t how_far = input.byte();
    switch (what % 4) {
      case 0: take(); break;
      case 1: add(next_ + static_cast<std::uint32_t>(static_cast<std::int8_t>(how_far))); break;
      case 2: add(next_ + how_far % kFrames); break;
      default: add(next_ + (std::uint32_t{how_far} << 24)); break;
    }
    if (what == 255) drop();
  }
  void drop() {
    while (const auto dropped = order_.drop()) {
      const auto known =
          std::ranges::find(waiting_, *dropped, [](const auto& each) { return each.second; });
      want(known != waiting_.end(), "something is dropped that did not wait");
      waiting_.erase(known);
    }
    want(waiting_.empty(), "something waits that cannot be dropped");
  }

 private:
  void add(std::uint32_t number) {
    const ArrivalOrder::Frame frame{++added_, number};
    const bool good = number - next_ < kFrames && !waiting_.contains(number);
    want(order_.add(number, frame) == good, "a frame waits that may not, or the other way");
    if (good) waiting_[number] = frame;
    want(waiting_.size() <= kFrames, "more wait than may");
  }
  void take() {
    const auto taken = order_.take();
    const auto next = waiting_.find(next_);
    want(taken.has_value() == (next != waiting_.end()), "the next is not taken, or another is");
    if (!taken) return;
    want(*taken == next->second, "a frame comes in another's place");
    waiting_.erase(next);
    ++next_;
  }

  ArrivalOrder order_;
  std::map<std::uint32_t, ArrivalOrder::Frame> waiting_;
  std::uint32_t next_ = 0;
  std::uint32_t added_ = 0;
};

template <class Harness>
void run(FuzzInput& input) {
  Harness harness;
  while (!input.over()) harness.step(input);
  if constexpr (requires { harness.drop(); }) harness.drop();
}

}  // namespace
}  // namespace espalier::fabric::ofi

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier::fabric::ofi;
  espalier::base::FuzzInput input(data, size);
  switch (input.byte() % 3) {
    case 0: run<GuestHarness>(input); break;
    case 1: run<ControlHarness>(input); break;
    default: run<OrderHarness>(input); break;
  }
  return 0;
}
