// SPDX-License-Identifier: Apache-2.0
// A scripted client that offers memory for results; the test decides what is given back, and when.
//
// Thread: one.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "channel/rings/fabric_connection.hpp"
#include "channel/rings/remote_pipeline.hpp"
#include "kinds/table/format/result_buffers.hpp"
#include "tests/support/landing_by_hand.hpp"

namespace espalier::test {

/// Rings, and memory that the node may write.
class ResultsByHand {
 public:
  static constexpr std::uint32_t kBufferBytes = wire::kResultBufferBytesMin;

  /// `pipeline`: the query of begin().
  ResultsByHand(const std::string& address, std::uint32_t buffers, std::vector<std::byte> pipeline)
      : buffers_(buffers),
        connection_(*client::FabricConnection::open(*fabric::parse(address), as_this_process())),
        rings_(*client::ThreadRings::open(connection_)),
        requests_(*rings_, 1),
        memory_(*connection_->offer_memory(std::uint64_t{buffers} * kBufferBytes)),
        pipeline_(std::move(pipeline)) {}

  std::optional<Error> ask(wire::OffloadId id, std::string_view payload, std::uint32_t map = 0,
                           std::uint32_t argument = 0) {
    wire::CallMessage request;
    request.offload = id;
    request.payload = payload;
    request.map = map;
    request.argument = argument;
    const auto reply = requests_.ask(request);
    return reply ? std::nullopt : std::optional(reply.error().error);
  }
  [[nodiscard]] wire::ResultOffer good_offer() const {
    return {memory_.remote.base, kBufferBytes, buffers_, memory_.remote.key, 0};
  }
  std::optional<Error> offer(const wire::ResultOffer& offer) {
    return ask(wire::OffloadId::result_open, base::bytes_of(offer));
  }
  void begin(std::uint32_t table) {
    wire::CallMessage request;
    request.offload = wire::OffloadId::table_query;
    request.map = table;
    request.payload = client::text_of(pipeline_);
    request.argument = wire::kQueryIntoBuffers;
    ASSERT_TRUE(requests_.begin(request));
  }
  /// Does not wait for the answer.
  void give_back(std::initializer_list<std::uint32_t> buffers) {
    give_back(std::vector<std::uint32_t>(buffers));
  }
  void give_back(const std::vector<std::uint32_t>& buffers) {
    wire::CallMessage request;
    request.offload = wire::OffloadId::result_return;
    request.payload = client::text_of(std::as_bytes(std::span(buffers)));
    ASSERT_TRUE(requests_.send_aside(request));
  }
  /// The place of the next piece's rows; nothing: it is the last one.
  std::optional<wire::ResultPlace> next() {
    for (;;) {
      const auto piece = requests_.take_piece();
      if (!piece) {
        EXPECT_TRUE(requests_.wait_piece(base::monotonic_ns() + 1'000'000'000));
        continue;
      }
      if (client::RemoteRequests::is_last(*piece)) {
        last_ = piece->header.code == 0 ? std::nullopt
                                        : std::optional(client::RemoteRequests::refusal_of(*piece));
        return std::nullopt;
      }
      wire::ResultPlace place{};
      EXPECT_EQ(piece->payload.size(), sizeof place);
      std::memcpy(&place, piece->payload.data(), sizeof place);
      EXPECT_LT(place.buffer, buffers_);
      EXPECT_LE(std::uint64_t{place.offset} + place.bytes, kBufferBytes);
      return place;
    }
  }
  /// Cancels the query; pieces in flight still arrive.
  [[nodiscard]] bool cancel() { return requests_.cancel_begun(); }
  /// The error of the last query; nothing: success.
  [[nodiscard]] const std::optional<client::Refusal>& ended_by() const { return last_; }
  [[nodiscard]] std::byte* at(const wire::ResultPlace& place) const {
    return memory_.at + std::size_t{place.buffer} * kBufferBytes + place.offset;
  }
  [[nodiscard]] const client::FabricConnection::WritableMemory& memory() const { return memory_; }

 private:
  const std::uint32_t buffers_;
  std::shared_ptr<client::FabricConnection> connection_;
  std::unique_ptr<client::ThreadRings> rings_;
  client::RemoteRequests requests_;
  client::FabricConnection::WritableMemory memory_;
  std::vector<std::byte> pipeline_;
  std::optional<client::Refusal> last_;
};

}  // namespace espalier::test
