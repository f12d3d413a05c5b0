// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/client/answer.hpp"

#include <limits>
#include <new>
#include <utility>

namespace espalier::client {
namespace {

Result<Completion> run(Runner& runner, const Request& request, Answer& answer,
                       std::uint32_t parts = 1) {
  const auto ran =
      parts > 1 ? runner.run_parts(request, parts, answer) : runner.run(request, answer);
  if (!ran) return std::unexpected(ran.error());
  if (!answer.completion.ok) return std::unexpected(answer.completion.error);
  return answer.completion;
}

}  // namespace

void Answer::done(const Completion& done) {
  completion = done;
  completion.key = completion.value = {};
  // A write has been applied by now; only reads have bytes to copy.
  try {
    if (value != nullptr && done.found) value->assign(done.value);
    key.assign(done.key);
    completion.key = key;
  } catch (const std::bad_alloc&) {
    completion.ok = false;
    completion.error = {Code::out_of_memory, 0, 0};
  }
}

bool Answer::items(std::uint64_t, std::span<const Item> items) {
  return sink == nullptr || (*sink)(items);
}

Result<std::optional<Found>> find(Runner& runner, Op op, std::string_view key) {
  auto found = find_item(runner, op, key);
  if (!found) return std::unexpected(found.error());
  if (!*found) return std::optional<Found>{};
  return Found{std::move((*found)->value), (*found)->version};
}

Result<std::optional<FoundItem>> find_item(Runner& runner, Op op, std::string_view key) {
  Request request;
  request.op = op;
  request.key = key;
  FoundItem found;
  Answer answer;
  answer.value = &found.value;
  const auto done = run(runner, request, answer);
  if (!done) return std::unexpected(done.error());
  if (!done->found) return std::optional<FoundItem>{};
  found.key = std::move(answer.key);
  found.version = done->version;
  return std::optional<FoundItem>(std::move(found));
}

Condition unchanged(const std::optional<Found>& found, bool versions) {
  using Kind = ConditionKind;
  Condition condition;
  condition.kind = Kind::absent;
  if (!found) return condition;
  // Without versions only the value shows whether another write intervened.
  condition.kind = versions ? Kind::version : Kind::value;
  condition.version = found->version;
  condition.value = found->value;
  return condition;
}

Result<Request> scan_request(std::string_view low, std::string_view high, ScanOptions options) {
  if (options.from_floor && options.reverse) return fail(Code::invalid_argument);
  if (options.parts > ScanOptions::kPartsMax) {
    return fail(Code::invalid_argument, ScanOptions::kPartsMax);
  }
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  Request request;
  request.op = options.reverse ? Op::scan_reverse : Op::scan;
  if (options.from_floor) request.op = Op::scan_floor;
  request.key = low;
  request.high = high;
  request.limit = options.limit > kMost ? 0 : static_cast<std::uint32_t>(options.limit);
  return request;
}

Result<std::uint64_t> run_scan(Runner& runner, const Request& request, const ItemSink& sink,
                               std::uint32_t parts) {
  Answer answer;
  answer.sink = &sink;
  const auto done = run(runner, request, answer, parts);
  if (!done) return std::unexpected(done.error());
  return done->items;
}

}  // namespace espalier::client
