// SPDX-License-Identifier: Apache-2.0
// A page of memory with the word of one epoch of a sequencer, to which clients may add. It holds
// nothing else and is never reused, because a client that maps memory keeps its mapping.
//
// Clients may write anything there, at any time: load a word once, then check it.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "espalier/error.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::sequencer {

class WordPage {
 public:
  static constexpr std::uint64_t kBytes = 4096;
  /// Limit of a process: each takes a descriptor.
  static constexpr std::uint32_t kMost = 512;

  /// Cost: system calls, a page and a descriptor. Errors: system; out_of_memory (there are kMost).
  static Result<std::shared_ptr<WordPage>> create(std::uint64_t word) {
    if (live().load() >= kMost) return fail(Code::out_of_memory, kMost);
    auto memory = memory::SharedMemory::create("espalier-sequencer", kBytes);
    if (!memory) return std::unexpected(memory.error());
    auto page = std::make_shared<WordPage>(std::move(*memory));
    page->word().store(word, std::memory_order_release);
    return page;
  }
  explicit WordPage(memory::SharedMemory memory) : memory_(std::move(memory)) { ++live(); }
  ~WordPage() { --live(); }
  WordPage(const WordPage&) = delete;
  WordPage& operator=(const WordPage&) = delete;

  [[nodiscard]] std::atomic_ref<std::uint64_t> word() const {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(memory_.at(0)));
  }
  [[nodiscard]] const memory::SharedMemory& memory() const { return memory_; }

 private:
  static std::atomic<std::uint32_t>& live() {
    static std::atomic<std::uint32_t> pages{0};
    return pages;
  }

  memory::SharedMemory memory_;
};

}  // namespace espalier::sequencer
