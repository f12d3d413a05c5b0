// SPDX-License-Identifier: Apache-2.0
// The memory into which a ring reader gathers one message (message_reader.hpp).
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace espalier::rings {

class MessageShare;

/// The memory of one message: inline up to kInPlace bytes, else on the heap and charged to a share.
class MessageBuffer {
 public:
  static constexpr std::uint32_t kInPlace = 256;
  static constexpr std::uint32_t kReserved = std::uint32_t{64} << 10;

  MessageBuffer() = default;
  MessageBuffer(MessageBuffer&& other) noexcept { *this = std::move(other); }
  MessageBuffer& operator=(MessageBuffer&& other) noexcept;
  ~MessageBuffer() { clear(); }

  /// The message, as many bytes as its header says.
  [[nodiscard]] std::byte* data() { return heap_ ? heap_.get() : bytes_; }
  [[nodiscard]] const std::byte* data() const { return heap_ ? heap_.get() : bytes_; }
  [[nodiscard]] std::uint32_t capacity() const { return heap_ ? heap_bytes_ : kInPlace; }
  /// Makes room for so many bytes in all, and keeps the first `kept` of them. Returns false, and
  /// keeps what it has, if the share refuses. From kReserved bytes on addresses are reserved for
  /// the `whole` message, so that what has come of it is not copied again when it grows; the share
  /// is charged for the room alone, and the system gives memory as bytes come.
  [[nodiscard]] bool grow(std::uint32_t bytes, std::uint32_t kept, std::uint32_t whole,
                          MessageShare& share);
  /// Overwrites bytes that must not lie here longer. Of the first kInPlace no other copy is left.
  /// Requires: they are the message's.
  void wipe(std::uint32_t offset, std::uint32_t bytes);
  /// Gives heap memory back.
  void clear() {
    if (heap_) clear_heap();
  }
  /// The same. Returns the memory in place.
  [[nodiscard]] std::byte* clear_in_place() {
    clear();
    return bytes_;
  }

 private:
  bool reserve(std::uint32_t bytes, std::uint32_t kept, std::uint32_t whole);
  void clear_heap();

  std::unique_ptr<std::byte[]> heap_;
  MessageShare* share_ = nullptr;     // of which the heap memory is
  std::uint32_t heap_bytes_ = 0;      // of room, for which the share is charged
  std::uint32_t reserved_bytes_ = 0;  // of the heap memory
  alignas(8) std::byte bytes_[kInPlace];
};

}  // namespace espalier::rings
