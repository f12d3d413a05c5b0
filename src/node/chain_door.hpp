// SPDX-License-Identifier: Apache-2.0
// The endpoint of a chain member for the other members: a fabric address that answers only calls of
// chains, also while the node serves no clients. It has an engine of its own, without objects.
//
// Thread: one opens and closes it; a thread of its own calls its listener.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "chain/message.hpp"
#include "engine/registry.hpp"
#include "engine/secrets.hpp"
#include "engine/services.hpp"
#include "memory/shared_memory.hpp"
#include "node/chain_calls.hpp"
#include "node/config.hpp"
#include "node/worker.hpp"
#include "store/store_core.hpp"

namespace espalier::node {

/// Answers the members' calls. Thread: any.
class ChainListener {
 public:
  /// Errors: the sender is unknown, or this node has ended.
  virtual Result<chain::Message> hear(const chain::Message& message, std::string_view records) = 0;
  [[nodiscard]] virtual std::string status() = 0;
  /// A piece of its checkpoint; the data are stored in `data`, to which the answer refers.
  /// Errors: not_found (it is not the tail behind which that node joins, or no longer has the
  /// checkpoint), those of the disk.
  virtual Result<chain_calls::Piece> fetch(const chain_calls::Wanted& wanted,
                                           std::string& data) = 0;

 protected:
  ~ChainListener() = default;
};

class ChainDoor {
 public:
  /// `secrets`: of clients with the role replica; null: no authentication. They and the listener
  /// outlive the door. Errors: those of Worker::listen and Worker::start.
  static Result<std::unique_ptr<ChainDoor>> open(const Config& config, const std::string& address,
                                                 const offload::Secrets* secrets,
                                                 ChainListener& listener);
  ChainDoor(const ChainDoor&) = delete;
  ChainDoor& operator=(const ChainDoor&) = delete;
  ~ChainDoor();

  /// The address at which it listens, with the port that it got.
  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  ChainDoor(const Config& config, memory::Region region, ChainListener& listener);
  Result<void> begin(const std::string& address, const offload::Secrets* secrets);

  const Config config_;
  tree::StoreCore store_;
  const offload::OffloadTable calls_;
  offload::Services services_;
  memory::SharedMemory page_;
  std::string address_;
  std::unique_ptr<Worker> worker_;
};

}  // namespace espalier::node
