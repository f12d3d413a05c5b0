// SPDX-License-Identifier: Apache-2.0
// RocksDB's log, configured for commits: each put is synced, log files are recycled, nothing is
// compressed, and all fits into one memtable, so that nothing else is written.
#include <fmt/core.h>
#include <rocksdb/db.h>

#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/temporary_folder.hpp"
#include "bench/commit_points.hpp"
#include "bench/request_list.hpp"
#include "bench/together.hpp"

namespace espalier::bench {
namespace {

constexpr std::size_t kMemtableBytes = std::size_t{2} << 30;

void require_commit(const rocksdb::Status& status) {
  if (!status.ok()) throw std::runtime_error("RocksDB: " + status.ToString());
}

rocksdb::Options committing() {
  rocksdb::Options options;
  options.create_if_missing = true;
  options.compression = rocksdb::kNoCompression;
  options.write_buffer_size = kMemtableBytes;
  options.recycle_log_file_num = 4;
  return options;
}

std::unique_ptr<rocksdb::DB> open_committing(const std::string& path) {
  rocksdb::DB* opened = nullptr;
  require_commit(rocksdb::DB::Open(committing(), path, &opened));
  return std::unique_ptr<rocksdb::DB>(opened);
}

/// Fills log files, so that measured ones are recycled.
void fill_logs(rocksdb::DB& db) {
  constexpr int kLogs = 2;
  constexpr std::uint64_t kLogBytes = std::uint64_t{32} << 20;
  const std::string value(std::size_t{64} << 10, 'x');
  for (int log = 0; log < kLogs; ++log) {
    for (std::uint64_t bytes = 0; bytes < kLogBytes; bytes += value.size()) {
      require_commit(db.Put(rocksdb::WriteOptions(), "filling", value));
    }
    require_commit(db.Flush(rocksdb::FlushOptions()));
  }
  require_commit(db.Delete(rocksdb::WriteOptions(), "filling"));
}

/// Sums up what was acknowledged, read as at a start.
std::uint64_t sum_of_rocksdb(const std::string& path) {
  const auto db = open_committing(path);
  const std::unique_ptr<rocksdb::Iterator> at(db->NewIterator(rocksdb::ReadOptions()));
  std::uint64_t sum = 0;
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    std::uint64_t mark = 0;
    std::memcpy(&mark, at->value().data(), sizeof mark);
    sum += mark;
  }
  require_commit(at->status());
  return sum;
}

}  // namespace

PointSample measure_rocksdb_commits(const CommitSetting& setting) {
  const base::TemporaryFolder place(setting.dir);
  PointSample sample;
  std::vector<base::Histogram> latencies(setting.writers);
  {
    const auto db = open_committing(place.string());
    fill_logs(*db);
    rocksdb::WriteOptions synced;
    synced.sync = true;
    const auto write = [&](std::uint32_t i) {
      std::string value(setting.record_bytes, '\0');
      const std::uint64_t first = first_record(setting, i);
      const std::uint64_t end = first + share_of(setting.ops, setting.writers, i);
      for (std::uint64_t number = first; number < end; ++number) {
        const std::uint64_t mark = record_mark(number);
        std::memcpy(value.data(), &mark, sizeof mark);
        const rocksdb::Slice key(reinterpret_cast<const char*>(&number), sizeof number);
        const base::Stopwatch watch;
        require_commit(db->Put(synced, key, value));
        latencies[i].record(watch.elapsed_ns());
      }
    };
    sample.took(setting.ops, run_together(setting.writers, [](std::uint32_t) {}, write));
  }
  for (const base::Histogram& each : latencies) sample.latencies.merge(each);
  sample.ns_per_op *= setting.writers;
  sample.checksum = sum_of_rocksdb(place.string());
  return sample;
}

}  // namespace espalier::bench
