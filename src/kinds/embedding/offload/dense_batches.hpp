// SPDX-License-Identifier: Apache-2.0
// Batches requests to models whose rows were reduced, so that their networks run together: 64
// queries, or those that arrive within 100 us.
//
//           join              64 queries, or due          a helper is done
//   (rows) -----> gathering ---------------------> running ----------------> ranked
//                                                     |
//                                                     +--> left: the request whose helper ran it
//                                                          has ended; another one continues
//
// A batch owns all that it reads and writes, so requests may end while it runs.
//
// Thread: that of a scheduler; the helper that runs a batch uses only its items, which do not
// change any more.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/node_parts.hpp"
#include "kinds/embedding/model/networks.hpp"

namespace espalier::embedding {
class Inference;
class RankingObject;
}  // namespace espalier::embedding

namespace espalier::offload {

class DenseBatch {
 public:
  static constexpr std::uint32_t kQueries = 64;
  static constexpr std::uint64_t kWaitNs = 100'000;

  enum class State : std::uint8_t { gathering, running, left, ranked };

  DenseBatch(std::shared_ptr<const embedding::RankingObject> model, std::uint64_t due_ns)
      : model_(std::move(model)), due_ns_(due_ns) {}
  DenseBatch(const DenseBatch&) = delete;
  DenseBatch& operator=(const DenseBatch&) = delete;

  [[nodiscard]] State state() const { return state_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t due_ns() const { return due_ns_; }
  [[nodiscard]] const std::shared_ptr<const embedding::RankingObject>& model() const {
    return model_;
  }
  [[nodiscard]] bool is_full() const { return queries_ >= kQueries; }
  [[nodiscard]] bool is_ready(std::uint64_t now_ns) const { return is_full() || now_ns >= due_ns_; }

  /// Errors: std::bad_alloc, and the batch is unchanged.
  void add(std::shared_ptr<embedding::Inference> inference);
  void run() { state_.store(State::running, std::memory_order_relaxed); }
  /// The request that was to run it ends before it is ranked.
  void leave();
  /// On a helper: ranks some queries; returns whether there are more. Requires: it is running.
  bool step();

 private:
  const std::shared_ptr<const embedding::RankingObject> model_;
  const std::uint64_t due_ns_;
  std::vector<std::shared_ptr<embedding::Inference>> inferences_;
  std::vector<embedding::DenseItem> items_;
  std::uint64_t queries_ = 0;
  std::unique_ptr<embedding::Networks> networks_;
  std::atomic<State> state_{State::gathering};
};

/// The gathering batches of a scheduler, at most one of each model.
class DenseBatches final : public SchedulerPart {
 public:
  /// Adds a request to a batch, which lives as long as a request holds it. Errors: std::bad_alloc,
  /// and no batch has the request.
  std::shared_ptr<DenseBatch> join(const std::shared_ptr<embedding::Inference>& inference,
                                   std::uint64_t now_ns);
  /// Closes a batch, so that no request joins it; the caller runs it.
  void close(const std::shared_ptr<DenseBatch>& batch);
  /// Releases batches of which all requests have ended, and with them their models.
  void maintain(Services&) override { drop_abandoned(); }

 private:
  void drop_abandoned();

  std::vector<std::shared_ptr<DenseBatch>> gathering_;
};

}  // namespace espalier::offload
