// SPDX-License-Identifier: Apache-2.0
#include "fabric/xdp/rings.hpp"

#include <linux/if_xdp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "base/system_error.hpp"

namespace espalier::fabric::xdp {
namespace {

// Where the kernel copies, what is on its way counts against the socket's buffer: room for all.
constexpr int kSendBufferBytes = 16 << 20;
// So many it takes with each call where it copies them.
constexpr std::uint32_t kPacketsPerCall = 32;

std::unexpected<Error> refused_socket(int number) {
  if (number == EBUSY) return is_unsupported(Unsupported::socket);
  return refused_by_kernel(number);
}

}  // namespace

Result<std::unique_ptr<Rings>> Rings::open(std::shared_ptr<const Library> library,
                                           const std::string& interface, std::uint32_t queues,
                                           Filter& filter) {
  const base::Stopwatch watch;
  for (;;) {
    auto made = try_open(library, interface, queues, filter);
    if (made || made.error() != is_unsupported(Unsupported::socket).error()) return made;
    if (watch.elapsed_ns() > kLetGoNs) return made;
    constexpr timespec kPause{0, 2'000'000};
    ::ppoll(nullptr, 0, &kPause, nullptr);
  }
}

Result<std::unique_ptr<Rings>> Rings::try_open(std::shared_ptr<const Library> library,
                                               const std::string& interface, std::uint32_t queues,
                                               Filter& filter) {
  std::unique_ptr<Rings> made(new Rings(std::move(library)));
  queues = std::clamp<std::uint32_t>(queues, 1, kQueuesMax);
  made->receive_frames_ =
      std::bit_floor(std::clamp(kReceiveFrames / queues, kReceiveFramesMin, kReceiveFramesMax));
  const std::uint64_t frames = std::uint64_t{made->receive_frames_} * queues + kSendFrames;
  if (const auto good = made->make_frames(frames * kFrameBytes); !good) {
    return std::unexpected(good.error());
  }
  for (std::uint32_t queue = 0; queue < queues; ++queue) {
    if (const auto opened = made->open_queue(interface, queue, filter); !opened) {
      return std::unexpected(opened.error());
    }
  }
  for (std::uint64_t frame = frames - kSendFrames; frame < frames; ++frame) {
    made->free_.push_back(frame * kFrameBytes);
  }
  return made;
}

Result<void> Rings::make_frames(std::uint64_t bytes) {
  void* const at =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return base::refused_by_system();
  memory_ = static_cast<std::byte*>(at);
  memory_bytes_ = bytes;
  // The system has its pages: after a fork, a write would give this process others.
  if (::madvise(at, bytes, MADV_DONTFORK) != 0) return base::refused_by_system();
  // Its rings are those of queue 0.
  queues_.push_back(std::make_unique<Queue>());
  xsk_umem_config config{};
  config.fill_size = 2 * receive_frames_;
  config.comp_size = kSendFrames;
  config.frame_size = kFrameBytes;
  const int answer = library_->create_frames(&frames_, memory_, bytes, &queues_[0]->fill,
                                             &queues_[0]->completion, &config);
  if (answer != 0) {
    frames_ = nullptr;
    return refused_socket(-answer);
  }
  return {};
}

Result<void> Rings::open_queue(const std::string& interface, std::uint32_t number, Filter& filter) {
  if (number != 0) queues_.push_back(std::make_unique<Queue>());
  Queue& queue = *queues_[number];
  xsk_socket_config config{};
  config.rx_size = receive_frames_;
  config.tx_size = number == 0 ? 2 * kSendFrames : 0;
  config.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD;
  config.bind_flags = XDP_USE_NEED_WAKEUP;
  const int answer = library_->create_socket(&queue.socket, interface.c_str(), number, frames_,
                                             &queue.receive, number == 0 ? &send_ : nullptr,
                                             &queue.fill, &queue.completion, &config);
  if (answer != 0) {
    queue.socket = nullptr;
    return refused_socket(-answer);
  }
  if (number == 0) {
    ::setsockopt(descriptor(0), SOL_SOCKET, SO_SNDBUFFORCE, &kSendBufferBytes,
                 sizeof kSendBufferBytes);
  }
  std::vector<std::uint64_t> frames(receive_frames_);
  for (std::uint64_t i = 0; i < frames.size(); ++i) {
    frames[i] = (std::uint64_t{number} * receive_frames_ + i) * kFrameBytes;
  }
  give(queue, frames);
  return filter.set_socket(number, descriptor(number));
}

Rings::~Rings() {
  for (const auto& queue : queues_) {
    if (queue->socket != nullptr) library_->delete_socket(queue->socket);
  }
  if (frames_ != nullptr) library_->delete_frames(frames_);
  if (memory_ != nullptr) ::munmap(memory_, memory_bytes_);
}

int Rings::descriptor(std::size_t queue) const {
  return library_->descriptor_of(queues_[queue]->socket);
}

bool Rings::is_zero_copy() const {
  xdp_options options{};
  socklen_t bytes = sizeof options;
  return ::getsockopt(descriptor(0), SOL_XDP, XDP_OPTIONS, &options, &bytes) == 0 &&
         (options.flags & XDP_OPTIONS_ZEROCOPY) != 0;
}

void Rings::reap() {
  xsk_ring_cons& completion = queues_[0]->completion;
  std::uint32_t at = 0;
  const std::uint32_t count = xsk_ring_cons__peek(&completion, kSendFrames, &at);
  for (std::uint32_t i = 0; i < count; ++i) {
    free_.push_back(*xsk_ring_cons__comp_addr(&completion, at + i));
  }
  if (count != 0) xsk_ring_cons__release(&completion, count);
}

std::byte* Rings::frame() {
  if (free_.empty()) reap();
  return free_.empty() ? nullptr : memory_ + free_.back();
}

void Rings::send(std::size_t bytes) {
  std::uint32_t at = 0;
  const std::uint32_t reserved = xsk_ring_prod__reserve(&send_, 1, &at);
  ESPALIER_ASSERT(reserved == 1 && bytes <= kRoomBytes);
  *xsk_ring_prod__tx_desc(&send_, at) = {free_.back(), static_cast<std::uint32_t>(bytes), 0};
  free_.pop_back();
  ++unflushed_;
}

std::uint32_t Rings::unsent() const {
  return *send_.producer - __atomic_load_n(send_.consumer, __ATOMIC_ACQUIRE);
}

void Rings::flush() {
  if (unflushed_ != 0) {
    xsk_ring_prod__submit(&send_, unflushed_);
    unflushed_ = 0;
  } else if (unsent() == 0) {
    return;
  }
  if (xsk_ring_prod__needs_wakeup(&send_) == 0) return;
  std::uint32_t calls = unsent() / kPacketsPerCall + 1;
  // EAGAIN: it has taken so many; or there is no room before some have gone, as a later call finds.
  while (calls-- != 0 && ::sendto(descriptor(0), nullptr, 0, MSG_DONTWAIT, nullptr, 0) < 0) {
    if (errno != EAGAIN) break;
  }
  reap();
}

void Rings::give(Queue& queue, std::span<const std::uint64_t> frames) const {
  if (frames.empty()) return;
  std::uint32_t at = 0;
  const auto count = static_cast<std::uint32_t>(frames.size());
  const std::uint32_t reserved = xsk_ring_prod__reserve(&queue.fill, count, &at);
  ESPALIER_ASSERT(reserved == count);
  for (std::uint32_t i = 0; i < count; ++i) {
    *xsk_ring_prod__fill_addr(&queue.fill, at + i) = frames[i];
  }
  xsk_ring_prod__submit(&queue.fill, count);
}

void Rings::take(Queue& queue, std::size_t most) {
  give(queue, queue.held);
  queue.held.clear();
  // A driver that has found no frames waits for a wakeup.
  if (xsk_ring_prod__needs_wakeup(&queue.fill) != 0) {
    const int socket = library_->descriptor_of(queue.socket);
    static_cast<void>(::recvfrom(socket, nullptr, 0, MSG_DONTWAIT, nullptr, nullptr));
  }
  std::uint32_t at = 0;
  const std::uint32_t count =
      xsk_ring_cons__peek(&queue.receive, static_cast<std::uint32_t>(most), &at);
  for (std::uint32_t i = 0; i < count; ++i) {
    const xdp_desc& frame = *xsk_ring_cons__rx_desc(&queue.receive, at + i);
    ESPALIER_ASSERT(frame.addr < memory_bytes_ && frame.len <= memory_bytes_ - frame.addr);
    queue.held.push_back(frame.addr - frame.addr % kFrameBytes);
    burst_.emplace_back(memory_ + frame.addr, frame.len);
  }
  if (count != 0) xsk_ring_cons__release(&queue.receive, count);
}

std::span<const std::span<const std::byte>> Rings::receive() {
  burst_.clear();
  if (++first_ >= queues_.size()) first_ = 0;
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    take(*queues_[(first_ + i) % queues_.size()], kBurst - burst_.size());
  }
  return burst_;
}

}  // namespace espalier::fabric::xdp
