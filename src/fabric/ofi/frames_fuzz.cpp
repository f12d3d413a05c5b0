// SPDX-License-Identifier: Apache-2.0
// Arbitrary frames from a peer, to a pair that requests and responds. Nothing is written but the
// region and the receives, completions fit the queue, and a pair in the error state stays there.
//
// Input: one byte of choices, then frames: a byte of choices, two bytes of length, and as many
// bytes. Unless the choice is to take them as they are, they are records; the harness puts a good
// head before them, and makes offsets of regions addresses, since a fuzzer does not guess those.
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/testing/fuzz_input.hpp"
#include "fabric/ofi/testing/pair_by_hand.hpp"

namespace espalier::fabric::ofi {
namespace {

using base::want;

using Bytes = std::span<const std::byte>;
using wire::ofi::RecordHead;

class Harness {
 public:
  explicit Harness(std::uint8_t choices)
      : by_hand_({}, (choices & 1) == 0), room_(8 * kReceiveBytes + kGuard, kMark) {
    for (std::uint64_t i = 0; i < (choices >> 1 & 7); ++i) {
      const Receive receive{100 + i, std::span(room_).subspan(i * kReceiveBytes, kReceiveBytes)};
      by_hand_.pair->post_receives({&receive, 1});
    }
    if ((choices & 0x10) != 0) post();
  }

  void bring(std::uint8_t choices, Bytes bytes) {
    by_hand_.now_ns += choices;
    if ((choices & 1) != 0) return by_hand_.bring(bytes);
    std::vector<std::byte> frame(sizeof(wire::ofi::FrameHead));
    const wire::ofi::FrameHead head{static_cast<std::uint32_t>(frame.size() + bytes.size()),
                                    (choices & 2) != 0,
                                    {},
                                    by_hand_.channel.frames_carried(),
                                    0,
                                    (choices & 4) != 0 ? std::uint64_t{32} : 0};
    base::store_plain(frame.data(), head);
    frame.insert(frame.end(), bytes.begin(), bytes.end());
    make_addresses(std::span(frame).subspan(sizeof head));
    by_hand_.bring(frame);
    check();
  }

 private:
  static constexpr std::size_t kReceiveBytes = 96;
  static constexpr std::size_t kGuard = 64;
  static constexpr std::byte kMark{0x3C};

  void post() {
    const std::array requests{WorkRequest::read(1, std::span(own_).first(200), 1, 0),
                              WorkRequest::fetch_add(2, 1, 0, 1),
                              WorkRequest::write(3, std::span(own_).subspan(200, 100), 1, 0),
                              WorkRequest::compare_swap(4, 1, 0, 1, 2, own_.data() + 304),
                              WorkRequest::send(5, std::span(own_).subspan(200, 8)),
                              WorkRequest::read(6, {}, 1, 0)};
    posted_ = by_hand_.pair->post(requests).taken;
    by_hand_.progress();
  }
  void make_addresses(std::span<std::byte> records) const {
    FrameReader reader{Bytes(records)};
    while (!reader.at_end()) {
      const std::size_t at = records.size() - reader.rest().size();
      const auto record = reader.next();
      if (!record) return;
      RecordHead head = record->head;
      if (head.key == 0) {
        head.key = by_hand_.region.remote().key;
        head.remote += by_hand_.region.remote().base;
      }
      base::store_plain(records.data() + at, head);
    }
  }
  void check() {
    while (const auto completion = by_hand_.next()) {
      if (completion->opcode == Opcode::receive || completion->opcode == Opcode::receive_write) {
        want(completion->status != Status::success || completion->opcode == Opcode::receive_write ||
                 completion->bytes <= kReceiveBytes,
             "a message is longer than its receive");
        continue;
      }
      want(completion->work_id == ++completed_ && completed_ <= posted_,
           "a completion is out of order");
    }
    want(std::all_of(room_.end() - kGuard, room_.end(), [](std::byte b) { return b == kMark; }),
         "something is written behind the receives");
    const bool ended = by_hand_.pair->state() == QueuePair::State::error;
    want(ended == by_hand_.channel.is_let_go(), "an ended pair keeps its line");
    want(!ended || completed_ == posted_, "a pair has ended, and requests are not told");
    by_hand_.channel.frames.clear();
  }

  PairByHand by_hand_;
  std::vector<std::byte> room_;
  std::vector<std::byte> own_ = std::vector<std::byte>(312);
  std::size_t posted_ = 0;
  std::size_t completed_ = 0;
};

}  // namespace
}  // namespace espalier::fabric::ofi

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  auto rest = std::as_bytes(std::span(data, size));
  espalier::fabric::ofi::Harness harness(data[0]);
  rest = rest.subspan(1);
  while (rest.size() >= 3) {
    const auto choices = static_cast<std::uint8_t>(rest[0]);
    const std::size_t wanted = static_cast<std::size_t>(rest[1]) | static_cast<std::size_t>(rest[2])
                                                                       << 8;
    rest = rest.subspan(3);
    const std::size_t bytes = std::min(wanted, rest.size());
    harness.bring(choices, rest.first(bytes));
    rest = rest.subspan(bytes);
  }
  return 0;
}
