// SPDX-License-Identifier: Apache-2.0
#include "device/device_offloads.hpp"

#include <span>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "channel/device/host_posts.hpp"
#include "channel/device/relay.hpp"
#include "engine/call.hpp"
#include "engine/connection.hpp"
#include "kinds/at_device.hpp"

namespace espalier::device {
namespace {

using offload::Call;
using offload::Kind;
using offload::Limits;
using offload::Next;
using offload::Offload;
using wire::AtDevice;
using wire::OffloadId;

// The host has found that the client may use an object of this name.
Next open_object(Call& call) {
  const HostAnswer* const answer = host_answer(call);
  if (answer != nullptr && answer->last && answer->header.code == 0) {
    call.connection().access.remember(static_cast<std::uint32_t>(answer->header.version));
  }
  return ask_host(call);
}

Next refuse(Call& call) {
  return call.fail({Code::unsupported, 0, 0},
                   *static_cast<const std::string*>(call.offload().context));
}

// What a request must be like, the host says.
constexpr Limits kAnything{.key_bytes_max = 65535, .payload_bytes_max = wire::kMessageBytesMax};

// A kind of the program's brings its handlers with it; those of the node's own are registered
// apart, for a node is linked without them.
void serve_by_kind(const Kind& kind, Offload& made, const Offload& node) {
  const auto serve =
      kind.serve_at_device != nullptr ? kind.serve_at_device : served_at_device(kind.name);
  ESPALIER_ASSERT(serve != nullptr);
  serve(made, node);
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
    serve_by_kind(kind, made, node);
    return made;
  }
  made.limits = kAnything;
  made.executor = &kHostPosts;
  made.sampled = nullptr;
  made.for_executor = nullptr;
  made.cancel = nullptr;
  switch (node.at_device) {
    case AtDevice::relayed: made.step = node.opens ? open_object : ask_host; break;
    case AtDevice::by_kind: serve_by_kind(kind, made, node); break;
    default:
      made.executor = nullptr;
      made.step = refuse;
      made.context = &refusal_;
      break;
  }
  return made;
}

}  // namespace espalier::device
