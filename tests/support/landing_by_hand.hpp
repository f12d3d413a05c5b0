// SPDX-License-Identifier: Apache-2.0
// A scripted client: rings, a window, and a pair to write it. Its claims may be false.
//
// Thread: one at a time; write() through a link of its own, any.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "channel/rings/fabric_connection.hpp"
#include "channel/rings/remote_pipeline.hpp"
#include "channel/rings/side_link.hpp"
#include "kinds/table/format/landing.hpp"

namespace espalier::test {

inline constexpr std::uint64_t kWindowBytes = std::uint64_t{1} << 20;

/// With the secret of ESPALIER_SECRET_FILE, if that is set.
inline client::FabricConnectionOptions as_this_process() {
  client::FabricConnectionOptions options;
  options.secret = client::KnownSecret::of_process().value();
  return options;
}

class ByHand {
 public:
  using OffloadId = wire::OffloadId;
  using Refusal = client::Refusal;
  using Reply = client::Reply;

  explicit ByHand(const std::string& address)
      : connection_(*client::FabricConnection::open(*fabric::parse(address), as_this_process())),
        rings_(*client::ThreadRings::open(connection_)),
        requests_(*rings_, 1) {}

  std::expected<Reply, Refusal> ask(OffloadId id, std::uint32_t map, std::string_view payload,
                                    std::string_view key = {}, std::uint32_t argument = 0) {
    wire::CallMessage request;
    request.offload = id;
    request.map = map;
    request.key = key;
    request.payload = payload;
    request.argument = argument;
    return requests_.ask(request);
  }
  /// `reservation`: its number in bytes, of an encrypted table.
  std::expected<Reply, Refusal> commit(std::uint32_t table, const wire::LandedRows& rows,
                                       std::string_view reservation = {}) {
    return ask(OffloadId::table_commit, table, base::bytes_of(rows), reservation);
  }
  wire::LandingGrant open(std::uint64_t bytes) {
    wire::LandingGrant grant{};
    const auto reply = ask(OffloadId::landing_open, 0, base::bytes_of(bytes));
    EXPECT_TRUE(reply) << message(reply.error());
    if (reply) std::memcpy(&grant, reply->payload.data(), sizeof grant);
    return grant;
  }
  std::unique_ptr<client::SideLink> link() {
    return *connection_->open_beside(wire::LinkWay::writes);
  }
  static fabric::Status write(client::SideLink& link, const wire::LandingGrant& grant,
                              std::span<const std::byte> bytes, std::uint64_t offset = 0) {
    link.pair().post(fabric::WorkRequest::write(1, bytes, grant.key, grant.base + offset));
    fabric::Completion completion;
    while (link.completions().poll({&completion, 1}) == 0) link.endpoint().wait(1'000'000);
    return completion.status;
  }
  void hang_up() { connection_->hang_up(); }

 private:
  std::shared_ptr<client::FabricConnection> connection_;
  std::unique_ptr<client::ThreadRings> rings_;
  client::RemoteRequests requests_;
};

}  // namespace espalier::test
