// SPDX-License-Identifier: Apache-2.0
#include "bench/hash_lines.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "bench/hash_work.hpp"
#include "bench/map_session.hpp"
#include "bench/probe.hpp"
#include "kinds/hash/hash_map.hpp"
#include "memory/region.hpp"
#include "store/store_core.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint64_t kPairsMost = 20'000;
constexpr std::uint64_t kPutsMost = 4000;
constexpr std::uint64_t kGetsMost = 100'000;
/// So few that each has several segments.
constexpr std::uint32_t kPartitions = 4;
/// Lines of a cache of 256 KiB.
constexpr std::uint64_t kNearLines = 4096;

/// Lines of a region, by their numbers, each once.
class LineSet {
 public:
  void add(std::uint64_t offset, std::size_t bytes) {
    if (bytes == 0) return;
    const std::uint64_t last = (offset + bytes - 1) / hash::kLineBytes;
    for (std::uint64_t line = offset / hash::kLineBytes; line <= last; ++line) add_line(line);
  }
  void add_line(std::uint64_t line) {
    if (!has(line)) lines_.push_back(line);
  }
  [[nodiscard]] bool has(std::uint64_t line) const {
    return std::ranges::find(lines_, line) != lines_.end();
  }
  [[nodiscard]] std::size_t size() const { return lines_.size(); }
  [[nodiscard]] const std::vector<std::uint64_t>& lines() const { return lines_; }

 private:
  std::vector<std::uint64_t> lines_;
};

/// The lines that one request has touched.
struct TouchedLines {
  LineSet bins;     // including overflow buckets
  LineSet records;  // that were read
  LineSet placed;   // of the record that was written
  LineSet links;    // version links that were written
  LineSet besides;  // the map's header, the partition's line, its directory
  LineSet freed;    // all other changes: freed records
};

/// A map's view for reading.hpp that records the lines read.
struct NotedView {
  const hash::HashView& view;
  TouchedLines& touched;

  void note(LineSet& to, const void* at, std::size_t bytes) const {
    to.add(static_cast<std::uint64_t>(static_cast<const std::byte*>(at) - view.image), bytes);
  }
  [[nodiscard]] hash::PlaceWord directory(std::uint32_t partition) const {
    note(touched.besides, view.partition_line(partition), hash::kLineBytes);
    return view.directory(partition);
  }
  [[nodiscard]] hash::PlaceWord segment(hash::PlaceWord directory, std::uint32_t index) const {
    note(touched.besides, view.entry(directory, index), sizeof directory);
    return view.segment(directory, index);
  }
  [[nodiscard]] const std::byte* bucket(hash::PlaceWord segment, std::uint32_t line) const {
    const std::byte* const at = view.bucket(segment, line);
    note(touched.bins, at, hash::kLineBytes);
    return at;
  }
  [[nodiscard]] static hash::BucketWord bucket_word_now(const std::byte* bin) {
    return hash::HashView::bucket_word_now(bin);
  }
  [[nodiscard]] hash::RecordView record(hash::Slot slot) const {
    const hash::RecordView record = view.record(slot);
    note(touched.records, record.at(), sizeof(hash::RecordHeader));
    return record;
  }
  // Notes the key, which is compared; the caller reads the value.
  [[nodiscard]] hash::Pair pair(const hash::RecordView& record) const {
    const hash::Pair pair = hash::HashView::pair(record);
    note(touched.records, pair.key.data(), pair.key.size());
    return pair;
  }
  [[nodiscard]] std::uint64_t purged(std::uint32_t partition) const {
    return view.purged(partition);
  }
};

/// The lines of a region that have changed since the last call.
class Changes {
 public:
  explicit Changes(const memory::Region& region)
      : region_(region), before_(region.base(), region.base() + region.end_offset()) {}

  [[nodiscard]] LineSet take() {
    if (before_.size() != region_.end_offset()) throw std::runtime_error("the region has grown");
    LineSet changed;
    for (std::size_t at = 0; at < before_.size(); at += kStep) {
      if (std::memcmp(&before_[at], region_.at(at), kStep) != 0) take_step(at, changed);
    }
    return changed;
  }

