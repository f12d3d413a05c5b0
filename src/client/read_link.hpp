// SPDX-License-Identifier: Apache-2.0
// A queue pair by which one thread READs a node's memory: beside that of its rings, at an endpoint
// of its own, so that a READ that is refused ends nothing else and nobody waits for a lock.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "fabric/address.hpp"
#include "fabric/endpoint.hpp"
#include "wire/ring_link.hpp"

namespace espalier::client {

class ReadLink {
 public:
  /// Connects for the session that `token` names. Errors: those of fabric::open_for_connecting;
  /// system (ECONNREFUSED, ETIMEDOUT), corrupt (what answers is no node), and why the node refused:
  /// unsupported (it does not offer its memory), not_found (no such session).
  static Result<std::unique_ptr<ReadLink>> open(const fabric::FabricAddress& address,
                                                const wire::LinkToken& token,
                                                std::uint64_t timeout_ns);
  ~ReadLink();
  ReadLink(const ReadLink&) = delete;
  ReadLink& operator=(const ReadLink&) = delete;

  [[nodiscard]] fabric::Endpoint& endpoint() { return *endpoint_; }
  [[nodiscard]] fabric::QueuePair& pair() { return *pair_; }
  [[nodiscard]] fabric::CompletionQueue& completions() { return completions_; }

 private:
  explicit ReadLink(std::unique_ptr<fabric::Endpoint> endpoint);
  Result<void> connect(const fabric::Connecting& way, const wire::LinkToken& token,
                       std::uint64_t timeout_ns);
  [[nodiscard]] Result<void> check_welcome(const wire::LinkToken& token) const;

  std::unique_ptr<fabric::Endpoint> endpoint_;
  fabric::CompletionQueue completions_;
  fabric::CompletionQueue receives_;  // nothing is ever received
  std::unique_ptr<fabric::QueuePair> pair_;
};

}  // namespace espalier::client
