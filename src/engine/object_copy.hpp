// SPDX-License-Identifier: Apache-2.0
// The interface by which a kind copies its objects into a checkpoint: records of an object's
// contents, in pieces, while other threads write it (docs/design/checkpoints.md).
//
// Rule: for everything that no record changes after the copy began, the copy has exactly the result
// of the earlier records. Whatever changes meanwhile may be in the copy or not, in any state that
// it had: the records of these changes are applied over the copy.
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

/// Records in memory, contiguous, each aligned to 8.
class CopyPiece {
 public:
  static constexpr std::size_t kUsualBytes = std::size_t{256} << 10;

  /// Is full at so many bytes.
  explicit CopyPiece(std::size_t usual_bytes = kUsualBytes) : usual_bytes_(usual_bytes) {}

  /// Space for a record of so many bytes, which must begin with its own size (catalog::RedoHead);
  /// write it before the next add(). Empty: out of memory (starved()).
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
  /// Whether it should be emptied before more is added.
  [[nodiscard]] bool full() const { return starved_ || used_ >= usual_bytes_; }
  [[nodiscard]] std::size_t usual_bytes() const { return usual_bytes_; }
  [[nodiscard]] bool starved() const { return starved_; }
  [[nodiscard]] bool empty() const { return used_ == 0; }

  /// Calls `with(record)` for each, until it returns false. Returns whether it never did.
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
  std::vector<std::byte> bytes_;  // as aligned as operator new returns
  std::size_t used_ = 0;
  bool starved_ = false;
};

enum class CopyStep : std::uint8_t {
  more,  // the piece is full; more follow
  wait,  // the object's contents are not visible yet; retry once the log has been flushed
  done,  // with the piece's records, the copy is complete
};

/// Copies an object, or a kind's other state, into records.
class ObjectCopy {
 public:
  ObjectCopy() = default;
  ObjectCopy(const ObjectCopy&) = delete;
  ObjectCopy& operator=(const ObjectCopy&) = delete;
  virtual ~ObjectCopy() = default;

  /// Adds records until the piece is full. Must not wait. A dropped object yields nothing more.
  /// Errors: those of the kind; std::bad_alloc.
  virtual Result<CopyStep> next(CopyPiece& piece) = 0;
};

/// For objects without contents: only their creation is recorded.
class EmptyCopy final : public ObjectCopy {
 public:
  Result<CopyStep> next(CopyPiece&) override { return CopyStep::done; }
};

}  // namespace espalier::offload
