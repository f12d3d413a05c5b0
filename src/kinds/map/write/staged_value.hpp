// SPDX-License-Identifier: Apache-2.0
// A long value on its way into a buffer of its own, in pieces, before the walk that writes it takes
// it: nobody else knows of the buffer meanwhile.
#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

#include "espalier/error.hpp"
#include "kinds/map/format/node.hpp"

namespace espalier::tree {

class MapCore;
struct ThreadContext;

/// Thread: one at a time, any for copy(). Gives the buffer back when it is destroyed and was not
/// taken.
class StagedValue {
 public:
  /// Takes a buffer; copies nothing. `value` outlives the copying. Errors: out_of_memory.
  static Result<StagedValue> begin(ThreadContext& context, MapCore& map, std::string_view value);
  StagedValue(StagedValue&& other) noexcept
      : map_(std::exchange(other.map_, nullptr)),
        offset_(other.offset_),
        value_(other.value_),
        copied_(other.copied_) {}
  StagedValue& operator=(StagedValue&& other) noexcept {
    std::swap(map_, other.map_);
    std::swap(offset_, other.offset_);
    std::swap(value_, other.value_);
    std::swap(copied_, other.copied_);
    return *this;
  }
  ~StagedValue();

  /// Copies so many bytes more, at least the first few. Returns whether all are there.
  bool copy(std::size_t bytes);
  [[nodiscard]] bool is_whole() const { return copied_ == value_.size(); }
  /// The value, of which the caller disposes from now on. Requires: all of it was copied.
  [[nodiscard]] wire::ValueRef take();

 private:
  StagedValue(MapCore& map, std::uint64_t offset, std::string_view value)
      : map_(&map), offset_(offset), value_(value) {}

  MapCore* map_;  // null: it was taken
  std::uint64_t offset_;
  std::string_view value_;
  std::size_t copied_ = 0;
};

}  // namespace espalier::tree
