// SPDX-License-Identifier: Apache-2.0
#include "device/device_link.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "client/one_sided_opening.hpp"

namespace espalier::device {
namespace {

constexpr std::uint64_t kKeepLeasesNs = 50'000'000;
constexpr std::size_t kForwardedMax = 32;  // that wait for the host, with all else that does
constexpr std::uint64_t kCountNs = 1'000'000;
constexpr std::uint64_t kSleepNs = 100'000'000;  // while there are leases to keep
constexpr std::uint64_t kSleepDownNs = 10'000'000;

Error error_of(const offload::HostAnswer& answer) {
  Error error{static_cast<Code>(answer.header.code), 0, 0};
  if (answer.payload.size() >= sizeof error.detail) {
    std::memcpy(&error.detail, answer.payload.data(), sizeof error.detail);
  }
  return error;
}

Result<std::shared_ptr<MapReader>> reader_from(const offload::HostAnswer& answer,
                                               const std::shared_ptr<HostReads>& reads,
                                               std::uint32_t map, std::uint64_t asked_ns) {
  if (answer.header.code != 0) return std::unexpected(error_of(answer));
  const auto opening = client::OneSidedOpening::read(answer.payload);
  if (!opening) return std::unexpected(opening.error());
  const auto view = opening->view_of(map);
  if (!view) return std::unexpected(view.error());
  place::ReadPort* const port =
      reads->port({opening->region.base, opening->region.bytes, opening->region.key, 0});
  if (port == nullptr) {
    reads->fail();
    return fail(Code::connection_lost);
  }
  return std::make_shared<MapReader>(reads, *port, *view, opening->lease, asked_ns);
}

}  // namespace

DeviceLink::DeviceLink(const HostOptions& options, std::function<void()> on_replaced)
    : options_(options), on_replaced_(std::move(on_replaced)) {}

// What is opened aside just now ends with its times.
DeviceLink::~DeviceLink() = default;

Result<std::unique_ptr<DeviceLink>> DeviceLink::open(const HostOptions& options,
                                                     std::function<void()> on_replaced) {
  std::unique_ptr<DeviceLink> link(new DeviceLink(options, std::move(on_replaced)));
  auto opened = open_host(options);
  if (!opened) return std::unexpected(opened.error());
  link->now_ns_ = base::monotonic_ns();
  if (!link->take_up(std::move(*opened))) return fail(Code::not_found);
  return link;
}

// --- for the scheduler ---------------------------------------------------------------------------

std::unique_ptr<offload::ServedMap> DeviceLink::serve(std::uint32_t number) {
  MapHost& host = *this;
  return std::make_unique<DeviceMap>(host, number);
}

void DeviceLink::post(offload::Request& request, const offload::Post& post) {
  if (rings_) return rings_->post(request, post);
  failed_.push_back(&request);
}

bool DeviceLink::forwards() {
  if (!rings_ || rings_->pending() >= kForwardedMax) return false;
  counts_.forwarded.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void DeviceLink::cancel(const offload::Request& request) {
  if (rings_) rings_->cancel(request);
}

void DeviceLink::close_snapshot(std::uint64_t connection, std::uint64_t number) {
  if (!rings_ || connection != connections_) return;
  rings_->ask(wire::OffloadId::snapshot_close, 0, std::string(base::bytes_of(number)), {});
}

bool DeviceLink::turn(offload::PostedRequests& posted) {
  now_ns_ = base::monotonic_ns();
  bool moved = !failed_.empty();
  offload::HostAnswer gone;
  gone.header.code = static_cast<std::uint16_t>(Code::connection_lost);
  for (offload::Request* const request : std::exchange(failed_, {})) {
    posted.answered(*request, gone);
  }
  if (opening_.valid()) take_opened();
  if (rings_) {
    moved = rings_->turn(posted) || moved;
    look_for_silence();
    if (rings_->lost()) lose(posted);
  }
  if (reads_ && reads_->failed()) {
    reads_->fail();
    reads_.reset();
  }
  const bool whole = rings_ && reads_;
  if (!whole && !replaced_ && !opening_.valid() && now_ns_ >= again_ns_) begin_opening();
  if (now_ns_ - leases_kept_ns_ >= kKeepLeasesNs) keep_idle_leases();
  if (now_ns_ - counted_ns_ >= kCountNs) count();
  return moved || waits();
}

bool DeviceLink::waits() const { return !failed_.empty() || (rings_ && rings_->pending() != 0); }

std::uint64_t DeviceLink::sleep_limit_ns() const {
  if (!rings_ || !reads_) return kSleepDownNs;
  return readers_.empty() ? std::numeric_limits<std::uint64_t>::max() : kSleepNs;
}

// --- maps and their leases -----------------------------------------------------------------------

std::shared_ptr<MapOpening> DeviceLink::open_map(std::uint32_t number) {
  auto opening = std::make_shared<MapOpening>();
  if (!rings_ || !reads_) {
    opening->result = fail(Code::connection_lost);
    return opening;
  }
  const std::uint64_t asked_ns = base::monotonic_ns();
  rings_->ask(wire::OffloadId::one_sided_open, number, {},
              [this, opening, number, asked_ns, reads = reads_](const offload::HostAnswer& answer) {
                opening->result = reader_from(answer, reads, number, asked_ns);
                if (!*opening->result) return;
                readers_.emplace_back(**opening->result);
                follow(number, **opening->result);
              });
  return opening;
}

// Where it is refused, entries of the cache are found out by leaves alone.
void DeviceLink::follow(std::uint32_t number, const std::shared_ptr<MapReader>& reader) {
  if (!rings_) return;
  rings_->ask(wire::OffloadId::feed_open, number, {},
              [weak = std::weak_ptr(reader)](const offload::HostAnswer& answer) {
                const auto kept = weak.lock();
                if (!kept || answer.header.code != 0) return;
                const auto place = client::read_feed_place(answer.payload);
                if (!place) return;
                const auto cursor = place::FeedCursor::create(*place, kept->reader.view());
                if (cursor) kept->reader.follow(*cursor);
              });
}

void DeviceLink::renew(const std::shared_ptr<MapReader>& reader) {
  if (const auto asked = reader->reader.lease().due(now_ns_)) ask_renewal(reader, *asked);
}

// A lease that was lost took the session's key with it, and all that is read by it.
void DeviceLink::ask_renewal(const std::shared_ptr<MapReader>& reader,
                             const place::LeaseGuard::Asked& asked) {
  if (asked.id == 0 || !rings_) {
    reader->reader.lease().end_all();
    return reader->reads->fail();
  }
  // With it goes from which leaves the device has answered, as clients tell it that read alone.
  const wire::LeaseRenewal renewal{asked.id, asked.oldest};
  std::string payload(base::bytes_of(renewal));
  for (const wire::Lid leaf : reader->reader.samples().leaves()) payload += base::bytes_of(leaf);
  reader->reader.samples().clear();
  rings_->ask(wire::OffloadId::lease_renew, reader->reader.view().id, std::move(payload),
              [weak = std::weak_ptr(reader)](const offload::HostAnswer& answer) {
                const auto kept = weak.lock();
                if (!kept) return;
                if (answer.header.code == 0) {
                  kept->reader.lease().renewed(answer.header.version, base::monotonic_ns());
                } else {
                  kept->reader.lease().end_all();
                  kept->reads->fail();
                }
              });
}

// A session stands and falls with all its leases, those of maps that are not read now too.
void DeviceLink::keep_idle_leases() {
  leases_kept_ns_ = now_ns_;
  std::erase_if(readers_, [this](const std::weak_ptr<MapReader>& weak) {
    const auto reader = weak.lock();
    if (!reader) return true;
    if (reader->reads->failed()) return false;
    auto asked = reader->reader.lease().due(now_ns_);
    if (!asked) asked = reader->reader.lease().idle_due(now_ns_);
    if (asked) ask_renewal(reader, *asked);
    return false;
  });
}

// What they did since; those that end tell by themselves.
void DeviceLink::count() {
  counted_ns_ = now_ns_;
  if (reads_) reads_->count();
  for (const std::weak_ptr<MapReader>& weak : readers_) {
    if (const auto reader = weak.lock()) reader->count();
  }
}

// --- up and down ---------------------------------------------------------------------------------

// Returns false if it is not the host that it must be.
bool DeviceLink::take_up(OpenedHost opened) {
  if (options_.node_id != 0 && opened.connection->node_id() != options_.node_id) return false;
  if (opened.rings) {
    connection_ = std::move(opened.connection);
    rings_ = std::make_unique<HostRings>(std::move(opened.rings));
    ++connections_;
    heard_ = 0;
    heard_ns_ = now_ns_;
    asked_alive_ = false;
  }
  reads_ = std::make_shared<HostReads>(std::move(opened.reads), options_.cache_bytes,
                                       options_.balance, counts_);
  return true;
}

void DeviceLink::begin_opening() {
  again_ns_ = now_ns_ + options_.pause_ns;
  const auto open = [options = options_, connection = connection_]() -> Result<OpenedHost> {
    if (!connection) return open_host(options);
    auto reads = connection->open_beside(wire::LinkWay::reads);
    if (!reads) return std::unexpected(reads.error());
    return OpenedHost{connection, nullptr, std::move(*reads)};
  };
  try {
    opening_ = std::async(std::launch::async, open);
  } catch (const std::system_error&) {  // no thread is to be had now
  }
}

// What was opened for a connection that is lost by now is none.
void DeviceLink::take_opened() {
  if (opening_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
  auto opened = opening_.get();
  again_ns_ = now_ns_ + options_.pause_ns;
  if (!opened || (!opened->rings && opened->connection != connection_)) return;
  if (take_up(std::move(*opened))) return;
  replaced_ = true;
  on_replaced_();
}

void DeviceLink::lose(offload::PostedRequests& posted) {
  const auto rings = std::move(rings_);
  connection_.reset();
  if (reads_) reads_->fail();
  reads_.reset();
  again_ns_ = now_ns_;
  rings->fail(posted);
}

// A process that was stopped, or a machine that is gone, ends no connection by itself.
void DeviceLink::look_for_silence() {
  if (rings_->pending() == 0 || rings_->heard() != heard_) {
    heard_ = rings_->heard();
    heard_ns_ = now_ns_;
    asked_alive_ = false;
    return;
  }
  const std::uint64_t silent_ns = now_ns_ - heard_ns_;
  if (silent_ns >= options_.silence_ns) return connection_->lose();
  if (asked_alive_ || silent_ns < options_.silence_ns / 4) return;
  asked_alive_ = true;
  rings_->ask(wire::OffloadId::noop, 0, {}, {[](const offload::HostAnswer&) {}});
}

}  // namespace espalier::device
