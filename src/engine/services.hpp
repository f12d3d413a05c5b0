// SPDX-License-Identifier: Apache-2.0
// The state that all schedulers of a node share.
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

/// The source of the node's counters, of which schedulers are independent. Thread: any.
class NumbersSource {
 public:
  /// Their recipient: administrators also see the names of others.
  enum class For : std::uint8_t { all, administrators };

  /// `text` gathers them, in the format of wire/node_numbers.hpp; null: none. The previous function
  /// is not running any more when this returns.
  void set(std::function<std::string(For)> text) {
    const std::lock_guard lock(mutex_);
    text_ = std::move(text);
  }
  /// The counters; nothing: no source is set.
  [[nodiscard]] std::optional<std::string> text(For whom) const {
    const std::lock_guard lock(mutex_);
    return text_ ? std::optional(text_(whom)) : std::nullopt;
  }

 private:
  mutable std::mutex mutex_;  // held while they are gathered
  std::function<std::string(For)> text_;
};

struct Services {
  /// `own`: kinds beside those of the registry, see offload_table_with(). `instead`: the table of a
  /// device, which replaces all these; null: none.
  Services(tree::StoreCore& store_in, std::uint64_t message_bytes_max,
           std::span<const Kind> own = {}, const HelperOptions& helper_options = {},
           const OffloadTable* instead = nullptr);
  ~Services();
  Services(const Services&) = delete;
  Services& operator=(const Services&) = delete;

  /// The node's state for a kind.
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
  /// Messages refused because the budget was exhausted.
  std::atomic<std::uint64_t> refused_messages{0};
  /// Requests refused for lack of a right.
  std::atomic<std::uint64_t> denied{0};
  AuditLog audit;
  PrincipalAccounts principals;
  ConnectionLimits connections;
  /// Requests that wait for memory for their answers.
  std::atomic<std::uint64_t> waiting_for_memory{0};
  /// Sessions over fabrics since the start: the last one's number, for operators.
  std::atomic<std::uint64_t> sessions_begun{0};
  /// Jobs that free dropped objects (free_dropped.hpp).
  std::atomic<std::uint32_t> freeing_jobs{0};
  const OffloadTable offloads;
  /// Whether this is a device: the objects of its requests are its host's, and only the host knows
  /// their names and rights.
  const bool at_device;
  /// Most answers of one connection that wait for durability after their requests were freed: at
  /// the limit, nothing more is taken from its ring.
  std::atomic<std::uint32_t> waiting_answers_max{1024};
  NumbersSource numbers;
  /// A query or a read whose client reads nothing for so long ends.
  std::atomic<std::uint64_t> reader_timeout_ns{ReaderWait::kTimeoutNs};
  /// The node's state for kinds (registry.hpp); all of it is created with the services.
  TypedSlots<NodePart> parts;
  HelperPool helpers;
  /// Whether sleeping threads use heavy barriers, so that others need only light ones.
  bool asymmetric = false;

 private:
  catalog::Catalog& catalog_;  // the store's
};

}  // namespace espalier::offload
