// SPDX-License-Identifier: Apache-2.0
#include "tests/support/world_device_client.hpp"

#include <utility>
#include <vector>

#include "engine/payload_reader.hpp"

namespace espalier::test {
namespace {

constexpr std::uint64_t kGiveUpNs = 60'000'000;  // longer than any stop, and what follows it
constexpr std::size_t kAskedInFlight = 4;

wire::OffloadId offload_of(Op op) {
  switch (op) {
    case Op::floor: return wire::OffloadId::floor;
    case Op::scan: return wire::OffloadId::scan;
    case Op::scan_reverse: return wire::OffloadId::scan_reverse;
    case Op::scan_floor: return wire::OffloadId::scan_floor;
    default: return wire::OffloadId::get;
  }
}

// The items point into the payload.
std::vector<Item> items_in(std::string_view payload) {
  std::vector<Item> items;
  offload::PayloadReader reader(payload);
  while (reader.good() && !reader.rest().empty()) {
    const auto header = reader.take<wire::ItemHeader>();
    Item item;
    item.key = reader.text(header.key_bytes);
    item.value = reader.text(header.value_bytes);
    item.version = header.version;
    items.push_back(item);
  }
  return items;
}

}  // namespace

WorldDeviceClient::WorldDeviceClient(fabric::sim::World& world,
                                     std::deque<std::unique_ptr<WorldHost>>& hosts,
                                     WorldDevice& device, std::uint32_t number, std::uint64_t seed,
                                     const OneSidedOptions& options, Clock& clock,
                                     MapRecords& records, OneSidedCounts& counts)
    : world_(world),
      hosts_(hosts),
      device_(device),
      number_(number),
      random_(seed),
      options_(options),
      clock_(clock),
      records_(records),
      counts_(counts),
      place_(device.add_client([this](const rings::Response& response) { take(response); })),
      left_(options.reads) {}

void WorldDeviceClient::turn() {
  if (engine_ != device_.engine()) {
    give_up();
    opening_.reset();
    engine_ = device_.engine();
  }
  if (!pending_.empty() && world_.now_ns() - pending_.begin()->second.asked_ns > kGiveUpNs) {
    give_up();
    left_ = 0;
  }
  if (left_ != 0) open_map();
  while (left_ != 0 && opening_ && pending_.size() < kAskedInFlight && random_.one_in(2)) ask();
}

// At the node that the device serves; a dead one answers no more.
void WorldDeviceClient::open_map() {
  if (opening_ && !map_gone_) return;
  opening_.reset();
  if (device_.host().dead()) return;
  opening_.emplace(device_.host().opening());
  map_gone_ = false;
}

WalkRecorder& WorldDeviceClient::recorder() {
  auto& recorder = recorders_[opening_->map];
  if (!recorder) {
    recorder = std::make_unique<WalkRecorder>(clock_, 100 + number_);
    recorder->expect_refusals({Code::contended, Code::connection_lost, Code::not_found});
  }
  return *recorder;
}

void WorldDeviceClient::ask() {
  --left_;
  Question question = random_read(random_, hosts_.back()->keys(), 30);
  if (options_.only_scans) {
    question = {};
    question.op = Op::scan;
  }
  const std::uint32_t tag = next_tag_++;
  const tree::WalkRequest walk = recorder().ask(std::move(question));
  const Request& request = *walk.request;
  pending_[tag] = {request, walk.handler, world_.now_ns()};
  const auto header =
      rings::request_of(offload_of(request.op), opening_->view.id, tag, request.limit);
  device_.send(place_, engine_, rings::message_of(header, request.key, request.high));
}

void WorldDeviceClient::take(const rings::Response& response) {
  const auto at = pending_.find(response.header.tag);
  if (at == pending_.end()) return;  // it was given up
  const Pending& pending = at->second;
  const bool is_scan = pending.request.op != Op::get && pending.request.op != Op::floor;
  Completion completion;
  completion.tag = pending.request.tag;
  completion.op = pending.request.op;
  completion.ok = response.header.code == 0;
  completion.error = {response.code(), 0, response.detail()};
  completion.found = response.found();
  completion.version = response.header.version;
  completion.read_version = response.header.read_version;
  completion.value = response.payload;
  std::vector<Item> items;
  if (completion.ok && (is_scan || (pending.request.op == Op::floor && completion.found))) {
    items = items_in(response.payload);
  }
  if (is_scan && !items.empty()) pending.handler->items(completion.tag, items);
  if (!response.answers()) return;
  if (is_scan) completion.items = response.header.version;
  if (!is_scan && !items.empty()) {
    completion.key = items.front().key;
    completion.value = items.front().value;
  }
  map_gone_ = map_gone_ || response.code() == Code::not_found;
  Handler& handler = *pending.handler;
  pending_.erase(at);
  handler.done(completion);
}

// There will be no answer.
void WorldDeviceClient::give_up() {
  for (const auto& [tag, pending] : std::exchange(pending_, {})) {
    Completion completion;
    completion.tag = pending.request.tag;
    completion.op = pending.request.op;
    completion.error = {Code::connection_lost, 0, 0};
    pending.handler->done(completion);
  }
}

std::string WorldDeviceClient::wrong() {
  give_up();
  for (auto& [map, recorder] : recorders_) {
    if (auto wrong = take_log(*recorder, records_[map], options_, counts_); !wrong.empty()) {
      return "client " + std::to_string(number_) + " of a device: " + wrong;
    }
  }
  return {};
}

}  // namespace espalier::test
