// SPDX-License-Identifier: Apache-2.0
#include "fabric/roce/exchange.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/barrier.hpp"
#include "base/clock.hpp"
#include "base/system_error.hpp"
#include "fabric/roce/packet_ring.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric::roce {

/// The state of a port that others use: where they leave new rings, and how they wake it. Outlives
/// the port while another port sends to it.
class PortExchange::Mailbox {
 public:
  Mailbox(const PortAddress& address, memory::Descriptor event)
      : address_(address), event_(std::move(event)) {}

  [[nodiscard]] const PortAddress& address() const { return address_; }
  [[nodiscard]] bool closed() const { return closed_.load(std::memory_order_acquire); }
  void close() { closed_.store(true, std::memory_order_release); }

  void wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(event_.number(), &one, sizeof one);
  }
  /// Something was published for the port.
  void signal() {
    base::full_fence();
    if (sleeping_.load(std::memory_order_relaxed)) wake();
  }
  void add(std::shared_ptr<PacketRing> ring) {
    const std::scoped_lock lock(mutex_);
    rings_.push_back(std::move(ring));
    has_rings_.store(true, std::memory_order_release);
  }
  /// Moves new rings to `to`. Cost: a load, if there are none.
  void take_rings(std::vector<std::shared_ptr<PacketRing>>& to) {
    if (!has_rings_.load(std::memory_order_acquire)) return;
    const std::scoped_lock lock(mutex_);
    to.insert(to.end(), rings_.begin(), rings_.end());
    rings_.clear();
    has_rings_.store(false, std::memory_order_relaxed);
  }
  /// A port that publishes after this wakes this one; what was published before must be looked for.
  void fall_asleep() {
    sleeping_.store(true, std::memory_order_relaxed);
    base::full_fence();
  }
  void rest(std::uint64_t timeout_ns) {
    pollfd event{event_.number(), POLLIN, 0};
    const timespec timeout{static_cast<time_t>(timeout_ns / 1'000'000'000),
                           static_cast<long>(timeout_ns % 1'000'000'000)};
    if (::ppoll(&event, 1, &timeout, nullptr) <= 0) return;
    std::uint64_t count = 0;
    [[maybe_unused]] const auto got = ::read(event_.number(), &count, sizeof count);
  }
  void rise() { sleeping_.store(false, std::memory_order_relaxed); }

 private:
  PortAddress address_;
  memory::Descriptor event_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> sleeping_{false};
  std::atomic<bool> has_rings_{false};
  std::mutex mutex_;
  std::vector<std::shared_ptr<PacketRing>> rings_;
};

class PortExchange::Port final : public PacketPort {
 public:
  Port(PortExchange& exchange, std::shared_ptr<Mailbox> mailbox)
      : exchange_(exchange),
        mailbox_(std::move(mailbox)),
        middle_(exchange.make_middle_ ? exchange.make_middle_() : nullptr) {}
  ~Port() override {
    for (const Way& way : ways_) way.ring->abandon();
    mailbox_->close();
    const std::scoped_lock lock(exchange_.mutex_);
    std::erase(exchange_.mailboxes_, mailbox_);
  }

  PortAddress address() const override { return mailbox_->address(); }
  bool keeps_order() const override { return true; }
  std::uint32_t window_bytes() const override { return PacketRing::kLines / 2 * base::kLineBytes; }
  std::uint64_t now_ns() const override { return base::monotonic_ns(); }

  std::byte* begin(const PortAddress& to, std::size_t bytes) override {
    bytes += wire::roce::kIcrcBytes;
    if (bytes > PacketRing::kPacketBytesMax) return nullptr;
    writing_ = way_to(to);
    if (writing_ != nullptr) {
      if (std::byte* const at = writing_->ring->begin(bytes)) return at;
      writing_ = nullptr;
    }
    lost_.resize(PacketRing::kPacketBytesMax);
    return lost_.data();
  }
  void seal() override {
    if (writing_ == nullptr) return;
    const std::span<std::byte> packet = writing_->ring->seal();
    if (middle_) middle_(address(), writing_->mailbox->address(), packet);
  }
  void flush() override {
    for (const Way& way : ways_) {
      if (way.ring->publish()) way.mailbox->signal();
    }
  }
  std::span<const Arrived> receive() override {
    burst_.clear();
    mailbox_->take_rings(rings_);
    // What the last burst lay in may go only now.
    std::erase_if(rings_, [](const auto& ring) { return ring->ended(); });
    for (const auto& ring : rings_) ring->take(burst_);
    return burst_;
  }
  void wait(std::uint64_t timeout_ns) override {
    mailbox_->fall_asleep();
    mailbox_->take_rings(rings_);
    const bool ready = std::ranges::any_of(rings_, [](const auto& ring) { return ring->ready(); });
    if (!ready) mailbox_->rest(timeout_ns);
    mailbox_->rise();
  }
  void wake() override { mailbox_->wake(); }

 private:
  struct Way {
    std::shared_ptr<Mailbox> mailbox;
    std::shared_ptr<PacketRing> ring;
  };

  /// Null: no port has this address.
  const Way* way_to(const PortAddress& to);

  PortExchange& exchange_;
  std::shared_ptr<Mailbox> mailbox_;
  const Middle middle_;
  std::vector<Way> ways_;
  const Way* writing_ = nullptr;
  std::vector<std::byte> lost_;  // where packets without a destination are written
  std::vector<std::shared_ptr<PacketRing>> rings_;
  std::vector<Arrived> burst_;
};

const PortExchange::Port::Way* PortExchange::Port::way_to(const PortAddress& to) {
  for (std::size_t i = 0; i < ways_.size(); ++i) {
    if (ways_[i].mailbox->address() != to) continue;
    if (!ways_[i].mailbox->closed()) return &ways_[i];
    ways_.erase(ways_.begin() + static_cast<std::ptrdiff_t>(i));  // another may be there now
    break;
  }
  auto mailbox = exchange_.find(to);
  if (!mailbox) return nullptr;
  auto ring = std::make_shared<PacketRing>(address(), to);
  mailbox->add(ring);
  return &ways_.emplace_back(Way{std::move(mailbox), std::move(ring)});
}

PortExchange::PortExchange(std::function<Middle()> make_middle)
    : make_middle_(std::move(make_middle)) {}
PortExchange::~PortExchange() = default;

std::shared_ptr<PortExchange::Mailbox> PortExchange::find(const PortAddress& address) {
  const std::scoped_lock lock(mutex_);
  for (const auto& mailbox : mailboxes_) {
    if (mailbox->address() == address) return mailbox;
  }
  return nullptr;
}

Result<std::unique_ptr<PacketPort>> PortExchange::open(const PortAddress& address) {
  memory::Descriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event) return base::refused_by_system();
  auto mailbox = std::make_shared<Mailbox>(address, std::move(event));
  // Checked and entered under one lock: of several ports that want an address, one gets it.
  const std::scoped_lock lock(mutex_);
  const bool taken = std::ranges::any_of(
      mailboxes_, [&address](const auto& each) { return each->address() == address; });
  if (taken) return fail(Code::already_exists);
  mailboxes_.push_back(mailbox);
  return std::make_unique<Port>(*this, std::move(mailbox));
}

}  // namespace espalier::fabric::roce
