// SPDX-License-Identifier: Apache-2.0
#include "tools/loader.hpp"

#include <fmt/format.h>

#include <memory>
#include <span>
#include <utility>

#include "kinds/map/format/node.hpp"
#include "tools/numbers.hpp"
#include "tools/progress.hpp"
#include "tools/record_sink.hpp"

namespace espalier::tools {
namespace {

constexpr const char* kMemoryHint = "Give it more with --memory-max SIZE, or load less.";
constexpr const char* kNodeMemoryHint =
    "What was loaded stays. Give the node more (memory.limit), or load less.";

/// Reads files into a map, one after another.
class Loader {
 public:
  /// `memory_hint`: what to do when the map's memory is used up.
  Loader(Environment& environment, const SourceOptions& options, std::uint32_t max_key_bytes,
         RecordSink& sink, const char* memory_hint, LoadReport& report)
      : environment_(environment),
        options_(options),
        max_key_bytes_(max_key_bytes),
        sink_(sink),
        memory_hint_(memory_hint),
        report_(report),
        progress_(environment, "loading", total_bytes()) {}

  Outcome<void> run() {
    for (const std::string& file : options_.files) {
      if (report_.stopped_early) break;
      if (auto done = read_file(file); !done) return done;
    }
    if (const auto lost = sink_.finish()) return explain(*lost);
    report_.duplicates = sink_.existed();
    return {};
  }

 private:
  /// Bytes of all files together, if that is known of each.
  std::optional<std::uint64_t> total_bytes() {
    std::uint64_t total = 0;
    for (const std::string& file : options_.files) {
      if (file == kStandardInput) return std::nullopt;
      const auto info = environment_.files.info(file);
      if (!info || !info->size_bytes) return std::nullopt;
      total += *info->size_bytes;
    }
    return total;
  }

  Outcome<void> read_file(const std::string& file) {
    if (file == kStandardInput) return read_source(environment_.input, "standard input");
    auto source = environment_.files.open(file);
    if (!source) {
      return failed(fmt::format("cannot open '{}': {}", file, reason(source.error())));
    }
    return read_source(**source, file);
  }

  Outcome<void> read_source(ByteSource& source, const std::string& file) {
    RecordReader reader(source, reader_options_for(options_, file));
    const std::uint64_t bytes_before = report_.input_bytes;
    Outcome<void> result;
    while (result && !report_.stopped_early) {
      const RecordReader::Next next = reader.next();
      if (next == RecordReader::Next::end) break;
      if (next == RecordReader::Next::failed) {
        result = failed(fmt::format("cannot read '{}': {}", file, reason(reader.error())));
        break;
      }
      if (next == RecordReader::Next::bad) {
        note_bad(file, reader.bad());
      } else {
        result = store(file, reader.record());
      }
      progress_.update(bytes_before + reader.consumed_bytes(), report_.records);
    }
    report_.input_bytes = bytes_before + reader.consumed_bytes();
    report_.blank_lines += reader.blank_lines();
    report_.has_values |= reader.format() != Format::lines || options_.reader.number_lines;
    report_.format = reader.format();
    report_.header = reader.header();
    report_.columns = reader.columns();
    return result;
  }

  Outcome<void> store(const std::string& file, const Record& record) {
    if (record.key.empty() || record.key.size() > max_key_bytes_) {
      note_bad(file, {record.line, record.key.empty()
                                       ? std::string("the key is empty")
                                       : fmt::format("the key has {} bytes; the limit is {}",
                                                     record.key.size(), max_key_bytes_)});
      return {};
    }
    if (record.value.size() > wire::kValueBytesMax) {
      note_bad(file, {record.line, fmt::format("the value has {}; the limit is 16 MiB",
                                               format_bytes(record.value.size()))});
      return {};
    }
    if (const auto lost = sink_.put(file, record)) return explain(*lost);
    ++report_.records;
    report_.key_bytes += record.key.size();
    report_.value_bytes += record.value.size();
    return {};
  }

  [[nodiscard]] std::unexpected<Failure> explain(const RecordSink::Lost& lost) const {
    if (lost.error.code == Code::out_of_memory) {
      return failed(fmt::format("'{}' line {}: the map's memory limit is reached after {} records",
                                lost.file, lost.line, format_count(report_.records)),
                    memory_hint_);
    }
    return failed(fmt::format("'{}' line {}: {}", lost.file, lost.line, reason(lost.error)));
  }

  void note_bad(const std::string& file, BadRecord record) {
    ++report_.bad_lines;
    if (report_.shown.size() < LoadReport::kShownMax) {
      progress_.wipe();
      environment_.err << fmt::format("{}:{}: bad line: {}\n", file, record.line, record.reason);
      report_.shown.push_back({file, std::move(record)});
    }
    if (options_.bad_lines_max && report_.bad_lines > *options_.bad_lines_max) {
      report_.stopped_early = true;
    }
  }

