// SPDX-License-Identifier: Apache-2.0
// Where a member of a chain is reached by the others: an address of the fabric at which it answers
// calls of chains and nothing else, also while it serves no clients. It has an engine of its own,
// with no objects.
//
// Thread: one opens and closes it; its listener is called by a thread of its own.
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

/// Who answers there. Thread: any.
class ChainListener {
 public:
  /// Errors: those of who does not know the sender, or has ended.
  virtual Result<chain::Message> hear(const chain::Message& message, std::string_view records) = 0;
  [[nodiscard]] virtual std::string status() = 0;
  /// A piece of its checkpoint, whose data are in `data`, by which the answer names them. Errors:
  /// not_found (it is not the tail behind which that one joins, or has the checkpoint no more),
  /// those of the disk.
  virtual Result<chain_calls::Piece> fetch(const chain_calls::Wanted& wanted,
                                           std::string& data) = 0;

 protected:
  ~ChainListener() = default;
};

class ChainDoor {
 public:
  /// `secrets`: of those who may come, with the role replica; null: nobody proves who he is. It and
  /// the listener outlive the door. Errors: those of Worker::listen and Worker::start.
  static Result<std::unique_ptr<ChainDoor>> open(const Config& config, const std::string& address,
                                                 const offload::Secrets* secrets,
                                                 ChainListener& listener);
  ChainDoor(const ChainDoor&) = delete;
  ChainDoor& operator=(const ChainDoor&) = delete;
  ~ChainDoor();

  /// Where it listens, with what was free for it to take.
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
