// SPDX-License-Identifier: Apache-2.0
#include "tools/record_sink.hpp"

#include <array>
#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace espalier::tools {
namespace {

class DirectSink final : public RecordSink {
 public:
  explicit DirectSink(Map& map) : map_(map) {}

  std::optional<Lost> put(const std::string& file, const Record& record) override {
    const auto written = map_.put(record.key, record.value);
    if (!written) return Lost{file, record.line, written.error()};
    if (written->existed) ++existed_;
    return std::nullopt;
  }
  std::optional<Lost> finish() override { return std::nullopt; }

 private:
  Map& map_;
};

/// Two batches take turns: one is in flight while the other is filled.
class PipelinedSink final : public RecordSink, private Handler {
 public:
  static constexpr std::uint32_t kBatchRecords = 128;
  static constexpr std::size_t kBatchBytes = std::size_t{1} << 20;

  explicit PipelinedSink(Pipeline pipeline) : pipeline_(std::move(pipeline)) {}

  std::optional<Lost> put(const std::string& file, const Record& record) override {
    Batch& batch = batches_[filling_];
    if (const auto same = batch.keys.find(record.key); same != batch.keys.end()) {
      // The record before it has not been sent, and would not stay.
      set_value(batch, batch.entries[same->second], file, record);
      ++existed_;
    } else {
      Batch& sent = batches_[1 - filling_];
      if (sent.keys.contains(record.key)) wait_for(sent);
      Entry& entry = batch.entries[batch.used];
      entry.key = record.key;
      batch.keys.emplace(entry.key, batch.used++);
      batch.bytes += record.key.size();
      set_value(batch, entry, file, record);
    }
    if (batch.used == kBatchRecords || batch.bytes >= kBatchBytes) send();
    return lost_;
  }

  std::optional<Lost> finish() override {
    send();
    wait_for(batches_[1 - filling_]);
    return lost_;
  }

 private:
  struct Entry {
    std::string key;
    std::string value;
    std::string file;
    std::uint64_t line = 0;
  };
  struct Batch {
    std::array<Entry, kBatchRecords> entries;  // stay where they are: requests point to them
    std::unordered_map<std::string_view, std::size_t> keys;
    std::vector<Request> requests;
    std::size_t used = 0;
    std::size_t bytes = 0;
    std::size_t in_flight = 0;
  };

  static void set_value(Batch& batch, Entry& entry, const std::string& file, const Record& record) {
    entry.value = record.value;
    entry.file = file;
    entry.line = record.line;
    batch.bytes += record.value.size();
  }

  /// Sends the batch that was filled, and begins the other one when that has arrived.
  void send() {
    Batch& batch = batches_[filling_];
    wait_for(batches_[1 - filling_]);
    for (std::size_t i = 0; i < batch.used; ++i) {
      Request request;
      request.op = Op::put;
      request.tag = filling_ * kBatchRecords + i;
      request.key = batch.entries[i].key;
      request.value = batch.entries[i].value;
      batch.requests.push_back(request);
    }
    batch.in_flight = batch.used;
    pipeline_.submit(batch.requests, *this);
    filling_ = 1 - filling_;
  }

  void wait_for(Batch& batch) {
    while (batch.in_flight != 0) pipeline_.poll();
    batch.keys.clear();
    batch.requests.clear();
    batch.used = 0;
    batch.bytes = 0;
  }

  void done(const Completion& completion) override {
    Batch& batch = batches_[completion.tag / kBatchRecords];
    --batch.in_flight;
    if (completion.ok) {
      if (completion.found) ++existed_;
    } else if (!lost_) {
      const Entry& entry = batch.entries[completion.tag % kBatchRecords];
      lost_ = Lost{entry.file, entry.line, completion.error};
    }
  }

  std::array<Batch, 2> batches_;
  std::size_t filling_ = 0;
  std::optional<Lost> lost_;  // the first one
  Pipeline pipeline_;         // the last member: it waits for what points to the others
};

template <class AMap>
Result<std::unique_ptr<RecordSink>> sink_into(const AMap& map) {
  auto pipeline = Pipeline::open(map, 2 * PipelinedSink::kBatchRecords);
  if (!pipeline) return std::unexpected(pipeline.error());
  return std::make_unique<PipelinedSink>(std::move(*pipeline));
}

}  // namespace

std::unique_ptr<RecordSink> direct_sink(Map& map) { return std::make_unique<DirectSink>(map); }

Result<std::unique_ptr<RecordSink>> pipelined_sink(const Map& map) { return sink_into(map); }
Result<std::unique_ptr<RecordSink>> pipelined_sink(const HashMap& map) { return sink_into(map); }

}  // namespace espalier::tools
