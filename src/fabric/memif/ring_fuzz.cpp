// SPDX-License-Identifier: Apache-2.0
// The two rings of a memif link, over memory that the peer writes as it likes between any two
// calls: heads, tails, flags and descriptors, of rings and of those next to them. What is taken is
// what the descriptors say, copied out; what is lent to be written lies where they say, or among
// our own lines, of which none is lent that the peer has not given back.
//
// Input: one byte of choices, then acts: a byte that says which, and what that needs.
#include <array>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/testing/fuzz_input.hpp"
#include "fabric/memif/ring.hpp"

namespace espalier::fabric::memif {
namespace {

using base::FuzzInput;
using base::want;

using wire::memif::DescriptorBytes;
using Bytes = std::span<std::byte>;

constexpr std::uint32_t kLog2SlotsMax = 6;
constexpr std::uint32_t kOut = 0;  // where what lies, in the first region
constexpr std::uint32_t kIn = 2048;
constexpr std::uint32_t kPacked = 4096;
constexpr std::uint32_t kPackedBytes = 16384;
constexpr std::uint32_t kSlots = kPacked + kPackedBytes;
constexpr std::uint64_t kRegionBytes = kSlots + (std::uint64_t{kSlotBytes} << kLog2SlotsMax);
static_assert(Ring::bytes(kLog2SlotsMax) <= kIn && kIn + Ring::bytes(kLog2SlotsMax) <= kPacked);
/// Of frames without bytes; a little less than until the counts of a ring begin again at 0.
constexpr std::uint32_t kManyFrames = 65536 - 100;

/// Three of them: the one above, one that ends within a page, and one with room for little.
const Regions& regions() {
  static const Regions made = [] {
    Regions list;
    for (const std::uint64_t bytes : {kRegionBytes, std::uint64_t{8292}, std::uint64_t{64}}) {
      auto memory = memory::SharedMemory::create("ring_fuzz", bytes);
      want(memory.has_value(), "there is no memory");
      for (std::uint64_t i = 0; i < bytes; ++i) *memory->at(i) = static_cast<std::byte>(i * 7 >> 3);
      list.push_back(std::move(*memory));
    }
    return list;
  }();
  return made;
}

std::uint16_t ahead(std::uint16_t to, std::uint16_t from) {
  return static_cast<std::uint16_t>(to - from);
}

/// Where a descriptor points, by a rule of our own; empty and null: nowhere.
Bytes pointed_at(const DescriptorBytes& descriptor) {
  if (descriptor.region >= regions().size()) return {};
  const memory::SharedMemory& region = regions()[descriptor.region];
  if (std::uint64_t{descriptor.offset} + descriptor.bytes > region.bytes()) return {};
  return {region.at(descriptor.offset), descriptor.bytes};
}

/// A ring that frames come from, and what it must do, step by step.
class In {
 public:
  In(bool own, std::uint32_t log2_slots)
      : own_(own),
        ring_(regions()[0].at(kIn), log2_slots),
        tested_(ring_, &regions(),
                own ? std::span(regions()[0].at(kSlots), std::size_t{kSlotBytes} << log2_slots)
                    : std::span<std::byte>(),
                own ? kSlots : 0) {
    ring_.begin();
    tested_.start();
    if (own) offer();
    arrivals().clear();
    begin_ = arrivals().take(0).data();
  }

  /// As the peer has it.
  [[nodiscard]] Ring& ring() { return ring_; }
  [[nodiscard]] std::uint16_t taken() const { return taken_; }

