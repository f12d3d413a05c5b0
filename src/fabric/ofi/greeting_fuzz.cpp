// SPDX-License-Identifier: Apache-2.0
// Arbitrary frames of a pending connection. A valid greeting is accepted once; every other peer is
// rejected, or has gone, and its frames are dropped.
//
// Input: steps: a byte of choices, two bytes of length, and as many bytes; records, unless the
// choice is to take them as they are, to which the harness adds the frame's head, and if so chosen
// the beginning of a good hello.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/testing/fuzz_input.hpp"
#include "fabric/endpoint.hpp"
#include "fabric/ofi/pending_connection.hpp"
#include "fabric/ofi/testing/fake_channel.hpp"

namespace espalier::fabric::ofi {
namespace {

using base::FuzzInput;
using base::want;

using Bytes = std::span<const std::byte>;
using wire::ofi::Greeting;
using wire::ofi::RecordKind;

class PendingHarness {
 public:
  void step(FuzzInput& input) {
    const std::uint8_t choices = input.byte();
    std::vector<std::byte> bytes(input.number<std::uint16_t>());
    input.fill(bytes);
    const bool was_gone = pending_.is_gone();
    switch (choices >> 6) {
      case 2: act(choices); break;
      case 3: channel_.leave(); break;
      default: bring(frame_of(choices, bytes)); break;
    }
    if (was_gone) want(pending_.is_gone(), "who is gone comes again");
    check();
  }

 private:
  [[nodiscard]] std::vector<std::byte> frame_of(std::uint8_t choices, Bytes bytes) const {
    if ((choices & 1) != 0) return {bytes.begin(), bytes.end()};
    if ((choices & 2) != 0) {
      return FrameByHand(channel_.frames_carried())
          .add(RecordKind::hello, greeting_bytes(bytes))
          .bytes();
    }
    std::vector<std::byte> frame = FrameByHand(channel_.frames_carried()).bytes();
    frame.insert(frame.end(), bytes.begin(), bytes.end());
    const auto frame_bytes = static_cast<std::uint32_t>(frame.size());
    base::store_plain(frame.data(), frame_bytes);
    return frame;
  }

  void act(std::uint8_t choices) {
    switch (choices & 3) {
      case 0:
        if (!pending_.is_gone()) pending_.flush();
        break;
      case 1:
        lost_ = lost_ || !pending_.is_gone();
        pending_.lose_channel();
        break;
      case 2:
        refused_ = refused_ || !pending_.is_gone();
        pending_.reject();
        break;
      default: channel_.refuses = !channel_.refuses; break;
    }
  }

  void bring(const std::vector<std::byte>& frame) {
    if (pending_.is_gone()) {
      const auto before = pending_.data();
      want(!channel_.bring(frame), "who is gone hears");
      want(pending_.data() == before, "what was asked changes");
      return;
    }
    const Said said = read(frame);
    channel_.bring(frame);
    lost_ = said == Said::terminate;
    refused_ = said == Said::nonsense;
  }

  enum class Said : std::uint8_t { good, terminate, nonsense };
  /// What a pending connection should make of a frame, record by record.
  Said read(Bytes frame) {
    auto reader = FrameReader::open(frame);
    // Frames that were never sent cannot have been taken, nor can any be untaken.
    const std::uint32_t frames_carried = channel_.frames_carried();
    if (!reader || reader->head().taken > frames_carried || reader->head().taken < peer_took_) {
      return Said::nonsense;
    }
    peer_took_ = reader->head().taken;
    while (!reader->at_end()) {
      const auto record = reader->next();
      if (record && record->kind() == RecordKind::end) return Said::terminate;
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
    want(pending_.asks() == asked_.has_value(),
         "a pending connection asks that did not, or the other way");
    if (asked_) want(pending_.data() == *asked_, "what was asked is something else");
    want(pending_.is_gone() == (lost_ || refused_),
         "a pending connection stays or goes that should not");
    want(pending_.is_gone() == channel_.is_let_go(), "a line is kept that is nobody's");
    if (pending_.is_gone())
      want(channel_.ended_at_once() == lost_, "a line ends at the wrong time");
    std::size_t refusals = 0;
    for (const Record& record : channel_.records()) {
      want(record.kind() == RecordKind::refused, "a pending connection is told something else");
      ++refusals;
    }
    want(refusals <= (refused_ ? 1u : 0u),
         "a pending connection is told no, and may come, or twice");
  }

  FakeChannel channel_;
  PendingConnection pending_{1, "somebody", channel_};
  std::uint32_t peer_took_ = 0;
  std::optional<std::vector<std::byte>> asked_;
  bool lost_ = false;
  bool refused_ = false;
};

}  // namespace
}  // namespace espalier::fabric::ofi

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::base::FuzzInput input(data, size);
  espalier::fabric::ofi::PendingHarness harness;
  while (!input.over()) harness.step(input);
  return 0;
}