 private:
  static constexpr std::size_t kStep = 4096;

  void take_step(std::size_t begin, LineSet& changed) {
    for (std::size_t at = begin; at < begin + kStep; at += hash::kLineBytes) {
      if (std::memcmp(&before_[at], region_.at(at), hash::kLineBytes) == 0) continue;
      changed.add(at, hash::kLineBytes);
      std::memcpy(&before_[at], region_.at(at), hash::kLineBytes);
    }
  }

  const memory::Region& region_;
  std::vector<std::byte> before_;
};

/// A store with one map, its pairs put in sequence, and each replaced once, so that the next
/// records placed are reused ones.
class LinesWorld {
 public:
  explicit LinesWorld(const HashBenchOptions& options)
      : pairs_(std::min(options.pairs, kPairsMost), options.seed),
        random_(options.seed),
        core_(
            value_or_throw(memory::Region::reserve({.bytes_max = kBytesMost, .huge_pages = false}),
                           "cannot reserve a region"),
            kThreads),
        store_(hash::hash_store_of(core_.catalog)),
        map_(value_or_throw(
            hash::create_hash_map(store_, "lines",
                                  {.partitions = kPartitions, .versions = options.versions}),
            "cannot make a hash map")),
        thread_(value_or_throw(hash::HashThread::join(store_), "cannot use a store")) {
    for (int times = 0; times < 2; ++times) {
      for (std::uint64_t i = 0; i < pairs_.count(); ++i) put(i);
    }
  }

  PointSample gets(std::uint64_t count) {
    return measure(count, "get", [this](TouchedLines& touched) { get(random_pair(), touched); });
  }
  PointSample puts(std::uint64_t count) {
    Changes changes(core_.region);
    return measure(count, "put", [&](TouchedLines& touched) {
      const std::uint64_t pair = random_pair();
      (void)look_for(pair, touched);
      put(pair);
      sort(changes.take(), pair, touched);
    });
  }

 private:
  static constexpr std::uint64_t kBytesMost = std::uint64_t{64} << 20;
  static constexpr std::uint32_t kThreads = 8;

  [[nodiscard]] std::uint64_t random_pair() { return random_.below(pairs_.count()); }
  void put(std::uint64_t i) {
    const HashPairs::Key key = pairs_.key(i);
    const HashPairs::Value value = pairs_.value(i);
    (void)value_or_throw(map_->put(thread_, {key.data(), key.size()}, {value.data(), value.size()}),
                         "put");
  }
  /// The record of an existing pair, with all lines that finding it touches.
  hash::RecordView look_for(std::uint64_t i, TouchedLines& touched) {
    const HashPairs::Key key = pairs_.key(i);
    const std::string_view text(key.data(), key.size());
    const NotedView noted{*map_, touched};
    const hash::Looked looked =
        hash::look_up(noted, map_->hash(text), text, hash::kAnyVersion, true);
    if (looked.look != hash::Look::found) throw std::runtime_error("a pair is missing");
    return map_->record(looked.record);
  }
  void get(std::uint64_t i, TouchedLines& touched) {
    const NotedView noted{*map_, touched};
    const std::byte* const header = map_->image + map_->header_offset;
    noted.note(touched.besides, header + offsetof(hash::HashHeader, read_version), 8);
    const std::string_view value = look_for(i, touched).pair().value;
    noted.note(touched.records, value.data(), value.size());
  }
  /// Classifies the lines that a put has changed.
  void sort(const LineSet& changed, std::uint64_t i, TouchedLines& touched) {
    TouchedLines after;
    const hash::Pair pair = look_for(i, after).pair();
    const NotedView noted{*map_, after};
    noted.note(after.records, pair.value.data(), pair.value.size());
    const std::uint64_t header = map_->header_offset / hash::kLineBytes;
    const std::uint64_t lines = sizeof(hash::HashHeader) / hash::kLineBytes + kPartitions;
    for (const std::uint64_t line : changed.lines()) {
      if (after.records.has(line)) {
        touched.placed.add_line(line);
      } else if (line >= header && line < header + lines) {
        touched.besides.add_line(line);
      } else if (is_of_links(line)) {
        touched.links.add_line(line);
      } else if (!touched.bins.has(line)) {
        touched.freed.add_line(line);
      }
    }
  }
  [[nodiscard]] bool is_of_links(std::uint64_t line) const {
    const std::uint64_t offset = line * hash::kLineBytes;
    const hash::RecordStore& records = map_->records();
    return records.class_at(offset) == hash::kLinkClass ||
           records.class_at(offset + sizeof(hash::VersionLink)) == hash::kLinkClass;
  }
  /// Lines that were not among the last ones touched; they are now.
  std::uint64_t far_of(const TouchedLines& touched) {
    std::uint64_t far = 0;
    LineSet all;
    for (const LineSet* const some : {&touched.bins, &touched.records, &touched.placed,
                                      &touched.links, &touched.besides, &touched.freed}) {
      for (const std::uint64_t line : some->lines()) all.add_line(line);
    }
    for (const std::uint64_t line : all.lines()) {
      const auto [at, fresh] = last_touched_.try_emplace(line, touches_);
      if (fresh || touches_ - at->second >= kNearLines) ++far;
      at->second = touches_++;
    }
    return far;
  }

