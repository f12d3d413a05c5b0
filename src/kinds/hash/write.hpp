// SPDX-License-Identifier: Apache-2.0
// What a write of a hash map is, and what it has come to.
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

/// A record that was seen, so that it can be known again.
struct RecordStamp {
  Slot record{};  // empty: there was none
  std::uint32_t generation = 0;
  std::uint64_t version = 0;
};

/// What was done for a write before it is begun, and what it does where it finds no memory.
struct WriteHelp {
  /// The pair as a whole (HashMap::stage()), which the write takes if it writes it; null: it copies
  /// the pair itself.
  memory::StagedBytes* staged = nullptr;
  /// In place of a condition: the record that the key must have, or none, for it was compared with
  /// what is expected; null: nothing was compared.
  const RecordStamp* expected = nullptr;
  /// The key's, where it is known; null: it is not.
  const KeyHash* hash = nullptr;
  /// false: it is refused at once where there is no memory. Else it makes room, and waits a while
  /// for what others hold.
  bool waits = true;
};

/// What a write did.
struct HashWritten {
  std::uint64_t version = 0;  ///< 0 if nothing was applied or versions are off
  bool applied = false;
  bool existed = false;
};

/// What adding to a counter came to.
struct HashSummed {
  std::uint64_t sum = 0;
  std::uint64_t version = 0;  ///< as HashWritten::version
  bool existed = false;
};

/// What a write has come to, which may be answered when a version is released.
template <class T>
struct Unreleased {
  Result<T> answer;
  std::uint64_t version = 0;

  explicit Unreleased(Result<T> answer_in, std::uint64_t version_in = 0)
      : answer(std::move(answer_in)), version(version_in) {}
};

}  // namespace espalier::hash
