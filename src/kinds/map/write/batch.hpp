// SPDX-License-Identifier: Apache-2.0
// Batches as they come from a caller or from a wire: any order, keys twice, values of any size.
//
// Here they become what the tree takes (structure.hpp): sorted, each key once, large values stored.
// Nothing here waits for a release: who calls has other answers to give meanwhile.
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
  std::string_view value;  // without meaning where it erases
  bool erase = false;
  /// The value, where it was copied before: the batch takes it.
  memory::StagedBytes* staged = nullptr;
};

struct BatchCheck {
  std::string_view key;
  Condition condition{};
};

/// What a batch did, to be told when `wait_for` is released (rule 6).
struct BatchApplied {
  std::uint64_t version = 0;   // under which all was written
  std::uint64_t wait_for = 0;  // also of what made a check fail
  bool existed = false;        // whether at least one of the keys that it writes existed
  /// Which check failed, the first in their order; then nothing was written.
  std::optional<std::uint32_t> failed_check;
};

/// Writes all under one version if all checks hold, or nothing. Later writes of a key win over
/// earlier ones, wherever its checks stand among them. Collects if memory has run out, and else
/// leaves that to the caller. What the views point to is read only during the call.
///
/// Cost: a descent for each write and check, and the map's structure lock. Leaves that erases have
/// left nearly empty are then merged, each with another take of that lock and a version of its own.
/// Errors: invalid_argument (no writes, or too many writes or checks), key_too_long,
/// value_too_long, out_of_memory, those of the map's sink. None of them has anything to wait for.
/// Requires: the worker exposes no epoch. An engine with walks in flight does: take another worker.
Result<BatchApplied> apply_batch(ThreadContext& context, MapCore& map,
                                 std::span<const BatchWrite> writes,
                                 std::span<const BatchCheck> checks) noexcept;

}  // namespace espalier::tree
