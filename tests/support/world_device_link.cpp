// SPDX-License-Identifier: Apache-2.0
#include "tests/support/world_device_link.hpp"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>

#include "engine/request.hpp"

namespace espalier::test {
namespace {

// As of WorldClient: much longer than what is read is believed.
constexpr std::uint64_t kSilenceNs = 6'000'000;
constexpr std::uint64_t kDialNs = 5'000'000;
constexpr std::uint64_t kAgainNs = 300'000;
constexpr std::uint64_t kPairTimeoutNs = 100'000;
constexpr std::uint64_t kKeepLeasesNs = 50'000;

bool is_about_leases(wire::OffloadId id) {
  return id == wire::OffloadId::one_sided_open || id == wire::OffloadId::lease_renew;
}

DeviceAnswer connection_lost() {
  DeviceAnswer gone;
  gone.header.code = static_cast<std::uint16_t>(Code::connection_lost);
  return gone;
}

}  // namespace

WorldDeviceLink::WorldDeviceLink(const Place& place, std::uint64_t seed,
                                 const OneSidedOptions& options,
                                 std::function<std::uint64_t()> now_ns, OneSidedCounts& counts)
    : world_(place.world),
      node_(place.node),
      host_(*place.hosts.back()),
      random_(seed),
      options_(options),
      now_ns_(std::move(now_ns)),
      world_counts_(counts),
      session_(host_.open_session()),
      maps_({.reads = {.cache_bytes = options.cache_bytes, .now_ns = now_ns_},
             .keep_leases_ns = kKeepLeasesNs}) {
  maps_.ask_by(this);
}

WorldDeviceLink::~WorldDeviceLink() = default;

std::uint64_t WorldDeviceLink::heard_ns(std::uint32_t map) const {
  const auto heard = heard_ns_.find(map);
  return heard == heard_ns_.end() ? 0 : heard->second;
}

// --- questions and answers -----------------------------------------------------------------------

std::uint64_t WorldDeviceLink::way_ns() {
  return options_.pauses && random_.one_in(12) ? random_.below(2'500'000)
                                               : random_.between(1'000, 20'000);
}

void WorldDeviceLink::post(offload::Request& request, const wire::CallMessage& message,
                           device::AnswerPace /*pace*/) {
  ++world_counts_.device_relayed;
  relayed_.insert({request.connection, request.header.tag});
  Waiting waiting;
  waiting.question = {message.offload, message.map, message.argument, std::string(message.key),
                      std::string(message.payload)};
  waiting.request = &request;
  send(std::move(waiting));
}

void WorldDeviceLink::ask(const wire::CallMessage& message, OnAnswer on_answer) {
  Waiting waiting;
  waiting.question = {message.offload,
                      message.map,
                      message.argument,
                      {},
                      std::string(message.payload).append(message.more_payload)};
  waiting.on_answer = std::move(on_answer);
  send(std::move(waiting));
}

// It travels, is answered, and the answer travels back. A host that is dead answers nothing.
void WorldDeviceLink::send(Waiting waiting) {
  const std::uint64_t number = next_number_++;
  waiting.asked_ns = world_.now_ns();
  const DeviceQuestion question = waiting.question;
  waiting_.emplace(number, std::move(waiting));
  if (ended_ || lost_) {
    arrived_.push_back({number, connection_lost(), 0});
    return;
  }
  const std::uint64_t back_ns = way_ns();
  const std::weak_ptr<bool> alive = alive_;
  world_.after(way_ns(), [this, alive, number, question, back_ns, &host = host_, session = session_,
                          &world = world_] {
    if (host.dead()) return;
    DeviceAnswer answer = host.answer_device(session, question);
    const std::uint64_t answered_ns = world.now_ns();
    world.after(back_ns, [this, alive, number, answer = std::move(answer), answered_ns] {
      if (!alive.expired()) arrived_.push_back({number, answer, answered_ns});
    });
  });
}

void WorldDeviceLink::take(const Arrived& arrived, device::PostedRequests& posted) {
  const auto at = waiting_.find(arrived.number);
  if (at == waiting_.end()) return;  // it was given up
  const Waiting waiting = std::move(at->second);
  waiting_.erase(at);
  const bool good = arrived.answer.header.code == 0;
  if (good && is_about_leases(waiting.question.offload)) {
    std::uint64_t& heard_ns = heard_ns_[waiting.question.map];
    heard_ns = std::max(heard_ns, arrived.answered_ns);
  }
  if (!good && waiting.question.offload == wire::OffloadId::lease_renew && !ended_ && !lost_) {
    ++leases_lost_;
    ++world_counts_.device_leases_lost;
  }
  hand_on(waiting, arrived.answer, posted);
}

void WorldDeviceLink::hand_on(const Waiting& waiting, const DeviceAnswer& answer,
                              device::PostedRequests& posted) {
  device::HostAnswer said;
  said.header = answer.header;
  said.payload = answer.payload;
  if (waiting.request != nullptr) {
    posted.answered(*waiting.request, said);
  } else {
    waiting.on_answer(said);
  }
}

void WorldDeviceLink::fail_all(device::PostedRequests& posted) {
  maps_.ask_by(nullptr);
  for (const auto& [number, waiting] : std::exchange(waiting_, {})) {
    hand_on(waiting, connection_lost(), posted);
  }
  count();
  maps_.stop_reading();
  dialling_.reset();
}

// --- up and down ---------------------------------------------------------------------------------

bool WorldDeviceLink::turn(device::PostedRequests& posted) {
  const bool moved = !arrived_.empty();
  for (const Arrived& arrived : std::exchange(arrived_, {})) take(arrived, posted);
  look_for_silence();
  if (ended_ || lost_) {
    fail_all(posted);
  } else if (!maps_.can_read()) {
    dial();
  }
  maps_.turn(now_ns_());
  return moved || waits();
}

// It is lost for good, and the device begins anew: so it does in earnest where the host is another
// node by then, and else it would connect again.
void WorldDeviceLink::look_for_silence() {
  if (waiting_.empty()) return;
  const Waiting& oldest = waiting_.begin()->second;
  if (world_.now_ns() - oldest.asked_ns > kSilenceNs) lost_ = true;
}

// As DeviceLink does aside; the session is the same, and its region is offered anew.
void WorldDeviceLink::dial() {
  using State = fabric::QueuePair::State;
  if (dialling_) {
    dialling_->endpoint().progress();
    const State state = dialling_->pair().state();
    if (state == State::connected) {
      maps_.read_by(std::make_shared<device::HostReads>(std::move(dialling_)));
      ++world_counts_.device_dials;
    } else if (state != State::connecting || world_.now_ns() - dialled_ns_ > kDialNs) {
      dialling_.reset();
    }
    return;
  }
  if (dialled_ns_ != 0 && world_.now_ns() - dialled_ns_ < kAgainNs) return;
  dialled_ns_ = world_.now_ns();
  const WorldHost::Hello hello{host_.life(), session_};
  auto link = client::SideLink::begin({world_.add_endpoint(node_), kHostName},
                                      std::as_bytes(std::span(&hello, 1)), kPairTimeoutNs);
  if (!link) throw std::runtime_error("no pair: " + message(link.error()));
  dialling_ = std::move(*link);
}

void WorldDeviceLink::end() {
  ended_ = true;
  arrived_.clear();
}

void WorldDeviceLink::count() { maps_.count(); }

}  // namespace espalier::test