  void take(std::size_t most, bool fresh) {
    if (fresh) {
      arrivals().clear();
      frames_.clear();
      copies_.clear();
    }
    most = std::min(most, Arrivals::kFramesMax - frames_.size());
    const std::uint16_t before = taken_;
    const bool moved = expect(most);
    tested_.take(most, arrivals(), frames_);
    want(tested_.broken() == broken_, "what breaks a ring is not what should");
    want(tested_.skipped() == skipped_, "other frames are skipped than should be");
    check_frames();
    if (broken_ || !moved) return;
    if (!own_) want(ring_.tail() == taken_, "the peer is told another count than what was taken");
    if (own_ && offer()) want(ring_.head() == offered_, "room is offered otherwise than it should");
    want(ahead(taken_, before) <= most, "more is taken than was asked for");
  }
  /// As many frames come as can; good ones. Returns how many.
  std::uint16_t offer_frames(std::uint32_t bytes) {
    const std::uint32_t slots = ring_.slots();
    for (std::uint32_t slot = 0; slot < slots; ++slot) {
      ring_.store(static_cast<std::uint16_t>(slot), {0, 0, bytes, kPacked, 0});
    }
    // Of our own slots a quarter may not be offered at the moment.
    const std::uint32_t come = own_ ? slots - slots / 4 + 1 : slots;
    const auto end = static_cast<std::uint16_t>(taken_ + come);
    own_ ? ring_.set_tail(end) : ring_.set_head(end);
    return static_cast<std::uint16_t>(come);
  }
  /// The same frames over and over, none of which has any bytes. Whether that was right, the next
  /// one shows.
  void take_many() {
    for (std::uint32_t done = 0; done < kManyFrames && !broken_;) {
      const std::uint16_t come = offer_frames(0);
      arrivals().clear();
      frames_.clear();
      copies_.clear();
      tested_.take(Arrivals::kFramesMax, arrivals(), frames_);
      want(frames_.size() == come, "good frames do not come");
      taken_ = static_cast<std::uint16_t>(taken_ + come);
      if (own_) offer();
      done += come;
      frames_.clear();
    }
  }
  void nap(bool awake) {
    const bool ready = tested_.ready();
    want(ready == ((own_ ? ring_.tail() : ring_.head()) != taken_), "what is ready is not seen");
    awake ? tested_.rise() : tested_.fall_asleep();
    want(ring_.quiet() == awake, "the peer is not told who sleeps");
  }

 private:
  /// One for all inputs, for it is large.
  static Arrivals& arrivals() {
    static Arrivals made;
    return made;
  }
  /// Room is offered by the quarter. Returns whether it is now.
  bool offer() {
    const auto end = static_cast<std::uint16_t>(taken_ + ring_.slots());
    if (ahead(end, offered_) < ring_.slots() / 4) return false;
    offered_ = end;
    return true;
  }
  /// What take() must find. Returns whether it says something to the peer.
  bool expect(std::size_t most) {
    if (broken_) return false;
    const std::uint16_t come = ahead(own_ ? ring_.tail() : ring_.head(), taken_);
    if (come > (own_ ? ahead(offered_, taken_) : ring_.slots())) broken_ = true;
    std::vector<std::vector<std::byte>> found;
    for (std::size_t i = 0; i < std::min<std::size_t>(come, most) && !broken_; ++i, ++taken_) {
      DescriptorBytes descriptor = ring_.load(taken_);
      if (own_) {
        const std::uint32_t slot = taken_ % ring_.slots();
        descriptor.region = 0;
        descriptor.offset = kSlots + slot * kSlotBytes;
        broken_ = descriptor.bytes > kSlotBytes;
      }
      const Bytes at = pointed_at(descriptor);
      broken_ = broken_ || at.data() == nullptr;
      if (broken_) break;
      const bool last = (descriptor.flags & wire::memif::kDescriptorGoesOn) == 0;
      const bool begun = std::exchange(in_parts_, !last);
      if (last && !begun && at.size() <= kFrameBytesMax) {
        found.emplace_back(at.begin(), at.end());
      } else if (last) {
        ++skipped_;
      }
    }
    if (!broken_) std::ranges::move(found, std::back_inserter(copies_));
    return come != 0;
  }
  /// They lie one behind the other in memory of our own, and hold what the peer's held.
  void check_frames() const {
    want(frames_.size() == copies_.size(), "other frames come than should");
    const std::byte* free = begin_;
    for (std::size_t i = 0; i < frames_.size(); ++i) {
      const Bytes frame = frames_[i];
      want(frame.data() >= free, "a frame lies within another");
      free = frame.data() + frame.size();
      want(std::ranges::equal(frame, copies_[i]), "a frame is not what the peer wrote");
    }
    want(free <= begin_ + Arrivals::kFramesMax * kSlotBytes, "a frame is not copied out");
  }

  bool own_;
  Ring ring_;
  ReceivingRing tested_;
  const std::byte* begin_ = nullptr;
  std::vector<Bytes> frames_;
  std::vector<std::vector<std::byte>> copies_;  // of what they must hold
  std::uint16_t taken_ = 0;
  std::uint16_t offered_ = 0;
  bool in_parts_ = false;
  std::uint64_t skipped_ = 0;
  bool broken_ = false;
};

/// A ring that frames are sent into, the same.
class Out {
 public:
  Out(bool own, std::uint32_t log2_slots)
      : own_(own),
        ring_(regions()[0].at(kOut), log2_slots),
        tested_(ring_, &regions(),
                own ? std::span(regions()[0].at(kPacked), kPackedBytes) : std::span<std::byte>(),
                own ? kPacked : 0) {
    ring_.begin();
  }

