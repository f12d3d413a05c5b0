// SPDX-License-Identifier: Apache-2.0
// The operations of writes of a hash map, and their results.
#pragma once

#include <cstdint>
#include <utility>

#include "espalier/error.hpp"
#include "kinds/hash/format.hpp"
#include "kinds/hash/key_hash.hpp"

namespace espalier::memory {
class StagedBytes;
}

namespace espalier::hash {

enum class WriteOp : std::uint8_t { put, insert, update, erase };

/// Identifies a record that was seen, so that it can be recognised.
struct RecordStamp {
  Slot record{};  // empty: there was none
  std::uint32_t generation = 0;
  std::uint64_t version = 0;
};

/// Work done for a write before it is begun, and its behaviour without memory.
struct WriteHelp {
  /// The staged pair (HashMap::stage()), which the write takes if it applies; null: the write
  /// copies the pair itself.
  memory::StagedBytes* staged = nullptr;
  /// Instead of a condition: the record that the key must have, or none, because it was compared
  /// with the expected value; null: nothing was compared.
  const RecordStamp* expected = nullptr;
  /// The hash of the key, if it is known; null: it is not.
  const KeyHash* hash = nullptr;
  /// false: it fails immediately without memory. true: it makes room, and waits a while for memory
  /// that others hold.
  bool waits = true;
};

/// What a write did.
struct HashWritten {
  std::uint64_t version = 0;  ///< 0 if nothing was applied or versions are off
  bool applied = false;
  bool existed = false;
};

/// The result of adding to a counter.
struct HashSummed {
  std::uint64_t sum = 0;
  std::uint64_t version = 0;  ///< as HashWritten::version
  bool existed = false;
};

/// The result of a write, which may be answered when a version is released.
template <class T>
struct Unreleased {
  Result<T> answer;
  std::uint64_t version = 0;

  explicit Unreleased(Result<T> answer_in, std::uint64_t version_in = 0)
      : answer(std::move(answer_in)), version(version_in) {}
};

}  // namespace espalier::hash
