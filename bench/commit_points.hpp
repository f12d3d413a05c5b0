// SPDX-License-Identifier: Apache-2.0
// Records written until they are durable: one measurement of `espalier-bench log`.
#pragma once

#include <cstdint>
#include <filesystem>

#include "bench/point_run.hpp"

namespace espalier::bench {

struct CommitSetting {
  std::filesystem::path dir;  ///< parent of the data folder
  std::uint32_t record_bytes = 100;
  std::uint32_t writers = 1;
  std::uint32_t in_flight = 1;  ///< of each writer
  std::uint64_t ops = 0;        ///< of all writers
  std::uint32_t writes = 4;     ///< of the log, in flight
  std::uint32_t gap_us = 0;     ///< between records that are due apart
};

/// For all of them: latencies count from the hand-over of a record until it is acknowledged. The
/// checksum is of what is read back from the disk. Errors: throw std::runtime_error.

/// By Espalier's log and its flusher.
[[nodiscard]] PointSample measure_log_commits(const CommitSetting& setting);
/// The same on persistent memory, emulated by a tmpfs at /dev/shm, whatever the setting's folder
/// is.
[[nodiscard]] PointSample measure_mapped_commits(const CommitSetting& setting);
/// The same for records that are due at given times, whether earlier ones are durable or not.
/// Latencies count from when a record was due.
[[nodiscard]] PointSample measure_log_arrivals(const CommitSetting& setting);
/// By RocksDB: one put at a time in each writer, with WriteOptions::sync and recycled files.
[[nodiscard]] PointSample measure_rocksdb_commits(const CommitSetting& setting);
/// By writes of as many whole units, each with its flush, to an existing file: as many at a time as
/// there are writers.
[[nodiscard]] PointSample measure_disk_flushes(const CommitSetting& setting);

/// The contribution of record `number` to the checksum, also its first bytes.
[[nodiscard]] std::uint64_t record_mark(std::uint64_t number);
/// The number of a writer's first record.
[[nodiscard]] std::uint64_t first_record(const CommitSetting& setting, std::uint32_t writer);

}  // namespace espalier::bench