  [[nodiscard]] Ring& ring() { return ring_; }
  [[nodiscard]] std::uint64_t written() const { return written_; }
  [[nodiscard]] std::uint64_t published() const { return published_; }

  void send(std::size_t bytes, bool ends) {
    note_what_is_given_back();
    const std::byte* const place = own_ ? nullptr : expect(bytes);
    std::byte* const at = tested_.begin(bytes);
    if (own_) {
      check_line(at, bytes);
    } else {
      want(at == place, "a frame is lent another place than the peer said");
      want(tested_.broken() == broken_, "what breaks a ring is not what should");
    }
    broken_ = tested_.broken();
    if (at == nullptr) {
      want(bytes <= kFrameBytesMax || tested_.too_long(bytes), "it is not too long");
      return;
    }
    want(!broken_ && bytes <= kFrameBytesMax, "there is room for what cannot be sent");
    std::memset(at, static_cast<int>(written_ & 0xFF), bytes);
    if (!ends) return;
    tested_.end();
    const DescriptorBytes published = ring_.load(static_cast<std::uint16_t>(written_));
    const Bytes seen = pointed_at(published);
    want(seen.data() == at && seen.size() == bytes && published.flags == 0,
         "the peer is told another place than where the frame lies");
    if (own_) lent_.push_back({at, bytes});
    ++written_;
  }
  void publish() {
    want(tested_.publish() == (published_ != written_),
         "what is published is not what was written");
    published_ = written_;
    const std::uint16_t published = own_ ? ring_.head() : ring_.tail();
    if (published_ != 0 && published_ != last_published_) {
      want(published == static_cast<std::uint16_t>(published_), "the peer is told another count");
    }
    last_published_ = published_;
    want(tested_.peer_sleeps() == !ring_.quiet(), "whether the peer sleeps is not seen");
  }
  /// The same frames over and over, without bytes, and all of them are taken.
  void send_many() {
    publish();
    ring_.set_tail(static_cast<std::uint16_t>(published_));
    if (broken_) return;
    const std::uint32_t slots = ring_.slots();
    for (std::uint32_t slot = 0; slot < slots && !own_; ++slot) {
      ring_.store(static_cast<std::uint16_t>(slot), {0, 0, 0, kPacked, 0});
    }
    for (std::uint32_t done = 0; done < kManyFrames; done += slots) {
      if (!own_) seen_ = static_cast<std::uint16_t>(written_ + slots);
      if (!own_) ring_.set_head(seen_);
      for (std::uint32_t i = 0; i < slots; ++i, ++written_) {
        want(tested_.begin(0) != nullptr, "there is no room for nothing");
        tested_.end();
      }
      publish();
      given_back_ = published_;
      ring_.set_tail(static_cast<std::uint16_t>(given_back_));
    }
    lent_.clear();
  }
  /// The peer has written something: what it says now it may have said.
  void note_what_is_given_back() {
    const std::uint16_t more = ahead(ring_.tail(), static_cast<std::uint16_t>(given_back_));
    if (!own_ || more > published_ - given_back_) return;
    given_back_ += more;
    lent_.erase(lent_.begin(), lent_.begin() + more);
  }

 private:
  /// Where a frame must be written that goes where the peer says.
  const std::byte* expect(std::size_t bytes) {
    if (broken_ || bytes > kFrameBytesMax) return nullptr;
    const auto now = static_cast<std::uint16_t>(written_);
    if (seen_ == now) {
      broken_ = ahead(ring_.head(), now) > ring_.slots();
      if (broken_ || ring_.head() == now) return nullptr;
      seen_ = ring_.head();
    }
    const Bytes room = pointed_at(ring_.load(now));
    broken_ = room.data() == nullptr;
    return bytes <= room.size() ? room.data() : nullptr;
  }
  void check_line(const std::byte* at, std::size_t bytes) const {
    if (at == nullptr) return;
    const std::byte* const begin = regions()[0].at(kPacked);
    want(at >= begin && at + bytes <= begin + kPackedBytes, "a line lies outside");
    want((at - begin) % 64 == 0, "a frame begins within a line");
    want(written_ - given_back_ < ring_.slots(), "a slot is used that the peer has not given back");
    if (bytes == 0) return;
    for (const Bytes frame : lent_) {
      want(at + bytes <= frame.data() || frame.data() + frame.size() <= at,
           "lines are used that the peer has not given back");
    }
  }

