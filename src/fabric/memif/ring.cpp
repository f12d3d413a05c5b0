// SPDX-License-Identifier: Apache-2.0
#include "fabric/memif/ring.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/assert.hpp"
#include "base/atomic_bytes.hpp"
#include "base/barrier.hpp"
#include "base/prefetch.hpp"

namespace espalier::fabric::memif {

using base::kLineBytes;
using wire::memif::DescriptorBytes;
using wire::memif::RingBytes;

namespace {

constexpr std::uint64_t lines_of(std::size_t bytes) {
  return (bytes + kLineBytes - 1) / kLineBytes;
}

/// How far `to` is ahead of `from`, of numbers that count on and on.
constexpr std::uint16_t ahead(std::uint16_t to, std::uint16_t from) {
  return static_cast<std::uint16_t>(to - from);
}

}  // namespace

void Ring::begin() {
  base::store_shared<std::uint16_t>(at_ + offsetof(RingBytes, flags), wire::memif::kRingQuiet);
  set_head(0);
  set_tail(0);
  base::store_shared(at_ + offsetof(RingBytes, cookie), wire::memif::kRingCookie,
                     std::memory_order_release);
}

bool Ring::is_one() const {
  return base::load_shared<std::uint32_t>(at_ + offsetof(RingBytes, cookie)) ==
         wire::memif::kRingCookie;
}

std::uint16_t Ring::head() const {
  return base::load_shared<std::uint16_t>(at_ + offsetof(RingBytes, head),
                                          std::memory_order_acquire);
}
std::uint16_t Ring::tail() const {
  return base::load_shared<std::uint16_t>(at_ + offsetof(RingBytes, tail),
                                          std::memory_order_acquire);
}
void Ring::set_head(std::uint16_t to) {
  base::store_shared(at_ + offsetof(RingBytes, head), to, std::memory_order_release);
}
void Ring::set_tail(std::uint16_t to) {
  base::store_shared(at_ + offsetof(RingBytes, tail), to, std::memory_order_release);
}

bool Ring::quiet() const {
  const auto flags = base::load_shared<std::uint16_t>(at_ + offsetof(RingBytes, flags));
  return (flags & wire::memif::kRingQuiet) != 0;
}
void Ring::set_quiet(bool quiet) {
  base::store_shared<std::uint16_t>(at_ + offsetof(RingBytes, flags),
                                    quiet ? wire::memif::kRingQuiet : 0);
}

std::byte* Ring::slot(std::uint16_t number) const {
  return at_ + sizeof(RingBytes) + (number & (slots_ - 1)) * sizeof(DescriptorBytes);
}

// Two words, each copied once.
DescriptorBytes Ring::load(std::uint16_t number) const {
  const std::byte* const at = slot(number);
  const std::array words{base::load_shared<std::uint64_t>(at),
                         base::load_shared<std::uint64_t>(at + 8)};
  DescriptorBytes descriptor;
  std::memcpy(&descriptor, words.data(), sizeof descriptor);
  return descriptor;
}
void Ring::store(std::uint16_t number, const DescriptorBytes& descriptor) {
  std::array<std::uint64_t, 2> words;
  std::memcpy(words.data(), &descriptor, sizeof descriptor);
  std::byte* const at = slot(number);
  base::store_shared(at, words[0]);
  base::store_shared(at + 8, words[1]);
}

std::byte* find(const Regions& regions, const DescriptorBytes& descriptor) {
  if (descriptor.region >= regions.size()) return nullptr;
  const memory::SharedMemory& region = regions[descriptor.region];
  if (descriptor.offset > region.bytes() || descriptor.bytes > region.bytes() - descriptor.offset) {
    return nullptr;
  }
  return region.at(descriptor.offset);
}

SendingRing::SendingRing(Ring ring, const Regions* regions, std::span<std::byte> own,
                         std::uint32_t own_offset)
    : ring_(ring), regions_(regions), own_(own), own_offset_(own_offset) {
  ESPALIER_ASSERT(own_.empty() || std::has_single_bit(own_.size()));
  if (!own_.empty()) ends_.resize(ring_.slots());
  lines_free_to_ = own_.size() / kLineBytes;
}

std::byte* SendingRing::begin(std::size_t bytes) {
  if (broken_ || bytes > kFrameBytesMax) return nullptr;
  return own_.empty() ? begin_offered(bytes) : begin_packed(bytes);
}

std::byte* SendingRing::begin_packed(std::size_t bytes) {
  const std::uint64_t all = own_.size() / kLineBytes;
  const std::uint64_t lines = lines_of(bytes);
  const std::uint64_t to_end = all - (lines_written_ & (all - 1));
  writing_line_ = lines_written_ + (lines <= to_end ? 0 : to_end);
  const auto has_room = [&] {
    return ahead(written_, seen_) < ring_.slots() && writing_line_ + lines <= lines_free_to_;
  };
  if (!has_room()) {
    const std::uint16_t tail = ring_.tail();
    if (ahead(tail, seen_) > ahead(published_, seen_)) {
      broken_ = true;
      return nullptr;
    }
    if (tail != seen_) {
      const auto last = static_cast<std::uint16_t>(tail - 1);
      lines_free_to_ = ends_[last & (ring_.slots() - 1)] + all;
      seen_ = tail;
    }
    if (!has_room()) return nullptr;
  }
  const std::uint64_t offset = (writing_line_ & (all - 1)) * kLineBytes;
  writing_ = {0, 0, static_cast<std::uint32_t>(bytes),
              own_offset_ + static_cast<std::uint32_t>(offset), 0};
  return own_.data() + offset;
}

std::byte* SendingRing::begin_offered(std::size_t bytes) {
  if (ahead(seen_, written_) == 0) {
    const std::uint16_t head = ring_.head();
    broken_ = ahead(head, written_) > ring_.slots();
    if (broken_ || head == written_) return nullptr;
    seen_ = head;
  }
  writing_ = ring_.load(written_);
  std::byte* const at = find(*regions_, writing_);
  if (at == nullptr) {
    broken_ = true;
    return nullptr;
  }
  if (bytes > writing_.bytes) return nullptr;
  writing_.bytes = static_cast<std::uint32_t>(bytes);
  writing_.flags = 0;
  return at;
}

void SendingRing::end() {
  ring_.store(written_, writing_);
  if (!own_.empty()) {
    lines_written_ = writing_line_ + lines_of(writing_.bytes);
    ends_[written_ & (ring_.slots() - 1)] = lines_written_;
    constexpr std::uint64_t kAhead = 8;
    const std::uint64_t soon = (lines_written_ + kAhead) & (own_.size() / kLineBytes - 1);
    base::prefetch_to_write(own_.data() + soon * kLineBytes);
    base::prefetch_to_write(own_.data() + soon * kLineBytes + kLineBytes);
  } else if (ahead(seen_, written_) > 2) {
    // The peer has it, and has read what lay in it.
    const DescriptorBytes later = ring_.load(static_cast<std::uint16_t>(written_ + 2));
    if (const std::byte* const at = find(*regions_, later)) {
      base::prefetch_to_write(at);
      base::prefetch_to_write(at + kLineBytes);
    }
  }
  ++written_;
}

bool SendingRing::publish() {
  if (published_ == written_) return false;
  published_ = written_;
  if (own_.empty()) {
    ring_.set_tail(written_);
  } else {
    ring_.set_head(written_);
  }
  base::full_fence();  // before whether the peer sleeps is asked
  return true;
}

ReceivingRing::ReceivingRing(Ring ring, const Regions* regions, std::span<std::byte> own_slots,
                             std::uint32_t own_offset)
    : ring_(ring), regions_(regions), own_slots_(own_slots), own_offset_(own_offset) {}

void ReceivingRing::offer_slots() {
  // Seldom, for the peer looks at the line of the head whenever it sends.
  const auto end = static_cast<std::uint16_t>(taken_ + ring_.slots());
  if (ahead(end, offered_) < ring_.slots() / 4) return;
  for (; offered_ != end; ++offered_) {
    const std::uint32_t slot = offered_ & (ring_.slots() - 1);
    ring_.store(offered_, {0, 0, kSlotBytes, own_offset_ + slot * kSlotBytes, 0});
  }
  ring_.set_head(offered_);
}

bool ReceivingRing::ready() const {
  return (own_slots_.empty() ? ring_.head() : ring_.tail()) != taken_;
}

void ReceivingRing::fall_asleep() {
  ring_.set_quiet(false);
  base::full_fence();
}

void ReceivingRing::take(std::size_t most, Arrivals& arrivals,
                         std::vector<std::span<std::byte>>& frames) {
  if (broken_) return;
  const bool own = !own_slots_.empty();
  const std::uint16_t come = ahead(own ? ring_.tail() : ring_.head(), taken_);
  if (come == 0) return;
  if (come > (own ? ahead(offered_, taken_) : ring_.slots())) {
    broken_ = true;
    return;
  }
  struct Found {
    const std::byte* at;
    std::uint32_t bytes;
  };
  std::array<Found, Arrivals::kFramesMax> found;
  std::size_t count = 0;
  const auto end = static_cast<std::uint16_t>(taken_ + std::min<std::size_t>(come, most));
  for (; taken_ != end; ++taken_) {
    DescriptorBytes descriptor = ring_.load(taken_);
    if (own) {  // where it lies is known: the peer may have said something else since
      descriptor.region = 0;
      descriptor.offset = own_offset_ + (taken_ & (ring_.slots() - 1)) * kSlotBytes;
      if (descriptor.bytes > kSlotBytes) broken_ = true;
    }
    const std::byte* const at = find(*regions_, descriptor);
    if (at == nullptr) broken_ = true;
    if (broken_) return;
    const bool was_in_parts = in_parts_;
    in_parts_ = (descriptor.flags & wire::memif::kDescriptorGoesOn) != 0;
    if (was_in_parts || in_parts_ || descriptor.bytes > kFrameBytesMax) {
      if (!in_parts_) ++skipped_;
      continue;
    }
    base::prefetch_line(at);
    base::prefetch_line(at + kLineBytes);
    found[count++] = {at, descriptor.bytes};
  }
  for (const Found& each : std::span(found).first(count)) {
    const std::span<std::byte> copy = arrivals.take(each.bytes);
    std::memcpy(copy.data(), each.at, each.bytes);
    frames.push_back(copy);
  }
  if (own) {
    offer_slots();
  } else {
    ring_.set_tail(taken_);
  }
}

}  // namespace espalier::fabric::memif
