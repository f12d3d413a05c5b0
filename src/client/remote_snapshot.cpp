// SPDX-License-Identifier: Apache-2.0
#include "client/remote_snapshot.hpp"

#include <cstring>
#include <utility>

#include "base/bytes.hpp"
#include "client/count_request.hpp"

namespace espalier::client {

RemoteSnapshot::RemoteSnapshot(std::shared_ptr<RemoteSessions> sessions,
                               std::unique_ptr<ThreadRings> rings)
    : sessions_(std::move(sessions)) {
  askers_.push_back(std::make_unique<Asker>(std::move(rings)));
}

RemoteSnapshot::~RemoteSnapshot() {
  close();
  for (const auto& asker : askers_) sessions_->release(std::move(asker->rings));
}

void RemoteSnapshot::close() {
  const std::uint64_t number = std::exchange(scope_.snapshot, 0);
  if (number == 0) return;
  Outgoing close;
  close.offload = wire::OffloadId::snapshot_close;
  close.payload = base::bytes_of(number);
  static_cast<void>(askers_.front()->requests.call(close));  // a lost connection has closed it
}

Result<void> RemoteSnapshot::open() {
  if (!begin_open()) return std::unexpected(connection().lost_error());
  return finish_open();
}

bool RemoteSnapshot::begin_open() {
  Outgoing outgoing;
  outgoing.offload = wire::OffloadId::snapshot_open;
  outgoing.map = scope_.map;
  return requests().begin(outgoing);
}

Result<void> RemoteSnapshot::finish_open() {
  const auto reply = finish();
  if (!reply) return std::unexpected(reply.error());
  scope_.snapshot = reply->header.version;
  version_ = reply->header.read_version;
  return {};
}

bool RemoteSnapshot::begin_collect() {
  Outgoing outgoing;
  outgoing.offload = wire::OffloadId::map_stats;
  outgoing.map = scope_.map;
  return requests().begin(outgoing);
}

Result<Version> RemoteSnapshot::finish_collect() {
  const auto reply = finish();
  if (!reply) return std::unexpected(reply.error());
  wire::MapNumbers numbers{};
  if (reply->payload.size() != sizeof numbers) return fail(Code::corrupt);
  std::memcpy(&numbers, reply->payload.data(), sizeof numbers);
  return numbers.read_version;
}

bool RemoteSnapshot::begin_hold() {
  Outgoing outgoing;
  outgoing.offload = wire::OffloadId::release_hold;
  outgoing.map = scope_.map;
  return requests().begin(outgoing);
}

Result<void> RemoteSnapshot::finish_hold() {
  const auto reply = finish();
  if (!reply) return std::unexpected(reply.error());
  hold_ = reply->header.version;
  return {};
}

bool RemoteSnapshot::begin_confirm() {
  Outgoing outgoing;
  outgoing.offload = wire::OffloadId::release_confirm;
  outgoing.map = scope_.map;
  outgoing.payload = base::bytes_of(hold_);
  return requests().begin(outgoing);
}

Result<std::optional<Version>> RemoteSnapshot::finish_confirm() {
  hold_ = 0;
  const auto reply = finish();
  if (!reply) return std::unexpected(reply.error());
  if ((reply->header.flags & wire::kFound) == 0) return std::optional<Version>{};
  return std::optional(reply->header.read_version);
}

Result<Reply> RemoteSnapshot::finish() {
  auto reply = requests().await();
  if (!reply) return std::unexpected(reply.error().error);
  return std::move(*reply);
}

// Asks on the snapshot's own lane; from inside a sink of the same snapshot on another lane of its
// connection, for an answer on the first one is just being delivered.
template <class Ask>
std::invoke_result_t<Ask, RemoteRequests&> RemoteSnapshot::ask(Ask ask) {
  const std::lock_guard lock(mutex_);
  if (depth_ == askers_.size()) {
    auto rings = ThreadRings::open(askers_.front()->rings->shared_connection());
    if (!rings) return std::unexpected(rings.error());
    askers_.push_back(std::make_unique<Asker>(std::move(*rings)));
  }
  RemoteRequests& requests = askers_[depth_++]->requests;
  const std::unique_ptr<std::size_t, void (*)(std::size_t*)> up(
      &depth_, [](std::size_t* depth) { --*depth; });
  return ask(requests);
}

Result<void> RemoteSnapshot::run(const Request& request, Handler& handler) {
  return ask([&](RemoteRequests& requests) -> Result<void> {
    requests.submit({&request, 1}, handler, scope_);
    requests.drain();
    return {};
  });
}

Result<std::uint64_t> RemoteSnapshot::count(std::string_view low, std::string_view high) {
  auto outgoing = count_request(low, high, scope_.max_key_bytes);
  if (!outgoing) return std::unexpected(outgoing.error());
  outgoing->map = scope_.map;
  outgoing->at_snapshot = true;
  outgoing->payload = base::bytes_of(scope_.snapshot);
  outgoing->more_payload = high;
  return ask([&](RemoteRequests& requests) -> Result<std::uint64_t> {
    const auto reply = requests.call(*outgoing);
    if (!reply) return std::unexpected(reply.error());
    return reply->header.version;
  });
}

}  // namespace espalier::client
