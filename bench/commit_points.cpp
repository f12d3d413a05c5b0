// SPDX-License-Identifier: Apache-2.0
#include "bench/commit_points.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "base/cpu.hpp"
#include "base/temporary_folder.hpp"
#include "bench/map_session.hpp"
#include "bench/request_list.hpp"
#include "bench/together.hpp"
#include "log/log.hpp"
#include "log/mapped_folder.hpp"
#include "log/posix_folder.hpp"
#include "log/unit_buffer.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint64_t kBenchStore = 1;
constexpr const char* kMemoryFolder = "/dev/shm";
/// Size of the file whose flushes are measured, which is overwritten cyclically.
constexpr std::uint64_t kFlushedBytes = std::uint64_t{64} << 20;

[[noreturn]] void throw_log(const log::LogError& error) {
  throw std::runtime_error(log::message(error));
}

std::unique_ptr<log::Log> open_log(log::LogFolder& folder, const CommitSetting& setting) {
  log::LogOptions options;
  options.recovery.node = kBenchStore;
  options.writer.writes_max = setting.writes;
  auto opened = log::Log::open(folder, options, [](std::uint64_t, auto) { return Result<void>(); });
  if (!opened) throw_log(opened.error());
  return std::move(*opened);
}

/// Appends a record. Requires: there is room.
std::uint64_t append_record(log::LogWriter& log, std::span<std::byte> room, std::uint64_t number) {
  std::memset(room.data(), 0, room.size());
  const std::uint64_t mark = record_mark(number);
  std::memcpy(room.data(), &mark, sizeof mark);
  return log.append(room);
}

/// One thread that appends, and waits for the oldest of its records once so many are in flight.
class Writer {
 public:
  Writer(log::LogWriter& log, std::uint32_t record_bytes, std::uint32_t in_flight)
      : log_(log), record_bytes_(record_bytes), in_flight_(in_flight) {}

  void run(std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t number = first; number < first + count; ++number) {
      if (waiting_.size() == in_flight_) take_oldest();
      append(number);
    }
    while (!waiting_.empty()) take_oldest();
  }
  base::Histogram latencies;

 private:
  struct Waiting {
    std::uint64_t sequence;
    std::uint64_t begun_ns;
  };

  void append(std::uint64_t number) {
    const std::uint64_t begun_ns = base::monotonic_ns();
    auto room = log_.reserve(record_bytes_);
    while (!room) {
      if (room.error().code != Code::busy) {
        throw std::runtime_error("the log takes no record: " + message(room.error()));
      }
      waiting_.empty() ? std::this_thread::yield() : take_oldest();
      room = log_.reserve(record_bytes_);
    }
    waiting_.push_back({append_record(log_, *room, number), begun_ns});
  }
  void take_oldest() {
    const Waiting oldest = waiting_.front();
    waiting_.pop_front();
    if (const auto done = log_.acknowledgements().wait(oldest.sequence); !done) {
      throw_log(done.error());
    }
    latencies.record(base::monotonic_ns() - oldest.begun_ns);
  }

  log::LogWriter& log_;
  const std::uint32_t record_bytes_;
  const std::uint32_t in_flight_;
  std::deque<Waiting> waiting_;
};

/// Sums up what was acknowledged, read as at a start.
std::uint64_t sum_of_log(log::LogFolder& folder) {
  std::uint64_t sum = 0;
  log::RecoveryTerms terms;
  terms.node = kBenchStore;
  const auto read = log::recover_all(
      folder, terms, [&](std::uint64_t, std::span<const std::byte> record) -> Result<void> {
        std::uint64_t mark = 0;
        std::memcpy(&mark, record.data(), sizeof mark);
        sum += mark;
        return {};
      });
  if (!read) throw_log(read.error());
  return sum;
}

}  // namespace

std::uint64_t record_mark(std::uint64_t number) { return number * 0x9e3779b97f4a7c15 + 1; }

std::uint64_t first_record(const CommitSetting& setting, std::uint32_t writer) {
  std::uint64_t first = 0;
  for (std::uint32_t i = 0; i < writer; ++i) first += share_of(setting.ops, setting.writers, i);
  return first;
}

