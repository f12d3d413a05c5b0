// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/device/device_map.hpp"

#include <limits>
#include <utility>

#include "kinds/map/device/map_reader.hpp"

namespace espalier::device {
namespace {

constexpr std::uint64_t kAskAgainNs = 100'000'000;

// Whether the walk's keys lie in the reader's shard. Keys that no map accepts are left to the usual
// checks.
bool is_answered(const MapReader& reader, const espalier::Request& walk) {
  if (!reader.borders) return true;
  const wire::KeyBounds has = reader.borders->bounds();
  const bool one = walk.op == Op::get || walk.op == Op::floor;
  return one ? walk.key.empty() || has.has(walk.key) : has.has_range(walk.key, walk.high);
}

}  // namespace

bool DeviceMap::saturated() const {
  return reader_ && reader_->reader.pending() >= MapReader::kLanes;
}

void DeviceMap::submit(const espalier::Request& walk, Handler& handler, wire::Ref hint) {
  submit(tree::WalkRequest{&walk, &handler, nullptr, hint, {}});
}

// A version that a lease holds can be read only under that lease.
void DeviceMap::submit(const tree::WalkRequest& walk) {
  if (reader_ && reader_->reads->failed()) reader_->reader.fail();
  const bool usable = reader_ && !reader_->reads->failed();
  if (walk.held != nullptr && (!usable || !reader_->held.contains(walk.held))) {
    return refuse(walk, Code::contended);
  }
  if (usable) return begin(walk);
  if (!walks()) return refuse(walk, Code::unsupported);
  waiting_.push_back(walk);
}

void DeviceMap::begin(const tree::WalkRequest& walk) {
  if (!is_answered(*reader_, *walk.request)) return refuse(walk, Code::wrong_shard);
  tree::WalkRequest from_root = walk;
  from_root.hint = {};
  reader_->reader.submit(from_root);
}

void DeviceMap::refuse(const tree::WalkRequest& walk, Code code) {
  failed_.push_back({walk, code});
}

std::size_t DeviceMap::advance() {
  for (const Failed& failed : std::exchange(failed_, {})) {
    Completion completion;
    completion.tag = failed.walk.request->tag;
    completion.op = failed.walk.request->op;
    completion.error = {failed.code, 0, 0};
    failed.walk.handler->done(completion);
  }
  if (reader_) {
    host_.renew(reader_);
    if (reader_->reader.lease().ended() || reader_->reads->failed()) reader_->reads->fail();
    if (reader_->reader.poll() == 0 && reader_->reads->failed()) reader_.reset();
  }
  if (!waiting_.empty() && !reader_ && !opening_) opening_ = host_.open_map(number_);
  if (opening_ && opening_->result) take_opening();
  return pending();
}

void DeviceMap::take_opening() {
  const auto opened = *std::exchange(opening_, nullptr)->result;
  const auto waiting = std::exchange(waiting_, {});
  if (opened) {
    reader_ = *opened;
    for (const tree::WalkRequest& walk : waiting) begin(walk);
    return;
  }
  const Code code = opened.error().code;
  // Unsupported is permanent. After out_of_memory the host is asked again later. Other errors: the
  // next walk tries again.
  if (code == Code::unsupported) refused_until_ns_ = std::numeric_limits<std::uint64_t>::max();
  if (code == Code::out_of_memory) refused_until_ns_ = host_.now_ns() + kAskAgainNs;
  if (code == Code::not_found) drop();
  for (const tree::WalkRequest& walk : waiting) refuse(walk, code);
}

std::size_t DeviceMap::pending() const {
  return waiting_.size() + failed_.size() + (reader_ ? reader_->reader.pending() : 0);
}

std::shared_ptr<offload::HeldSnapshot> DeviceMap::hold(std::uint64_t version,
                                                       const std::string& owner) {
  return std::make_shared<LeaseSnapshot>(reader_, number_, version, owner);
}

}  // namespace espalier::device