  bool own_;
  Ring ring_;
  SendingRing tested_;
  std::deque<Bytes> lent_;  // what the peer has not given back
  std::uint64_t written_ = 0;
  std::uint64_t published_ = 0;
  std::uint64_t given_back_ = 0;
  std::uint64_t last_published_ = 0;
  std::uint16_t seen_ = 0;
  bool broken_ = false;
};

class Harness {
 public:
  explicit Harness(std::uint8_t choices)
      : own_((choices & 1) != 0),
        log2_slots_(own_ ? 5 + (choices >> 1 & 1) : 1 + (choices >> 1 & 7) % kLog2SlotsMax),
        clean_(std::memset(regions()[0].at(0), 0, kPacked)),
        in_(own_, log2_slots_),
        out_(own_, log2_slots_) {}

  void act(FuzzInput& input) {
    switch (input.below(10)) {
      case 0: scribble(input); break;
      case 1: describe(input); break;
      case 2: count(input, input.below(2) != 0 ? in_.ring() : out_.ring()); break;
      case 3: nudge(input); break;
      case 4: {
        const std::size_t most = input.below(Arrivals::kFramesMax + 1);
        in_.take(most, input.below(2) != 0);
        break;
      }
      case 5: out_.send(input.below(kFrameBytesMax + 2), true); break;
      case 6: out_.send(input.below(kFrameBytesMax + 2), false); break;
      case 7: out_.publish(); break;
      case 8: in_.nap(input.below(2) != 0); break;
      default: {
        const bool goes_on = input.byte() == 0xFF;
        const std::uint64_t bytes = input.below(1024);
        keep_to_the_protocol(bytes);
        if (!goes_on || std::exchange(gone_on_, true)) break;
        in_.take_many();
        out_.send_many();
        keep_to_the_protocol(bytes);
        break;
      }
    }
    out_.note_what_is_given_back();
  }

 private:
  void scribble(FuzzInput& input) {
    const std::uint64_t at = 8 * input.below(kPacked / 8);
    base::store_shared(regions()[0].at(at), input.odd_number<std::uint64_t>());
  }
  /// A descriptor that is good, or nearly.
  void describe(FuzzInput& input) {
    Ring& ring = input.below(2) != 0 ? in_.ring() : out_.ring();
    const auto slot = input.number<std::uint8_t>();
    DescriptorBytes descriptor{};
    descriptor.flags = input.byte() & 3;
    descriptor.region = input.byte() & 3;
    descriptor.bytes = input.odd_number<std::uint32_t>();
    descriptor.offset = input.odd_number<std::uint32_t>();
    if (input.below(2) != 0) {  // at the end of its region, or across it
      const auto end = regions()[descriptor.region % regions().size()].bytes();
      descriptor.offset = static_cast<std::uint32_t>(end) - descriptor.offset % 64;
    }
    ring.store(slot, descriptor);
  }
  static void count(FuzzInput& input, Ring& ring) {
    const auto value = input.number<std::uint16_t>();
    input.below(2) != 0 ? ring.set_head(value) : ring.set_tail(value);
  }
  /// A count that goes on from where ours is.
  void nudge(FuzzInput& input) {
    const std::uint64_t by = input.byte();
    switch (input.below(4)) {
      case 0: in_.ring().set_head(static_cast<std::uint16_t>(in_.taken() + by)); break;
      case 1: in_.ring().set_tail(static_cast<std::uint16_t>(in_.taken() + by)); break;
      case 2: out_.ring().set_head(static_cast<std::uint16_t>(out_.written() + by)); break;
      default: out_.ring().set_tail(static_cast<std::uint16_t>(out_.published() - by)); break;
    }
  }
  /// Frames go both ways as they should.
  void keep_to_the_protocol(std::uint64_t bytes) {
    in_.offer_frames(static_cast<std::uint32_t>(bytes % 64));
    in_.take(Arrivals::kFramesMax, true);
    for (std::uint32_t frame = 0; frame < out_.ring().slots(); ++frame) {
      const auto now = static_cast<std::uint16_t>(out_.written());
      if (!own_) {
        out_.ring().store(now, {0, 0, static_cast<std::uint32_t>(bytes), kPacked, 0});
        out_.ring().set_head(static_cast<std::uint16_t>(now + 1));
      }
      out_.send(bytes, true);
    }
    out_.publish();
    if (own_) out_.ring().set_tail(static_cast<std::uint16_t>(out_.published()));
  }

  bool own_;
  std::uint32_t log2_slots_;
  void* clean_;  // where the rings lie, before they are made
  In in_;
  Out out_;
  bool gone_on_ = false;
};

}  // namespace
}  // namespace espalier::fabric::memif

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::base::FuzzInput input(data, size);
  espalier::fabric::memif::Harness harness(input.byte());
  while (!input.over()) harness.act(input);
  return 0;
}
