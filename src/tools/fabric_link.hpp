// SPDX-License-Identifier: Apache-2.0
// The client end of a link, for commands that test one by hand: a connection to `espalier fabric
// serve`, its offer, and errors of verbs in words for people.
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "fabric/address.hpp"
#include "fabric/completion_queue.hpp"
#include "fabric/endpoint.hpp"
#include "fabric/queue_pair.hpp"
#include "tools/environment.hpp"

namespace CLI {
class App;
}

namespace espalier::tools {

/// The peer's address, as typed.
struct LinkOptions {
  std::string address;
  std::string local;  // local address; empty: the system's choice
};
/// Adds ADDRESS.
void add_fabric_address(CLI::App& command, std::string& address);
/// Adds ADDRESS and --local.
void add_link_options(CLI::App& command, LinkOptions& options);

/// Parses an address. Fails with the mistake.
[[nodiscard]] Outcome<fabric::FabricAddress> fabric_address(const std::string& text);

/// Why the process cannot listen at this address, and what to do about it.
[[nodiscard]] std::unexpected<Failure> cannot_listen(const std::string& address,
                                                     const Error& error);

class FabricLink {
 public:
  /// Maximum number of work requests and receives in flight.
  static constexpr std::uint32_t kDepth = 64;

  /// Connects, and reads the peer's offer. A failure says what to do about it.
  [[nodiscard]] static Outcome<FabricLink> open(Environment& environment,
                                                const LinkOptions& options);
  FabricLink(FabricLink&&) = default;
  FabricLink& operator=(FabricLink&&) = delete;
  ~FabricLink();

  [[nodiscard]] const std::string& address() const { return address_; }
  /// The peer's offer, unchecked.
  [[nodiscard]] const fabric::RemoteRegion& region() const { return region_; }
  [[nodiscard]] std::uint32_t echo_bytes_max() const { return echo_bytes_max_; }
  [[nodiscard]] std::uint32_t message_bytes_max() const {
    return endpoint_->properties().message_bytes_max;
  }
  [[nodiscard]] fabric::QueuePair& pair() { return *pair_; }
  /// Polls for completions, as CompletionQueue::poll(). Repeated calls spin, and rest only when
  /// nothing has come for long: the peer may need this core.
  std::size_t poll(std::span<fabric::Completion> into);

  /// Posts one request, and waits for its completion. Requires: nothing else is in flight.
  [[nodiscard]] Outcome<fabric::Completion> finish(const fabric::WorkRequest& request);
  /// Why a request for the first `bytes` of the region failed, and what to do.
  [[nodiscard]] std::unexpected<Failure> refused(const fabric::Completion& completion,
                                                 std::uint64_t bytes) const;

 private:
  FabricLink() = default;
  [[nodiscard]] Outcome<void> await_answer();
  [[nodiscard]] Outcome<void> read_greeting();
  [[nodiscard]] std::unexpected<Failure> no_access(std::uint64_t bytes,
                                                   fabric::Opcode opcode) const;

  std::string address_;
  fabric::RemoteRegion region_;
  fabric::RemoteRights rights_ = fabric::RemoteRights::none;
  std::uint32_t echo_bytes_max_ = 0;
  std::uint32_t idle_ = 0;  // consecutive empty polls
  // Destroyed in reverse order: the pair first.
  std::unique_ptr<fabric::Endpoint> endpoint_;
  std::unique_ptr<fabric::CompletionQueue> queue_;
  std::unique_ptr<fabric::QueuePair> pair_;
};

}  // namespace espalier::tools
