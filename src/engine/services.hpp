// SPDX-License-Identifier: Apache-2.0
// What all schedulers of a node share.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/assert.hpp"
#include "engine/audit_log.hpp"
#include "engine/connection_limits.hpp"
#include "engine/helper_pool.hpp"
#include "engine/node_parts.hpp"
#include "engine/principal_accounts.hpp"
#include "engine/reader_wait.hpp"
#include "engine/registry.hpp"
#include "rings/message_budget.hpp"

namespace espalier::catalog {
class Catalog;
}
namespace espalier::tree {
struct StoreCore;
}

namespace espalier::offload {

/// Where the numbers of the whole node come from, which schedulers do not know. Thread: any.
class NumbersSource {
 public:
  /// Whom they are told: administrators learn the names of others, too.
  enum class For : std::uint8_t { all, administrators };

  /// `text` gathers them, in the bytes of wire/node_numbers.hpp; null: nobody does. What was set
  /// before is not running any more when this returns.
  void set(std::function<std::string(For)> text) {
    const std::lock_guard lock(mutex_);
    text_ = std::move(text);
  }
  /// The numbers; nothing if nobody tells them.
  [[nodiscard]] std::optional<std::string> text(For whom) const {
    const std::lock_guard lock(mutex_);
    return text_ ? std::optional(text_(whom)) : std::nullopt;
  }

 private:
  mutable std::mutex mutex_;  // held while they are gathered
  std::function<std::string(For)> text_;
};

struct Services {
  /// `own`: kinds beside those of the registry, see offload_table_with(). `instead`: the table
  /// that serves in place of all these, of a device; null: none.
  Services(tree::StoreCore& store_in, std::uint64_t message_bytes_max,
           std::span<const Kind> own = {}, const HelperOptions& helper_options = {},
           const OffloadTable* instead = nullptr);
  ~Services();
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;

  /// What the node keeps for a kind.
  template <class P>
  [[nodiscard]] P& part() const {
    P* const made = parts.find<P>();
    ESPALIER_ASSERT(made != nullptr);
    return *made;
  }
  [[nodiscard]] catalog::Catalog& catalog() const { return catalog_; }
  /// A seed that clients cannot guess. Cost: a system call. Thread: any.
  [[nodiscard]] static std::uint64_t draw();

  tree::StoreCore& store;
  rings::MessageBudget budget;
  /// How many messages were refused, for the budget had too little left.
  std::atomic<std::uint64_t> refused_messages{0};
  /// How many requests were refused, for their clients may not do that.
  std::atomic<std::uint64_t> denied{0};
  AuditLog audit;
  PrincipalAccounts principals;
  ConnectionLimits connections;
  /// How many requests wait until it has enough for their answers.
  std::atomic<std::uint64_t> waiting_for_memory{0};
  /// Sessions over fabrics that began: the last one's number, by which operators know it.
  std::atomic<std::uint64_t> sessions_begun{0};
  /// Jobs that free dropped objects (free_dropped.hpp).
  std::atomic<std::uint32_t> freeing_jobs{0};
  const OffloadTable offloads;
  /// Whether this is a device: the objects of its requests are its host's, whose names and rights
  /// only the host knows.
  const bool at_device;
  /// Answers of one connection that may wait, when their requests are gone, until what they tell is
  /// durable: while there are so many, nothing more is taken from its ring.
  std::atomic<std::uint32_t> waiting_answers_max{1024};
  NumbersSource numbers;
  /// A query or a read whose client takes nothing for so long ends.
  std::atomic<std::uint64_t> reader_timeout_ns{ReaderWait::kTimeoutNs};
  /// What the node keeps for kinds (registry.hpp); all of it is made with the services.
  TypedSlots<NodePart> parts;
  HelperPool helpers;
  /// Barriers of those who go to sleep are heavy, so that others need only light ones.
  bool asymmetric = false;

 private:
  catalog::Catalog& catalog_;  // of the store
};

}  // namespace espalier::offload
