// SPDX-License-Identifier: Apache-2.0
// Batches as callers and requests pass them: in any order, with duplicate keys and values of any
// size.
//
// Converts them to the form that the tree needs (structure.hpp): sorted, each key once, large
// values stored. Nothing here waits for a release: the caller may have other answers to give
// meanwhile.
//
// Thread: that of the worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "espalier/condition.hpp"
#include "espalier/error.hpp"

namespace espalier::memory {
class StagedBytes;
}

namespace espalier::tree {

class MapCore;
struct ThreadContext;

inline constexpr std::size_t kBatchWritesMax = 65536;
inline constexpr std::size_t kBatchChecksMax = 65536;

struct BatchWrite {
  std::string_view key;
  std::string_view value;  // ignored by an erase
  bool erase = false;
  /// The value, if it was staged before: the batch takes it over.
  memory::StagedBytes* staged = nullptr;
};

struct BatchCheck {
  std::string_view key;
  Condition condition{};
};

/// The result of a batch, to be reported once `wait_for` is released (rule 6).
struct BatchApplied {
  std::uint64_t version = 0;   // of all writes
  std::uint64_t wait_for = 0;  // covers also the state that made a check fail
  bool existed = false;        // whether at least one of its written keys existed
  /// The first check that failed, in their order; then nothing was written.
  std::optional<std::uint32_t> failed_check;
};

/// Writes all under one version if all checks hold, or nothing. Of several writes of a key the last
/// wins, regardless of checks between them. If memory runs out it collects; otherwise collecting is
/// up to the caller. Views are read only during the call.
///
/// Cost: a descent for each write and check, and the map's structure lock. Leaves that erases left
/// nearly empty are then merged, each under the lock again and with a version of its own.
/// Errors: invalid_argument (no writes, or too many writes or checks), key_too_long,
/// value_too_long, out_of_memory, those of the map's sink. After an error there is nothing to wait
/// for.
/// Requires: the worker exposes no epoch. An executor with walks in flight does: use another
/// worker.
Result<BatchApplied> apply_batch(ThreadContext& context, MapCore& map,
                                 std::span<const BatchWrite> writes,
                                 std::span<const BatchCheck> checks) noexcept;

}  // namespace espalier::tree
