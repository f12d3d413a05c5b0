// SPDX-License-Identifier: Apache-2.0
// RocksDB with its files in memory, no write-ahead log, no compression, and a block cache that
// holds everything. After loading it is compacted, so that reads meet one sorted level.
//
// Inserts are blind puts, and read-modify-writes a get and a put: what its interface offers.
#include <fmt/core.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>

#include <stdexcept>
#include <utility>

#include "bench/target.hpp"

namespace espalier::bench {
namespace {

rocksdb::Slice slice(std::string_view bytes) { return {bytes.data(), bytes.size()}; }

void require_rocksdb(const rocksdb::Status& status, std::string_view what) {
  if (!status.ok()) throw std::runtime_error(fmt::format("{}: {}", what, status.ToString()));
}

class RocksdbSession : public SerialSession<RocksdbSession> {
 public:
  explicit RocksdbSession(rocksdb::DB& db) : db_(db) {
    write_.disableWAL = true;
    iterator_.reset(db_.NewIterator(rocksdb::ReadOptions()));
  }

  void execute(const Request& request, Answers& answers) {
    switch (request.op) {
      case Op::get: get(request, answers); break;
      case Op::put:
      case Op::insert:
        take(db_.Put(write_, slice(request.key), slice(request.value)), request, answers);
        break;
      case Op::erase: take(db_.Delete(write_, slice(request.key)), request, answers); break;
      default: scan(request, answers);
    }
  }

 private:
  void get(const Request& request, Answers& answers) {
    value_.Reset();
    const rocksdb::Status status =
        db_.Get(rocksdb::ReadOptions(), db_.DefaultColumnFamily(), slice(request.key), &value_);
    if (status.ok()) {
      answers.value(request.tag, value_.ToStringView());
    } else if (status.IsNotFound()) {
      answers.missing(request.tag);
    } else {
      return answers.fail(status.ToString());
    }
    if ((request.tag & kReadModifyWriteTag) != 0) {
      take(db_.Put(write_, slice(request.key), slice(request.value)), request, answers);
    }
  }

  void scan(const Request& request, Answers& answers) {
    const rocksdb::Status fresh = iterator_->Refresh();  // to see what was written since
    if (!fresh.ok()) return answers.fail(fresh.ToString());
    const bool bounded = request.op == Op::scan_floor;
    if (bounded) {
      iterator_->SeekForPrev(slice(request.key));
      if (!iterator_->Valid()) iterator_->SeekToFirst();
    } else {
      iterator_->Seek(slice(request.key));
    }
    std::uint64_t sum = 0;
    std::uint64_t count = 0;
    while (iterator_->Valid()) {
      const std::string_view key = iterator_->key().ToStringView();
      if (bounded && key > request.high) break;
      sum += item_hash(key, iterator_->value().ToStringView());
      if (++count == request.limit) break;  // advancing to an unused item costs time
      iterator_->Next();
    }
    if (!iterator_->status().ok()) return answers.fail(iterator_->status().ToString());
    answers.items(request.tag, sum);
    answers.scan_done(request.tag, count);
  }

  static void take(const rocksdb::Status& status, const Request& request, Answers& answers) {
    status.ok() ? answers.written(request.tag, true) : answers.fail(status.ToString());
  }

  rocksdb::DB& db_;
  rocksdb::WriteOptions write_;
  std::unique_ptr<rocksdb::Iterator> iterator_;
  rocksdb::PinnableSlice value_;
};

class RocksdbTarget : public Target {
 public:
  explicit RocksdbTarget(const TargetOptions& target)
      : env_(rocksdb::NewMemEnv(rocksdb::Env::Default())) {
    const std::uint64_t item_bytes =
        (target.fixed_key_bytes == 0 ? 32 : target.fixed_key_bytes) + target.value_bytes + 64;
    rocksdb::BlockBasedTableOptions table;
    const std::uint64_t cache_bytes = (std::uint64_t{1} << 28) + target.items_max * item_bytes;
    table.block_cache = rocksdb::NewLRUCache(cache_bytes);
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    rocksdb::Options options;
    options.env = env_.get();
    options.create_if_missing = true;
    options.compression = rocksdb::kNoCompression;
    options.write_buffer_size = std::size_t{256} << 20;
    options.max_write_buffer_number = 4;
    options.max_open_files = -1;
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    rocksdb::DB* opened = nullptr;
    require_rocksdb(rocksdb::DB::Open(options, "/bench", &opened), "cannot open RocksDB");
    db_.reset(opened);
  }

  std::unique_ptr<TargetSession> open_session() override {
    return std::make_unique<RocksdbSession>(*db_);
  }

  void finish_load() override {
    require_rocksdb(db_->Flush(rocksdb::FlushOptions()), "cannot flush RocksDB");
    require_rocksdb(db_->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr),
                    "cannot compact RocksDB");
  }

  Contents contents() override {
    Contents result;
    const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(rocksdb::ReadOptions()));
    for (at->SeekToFirst(); at->Valid(); at->Next(), ++result.items) {
      result.hash += item_hash(at->key().ToStringView(), at->value().ToStringView());
    }
    require_rocksdb(at->status(), "cannot scan RocksDB");
    return result;
  }

  [[nodiscard]] std::string settings() const override {
    return "one call at a time, files in memory, no log, block cache for all, Bloom filters; "
           "inserts and erases do not look for the key";
  }

 private:
  std::unique_ptr<rocksdb::Env> env_;  // outlives the database
  std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace

std::unique_ptr<Target> make_rocksdb_target(const TargetOptions& options) {
  return std::make_unique<RocksdbTarget>(options);
}

}  // namespace espalier::bench