  /// Counts so many requests, after as many uncounted ones: then new records come from freed ones.
  template <class Request>
  PointSample measure(std::uint64_t count, const std::string& what, const Request& request) {
    double bins = 0, read = 0, placed = 0, links = 0, besides = 0, freed = 0, far = 0;
    const base::Stopwatch watch;
    for (std::uint64_t i = 0; i < 2 * count; ++i) {
      TouchedLines touched;
      request(touched);
      const std::uint64_t far_now = far_of(touched);
      if (i < count) continue;
      bins += static_cast<double>(touched.bins.size());
      read += static_cast<double>(touched.records.size());
      placed += static_cast<double>(touched.placed.size());
      links += static_cast<double>(touched.links.size());
      besides += static_cast<double>(touched.besides.size());
      freed += static_cast<double>(touched.freed.size());
      far += static_cast<double>(far_now);
    }
    PointSample sample;
    sample.took(count, static_cast<double>(watch.elapsed_ns()) * 1e-9);
    sample.checksum = count;
    const auto of = static_cast<double>(count);
    sample.numbers = {{"lines_per_" + what, (bins + read + placed) / of},
                      {"bin_lines", bins / of},
                      {"record_lines_read", read / of},
                      {"record_lines_placed", placed / of},
                      {"link_lines", links / of},
                      {"header_lines", besides / of},
                      {"freed_lines", freed / of},
                      {"far_lines", far / of}};
    return sample;
  }

  const HashPairs pairs_;
  base::Random random_;
  tree::StoreCore core_;
  hash::HashStore& store_;
  const std::shared_ptr<hash::HashMap> map_;
  hash::HashThread thread_;
  std::unordered_map<std::uint64_t, std::uint64_t> last_touched_;  // of lines, the touch
  std::uint64_t touches_ = 0;
};

MeasuredPoint lines_of_one(const HashBenchOptions& options, bool puts) {
  MeasuredPoint point;
  point.target = "embedded";
  point.workload = puts ? "lines-of-puts" : "lines-of-gets";
  point.parameters["keys"] = std::min(options.pairs, kPairsMost);
  point.parameters["key_bytes"] = kHashKeyBytes;
  point.parameters["value_bytes"] = kHashValueBytes;
  point.parameters["versions"] = options.versions;
  point.answers = puts ? "all put" : "all found";
  point.measure = [&options, puts] {
    PointSample sample;
    run_pinned([&] {
      LinesWorld world(options);
      sample = puts ? world.puts(std::min(options.ops, kPutsMost))
                    : world.gets(std::min(options.ops, kGetsMost));
    });
    return sample;
  };
  return point;
}

}  // namespace

std::vector<MeasuredPoint> line_points(const HashBenchOptions& options) {
  std::vector<MeasuredPoint> points;
  points.push_back(lines_of_one(options, false));
  points.push_back(lines_of_one(options, true));
  return points;
}

}  // namespace espalier::bench
