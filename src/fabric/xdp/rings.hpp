// SPDX-License-Identifier: Apache-2.0
// The sockets of a port, one for each queue of its interface, over one memory of frames that they
// share with the kernel alone.
//
//   frames  | of queue 0 to receive into ... | of queue 1 ... | to send from |
//
// A frame has one owner at a time. To receive: free (fill ring), the kernel's, arrived (receive
// ring), held by the caller, free again. To send: free, being written, the kernel's (send ring),
// gone (completion ring), free again. All is sent through queue 0.
//
// Each ring has room for all the frames that can be in it, so none is ever full. The two that we
// fill have twice that: the kernel may hand over a frame that it took from one of them before it
// publishes there that it has taken it, on another core.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "espalier/error.hpp"
#include "fabric/xdp/filter.hpp"
#include "fabric/xdp/library.hpp"

namespace espalier::fabric::xdp {

class Rings {
 public:
  /// Room for what Ethernet carries, with the kernel's own 256 bytes in front. Longer frames would
  /// not help: those of an MTU of 4096 do not fit a page with their headers.
  static constexpr std::uint32_t kFrameBytes = 2048;
  static constexpr std::uint32_t kRoomBytes = kFrameBytes - 256;
  static constexpr std::uint32_t kSendFrames = 1024;
  static constexpr std::uint32_t kReceiveFramesMax = 2048;  // of one queue
  static constexpr std::uint32_t kReceiveFramesMin = 512;
  static constexpr std::uint32_t kReceiveFrames = 8192;  // of all, if they are many
  static constexpr std::uint32_t kQueuesMax = 64;        // the others' packets go to the kernel
  static constexpr std::size_t kBurst = 64;
  static constexpr std::uint64_t kLetGoNs = 500'000'000;

  /// Opens the sockets, and gives them the packets that the filter lets through. Cost: waits for up
  /// to kLetGoNs where a queue has a socket, for the kernel lets go of one some time after it was
  /// closed. Errors: unsupported (detail: Unsupported::rights, socket, kernel), system.
  static Result<std::unique_ptr<Rings>> open(std::shared_ptr<const Library> library,
                                             const std::string& interface, std::uint32_t queues,
                                             Filter& filter);
  Rings(const Rings&) = delete;
  Rings& operator=(const Rings&) = delete;
  ~Rings();

  [[nodiscard]] std::size_t queues() const { return queues_.size(); }
  [[nodiscard]] int descriptor(std::size_t queue) const;
  /// Whether the driver writes into our frames itself.
  [[nodiscard]] bool is_zero_copy() const;

  /// A free frame to write into, kRoomBytes long, or null. The same until send() takes it.
  std::byte* frame();
  /// It is written: so many bytes go with the next flush().
  void send(std::size_t bytes);
  /// All that was sent goes now, as far as the kernel takes it.
  void flush();
  /// Packets that it did not take, and the next flush() offers again.
  [[nodiscard]] std::uint32_t unsent() const;

  /// Frames that have come, up to kBurst, the queues by turns. Those of the last call are free.
  std::span<const std::span<const std::byte>> receive();

 private:
  struct Queue {
    xsk_socket* socket = nullptr;
    xsk_ring_prod fill{};
    xsk_ring_cons completion{};
    xsk_ring_cons receive{};
    std::vector<std::uint64_t> held;  // frames that receive() has handed over
  };

  explicit Rings(std::shared_ptr<const Library> library) : library_(std::move(library)) {}
  static Result<std::unique_ptr<Rings>> try_open(std::shared_ptr<const Library> library,
                                                 const std::string& interface, std::uint32_t queues,
                                                 Filter& filter);
  Result<void> make_frames(std::uint64_t bytes);
  Result<void> open_queue(const std::string& interface, std::uint32_t number, Filter& filter);
  void give(Queue& queue, std::span<const std::uint64_t> frames) const;
  void take(Queue& queue, std::size_t most);
  void reap();

  std::shared_ptr<const Library> library_;
  std::byte* memory_ = nullptr;
  std::uint64_t memory_bytes_ = 0;
  std::uint32_t receive_frames_ = 0;  // of each queue
  xsk_umem* frames_ = nullptr;
  std::vector<std::unique_ptr<Queue>> queues_;
  xsk_ring_prod send_{};
  std::vector<std::uint64_t> free_;
  std::uint32_t unflushed_ = 0;
  std::size_t first_ = 0;  // the queue that may fill the next burst
  std::vector<std::span<const std::byte>> burst_;
};

}  // namespace espalier::fabric::xdp
