// SPDX-License-Identifier: Apache-2.0
// For tests: a queue pair with nothing behind it, whose peer a test plays frame by frame.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "fabric/completion_queue.hpp"
#include "fabric/endpoint.hpp"
#include "fabric/ofi/pair.hpp"
#include "fabric/ofi/testing/fake_channel.hpp"

namespace espalier::fabric::ofi {

/// An endpoint that does nothing, for queues want one.
class StillEndpoint final : public Endpoint {
 public:
  explicit StillEndpoint(std::shared_ptr<RegionTable> regions)
      : Endpoint(kProperties, std::move(regions)) {}
  Result<std::unique_ptr<QueuePair>> connect(std::string_view, const QueuePairOptions&,
                                             std::span<const std::byte>) override {
    return fail(Code::unsupported);
  }
  Result<void> listen(std::string_view) override { return fail(Code::unsupported); }
  std::optional<ConnectRequest> next_request() override { return {}; }
  Result<std::unique_ptr<QueuePair>> accept(const ConnectRequest&, const QueuePairOptions&,
                                            std::span<const std::byte>) override {
    return fail(Code::unsupported);
  }
  using Endpoint::reject;
  void reject(const ConnectRequest&, std::span<const std::byte>) override {}
  void progress() override {}
  void wait(std::uint64_t) override {}
  void wake() override {}
};

struct PairByHand {
  static constexpr std::size_t kRegionBytes = std::size_t{1} << 18;

  explicit PairByHand(QueuePairOptions options = {}, bool accepted = true)
      : region(*regions->offer({memory.data(), memory.size(), -1, 0},
                               RemoteRights::read | RemoteRights::write | RemoteRights::atomic)) {
    options.sends = &queue;
    pair = std::make_unique<Pair>(1, options, kProperties, Host{reader, pairs}, channel);
    if (accepted) {
      pair->welcome({}, {});
    } else {
      pair->greet({});
    }
    progress();
    channel.frames.clear();
  }

  void progress() {
    pair->progress(now_ns);
    channel.leave();
  }
  /// A frame of the peer comes, which has taken all that was sent.
  void bring(FrameByHand frame) { bring(frame.bytes()); }
  void bring(std::span<const std::byte> frame) {
    channel.bring(frame);
    progress();
  }
  [[nodiscard]] FrameByHand frame(std::uint64_t done = 0) const {
    return FrameByHand(channel.frames_carried(), done);
  }
  /// A request for memory of the region.
  [[nodiscard]] wire::ofi::RecordHead asks(wire::ofi::RecordKind kind, std::uint64_t offset,
                                           std::uint32_t message_bytes, std::uint32_t bytes) const {
    wire::ofi::RecordHead head{};
    head.kind = static_cast<std::uint8_t>(kind);
    head.bytes = bytes;
    head.message_bytes = message_bytes;
    head.key = region.remote().key;
    head.remote = region.remote().at(offset);
    return head;
  }
  [[nodiscard]] std::optional<Completion> next() {
    Completion completion;
    if (queue.poll({&completion, 1}) == 0) return {};
    return completion;
  }

  std::uint64_t now_ns = 1'000'000'000;
  std::shared_ptr<RegionTable> regions = *RegionTable::create(7);
  StillEndpoint endpoint{regions};
  CompletionQueue queue{endpoint, 512};
  RegionTable::Reader reader{*regions};
  std::vector<Pair*> pairs;
  std::vector<std::byte> memory = std::vector<std::byte>(kRegionBytes);
  Registration region;
  FakeChannel channel;
  std::unique_ptr<Pair> pair;
};

}  // namespace espalier::fabric::ofi
