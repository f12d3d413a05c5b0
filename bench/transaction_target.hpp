// SPDX-License-Identifier: Apache-2.0
// A store under transactions: Espalier's in this process, or RocksDB with its pessimistic ones.
// Both get the same requests.
//
//   embedded  two hash maps that share a clock; reads are conditions of the writes, and a
//             transaction whose conditions fail reads again
//   rocksdb   a TransactionDB with its files in memory and without a log; reads take locks, except
//             in transactions that write nothing, which read a snapshot
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace espalier::bench {

enum class TransactionTargetKind : std::uint8_t { embedded, rocksdb };

[[nodiscard]] std::string_view name(TransactionTargetKind kind);
[[nodiscard]] std::optional<TransactionTargetKind> parse_transaction_target(std::string_view text);

/// A key of a transaction, of one of two maps.
struct TransactionKey {
  std::uint8_t map = 0;
  std::uint64_t number = 0;
  bool writes = false;  ///< false: only read
};

inline constexpr std::uint8_t kTransactionMaps = 2;

/// One thread's session with a target. Errors, of all calls: throw std::runtime_error.
class TransactionSession {
 public:
  /// Gets the values of all keys, sets those to be written, and returns whether they are.
  using Change = std::function<bool(std::span<std::string> values)>;

  virtual ~TransactionSession() = default;

  virtual void load(std::uint8_t map, std::uint64_t number, std::string_view value) = 0;
  /// Reads all keys and writes some of them atomically. `change` may run several times; the last
  /// run counts. Requires: keys ascend.
  virtual void modify(std::span<const TransactionKey> keys, const Change& change) = 0;
  /// Reads some keys and writes others atomically, all with one value. Returns a sum of the values
  /// read. Requires: as modify(); all keys exist.
  virtual std::uint64_t run(std::span<const TransactionKey> keys, std::string_view value) = 0;
  /// How often a conflict made it start again.
  [[nodiscard]] std::uint64_t repeats() const { return repeats_; }

 protected:
  std::uint64_t repeats_ = 0;
};

class TransactionTarget {
 public:
  virtual ~TransactionTarget() = default;
  [[nodiscard]] virtual std::unique_ptr<TransactionSession> open_session() = 0;
};

/// An empty one. Errors: throw std::runtime_error.
[[nodiscard]] std::unique_ptr<TransactionTarget> make_transaction_target(
    TransactionTargetKind kind);
[[nodiscard]] std::unique_ptr<TransactionTarget> make_embedded_transactions();
[[nodiscard]] std::unique_ptr<TransactionTarget> make_rocksdb_transactions();

}  // namespace espalier::bench
