// SPDX-License-Identifier: Apache-2.0
// Offloads for clients that want results written into their memory: buffers for a response ring,
// and those that were read.
#include <cstring>
#include <string>

#include "engine/connection.hpp"
#include "engine/typed_call.hpp"
#include "kinds/table/calls.hpp"
#include "kinds/table/offload/result_host.hpp"
#include "kinds/table/offload/table_offloads.hpp"

namespace espalier::offload {
namespace {

Next offer_buffers(Call& call, const table_calls::OfferBuffers& asked) {
  ResultHost* const host = ResultHost::of(call.connection());
  if (host == nullptr) return call.fail({Code::unsupported, 0, 0});
  const auto opened = host->open(call.response_ring(), asked.offer);
  if (opened) return answer(call, wire::Nothing{});
  if (opened.error().code == Code::busy) {
    return call.fail(opened.error(), "a query writes into the buffers of this response ring");
  }
  return call.fail(opened.error(),
                   "1 to 16 buffers of 64 KiB to 4 MiB, at multiples of 8, can be written");
}

Next return_buffers(Call& call, const table_calls::ReturnBuffers& asked) {
  ResultHost* const host = ResultHost::of(call.connection());
  std::uint32_t buffers[wire::kResultBuffersMax];
  std::memcpy(buffers, asked.numbers.data(), asked.numbers.size());
  const auto given =
      host == nullptr
          ? fail(Code::not_found)
          : host->give_back(call.response_ring(),
                            std::span(buffers).first(asked.numbers.size() / sizeof buffers[0]));
  if (given) return answer(call, wire::Nothing{});
  if (given.error().code == Code::not_found) {
    return call.fail(given.error(), "this response ring has no buffers for results");
  }
  return call.fail(given.error(), "buffer " + std::to_string(given.error().detail) +
                                      " is not the client's to give back: none that is full has "
                                      "this number, or it was given back before");
}

const Offload kResultOffloads[] = {
    serve<table_calls::OfferBuffers, offer_buffers>(),
    serve<table_calls::ReturnBuffers, return_buffers>(),
};

}  // namespace

std::span<const Offload> result_offloads() { return kResultOffloads; }

}  // namespace espalier::offload
