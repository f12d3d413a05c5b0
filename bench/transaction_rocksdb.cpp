// SPDX-License-Identifier: Apache-2.0
#include <rocksdb/env.h>
#include <rocksdb/snapshot.h>
#include <rocksdb/utilities/transaction.h>
#include <rocksdb/utilities/transaction_db.h>

#include <stdexcept>

#include "base/bytes.hpp"
#include "bench/mix.hpp"
#include "bench/transaction_target.hpp"

namespace espalier::bench {
namespace {

constexpr std::size_t kTransactionMemtableBytes = std::size_t{1} << 30;
constexpr std::int64_t kLockTimeoutMs = 100;

void require_transaction(const rocksdb::Status& status) {
  if (!status.ok()) throw std::runtime_error("RocksDB: " + status.ToString());
}

/// Whether a transaction failed because of other transactions' locks: then it is retried.
bool comes_again(const rocksdb::Status& status) {
  return status.IsBusy() || status.IsTimedOut() || status.IsTryAgain();
}

rocksdb::Slice slice_of(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

/// One byte of its map, and its number.
std::string rocksdb_key(const TransactionKey& key) {
  std::string bytes(1, static_cast<char>('a' + key.map));
  bytes += base::bytes_of(key.number);
  return bytes;
}

class RocksdbTransactions final : public TransactionSession {
 public:
  explicit RocksdbTransactions(rocksdb::TransactionDB& db) : db_(db) {
    write_.disableWAL = true;
    options_.lock_timeout = kLockTimeoutMs;
  }

  void load(std::uint8_t map, std::uint64_t number, std::string_view value) override {
    require_transaction(db_.Put(write_, rocksdb_key({map, number}), slice_of(value)));
  }

  void modify(std::span<const TransactionKey> keys, const Change& change) override {
    bool writes = false;
    for (const TransactionKey& key : keys) writes = writes || key.writes;
    values_.resize(keys.size());
    if (!writes) return read_alone(keys, change);
    until_committed([&] { return try_to_modify(keys, change); });
  }

  std::uint64_t run(std::span<const TransactionKey> keys, std::string_view value) override {
    std::uint64_t sum = 0;
    until_committed([&] {
      sum = 0;
      for (const TransactionKey& key : keys) {
        const rocksdb::Status status =
            key.writes ? transaction_->Put(rocksdb_key(key), slice_of(value))
                       : transaction_->GetForUpdate(rocksdb::ReadOptions(), rocksdb_key(key),
                                                    &found_, false);
        if (!status.ok()) return status;
        if (!key.writes) sum += bytes_hash(found_);
      }
      return transaction_->Commit();
    });
    return sum;
  }

 private:
  template <class Attempt>
  void until_committed(const Attempt& attempt) {
    while (true) {
      transaction_.reset(db_.BeginTransaction(write_, options_, transaction_.release()));
      const rocksdb::Status status = attempt();
      if (status.ok()) return;
      static_cast<void>(transaction_->Rollback());
      if (!comes_again(status)) require_transaction(status);
      ++repeats_;
    }
  }

  void read_alone(std::span<const TransactionKey> keys, const Change& change) {
    rocksdb::ManagedSnapshot snapshot(&db_);
    rocksdb::ReadOptions options;
    options.snapshot = snapshot.snapshot();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      require_transaction(db_.Get(options, rocksdb_key(keys[i]), &values_[i]));
    }
    static_cast<void>(change(values_));
  }

  rocksdb::Status try_to_modify(std::span<const TransactionKey> keys, const Change& change) {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const rocksdb::Status status = transaction_->GetForUpdate(
          rocksdb::ReadOptions(), rocksdb_key(keys[i]), &values_[i], keys[i].writes);
      if (!status.ok()) return status;
    }
    if (!change(values_)) return transaction_->Rollback();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (!keys[i].writes) continue;
      const rocksdb::Status status = transaction_->Put(rocksdb_key(keys[i]), values_[i]);
      if (!status.ok()) return status;
    }
    return transaction_->Commit();
  }

  rocksdb::TransactionDB& db_;
  rocksdb::WriteOptions write_;
  rocksdb::TransactionOptions options_;
  std::unique_ptr<rocksdb::Transaction> transaction_;  // reused
  std::vector<std::string> values_;
  std::string found_;
};

class RocksdbTransactionTarget final : public TransactionTarget {
 public:
  RocksdbTransactionTarget() : env_(rocksdb::NewMemEnv(rocksdb::Env::Default())) {
    rocksdb::Options options;
    options.env = env_.get();
    options.create_if_missing = true;
    options.compression = rocksdb::kNoCompression;
    options.write_buffer_size = kTransactionMemtableBytes;  // nothing is ever flushed
    rocksdb::TransactionDB* opened = nullptr;
    require_transaction(
        rocksdb::TransactionDB::Open(options, rocksdb::TransactionDBOptions(), "/bench", &opened));
    db_.reset(opened);
  }
  std::unique_ptr<TransactionSession> open_session() override {
    return std::make_unique<RocksdbTransactions>(*db_);
  }

 private:
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::TransactionDB> db_;
};

}  // namespace

std::unique_ptr<TransactionTarget> make_rocksdb_transactions() {
  return std::make_unique<RocksdbTransactionTarget>();
}

}  // namespace espalier::bench
