// SPDX-License-Identifier: Apache-2.0
// The asking end of a link, for commands that try one by hand: a connection to
// `espalier fabric serve`, what that offers, and failures of verbs in words for people.
//
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

/// Whom to ask, as it was typed.
struct LinkOptions {
  std::string address;
  std::string local;  // where to send from; empty: as the system would
};
/// Adds ADDRESS.
void add_fabric_address(CLI::App& command, std::string& address);
/// Adds ADDRESS and --local.
void add_link_options(CLI::App& command, LinkOptions& options);

/// The address that a text stands for. Fails with what is wrong with it.
[[nodiscard]] Outcome<fabric::FabricAddress> fabric_address(const std::string& text);

/// Why nobody can be served at this address, and what to do about it.
[[nodiscard]] std::unexpected<Failure> cannot_listen(const std::string& address,
                                                     const Error& error);

class FabricLink {
 public:
  /// Work requests and receives that may be on their way at once.
  static constexpr std::uint32_t kDepth = 64;

  /// Connects, and reads what the far side says that it offers. Fails with what to do about it.
  [[nodiscard]] static Outcome<FabricLink> open(Environment& environment,
                                                const LinkOptions& options);
  FabricLink(FabricLink&&) = default;
  FabricLink& operator=(FabricLink&&) = delete;
  ~FabricLink();

  [[nodiscard]] const std::string& address() const { return address_; }
  /// What the far side says of itself, which nobody has checked.
  [[nodiscard]] const fabric::RemoteRegion& region() const { return region_; }
  [[nodiscard]] std::uint32_t echo_bytes_max() const { return echo_bytes_max_; }
  [[nodiscard]] std::uint32_t message_bytes_max() const {
    return endpoint_->properties().message_bytes_max;
  }
  [[nodiscard]] fabric::QueuePair& pair() { return *pair_; }
  /// Takes what has been told, as CompletionQueue::poll(). Called again and again it spins, and
  /// rests only when nothing has come for long: the far side may need this core.
  std::size_t poll(std::span<fabric::Completion> into);

  /// Does one thing, and waits until it is done. Requires: nothing else is on its way.
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
  std::uint32_t idle_ = 0;  // polls in a row that took nothing
  // In the order in which they end, from the last.
  std::unique_ptr<fabric::Endpoint> endpoint_;
  std::unique_ptr<fabric::CompletionQueue> queue_;
  std::unique_ptr<fabric::QueuePair> pair_;
};

}  // namespace espalier::tools