namespace {

PointSample measure_commits_in(log::LogFolder& folder, const CommitSetting& setting) {
  PointSample sample;
  double written_bytes = 0;
  {
    const auto opened = open_log(folder, setting);
    log::LogWriter& log = opened->writer();
    std::vector<std::unique_ptr<Writer>> writers;
    for (std::uint32_t i = 0; i < setting.writers; ++i) {
      writers.push_back(std::make_unique<Writer>(log, setting.record_bytes, setting.in_flight));
    }
    const double seconds = run_together(
        setting.writers, [](std::uint32_t) {},
        [&](std::uint32_t i) {
          writers[i]->run(first_record(setting, i), share_of(setting.ops, setting.writers, i));
        });
    sample.took(setting.ops, seconds);
    for (const auto& writer : writers) sample.latencies.merge(writer->latencies);
    written_bytes = static_cast<double>(log.written_bytes());
    if (const auto closed = opened->close(); !closed) throw_log(closed.error());
  }
  sample.ns_per_op *= setting.writers;
  sample.numbers.emplace_back("written_bytes_per_op",
                              written_bytes / static_cast<double>(setting.ops));
  sample.checksum = sum_of_log(folder);
  return sample;
}

}  // namespace

PointSample measure_log_commits(const CommitSetting& setting) {
  const base::TemporaryFolder place(setting.dir);
  log::PosixFolder folder(place.string());
  return measure_commits_in(folder, setting);
}

PointSample measure_mapped_commits(const CommitSetting& setting) {
  const base::TemporaryFolder place(kMemoryFolder);
  const auto folder =
      value_or_throw(log::MappedFolder::at(place.string()), "there is no tmpfs at /dev/shm");
  return measure_commits_in(*folder, setting);
}

PointSample measure_log_arrivals(const CommitSetting& setting) {
  const base::TemporaryFolder place(setting.dir);
  log::PosixFolder folder(place.string());
  PointSample sample;
  {
    const auto opened = open_log(folder, setting);
    log::LogWriter& log = opened->writer();
    base::Histogram& latencies = sample.latencies;  // one callback at a time
    const std::uint64_t gap_ns = std::uint64_t{setting.gap_us} * 1000;
    const std::uint64_t begin_ns = base::monotonic_ns();
    std::uint64_t sequence = 0;
    for (std::uint64_t number = 0; number < setting.ops; ++number) {
      const std::uint64_t due_ns = begin_ns + number * gap_ns;
      while (base::monotonic_ns() < due_ns) base::spin_pause();
      const auto room = log.reserve(setting.record_bytes);
      if (!room) throw std::runtime_error("the log takes no record: " + message(room.error()));
      sequence = append_record(log, *room, number);
      log.acknowledgements().when_durable(sequence, [&, due_ns](const log::LogError* error) {
        if (error == nullptr) latencies.record(base::monotonic_ns() - due_ns);
      });
    }
    if (const auto done = log.acknowledgements().wait(sequence); !done) throw_log(done.error());
    const std::uint64_t took_ns = base::monotonic_ns() - begin_ns;
    const auto written_bytes = static_cast<double>(log.written_bytes());
    if (const auto closed = opened->close(); !closed) throw_log(closed.error());
    sample.took(setting.ops, static_cast<double>(took_ns) / 1e9);
    sample.numbers.emplace_back("written_bytes_per_op",
                                written_bytes / static_cast<double>(setting.ops));
  }
  sample.checksum = sum_of_log(folder);
  return sample;
}

PointSample measure_disk_flushes(const CommitSetting& setting) {
  const base::TemporaryFolder place(setting.dir);
  log::PosixFolder folder(place.string());
  const auto file = folder.create("flushed");
  if (!file) throw std::runtime_error("cannot make a file: " + message(file.error()));
  if (const auto filled = (*file)->fill(kFlushedBytes); !filled) {
    throw std::runtime_error("cannot fill a file: " + message(filled.error()));
  }
  const std::size_t bytes =
      base::round_up(std::size_t{setting.record_bytes}, std::size_t{log::kUnitBytes});
  log::UnitBuffer buffer;
  buffer.reserve(bytes);
  std::memset(buffer.bytes().data(), 1, bytes);
  std::atomic<std::uint64_t> next = 0;  // its place is cyclic
  std::vector<base::Histogram> latencies(setting.writers);
  const auto work = [&](std::uint32_t writer) {
    for (std::uint64_t i = share_of(setting.ops, setting.writers, writer); i > 0; --i) {
      const base::Stopwatch one;
      const std::uint64_t offset = next++ % (kFlushedBytes / bytes) * bytes;
      const auto written = (*file)->write(offset, buffer.bytes().first(bytes));
      if (!written || *written != bytes) throw std::runtime_error("the disk takes no write");
      latencies[writer].record(one.elapsed_ns());
    }
  };
  PointSample sample;
  sample.took(setting.ops, run_together(setting.writers, [](std::uint32_t) {}, work));
  sample.ns_per_op *= setting.writers;
  for (const base::Histogram& each : latencies) sample.latencies.merge(each);
  sample.numbers.emplace_back("written_bytes_per_op", static_cast<double>(bytes));
  sample.checksum = setting.ops;
  return sample;
}

}  // namespace espalier::bench
