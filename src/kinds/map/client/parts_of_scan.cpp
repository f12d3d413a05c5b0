// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/client/parts_of_scan.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <utility>

namespace espalier::client {
namespace {

// Longer than any key: recording where a part stopped does not allocate.
constexpr std::size_t kKeyRoom = 512;
constexpr std::size_t kItemsTogether = 64;

}  // namespace

PartsOfScan::PartsOfScan(const Request& request, std::vector<std::string> borders, Handler& to,
                         std::size_t part_bytes)
    : request_(request), to_(to), part_bytes_(part_bytes) {
  const std::string_view low = request.key;
  const std::string_view high = request.high;
  // A scan from a floor includes its high end, which may begin a part.
  const bool with_high = request.op == Op::scan_floor;
  std::string begin(low);
  for (std::string& border : borders) {
    const bool below = high.empty() || border < high || (with_high && border == high);
    if (border <= begin || !below) continue;
    parts_.emplace_back().low = std::exchange(begin, border);
    parts_.back().high = std::move(border);
  }
  parts_.emplace_back().low = std::move(begin);
  parts_.back().high = high;
  if (request.op == Op::scan_reverse) std::ranges::reverse(parts_);
  for (std::uint32_t i = size(); i != 0; --i) {
    parts_[i - 1].request.tag = i - 1;
    parts_[i - 1].from.reserve(kKeyRoom);
    prepare(parts_[i - 1]);
    due_.push_back(i - 1);
  }
}

// Sets where to walk the part from now on. Asks for one more item than wanted, since the first may
// have been delivered before, or be a floor below the part.
void PartsOfScan::prepare(Part& part) {
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
  Request& request = part.request;
  request.op = request_.op;
  request.key = part.low;
  request.high = part.high;
  part.resumed = !part.from.empty();
  if (part.resumed) (request.op == Op::scan_reverse ? request.high : request.key) = part.from;
  const std::uint64_t left = request_.limit - std::min<std::uint64_t>(delivered_, request_.limit);
  request.limit = request_.limit == 0 ? 0 : static_cast<std::uint32_t>(std::min(left, kMost - 1ul));
  if (request.limit != 0) ++request.limit;
  part.stopped = false;
}

const Request* PartsOfScan::next_due() {
  if (ended_ || due_.empty()) return nullptr;
  Part& part = parts_[due_.back()];
  due_.pop_back();
  part.walking = true;
  ++walking_;
  return &part.request;
}

void PartsOfScan::refuse(const Request& part, const Error& error) {
  Completion refused;
  refused.tag = part.tag;
  refused.error = error;
  done(refused);
}

void PartsOfScan::finish(std::optional<Version> read_version) {
  Completion answer;
  answer.tag = request_.tag;
  answer.op = request_.op;
  answer.ok = error_.code == Code::invalid;
  answer.error = error_;
  answer.items = delivered_;
  answer.read_version = read_version.value_or(read_version_);
  to_.done(answer);
}

// The scan fails with any of its parts.
void PartsOfScan::done(const Completion& completion) {
  ++progress_;
  Part& part = parts_[completion.tag];
  part.walking = false;
  --walking_;
  if (!completion.ok && !ended_) {
    ended_ = true;
    error_ = completion.error;
  }
  if (completion.tag == 0) read_version_ = completion.read_version;
  part.ended = !part.stopped;
  if (completion.tag == first_) go_on();
}

bool PartsOfScan::items(std::uint64_t tag, std::span<const Item> items) {
  ++progress_;
  Part& part = parts_[tag];
  if (ended_ || part.stopped) return false;
  return tag == first_ ? hand_on(part, items) : keep(part, items);
}

// Whether it is an item of the part that was not buffered or delivered before.
bool PartsOfScan::is_wanted(const Part& part, std::string_view key) const {
  if (request_.op == Op::scan_reverse) return true;  // a resumed walk ends below the earlier items
  if (part.resumed && key <= part.from) return false;
  if (request_.op != Op::scan_floor) return true;
  const bool first = &part == &parts_.front();
  const bool last = &part == &parts_.back();
  return (first || key >= part.low) && (last || key < part.high);
}

// Whether a walk of the part may deliver this item next; the node is untrusted.
bool PartsOfScan::is_in_turn(const Part& part, std::string_view key) const {
  if (key.size() > kKeyRoom || key < part.low) return false;
  const bool with_high = request_.op == Op::scan_floor;
  if (!part.high.empty() && (with_high ? key > part.high : key >= part.high)) return false;
  if (part.from.empty()) return true;
  return request_.op == Op::scan_reverse ? key < part.from : key > part.from;
}

bool PartsOfScan::keep(Part& part, std::span<const Item> items) {
  for (const Item& item : items) {
    if (!is_wanted(part, item.key)) continue;
    if (!is_in_turn(part, item.key)) {
      ended_ = true;
      error_ = {Code::corrupt, 0, 0};
      return false;
    }
    const std::size_t bytes = item.key.size() + item.value.size();
    const std::size_t kept = part.bytes.size() + part.kept.size() * sizeof(BufferedItem);
    part.stopped = kept + bytes + sizeof(BufferedItem) > part_bytes_;
    if (part.stopped) return false;
    try {
      part.bytes.reserve(part.bytes.size() + bytes);
      part.kept.push_back({static_cast<std::uint32_t>(item.key.size()),
                           static_cast<std::uint32_t>(item.value.size()), item.version});
    } catch (const std::bad_alloc&) {  // resumes when its turn comes
      part.stopped = true;
      return false;
    }
    part.bytes.append(item.key).append(item.value);
    part.from.assign(item.key);
  }
  return true;
}

bool PartsOfScan::hand_on(Part& part, std::span<const Item> items) {
  while (!items.empty() && !is_wanted(part, items.front().key)) items = items.subspan(1);
  while (!items.empty() && !is_wanted(part, items.back().key)) {
    items = items.first(items.size() - 1);
  }
  return items.empty() || deliver(items);
}

bool PartsOfScan::deliver(std::span<const Item> items) {
  const std::uint64_t left = request_.limit - delivered_;
  if (request_.limit != 0 && items.size() > left) items = items.first(left);
  delivered_ += items.size();
  ended_ = !to_.items(request_.tag, items) || (request_.limit != 0 && delivered_ == request_.limit);
  return !ended_;
}

void PartsOfScan::hand_on_kept(Part& part) {
  const char* at = part.bytes.data();
  for (std::span<const BufferedItem> left(part.kept); !left.empty() && !ended_;) {
    std::array<Item, kItemsTogether> items;
    const std::size_t count = std::min(left.size(), items.size());
    for (std::size_t i = 0; i < count; ++i) {
      const BufferedItem& kept = left[i];
      items[i] = {{at, kept.key_bytes}, {at + kept.key_bytes, kept.value_bytes}, kept.version};
      at += kept.key_bytes + kept.value_bytes;
    }
    static_cast<void>(deliver({items.data(), count}));
    left = left.subspan(count);
  }
  std::vector<BufferedItem>().swap(part.kept);
  std::string().swap(part.bytes);
}

// Advances from the current part to the next one that has not ended.
void PartsOfScan::go_on() {
  while (!ended_) {
    Part& part = parts_[first_];
    hand_on_kept(part);
    if (ended_ || part.walking) return;
    if (part.stopped) {
      prepare(part);
      return due_.push_back(static_cast<std::uint32_t>(first_));
    }
    if (!part.ended) return;  // it is due
    ended_ = ++first_ == parts_.size();
  }
}

}  // namespace espalier::client