  Environment& environment_;
  const SourceOptions& options_;
  std::uint32_t max_key_bytes_;
  RecordSink& sink_;
  const char* memory_hint_;
  LoadReport& report_;
  Progress progress_;
};

void report_hidden_bad_lines(Environment& environment, const LoadReport& report) {
  if (report.bad_lines <= report.shown.size()) return;
  print_note(environment, "note",
             fmt::format("{} more bad lines are not shown",
                         format_count(report.bad_lines - report.shown.size())));
}

Outcome<LoadReport> load_through(Environment& environment, const SourceOptions& options,
                                 std::uint32_t max_key_bytes, RecordSink& sink,
                                 const char* memory_hint) {
  LoadReport report;
  const std::uint64_t start_ns = environment.now_ns();
  Loader loader(environment, options, max_key_bytes, sink, memory_hint, report);
  if (auto done = loader.run(); !done) return std::unexpected(std::move(done.error()));
  report.elapsed_ns = environment.now_ns() - start_ns;
  report_hidden_bad_lines(environment, report);
  return report;
}

template <class AMap>
Outcome<LoadReport> load_piped(Environment& environment, const SourceOptions& options,
                               const AMap& map, std::size_t max_key_bytes,
                               const char* memory_hint) {
  const auto sink = pipelined_sink(map);
  if (!sink) {
    return failed(fmt::format("cannot write to map '{}': {}", map.name(), reason(sink.error())));
  }
  return load_through(environment, options, static_cast<std::uint32_t>(max_key_bytes), **sink,
                      memory_hint);
}

/// For a map of this process.
Outcome<Store> open_store(const Environment& environment, const SourceOptions& options) {
  StoreOptions store_options;
  store_options.memory_bytes_max =
      options.memory_bytes_max != 0 ? options.memory_bytes_max : environment.memory_bytes_max;
  auto store = Store::open(store_options);
  if (store) return std::move(*store);
  return failed(fmt::format("cannot reserve memory for a map: {}", reason(store.error())),
                "A smaller limit may help: --memory-max SIZE.");
}

std::unexpected<Failure> cannot_make(const Error& error, const char* hint) {
  if (error.code == Code::out_of_memory) {
    return failed("the memory limit is too small for any map", kMemoryHint);
  }
  return failed(fmt::format("cannot make a map: {}", reason(error)), hint);
}

void add(Payload& payload, std::span<const Item> items) {
  for (const Item& item : items) {
    payload.key_bytes += item.key.size();
    payload.value_bytes += item.value.size();
  }
  payload.items += items.size();
}

}  // namespace

ReaderOptions reader_options_for(const SourceOptions& options, const std::string& file) {
  ReaderOptions reader = options.reader;
  reader.format = options.format ? options.format : format_of_name(file);
  return reader;
}

Outcome<Dataset> load(Environment& environment, const SourceOptions& options) {
  auto store = open_store(environment, options);
  if (!store) return std::unexpected(std::move(store.error()));
  auto map = store->create_map("data", options.map);
  if (!map) {
    return cannot_make(map.error(),
                       "--node-bytes is a power of two from 512 to 65536; --log-bytes is a "
                       "multiple of 64 up to 2048.");
  }
  const auto sink = direct_sink(*map);
  auto report = load_through(environment, options, map->max_key_bytes(), *sink, kMemoryHint);
  if (!report) return std::unexpected(std::move(report.error()));
  return Dataset{std::move(*store), *map, std::move(*report)};
}

Outcome<HashDataset> load_hashed(Environment& environment, const SourceOptions& options) {
  auto store = open_store(environment, options);
  if (!store) return std::unexpected(std::move(store.error()));
  HashMapOptions hash = options.hash;
  hash.versions = options.map.versions;
  const auto map = store->create_hash_map("data", hash);
  if (!map) {
    return cannot_make(map.error(), "--partitions is a power of two from 1 to 512.");
  }
  auto report = load_piped(environment, options, *map, HashMap::kKeyBytesMax, kMemoryHint);
  if (!report) return std::unexpected(std::move(report.error()));
  return HashDataset{std::move(*store), *map, std::move(*report)};
}

Outcome<LoadReport> load_into_node(Environment& environment, const SourceOptions& options,
                                   const Map& map) {
  return load_piped(environment, options, map, map.max_key_bytes(), kNodeMemoryHint);
}

Outcome<LoadReport> load_into_node(Environment& environment, const SourceOptions& options,
                                   const HashMap& map) {
  return load_piped(environment, options, map, HashMap::kKeyBytesMax, kNodeMemoryHint);
}

Outcome<void> check_clean(const SourceOptions& options, const LoadReport& report) {
  if (report.stopped_early) {
    return failed(fmt::format("gave up after {} bad lines; --max-errors allows {}",
                              format_count(report.bad_lines), format_count(*options.bad_lines_max)),
                  "If most lines are bad, --format, --separator or the columns may be wrong.");
  }
  if (options.strict && report.bad_lines > 0) {
    return failed(fmt::format("{} bad line{}, and --strict allows none",
                              format_count(report.bad_lines), report.bad_lines == 1 ? "" : "s"));
  }
  return {};
}

Outcome<Dataset> load_clean(Environment& environment, const SourceOptions& options) {
  auto data = load(environment, options);
  if (!data) return data;
  if (auto clean = check_clean(options, data->report); !clean) {
    return std::unexpected(std::move(clean.error()));
  }
  return data;
}

Outcome<Payload> measure(const Map& map) {
  Payload payload;
  const auto scanned = map.scan("", "", [&](std::span<const Item> items) {
    add(payload, items);
    return true;
  });
  if (!scanned) return failed(fmt::format("cannot scan the map: {}", reason(scanned.error())));
  return payload;
}

Outcome<Payload> measure(const HashMap& map) {
  Payload payload;
  const auto walked = map.walk([&](std::span<const Item> items) {
    add(payload, items);
    return true;
  });
  if (!walked) return failed(fmt::format("cannot read the map: {}", reason(walked.error())));
  return payload;
}

}  // namespace espalier::tools
