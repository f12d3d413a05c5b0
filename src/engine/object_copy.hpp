// SPDX-License-Identifier: Apache-2.0
// What a kind supplies so that its objects come into a checkpoint: records of what an object has,
// some at a time, while others write it (docs/design/checkpoints.md).
//
// The rule: of what no record changes any more, from the moment on at which the copy was begun, the
// copy has exactly what the records before have come to. What is changed meanwhile may come, or
// not, in any state that it had: the records of these changes are applied over it.
//
// Thread: one at a time, any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "catalog/redo_record.hpp"
#include "espalier/error.hpp"

namespace espalier::offload {

/// Records in memory, one behind the other, each aligned to 8.
class CopyPiece {
 public:
  static constexpr std::size_t kUsualBytes = std::size_t{256} << 10;

  /// Is full with so many.
  explicit CopyPiece(std::size_t usual_bytes = kUsualBytes) : usual_bytes_(usual_bytes) {}

  /// Room for a record of so many bytes, which says so itself (catalog::RedoHead) once it is
  /// written; it is written before the next is added. Empty: there is no memory (starved()).
  [[nodiscard]] std::span<std::byte> add(std::size_t bytes) noexcept {
    const std::size_t whole = base::round_up(bytes, 8);
    try {
      bytes_.resize(used_ + whole);
    } catch (const std::bad_alloc&) {
      starved_ = true;
      return {};
    }
    const std::span<std::byte> room(bytes_.data() + used_, bytes);
    used_ += whole;
    return room;
  }
  /// Whether it has as much as should be gathered before it is taken away.
  [[nodiscard]] bool full() const { return starved_ || used_ >= usual_bytes_; }
  [[nodiscard]] std::size_t usual_bytes() const { return usual_bytes_; }
  [[nodiscard]] bool starved() const { return starved_; }
  [[nodiscard]] bool empty() const { return used_ == 0; }

  /// Calls `with(record)` for each, until that is false. Returns whether it never was.
  template <class With>
  bool each(With with) const {
    for (std::size_t at = 0; at < used_;) {
      std::uint64_t bytes = 0;
      static_assert(offsetof(catalog::RedoHead, bytes) == 0);
      std::memcpy(&bytes, bytes_.data() + at, sizeof bytes);
      if (!with(std::span<const std::byte>(bytes_).subspan(at, bytes))) return false;
      at += base::round_up(bytes, std::uint64_t{8});
    }
    return true;
  }
  void clear() {
    used_ = 0;
    starved_ = false;
    if (bytes_.size() > 2 * usual_bytes_) bytes_ = {};
  }

 private:
  std::size_t usual_bytes_;
  std::vector<std::byte> bytes_;  // as aligned as what new gives
  std::size_t used_ = 0;
  bool starved_ = false;
};

enum class CopyStep : std::uint8_t {
  more,  // the piece is full; others follow
  wait,  // nothing yet: what the object has is not visible; ask again once the log has been flushed
  done,  // with what the piece has now, that was all
};

/// An object, or what a kind has besides, on its way into records.
class ObjectCopy {
 public:
  ObjectCopy() = default;
  ObjectCopy(const ObjectCopy&) = delete;
  ObjectCopy& operator=(const ObjectCopy&) = delete;
  virtual ~ObjectCopy() = default;

  /// Adds records until the piece is full. Must not wait. Of an object that was dropped nothing
  /// more comes. Errors: those of the kind; std::bad_alloc.
  virtual Result<CopyStep> next(CopyPiece& piece) = 0;
};

/// Of objects of which there is nothing to say but that they were made.
class EmptyCopy final : public ObjectCopy {
 public:
  Result<CopyStep> next(CopyPiece&) override { return CopyStep::done; }
};

}  // namespace espalier::offload
