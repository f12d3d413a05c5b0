// SPDX-License-Identifier: Apache-2.0
// An ordered map through its public interface only: a Pipeline when several requests are in flight,
// the synchronous calls of Map when it is one. The same for every store that a Map may belong to.
#include "bench/map_session.hpp"

#include <fmt/core.h>

#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace espalier::bench {
namespace {

std::uint64_t hash_of(std::span<const Item> items) {
  std::uint64_t sum = 0;
  for (const Item& item : items) sum += item_hash(item.key, item.value);
  return sum;
}

class CallSession : public SerialSession<CallSession> {
 public:
  explicit CallSession(Map map) : map_(map) {}

  void execute(const Request& request, Answers& answers) {
    switch (request.op) {
      case Op::get: get(request, answers); break;
      case Op::put: take(map_.put(request.key, request.value), request, answers); break;
      case Op::insert: take(map_.insert(request.key, request.value), request, answers); break;
      case Op::erase: take(map_.erase(request.key), request, answers); break;
      default: scan(request, answers);
    }
  }

 private:
  void get(const Request& request, Answers& answers) {
    const Result<bool> found = map_.get(request.key, value_);
    if (!found) return answers.fail(message(found.error()));
    *found ? answers.value(request.tag, value_) : answers.missing(request.tag);
    if ((request.tag & kReadModifyWriteTag) != 0) {
      take(map_.put(request.key, request.value), request, answers);
    }
  }

  void scan(const Request& request, Answers& answers) {
    std::uint64_t sum = 0;
    ScanOptions options;
    options.limit = request.limit;
    options.from_floor = request.op == Op::scan_floor;
    const auto sink = [&sum](std::span<const Item> items) {
      sum += hash_of(items);
      return true;
    };
    const Result<std::uint64_t> count =
        map_.scan(request.key, request.high, std::ref(sink), options);
    if (!count) return answers.fail(message(count.error()));
    answers.items(request.tag, sum);
    answers.scan_done(request.tag, *count);
  }

  static void take(const Result<Written>& written, const Request& request, Answers& answers) {
    if (!written) return answers.fail(message(written.error()));
    answers.written(request.tag, written->applied);
  }

  Map map_;
  std::string value_;
};

class PipelineSession : public TargetSession, private Handler {
 public:
  PipelineSession(const Map& map, std::uint32_t in_flight)
      : in_flight_(in_flight),
        pipeline_(value_or_throw(Pipeline::open(map, in_flight), "cannot open a pipeline")) {}

  void run(std::span<const Request> requests, Answers& answers) override {
    open_window(requests, answers);
    pipeline_.run(requests, *this);
    // The second halves of read-modify-writes, once all first halves are done.
    if (!second_halves_.empty()) pipeline_.run(second_halves_, *this);
  }

  // Keeps as many in flight as run(), but submits them one by one, so that the time of each does
  // not include a queue before it.
  void run_timed(std::span<const Request> requests, Answers& answers,
                 Latencies& latencies) override {
    open_window(requests, answers);
    started_.assign(requests.size(), base::Stopwatch());
    latencies_ = &latencies;
    std::size_t next = 0;
    std::size_t next_half = 0;
    std::size_t left = 0;
    while (true) {
      for (; left < in_flight_ && next_half < second_halves_.size(); ++left, ++next_half) {
        pipeline_.submit({&second_halves_[next_half], 1}, *this);
      }
      for (; left < in_flight_ && next < requests.size(); ++left, ++next) {
        started_[next].restart();
        pipeline_.submit({&requests[next], 1}, *this);
      }
      if (left == 0) break;
      left = pipeline_.poll();
    }
    latencies_ = nullptr;
  }

  void run_paced(std::span<const Request> requests, std::span<const std::uint64_t> due_ns,
                 Answers& answers, Latencies& latencies) override {
    open_window(requests, answers);
    due_ns_ = due_ns;
    latencies_ = &latencies;
    pace_.restart();
    std::size_t next = 0;
    std::size_t left = 0;
    while (next < requests.size() || left != 0) {
      const std::uint64_t now_ns = pace_.elapsed_ns();
      for (; left < in_flight_ && next < requests.size() && due_ns[next] <= now_ns; ++left) {
        pipeline_.submit({&requests[next++], 1}, *this);
      }
      left = pipeline_.advance();
    }
    latencies_ = nullptr;
    due_ns_ = {};
  }

 private:
  void open_window(std::span<const Request> requests, Answers& answers) {
    window_ = requests;
    answers_ = &answers;
    second_halves_.clear();
    second_halves_.reserve(requests.size());  // they must not move while in flight
  }

  void done(const Completion& completion) override {
    if (!completion.ok) answers_->fail(message(completion.error));
    switch (completion.op) {
      case Op::get:
        completion.found ? answers_->value(completion.tag, completion.value)
                         : answers_->missing(completion.tag);
        if ((completion.tag & kReadModifyWriteTag) != 0) {
          second_halves_.push_back(window_[place(completion.tag)]);
          second_halves_.back().op = Op::put;
          return;  // not done yet
        }
        break;
      case Op::put:
      case Op::insert:
      case Op::erase: answers_->written(completion.tag, completion.applied); break;
      default: answers_->scan_done(completion.tag, completion.items);
    }
    if (latencies_ == nullptr) return;
    const std::size_t at = place(completion.tag);
    latencies_->record(due_ns_.empty() ? started_[at].elapsed_ns()
                                       : pace_.elapsed_ns() - due_ns_[at]);
  }

  bool items(std::uint64_t tag, std::span<const Item> items) override {
    answers_->items(tag, hash_of(items));
    return true;
  }

  // The index of the request with this tag in the window: tags of a list count up by one.
  [[nodiscard]] std::size_t place(std::uint64_t tag) const {
    return (tag & ~kReadModifyWriteTag) - (window_.front().tag & ~kReadModifyWriteTag);
  }

  std::uint32_t in_flight_;
  Pipeline pipeline_;
  std::span<const Request> window_;
  Answers* answers_ = nullptr;
  Latencies* latencies_ = nullptr;  // set only in run_timed and run_paced
  std::vector<Request> second_halves_;
  std::vector<base::Stopwatch> started_;   // in run_timed
  std::span<const std::uint64_t> due_ns_;  // in run_paced, since the next began
  base::Stopwatch pace_;
};

}  // namespace

std::unique_ptr<TargetSession> open_map_session(const Map& map, std::uint32_t in_flight) {
  if (in_flight == 1) return std::make_unique<CallSession>(map);
  return std::make_unique<PipelineSession>(map, in_flight);
}

Contents contents_of(const Map& map) {
  Contents result;
  const auto sink = [&result](std::span<const Item> items) {
    result.hash += hash_of(items);
    return true;
  };
  result.items = value_or_throw(map.scan({}, {}, sink), "cannot scan the map");
  return result;
}

MapOptions map_options_of(const TargetOptions& options) {
  MapOptions result;
  result.node_bytes = options.node_bytes;
  result.log_bytes = options.log_bytes;
  result.versions = options.versions;
  return result;
}

}  // namespace espalier::bench
