// SPDX-License-Identifier: Apache-2.0
// A remote place: the bytes that a walk requests are copied to it, cache line by cache line and
// with delays, while other threads change them. It stands for every transport: a device's cache, a
// one-sided READ in flight.
//
// Invariants
// 1. Exactly the requested bytes are copied. The rest of an image keeps a pattern, so a walk that
//    reads bytes which it has not requested fails, and a test with it.
// 2. The lines of one READ (64 bytes of the source) arrive in any order, each as it is at that
//    moment, its words in the order of their addresses. Between two lines, anything may happen.
// 3. Bytes outside the memory read as zeros, as if a transport had refused: zeros are not a node.
// 4. Bytes other than nodes have a buffer of their own for each request, which is freed with the
//    next one: an address sanitizer detects later accesses.
//
// Thread: a CopyMachine and its accesses belong to one thread.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/task.hpp"
#include "kinds/map/walk/access.hpp"
#include "tests/support/seed.hpp"

namespace espalier::test {

/// Delivers lines to the walks that wait for them.
class CopyMachine {
 public:
  enum class Order : std::uint8_t { random, last_line_first };

  CopyMachine(std::span<const std::byte> memory, std::uint64_t seed, Order order = Order::random)
      : memory_(memory), random_(seed), order_(order) {}

  /// Delivers some of what is in flight; walks whose bytes are complete become ready.
  void turn();
  [[nodiscard]] bool idle() const { return flights_.empty(); }
  /// Nodes that walks have reached so far.
  [[nodiscard]] std::uint64_t nodes() const { return nodes_; }

  /// Whichever part of a node is requested, all of it is delivered: for nodes with wrong lengths,
  /// of which a walk would read bytes that it did not request.
  bool whole_nodes = false;

  /// Called between two lines of a READ: the number of lines still to come.
  std::function<void(std::size_t)> between_lines;

 private:
  friend class CopyAccess;

  /// A part of one line in flight.
  struct Piece {
    std::uint64_t from = 0;  // offset in the memory
    std::byte* to = nullptr;
    std::uint32_t bytes = 0;
  };
  struct Flight {
    std::vector<Piece> pieces;
    base::ReadyQueue* queue;
    std::coroutine_handle<> walk;
  };

  void cut(std::uint64_t from, std::byte* to, std::uint64_t bytes,
           std::vector<Piece>& pieces) const;
  void start(std::vector<Piece> pieces, base::ReadyQueue& queue, std::coroutine_handle<> walk);
  void advance(Flight& flight);
  [[nodiscard]] bool holds(std::uint64_t offset, std::uint64_t bytes) const {
    return offset <= memory_.size() && bytes <= memory_.size() - offset;
  }
  /// Whether the buffer still has the content that the reference names.
  [[nodiscard]] bool still_there(wire::Ref ref) const;

  std::span<const std::byte> memory_;
  Random random_;
  Order order_;
  std::vector<Flight> flights_;
  std::uint64_t nodes_ = 0;
};

/// One lane's access to the memory behind a CopyMachine.
class CopyAccess {
 public:
  static constexpr bool kInPlace = false;

  CopyAccess(CopyMachine& machine, base::ReadyQueue& queue, std::uint32_t node_bytes)
      : machine_(&machine),
        queue_(&queue),
        node_bytes_(node_bytes),
        image_(std::make_unique<std::byte[]>(node_bytes)) {}

  /// Suspends until the requested bytes have arrived.
  struct Arrival {
    CopyAccess* access;
    [[nodiscard]] bool await_ready() const noexcept { return access->wanted_.empty(); }
    void await_suspend(std::coroutine_handle<> walk) const { access->send(walk); }
    void await_resume() const noexcept {}
  };
  /// Suspends for a round trip and returns what it found.
  struct Confirmation {
    CopyAccess* access;
    wire::Ref ref;
    [[nodiscard]] bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> walk) const { access->send(walk); }
    [[nodiscard]] tree::Confirmed await_resume() const {
      return access->machine_->still_there(ref) ? tree::Confirmed::yes : tree::Confirmed::changed;
    }
  };
  /// The walker's epoch is exposed as soon as a walk has begun.
  struct Entered {
    [[nodiscard]] bool await_ready() const noexcept { return true; }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    [[nodiscard]] bool await_resume() const noexcept { return true; }
  };

  [[nodiscard]] const std::byte* image(std::uint64_t offset);
  void want(const std::byte* image, std::uint32_t begin, std::uint32_t bytes);
  [[nodiscard]] const std::byte* bytes(std::uint64_t offset, std::uint64_t bytes);
  [[nodiscard]] Entered entered() const { return {}; }
  [[nodiscard]] Entered believed() const { return {}; }
  [[nodiscard]] const std::byte* map_header(std::uint64_t offset);
  [[nodiscard]] std::uint64_t table_page(std::uint64_t) const { return 0; }
  void learn_table_page(std::uint64_t, std::uint64_t) {}
  [[nodiscard]] bool failed() const { return false; }
  [[nodiscard]] bool reads_in_order() const { return false; }
  [[nodiscard]] Arrival arrived(tree::Warmth) { return {this}; }
  [[nodiscard]] Confirmation confirm(wire::Ref ref) { return {this, ref}; }
  [[nodiscard]] base::Pause again() const { return {queue_, false}; }

 private:
  void send(std::coroutine_handle<> walk) {
    machine_->start(std::exchange(wanted_, {}), *queue_, walk);
  }

  CopyMachine* machine_;
  base::ReadyQueue* queue_;
  std::uint32_t node_bytes_;
  std::uint64_t offset_ = 0;  // of the node of this image
  std::unique_ptr<std::byte[]> image_;
  std::unique_ptr<std::uint64_t[]> header_;
  std::unique_ptr<std::uint64_t[]> bytes_;  // aligned for the words of the page table
  std::vector<CopyMachine::Piece> wanted_;
};
static_assert(tree::RemoteAccess<CopyAccess>);

/// Runs until the engine has nothing left to do.
template <class WalkScheduler>
void run(WalkScheduler& scheduler, CopyMachine& machine) {
  while (scheduler.poll() != 0) machine.turn();
}

}  // namespace espalier::test
