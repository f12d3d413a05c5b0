// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/datagram_link.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <utility>

#include "base/atomic_bytes.hpp"
#include "base/clock.hpp"

namespace espalier::fabric::ofi {
namespace {

using wire::ofi::DatagramHead;
using wire::ofi::DatagramKind;
using wire::ofi::Key;
using wire::ofi::kFrames;

// Until both know each other.
constexpr std::uint64_t kIntroductionNs = 10'000'000'000;
// How often that is looked after meanwhile, for providers connect underneath and may not say when.
constexpr std::uint64_t kLookNs = 1'000'000;
// How long the last frames of a peer may take that has hung up: they go another way than that news.
constexpr std::uint64_t kLastWordsNs = 5'000'000;
// When a provider is asked again that could not take a frame.
constexpr std::uint64_t kTryAgainNs = 50'000;

constexpr std::size_t kKeyBytes = sizeof(DatagramHead) + sizeof(Key);
constexpr std::uint32_t kKeyBuffer = kFrames;  // behind those of frames

DatagramHead head_of(DatagramKind kind, std::uint64_t to, std::uint32_t sequence) {
  return {to, sequence, static_cast<std::uint8_t>(kind), {}};
}

}  // namespace

DatagramLink::DatagramLink(std::uint64_t number, std::unique_ptr<std::byte[]> memory,
                           DatagramEnd& end, Control control, const roce::IpAddress& peer_ip,
                           const Secrets& secrets)
    : Link(number, memory.get()),
      memory_(std::move(memory)),
      end_(end),
      control_(std::move(control)),
      peer_ip_(peer_ip),
      secrets_(secrets),
      gives_up_ns_(base::monotonic_ns() + kIntroductionNs) {}

Result<std::unique_ptr<DatagramLink>> DatagramLink::make(DatagramEnd& end, Control control,
                                                         const roce::IpAddress& peer_ip,
                                                         const Secrets& secrets,
                                                         std::uint64_t number) {
  constexpr std::size_t kBytes = Outbox::kBytes + kKeyBytes;
  std::unique_ptr<DatagramLink> made(
      new DatagramLink(number, std::make_unique_for_overwrite<std::byte[]>(kBytes), end,
                       std::move(control), peer_ip, secrets));
  auto told = end.device().tell_memory(made->memory_.get(), kBytes);
  if (!told) return std::unexpected(told.error());
  made->told_ = std::move(*told);
  if (made->told_) made->description_ = fi_mr_desc(made->told_.get());
  wire::ofi::Introduction own = end.introduction();
  own.number = secrets.called;
  made->control_.introduce(own);
  return made;
}

DatagramLink::~DatagramLink() {
  finish();
  if (peer_at_ != FI_ADDR_UNSPEC) end_.forget(peer_at_);
}

bool DatagramLink::send(std::span<const std::byte> bytes, std::uint32_t small) {
  const long answer = end_.send(peer_at_, bytes, description_, tag(small, true));
  stalled_ = answer == -FI_EAGAIN;
  if (answer != 0 && !stalled_) go_down();
  if (answer == 0) ++under_way_;
  return answer == 0;
}

// The frame has room before it for a head (Outbox::kHeadBytes).
bool DatagramLink::carry(std::uint32_t buffer, std::span<const std::byte> frame) {
  if (is_down() || finished_ || !peer_key_) return false;
  std::byte* const head = const_cast<std::byte*>(frame.data()) - sizeof(DatagramHead);
  base::store_plain(head, head_of(DatagramKind::frame, *peer_key_, next_sequence_));
  if (!send({head, sizeof(DatagramHead) + frame.size()}, buffer)) return false;
  ++next_sequence_;
  return true;
}

void DatagramLink::see_control() {
  control_.turn();
  come_on();
}

// On the way to being up.
void DatagramLink::come_on() {
  if (is_up() || is_down() || finished_) return;
  if (!peer_) {
    peer_ = control_.heard();
    if (!peer_) return;
    const auto known = end_.know(*peer_, peer_ip_);
    if (!known) return go_down();
    peer_at_ = *known;
  }
  if (!key_sent_) {
    std::byte* const at = memory_.get() + Outbox::kBytes;
    base::store_plain(at, head_of(DatagramKind::key, peer_->number, 0));
    base::store_plain(at + sizeof(DatagramHead), Key{secrets_.key});
    key_sent_ = send({at, kKeyBytes}, kKeyBuffer);
  }
  if (!key_sent_ || !peer_key_) return;
  come_up();
  take_in_order();
}

void DatagramLink::take(const DatagramHead& head, const ArrivalOrder::Frame& where) {
  const bool reserved = head.reserved[0] != 0 || head.reserved[1] != 0 || head.reserved[2] != 0;
  const bool key = head.to == secrets_.called;
  const auto kind = key ? DatagramKind::key : DatagramKind::frame;
  const bool good = !reserved && head.kind == static_cast<std::uint8_t>(kind);
  if (key && good && !is_down()) {
    take_key(end_.arrived(where.buffer, where.bytes).subspan(sizeof head));
  } else if (good && !is_down() && order_.add(head.sequence, where)) {
    // One that has overtaken the key waits for it.
    if (is_up()) take_in_order();
    return;
  } else {
    go_down();
  }
  end_.give_back(where.buffer);
}

void DatagramLink::take_key(std::span<const std::byte> payload) {
  if (peer_key_ || payload.size() != sizeof(Key)) return go_down();
  peer_key_ = base::load_plain<Key>(payload.data()).number;
  come_on();
}

void DatagramLink::take_in_order() {
  while (const auto frame = order_.take()) {
    if (!is_down()) hear(end_.arrived(frame->buffer, frame->bytes).subspan(sizeof(DatagramHead)));
    end_.give_back(frame->buffer);
  }
}

void DatagramLink::complete(const Device::Completed& completed) {
  --under_way_;
  if (!completed.good) return go_down();
  if (small_of(completed.tag) == kKeyBuffer) return;
  // A provider may tell of them in another order.
  left_ |= 1u << small_of(completed.tag);
  for (;; ++next_to_leave_) {
    const std::uint32_t bit = 1u << next_to_leave_ % kFrames;
    if ((left_ & bit) == 0) return;
    left_ &= ~bit;
    out().sent();
  }
}

bool DatagramLink::advance(std::uint64_t now_ns) {
  if (finished_) return false;
  const bool was_up = is_up();
  come_on();
  if (control_.is_over() && last_words_ns_ == 0) {
    last_words_ns_ = now_ns + (is_up() ? kLastWordsNs : 0);
  }
  if (!is_up() && now_ns >= gives_up_ns_) go_down();
  if (last_words_ns_ != 0 && now_ns >= last_words_ns_) go_down();
  return is_up() != was_up;
}

bool DatagramLink::settle(std::uint64_t now_ns) {
  if (!finished_ && Link::settle(now_ns)) finish();
  return finished_ && under_way_ == 0;
}

void DatagramLink::finish() {
  finished_ = true;
  control_.hang_up();
  while (const auto frame = order_.drop()) end_.give_back(frame->buffer);
}

std::uint64_t DatagramLink::due_ns() const {
  if (finished_) return 0;
  const std::uint64_t now_ns = base::monotonic_ns();
  std::uint64_t due = Link::due_ns() != 0 ? Link::due_ns() : UINT64_MAX;
  if (last_words_ns_ != 0) due = std::min(due, last_words_ns_);
  if (!is_up()) due = std::min(due, now_ns + kLookNs);
  if (stalled_) due = std::min(due, now_ns + kTryAgainNs);
  return due == UINT64_MAX ? 0 : due;
}

}  // namespace espalier::fabric::ofi
