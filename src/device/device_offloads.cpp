// SPDX-License-Identifier: Apache-2.0
#include "device/device_offloads.hpp"

#include <span>
#include <utility>

#include "base/assert.hpp"
#include "channel/device/relay_link.hpp"
#include "device/relay.hpp"
#include "engine/call.hpp"
#include "engine/connection.hpp"
#include "engine/payload_reader.hpp"
#include "kinds/map/device/device_map.hpp"
#include "kinds/map/offload/held_snapshots.hpp"
#include "kinds/map/offload/map_walks.hpp"
#include "kinds/table/loaded_pipeline.hpp"
#include "kinds/table/offload/loaded_pipelines.hpp"
#include "kinds/table/offload/loaded_run.hpp"

namespace espalier::device {
namespace {

using offload::Call;
using offload::Kind;
using offload::Limits;
using offload::Next;
using offload::Offload;
using wire::AtDevice;
using wire::OffloadId;

const Offload& node_offload(const Call& call) {
  return *static_cast<const Offload*>(call.offload().context);
}

// Errors that the host would give too.
bool is_the_clients(Code code) {
  return code == Code::key_too_long || code == Code::invalid_argument;
}

// A walk that was not to be done here, and of which the client has nothing yet, the host does. What
// has been sent was of a version that is gone with the lease.
Next after_failure(Call& call, const Error& error) {
  if (is_the_clients(error.code)) return call.fail(error);
  if (call.has_streamed()) return call.fail({Code::contended, 0, 1});
  if (error.code == Code::not_found) static_cast<DeviceMap&>(offload::map_of(call)).drop();
  return begin_relay(call);
}

Next read(Call& call) {
  if (is_relayed(call)) return relay(call);
  const Completion* const walked = ended_walk(call);
  if (walked != nullptr && !walked->ok) return after_failure(call, walked->error);
  if (walked == nullptr && !call.has_any_state()) {
    const auto& map = static_cast<DeviceMap&>(offload::map_of(call));
    // Of a map that its client did not open here, the host knows the name, and whether it may.
    const bool here =
        map.walks() && call.connection().access.knows_that_it_may_use(call.map_number());
    if (call.at_snapshot() || !here) return begin_relay(call);
    // What is answered by one item: a scan could be more than is relayed (device/relay.cpp).
    const OffloadId id = call.offload().id;
    const bool is_short = id == OffloadId::get || id == OffloadId::floor;
    if (is_short && map.saturated() && static_cast<RelayLink&>(call.host_link()).forwards()) {
      return begin_relay(call);
    }
  }
  return node_offload(call).step(call);
}

void cancel_read(Call& call) {
  if (is_relayed(call)) return cancel_relay(call);
  node_offload(call).cancel(call);
}

Next ask_host(Call& call) { return is_relayed(call) ? relay(call) : begin_relay(call); }

// The host has found that the client may use an object of this name.
Next open_object(Call& call) {
  const offload::HostAnswer* const answer = call.host_answer();
  if (answer != nullptr && answer->last && answer->header.code == 0) {
    call.connection().access.remember(static_cast<std::uint32_t>(answer->header.version));
  }
  return ask_host(call);
}

// The host holds it for the device, which holds it for its client.
Next snapshot_open(Call& call) {
  const offload::HostAnswer* const answer = call.host_answer();
  if (answer == nullptr || answer->header.code != 0 || !answer->last) return ask_host(call);
  auto& link = static_cast<RelayLink&>(call.host_link());
  auto snapshot = std::make_shared<RelayedSnapshot>(link, call.map_number(), answer->header.version,
                                                    answer->header.read_version);
  const auto number =
      offload::HeldSnapshots::of(call.connection()).hold(std::move(snapshot), call.account());
  if (!number) return call.fail(number.error());
  wire::ResponseHeader header{};
  header.version = *number;
  header.read_version = answer->header.read_version;
  return call.answer(header);
}

// Nobody will close what the host has opened for a client that is gone.
void close_opened_snapshot(Call& call) {
  const offload::HostAnswer& answer = *call.host_answer();
  if (answer.header.code != 0) return;
  auto& link = static_cast<RelayLink&>(call.host_link());
  link.close_snapshot(link.connection(), answer.header.version);
}

// Also when the client that loaded it is gone.
void drop_loaded_pipeline(Call& call) {
  const offload::HostAnswer& answer = *call.host_answer();
  if (answer.header.code != 0) return;
  static_cast<RelayLink&>(call.host_link()).drop_pipeline(answer.header.version);
}

// Of a loaded one the device has the words, and the host is told them. Keys of a run are for the
// node that has the memory; none is handed on.
Next relay_rows(Call& call) {
  if (is_relayed(call)) return relay(call);
  if (!call.key().empty()) {
    call.wipe_key();
    return call.fail({Code::unsupported, 0, 0},
                     "a device hands on no keys: ask its host for what is to be decrypted");
  }
  const auto payload = std::as_bytes(std::span(call.payload()));
  const bool is_query = call.offload().id == OffloadId::table_query;
  if (!is_query || !table::is_loaded_run(payload)) return begin_long_relay(call);
  auto message = offload::message_of_run(offload::LoadedPipelines::of(call.connection()),
                                         call.map_number(), payload);
  if (!message) return call.fail(message.error().error, message.error().words);
  return begin_long_relay(call, *std::move(message));
}

// The host has found nothing wrong with it. It is kept here, for there all clients of a worker are
// one session.
Next load_pipeline(Call& call) {
  const offload::HostAnswer* const answer = call.host_answer();
  if (answer == nullptr || answer->header.code != 0 || !answer->last) return ask_host(call);
  drop_loaded_pipeline(call);
  auto message = table::decode_pipeline(std::as_bytes(std::span(call.payload())));
  if (!message) return call.fail({Code::corrupt, 0, 0}, message.error().message());
  return offload::keep_pipeline(call, {call.map_number(), *std::move(message)});
}

Next refuse(Call& call) {
  return call.fail({Code::unsupported, 0, 0},
                   *static_cast<const std::string*>(call.offload().context));
}

// What a request must be like, the host says.
constexpr Limits kAnything{.key_bytes_max = 65535, .payload_bytes_max = wire::kMessageBytesMax};

/// What it has handlers of its own for, and what these change of the node's.
void serve_by_kind(Offload& made) {
  switch (made.id) {
    case OffloadId::snapshot_open:
      made.step = snapshot_open;
      made.client_gone = close_opened_snapshot;
      return;
    case OffloadId::pipeline_load:
      made.step = load_pipeline;
      made.client_gone = drop_loaded_pipeline;
      return;
    case OffloadId::table_read:
    case OffloadId::table_query:
      made.step = relay_rows;
      made.wants_more = wants_more;
      made.cancel = cancel_relay;
      return;
    default: ESPALIER_ASSERT(false);
  }
}

}  // namespace

DeviceOffloads::DeviceOffloads(const std::string& host, std::span<const Kind> own)
    : refusal_("this is a device; ask its host, at " + host) {
  static_cast<void>(offload::offload_table_with(own));  // which looks at what these say
  offloads_.reserve(table_.size());                     // the table points into it
  for (const auto kinds : {offload::all_kinds(), own}) {
    for (const Kind& kind : kinds) {
      for (const auto group : kind.calls) {
        for (const Offload& node : group) {
          offloads_.push_back(of(kind, node));
          table_[static_cast<std::uint8_t>(node.id)] = &offloads_.back();
        }
      }
    }
  }
}

Offload DeviceOffloads::of(const Kind& kind, const Offload& node) const {
  if (node.at_device == AtDevice::here) return node;
  Offload made = node;
  if (node.at_device == AtDevice::walked) {
    made.context = &node;
    made.step = read;
    if (node.cancel != nullptr) made.cancel = cancel_read;
    return made;
  }
  made.limits = kAnything;
  made.executor = nullptr;
  made.sampled = nullptr;
  made.for_executor = nullptr;
  made.cancel = nullptr;
  switch (node.at_device) {
    case AtDevice::relayed: made.step = node.opens ? open_object : ask_host; break;
    case AtDevice::by_kind:
      kind.serve_at_device != nullptr ? kind.serve_at_device(made) : serve_by_kind(made);
      break;
    default:
      made.step = refuse;
      made.context = &refusal_;
      break;
  }
  return made;
}

}  // namespace espalier::device
