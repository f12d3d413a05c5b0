// SPDX-License-Identifier: Apache-2.0
#include "shards/sharded_reads.hpp"

#include <string>
#include <utility>

#include "kinds/map/client/answer.hpp"

namespace espalier::client {
namespace {

/// Hands on the items of one shard after another as those of one request.
class Chained final : public Handler {
 public:
  Chained(Handler& to, const Request& request) : to_(to), tag_(request.tag) {}
  void done(const Completion& completion) override {
    completion_ = completion;
    completion_.key = completion_.value = {};
  }
  bool items(std::uint64_t, std::span<const Item> items) override {
    delivered_ += items.size();
    stopped_ = !to_.items(tag_, items);
    return !stopped_;
  }
  [[nodiscard]] std::uint64_t delivered() const { return delivered_; }
  [[nodiscard]] bool stopped() const { return stopped_; }
  [[nodiscard]] const Completion& completion() const { return completion_; }

 private:
  Handler& to_;
  const std::uint64_t tag_;
  std::uint64_t delivered_ = 0;
  bool stopped_ = false;
  Completion completion_;
};

Completion answer_to(const Request& request, Version read_version) {
  Completion answer;
  answer.tag = request.tag;
  answer.op = request.op;
  answer.ok = true;
  answer.read_version = read_version;
  return answer;
}

// The last item of a shard.
Result<std::optional<FoundItem>> last_of(const wire::ShardMap& map, Runner& runner,
                                         std::size_t shard) {
  Request scan;
  scan.op = Op::scan_reverse;
  scan.limit = 1;
  scan.key = map.shards[shard].low;
  scan.high = map.high(shard);
  std::optional<FoundItem> found;
  const ItemSink sink = [&](std::span<const Item> items) {
    for (const Item& item : items) {
      if (!found) found = FoundItem{std::string(item.key), std::string(item.value), item.version};
    }
    return false;
  };
  const auto ran = run_scan(runner, scan, sink);
  if (!ran) return std::unexpected(ran.error());
  return found;
}

Result<std::optional<FoundItem>> floor_over(const wire::ShardMap& map, const ShardRunner& runner_of,
                                            std::string_view key) {
  const std::size_t at = map.shard_of(key);
  for (std::size_t i = at + 1; i-- > 0;) {
    const auto runner = runner_of(i);
    if (!runner) return std::unexpected(runner.error());
    auto found = i == at ? find_item(**runner, Op::floor, key) : last_of(map, **runner, i);
    if (!found || *found) return found;
  }
  return std::optional<FoundItem>{};
}

Result<void> run_floor(const wire::ShardMap& map, const ShardRunner& runner_of,
                       const Request& request, Handler& handler, Version read_version) {
  const auto found = floor_over(map, runner_of, request.key);
  if (!found) return std::unexpected(found.error());
  Completion answer = answer_to(request, read_version);
  if (*found) {
    answer.found = true;
    answer.version = (*found)->version;
    answer.key = (*found)->key;
    answer.value = (*found)->value;
  }
  handler.done(answer);
  return {};
}

}  // namespace

ShardSpan span_of(const wire::ShardMap& map, const Request& scan) {
  const std::size_t first = map.shard_of(scan.key);
  const bool to_end = scan.high.empty();
  if (scan.op == Op::scan_floor) {  // its high end is part of it
    return {first, to_end ? map.size() - 1 : map.shard_of(scan.high)};
  }
  if (!to_end && scan.high <= scan.key) return {first, first};  // it is empty
  return {first, map.last_below(scan.high)};
}

ShardPart part_of(const wire::ShardMap& map, ShardSpan span, std::size_t shard,
                  std::string_view low, std::string_view high) {
  return {shard == span.first ? low : std::string_view(map.shards[shard].low),
          shard == span.last ? high : map.high(shard)};
}

// From its floor on, wherever that is, it needs no other floor: that of a border is at most the
// item at the border.
Result<Request> with_floor_found(const wire::ShardMap& map, const ShardRunner& runner_of,
                                 const Request& scan, std::string& floor) {
  Request begun = scan;
  if (scan.op != Op::scan_floor || scan.key.empty()) return begun;
  auto found = floor_over(map, runner_of, scan.key);
  if (!found) return std::unexpected(found.error());
  if (*found) floor = std::move((*found)->key);
  if (!floor.empty()) begun.key = floor;
  return begun;
}

Result<void> run_over_shards(const wire::ShardMap& map, const ShardRunner& runner_of,
                             const Request& request, Handler& handler, Version read_version) {
  if (request.op == Op::floor) return run_floor(map, runner_of, request, handler, read_version);
  std::string floor;
  const auto begun = with_floor_found(map, runner_of, request, floor);
  if (!begun) return std::unexpected(begun.error());
  const Request& scan = *begun;
  const ShardSpan span = span_of(map, scan);
  Chained chained(handler, request);
  Completion answer = answer_to(request, read_version);
  const std::size_t shards = span.first > span.last ? 0 : span.last - span.first + 1;
  for (std::size_t n = 0; n < shards; ++n) {
    const std::size_t i = scan.op == Op::scan_reverse ? span.last - n : span.first + n;
    const ShardPart part = part_of(map, span, i, scan.key, scan.high);
    Request each = scan;
    each.key = part.low;
    each.high = part.high;
    if (request.limit != 0) {
      each.limit = request.limit - static_cast<std::uint32_t>(chained.delivered());
    }
    const auto runner = runner_of(i);
    const Result<void> ran =
        runner ? (*runner)->run(each, chained) : std::unexpected(runner.error());
    if (!ran && chained.delivered() == 0) return ran;
    const Error error = ran ? chained.completion().error : ran.error();
    if (!ran || !chained.completion().ok) {
      answer.ok = false;
      answer.error = error;
      break;
    }
    if (chained.stopped() || (request.limit != 0 && chained.delivered() >= request.limit)) break;
  }
  answer.items = chained.delivered();
  handler.done(answer);
  return {};
}

}  // namespace espalier::client
