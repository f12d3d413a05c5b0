// SPDX-License-Identifier: Apache-2.0
#include "channel/device/device_link.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <new>
#include <utility>

#include "base/clock.hpp"
#include "wire/session_calls.hpp"

namespace espalier::device {
namespace {

constexpr std::size_t kForwardedMax = 32;  // posts in flight, from which on none is added
constexpr std::uint64_t kCountNs = 1'000'000;
constexpr std::uint64_t kSleepNs = 100'000'000;  // while there are leases to keep
constexpr std::uint64_t kSleepDownNs = 10'000'000;

}  // namespace

DeviceLink::DeviceLink(const HostOptions& options, std::vector<std::unique_ptr<HostPart>> parts,
                       std::function<void()> on_replaced)
    : options_(options), on_replaced_(std::move(on_replaced)), parts_(std::move(parts)) {}

// Waits for an opening on another thread, within its timeouts.
DeviceLink::~DeviceLink() = default;

Result<std::unique_ptr<DeviceLink>> DeviceLink::open(const HostOptions& options,
                                                     std::vector<std::unique_ptr<HostPart>> parts,
                                                     std::function<void()> on_replaced) {
  std::unique_ptr<DeviceLink> link(
      new DeviceLink(options, std::move(parts), std::move(on_replaced)));
  auto opened = open_host(options);
  if (!opened) return std::unexpected(opened.error());
  link->now_ns_ = base::monotonic_ns();
  if (!link->take_up(std::move(*opened))) return fail(Code::not_found);
  return link;
}

// --- for the scheduler ---------------------------------------------------------------------------

void DeviceLink::post(offload::Request& request, const wire::CallMessage& message,
                      AnswerPace pace) {
  if (rings_ && pace == AnswerPace::as_taken) return streams_.post(request, message);
  if (rings_) return rings_->post(request, message);
  failed_.push_back(&request);
}

bool DeviceLink::forwards() { return rings_ && rings_->pending() < kForwardedMax; }

void DeviceLink::cancel(const offload::Request& request) noexcept {
  if (!rings_) return;
  try {
    rings_->cancel(request);
    streams_.cancel(request);
  } catch (const std::bad_alloc&) {  // no memory for the cancel: the host must stop all the same
    connection_->lose();
  }
}

void DeviceLink::notify(std::uint64_t connection, const wire::CallMessage& message) {
  if (!rings_ || connection != connections_) return;
  rings_->ask(message, {});
}

bool DeviceLink::turn(PostedRequests& posted) {
  now_ns_ = base::monotonic_ns();
  bool moved = !failed_.empty();
  const HostAnswer gone = failed_with(Code::connection_lost);
  for (offload::Request* const request : std::exchange(failed_, {})) {
    posted.answered(*request, gone);
  }
  if (opening_.valid()) take_opened();
  if (rings_) {
    moved = rings_->turn(posted) || moved;
    moved = streams_.turn(posted) || moved;
    look_for_silence();
    if (rings_->lost()) lose(posted);
  }
  if (reads_ && reads_->failed()) stop_reading();
  for (const auto& part : parts_) part->turn(now_ns_);
  const bool whole = rings_ && reads_;
  if (!whole && !replaced_ && !opening_.valid() && now_ns_ >= again_ns_) begin_opening();
  if (now_ns_ - counted_ns_ >= kCountNs) count();
  return moved || waits();
}

bool DeviceLink::waits() const {
  return !failed_.empty() || (rings_ && rings_->pending() + streams_.pending() != 0);
}

std::uint64_t DeviceLink::sleep_limit_ns() const {
  if (!rings_ || !reads_) return kSleepDownNs;
  const bool leases =
      std::ranges::any_of(parts_, [](const auto& part) { return part->has_leases(); });
  return leases ? kSleepNs : std::numeric_limits<std::uint64_t>::max();
}

void DeviceLink::count() {
  counted_ns_ = now_ns_;
  for (const auto& part : parts_) part->count();
}

// --- up and down ---------------------------------------------------------------------------------

// Returns false if it is not the required host.
bool DeviceLink::take_up(OpenedHost opened) {
  if (options_.node_id != 0 && opened.connection->node_id() != options_.node_id) return false;
  if (opened.rings) {
    connection_ = std::move(opened.connection);
    rings_ = std::make_unique<HostRings>(std::move(opened.rings));
    for (const auto& part : parts_) part->ask_by(rings_.get());
    streams_.go_by(connection_);
    ++connections_;
    heard_ = 0;
    heard_ns_ = now_ns_;
    asked_alive_ = false;
  }
  reads_ = std::make_shared<HostReads>(std::move(opened.reads));
  for (const auto& part : parts_) part->read_by(reads_);
  return true;
}

void DeviceLink::begin_opening() {
  again_ns_ = now_ns_ + options_.pause_ns;
  const auto open = [options = options_, connection = connection_]() -> Result<OpenedHost> {
    try {
      if (!connection) return open_host(options);
      auto reads = connection->open_beside(wire::LinkWay::reads);
      if (!reads) return std::unexpected(reads.error());
      return OpenedHost{connection, nullptr, std::move(*reads)};
    } catch (const std::exception&) {  // no memory
      return fail(Code::out_of_memory);
    }
  };
  try {
    opening_ = std::async(std::launch::async, open);
  } catch (const std::exception&) {  // no thread or no memory now
  }
}

// Discards reads that were opened for a connection that is lost by now.
void DeviceLink::take_opened() {
  if (opening_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
  auto opened = opening_.get();
  again_ns_ = now_ns_ + options_.pause_ns;
  if (!opened || (!opened->rings && opened->connection != connection_)) return;
  if (take_up(std::move(*opened))) return;
  replaced_ = true;
  on_replaced_();
}

void DeviceLink::stop_reading() {
  for (const auto& part : parts_) part->stop_reading();
  if (reads_) reads_->fail();
  reads_.reset();
}

void DeviceLink::lose(PostedRequests& posted) {
  for (const auto& part : parts_) part->ask_by(nullptr);
  const auto rings = std::move(rings_);
  connection_.reset();
  stop_reading();
  again_ns_ = now_ns_;
  rings->fail(posted);
  streams_.fail(posted);
}

// Keepalive: a stopped process or a machine that is down closes no connection.
void DeviceLink::look_for_silence() {
  const std::uint64_t heard = rings_->heard() + streams_.heard();
  if (rings_->pending() + streams_.pending() == 0 || heard != heard_) {
    heard_ = heard;
    heard_ns_ = now_ns_;
    asked_alive_ = false;
    return;
  }
  const std::uint64_t silent_ns = now_ns_ - heard_ns_;
  if (silent_ns >= options_.silence_ns) return connection_->lose();
  if (asked_alive_ || silent_ns < options_.silence_ns / 4) return;
  asked_alive_ = true;
  ask(*rings_, session_calls::Noop{}, [](const Result<wire::Nothing>&) {});
}

}  // namespace espalier::device
