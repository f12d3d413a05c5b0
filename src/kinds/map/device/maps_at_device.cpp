// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/device/maps_at_device.hpp"

#include <atomic>
#include <memory>
#include <utility>

#include "base/assert.hpp"
#include "channel/device/host_asker.hpp"
#include "channel/device/host_posts.hpp"
#include "channel/device/relay.hpp"
#include "engine/call.hpp"
#include "engine/connection.hpp"
#include "engine/services.hpp"
#include "engine/typed_call.hpp"
#include "kinds/map/calls.hpp"
#include "kinds/map/device/device_map.hpp"
#include "kinds/map/offload/held_snapshots.hpp"
#include "kinds/map/offload/maps_elsewhere.hpp"
#include "kinds/map/offload/reads.hpp"
#include "kinds/map/offload/snapshot.hpp"
#include "kinds/map/offload/walk_call.hpp"
#include "memory/held_version.hpp"

namespace espalier::device {
namespace {

using offload::Call;
using offload::Next;
using offload::Offload;
using wire::AtDevice;
using wire::OffloadId;

void close_at_host(HostLink& link, std::uint64_t connection, std::uint64_t number) {
  const wire::RequestMessage<map_calls::CloseSnapshot> close({number});
  link.notify(connection, close.get());
}

/// A version that the host holds for a client of the device.
class RelayedSnapshot final : public offload::HeldSnapshot {
 public:
  RelayedSnapshot(HostLink& link, std::uint32_t map, std::uint64_t number, std::uint64_t version)
      : link_(link), connection_(link.connection()), map_(map), number_(number) {
    held_.version = version;
  }
  ~RelayedSnapshot() override { close_at_host(link_, connection_, number_); }

  [[nodiscard]] const memory::HeldVersion& version() const override { return held_; }
  [[nodiscard]] std::uint32_t map() const override { return map_; }
  /// Its number at the host; 0: lost with that connection.
  [[nodiscard]] std::uint64_t number() const {
    return link_.connection() == connection_ ? number_ : 0;
  }

 private:
  HostLink& link_;
  const std::uint64_t connection_;
  const std::uint32_t map_;
  const std::uint64_t number_;
  memory::HeldVersion held_;
};

const Offload& node_offload(const Call& call) {
  return *static_cast<const Offload*>(call.offload().context);
}

// Forwards the read to the host, with the host's number of the snapshot.
Next let_host_read(Call& call) {
  if (!call.at_snapshot()) return begin_relay(call);
  const auto number = call.snapshot_number();
  offload::ReadSource source = offload::read_source(call, number, nullptr);
  if (!number || !source.found) return call.fail({Code::not_found, 0, 0});
  const auto at_host = static_cast<const RelayedSnapshot&>(*source.snapshot).number();
  if (at_host == 0) return call.fail({Code::connection_lost, 0, 0});
  return begin_relay(call, {at_host, std::move(source.snapshot)});
}

// Errors that the host would return too.
bool is_the_clients(Code code) {
  return code == Code::key_too_long || code == Code::invalid_argument;
}

// Forwards a walk that could not run here and has sent nothing yet to the host. Items already sent
// are of a version that is lost with the lease.
Next after_failure(Call& call, const Error& error) {
  if (is_the_clients(error.code)) return call.fail(error);
  if (call.has_streamed()) return call.fail({Code::contended, 0, 1});
  if (error.code == Code::not_found) static_cast<DeviceMap&>(offload::map_of(call)).drop();
  return let_host_read(call);
}

void count_forwarded(Call& call) {
  const auto& maps = call.services().part<offload::NodeMapsElsewhere>();
  maps.of_scheduler[call.shard()]->counts().forwarded.fetch_add(1, std::memory_order_relaxed);
}

Next read(Call& call) {
  if (is_relayed(call)) return relay(call);
  const Completion* const walked = ended_walk(call);
  if (walked != nullptr && !walked->ok) return after_failure(call, walked->error);
  if (walked == nullptr && !call.has_any_state()) {
    const auto& map = static_cast<DeviceMap&>(offload::map_of(call));
    // For a map that its client did not open here, the host checks its name and the client's
    // rights.
    const bool here =
        map.walks() && call.connection().access.knows_that_it_may_use(call.map_number());
    if (call.at_snapshot() || !here) return let_host_read(call);
    // Calls answered by one item: a scan could exceed what is relayed (channel/device/relay.cpp).
    const OffloadId id = call.offload().id;
    const bool is_short = id == OffloadId::get || id == OffloadId::floor;
    if (is_short && map.saturated() && host_link(call).forwards()) {
      count_forwarded(call);
      return let_host_read(call);
    }
  }
  return node_offload(call).step(call);
}

void cancel_read(Call& call) {
  if (is_relayed(call)) return cancel_relay(call);
  node_offload(call).cancel(call);
}

// The host holds the version for the device, and the device for its client.
Next snapshot_open(Call& call) {
  const HostAnswer* const answer = host_answer(call);
  if (answer == nullptr || answer->header.code != 0 || !answer->last) return ask_host(call);
  const auto opened = reply_in<map_calls::SnapshotOpened>(*answer);
  if (!opened) return call.fail(opened.error());
  auto snapshot = std::make_shared<RelayedSnapshot>(host_link(call), call.map_number(),
                                                    opened->number, opened->version);
  const auto number =
      offload::HeldSnapshots::of(call.connection()).hold(std::move(snapshot), call.account());
  if (!number) return call.fail(number.error());
  return offload::answer(call, map_calls::SnapshotOpened{*number, opened->version});
}

// Closes, at the host, a snapshot opened for a client that has disconnected.
void close_opened_snapshot(Call& call) {
  const auto opened = reply_in<map_calls::SnapshotOpened>(*host_answer(call));
  if (!opened) return;
  HostLink& link = host_link(call);
  close_at_host(link, link.connection(), opened->number);
}

}  // namespace

void serve_maps_at_device(Offload& made, const Offload& node) {
  if (node.at_device == AtDevice::walked) {
    made.context = &node;
    made.step = read;
    if (node.cancel != nullptr) made.cancel = cancel_read;
    return;
  }
  ESPALIER_ASSERT(made.id == OffloadId::snapshot_open);
  made.step = snapshot_open;
  static constexpr PostHandler kPosts{.client_gone = close_opened_snapshot};
  made.for_executor = &kPosts;
}

}  // namespace espalier::device
