// SPDX-License-Identifier: Apache-2.0
// Offloads for clients that want results written into their memory: buffers for a response ring,
// and those that were read.
#include <cstring>
#include <string>
#include <vector>

#include "offload/call.hpp"
#include "offload/connection.hpp"
#include "offload/payload_reader.hpp"
#include "offload/result_host.hpp"

namespace espalier::offload {
namespace {

Next result_open(Call& call) {
  ResultHost* const host = call.connection().results.get();
  if (host == nullptr) return call.fail({Code::unsupported, 0, 0});
  const auto opened =
      host->open(call.response_ring(), PayloadReader(call.payload()).take<wire::ResultOffer>());
  if (opened) return call.answer({});
  if (opened.error().code == Code::busy) {
    return call.fail(opened.error(), "a query writes into the buffers of this response ring");
  }
  return call.fail(opened.error(),
                   "1 to 16 buffers of 64 KiB to 4 MiB, at multiples of 8, can be written");
}

Next result_return(Call& call) {
  ResultHost* const host = call.connection().results.get();
  const std::string_view payload = call.payload();
  std::uint32_t buffers[wire::kResultBuffersMax];
  if (payload.size() % sizeof buffers[0] != 0) {
    return call.fail({Code::invalid_argument, 0, 0}, "numbers of buffers have 4 bytes each");
  }
  std::memcpy(buffers, payload.data(), payload.size());
  const auto given =
      host == nullptr
          ? fail(Code::not_found)
          : host->give_back(call.response_ring(),
                            std::span(buffers).first(payload.size() / sizeof buffers[0]));
  if (given) return call.answer({});
  if (given.error().code == Code::not_found) {
    return call.fail(given.error(), "this response ring has no buffers for results");
  }
  return call.fail(given.error(), "buffer " + std::to_string(given.error().detail) +
                                      " is not the client's to give back: none that is full has "
                                      "this number, or it was given back before");
}

const Offload kResultOffloads[] = {
    {.id = wire::OffloadId::result_open,
     .name = "result_open",
     .format = "a ResultOffer",
     .summary = "offers buffers of the client's, into which queries that answer to the same "
                "response ring may write their rows",
     .right = Right::read,
     .limits = {.payload_bytes_min = sizeof(wire::ResultOffer),
                .payload_bytes_max = sizeof(wire::ResultOffer)},
     .step = result_open},
    {.id = wire::OffloadId::result_return,
     .name = "result_return",
     .format = "numbers of buffers, 4 bytes each",
     .summary = "gives full buffers of the same response ring back, all or none",
     .right = Right::read,
     .limits = {.payload_bytes_min = sizeof(std::uint32_t),
                .payload_bytes_max = wire::kResultBuffersMax * sizeof(std::uint32_t)},
     .step = result_return},
};

}  // namespace

std::span<const Offload> result_offloads() { return kResultOffloads; }

}  // namespace espalier::offload
