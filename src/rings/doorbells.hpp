// SPDX-License-Identifier: Apache-2.0
// Doorbells: one 32-bit word for each ring, all in one row, so that one scan finds which of a
// thousand rings have new messages [RAMBDA §III-B].
//
// A client writes the number of the slot behind its last message; the node compares the row with
// its copy of the previous scan. Several messages between two scans are one change; nothing is
// lost, since the ring itself holds the messages. A doorbell is a hint: a spurious one costs a look
// into a ring, and the next sweep finds what a missing one hides.
//
// Protection: a client that can write one doorbell can write its whole page. So each user has pages
// of its own: a client that could spoil another's doorbells could also have stopped its process.
//
// Thread: one at a time, the worker that polls these rings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "base/cpu.hpp"
#include "memory/shared_memory.hpp"
#include "wire/ring.hpp"

namespace espalier::rings {

/// Finds the words of `row` that differ from `seen`, writes their indices into `changed`, and
/// returns how many there are. Requires: `row` and `seen` hold a multiple of 32 words, `changed`
/// has room for all. Every form of it answers as the scalar one does.
using ScanDoorbells = std::size_t (*)(const std::byte* row, const std::uint32_t* seen,
                                      std::size_t words, std::uint32_t* changed);
[[nodiscard]] ScanDoorbells scan_doorbells(base::Isa isa);

/// The doorbells of one worker: pages of several users, mapped contiguously.
class Doorbells {
 public:
  /// Reserves addresses for so many rings. Errors: system.
  static Result<Doorbells> reserve(std::uint32_t rings_max);
  Doorbells(Doorbells&& other) noexcept;
  Doorbells& operator=(Doorbells&&) = delete;
  ~Doorbells();

  struct Opened {
    std::uint32_t place;    // in the row
    std::uint32_t in_page;  // which word of the page
    int page;               // descriptor of the page, ours
  };
  /// Allocates a doorbell for a ring of this user. Errors: out_of_memory (all are taken), system.
  Result<Opened> open(std::uint32_t user);
  /// Frees a doorbell; the last of a user frees the page too.
  void close(std::uint32_t place);

  /// Compares all doorbells with the previous scan; returns the places of those that changed, valid
  /// until the next scan. Each change is returned once. Cost: about 1.5 ns for each 64 rings of
  /// users that have any.
  std::span<const std::uint32_t> scan();
  /// Marks one doorbell as seen.
  void look(std::uint32_t place) { seen_[place] = load(place); }
  /// Rings a doorbell for a client that cannot do so itself.
  void ring(std::uint32_t place, std::uint32_t value) {
    base::store_shared(row_ + std::size_t{place} * wire::kDoorbellBytes, value,
                       std::memory_order_release);
  }
  /// Whether a doorbell has changed since it was last seen.
  [[nodiscard]] bool rings(std::uint32_t place) const { return seen_[place] != load(place); }

 private:
  struct Page {
    memory::Descriptor memory;
    std::uint32_t user = 0;
    std::uint32_t open = 0;
    std::vector<bool> taken;
  };
  Doorbells() = default;
  [[nodiscard]] std::uint32_t load(std::uint32_t place) const {
    return base::load_shared<std::uint32_t>(row_ + std::size_t{place} * wire::kDoorbellBytes,
                                            std::memory_order_acquire);
  }
  Result<std::size_t> open_page(std::uint32_t user);
  [[nodiscard]] std::byte* page_at(std::size_t page) const {
    return row_ + page * wire::kDoorbellPageBytes;
  }
  void close_page(std::size_t page);
  [[nodiscard]] bool taken(std::size_t place) const;

  std::byte* row_ = nullptr;
  std::uint64_t row_bytes_ = 0;
  std::vector<Page> pages_;
  std::unique_ptr<std::uint32_t[]> seen_;
  std::unique_ptr<std::uint32_t[]> changed_;
  std::size_t words_ = 0;  // of the row, a multiple of 32, that hold all open ones
  ScanDoorbells scan_ = nullptr;
};

}  // namespace espalier::rings
