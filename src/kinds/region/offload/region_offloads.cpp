// SPDX-License-Identifier: Apache-2.0
// Calls on regions: create and open, access by request, and keys for sessions that access them
// directly.
#include "kinds/region/offload/region_offloads.hpp"

#include <memory>

#include "engine/connection.hpp"
#include "engine/object_call.hpp"
#include "engine/services.hpp"
#include "engine/typed_call.hpp"
#include "kinds/region/execute.hpp"
#include "kinds/region/offload/region_host.hpp"
#include "kinds/region/region_object.hpp"

namespace espalier::offload {
namespace {

using region::RegionFault;
using region::RegionObject;

/// What is wrong with the place that a client named, in words.
std::string_view words_of(const Error& error) {
  if (error.code != Code::invalid_argument) return {};
  switch (static_cast<RegionFault>(error.detail)) {
    case RegionFault::beyond: return "not all of these bytes are within the region";
    case RegionFault::misaligned: return "atomics are on words at offsets that are multiples of 8";
  }
  return {};
}

template <class Request>
Next on_region(Call& call, const Request& asked) {
  const auto object = call.catalog().find<RegionObject>(call.map_number());
  if (object == nullptr) return call.fail({Code::not_found, 0, call.map_number()});
  if constexpr (requires { asked.range; }) {
    if (!call.response_fits(asked.range.bytes)) return call.writable();
  }
  const auto reply = execute(*object, asked);
  if (!reply) return call.fail(reply.error(), words_of(reply.error()));
  return answer(call, *reply);
}

Next open_key(Call& call, const region_calls::OpenKey& asked) {
  RegionHost* const host = RegionHost::of(call.connection());
  if (host == nullptr) {
    return call.fail({Code::unsupported, 0, 0},
                     "nothing can be written through this connection: ask for bytes by rpc");
  }
  const auto of = call.catalog().find<RegionObject>(call.map_number());
  if (of == nullptr) return call.fail({Code::not_found, 0, call.map_number()});
  const auto grant = host->open(*of, asked.which == region_calls::OpenKey::kAnother);
  if (!grant) return call.fail(grant.error());
  return answer(call, region_calls::Granted{*grant});
}

// Of what lies in regions nothing is recorded, so there is nothing to wait for.
template <class Request>
constexpr Offload serve_region_write() {
  return serve<Request, on_region<Request>>({.waits_for_release = true});
}

const Offload kRegionOffloads[] = {
    serve_opening<region_calls::Create>(),
    serve_opening<region_calls::Open>(),
    serve<region_calls::Read, on_region<region_calls::Read>>(),
    serve_region_write<region_calls::Write>(),
    serve_region_write<region_calls::FetchAdd>(),
    serve_region_write<region_calls::CompareSwap>(),
    serve<region_calls::OpenKey, open_key>(),
};

}  // namespace

std::span<const Offload> region_offloads() { return kRegionOffloads; }

}  // namespace espalier::offload
