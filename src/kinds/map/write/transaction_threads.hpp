// SPDX-License-Identifier: Apache-2.0
// Thread contexts for transactions: executors expose epochs of their own during a transaction, so
// each transaction uses a separate context. Released contexts are reused.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "catalog/transaction_part.hpp"
#include "espalier/error.hpp"
#include "store/store_core.hpp"
#include "store/store_parts.hpp"
#include "store/thread_context.hpp"

namespace espalier::tree {

/// The pool of a store.
class TransactionThreads final : public store::StorePart {
 public:
  explicit TransactionThreads(StoreCore& store) : store_(store) {}

  /// Errors: too_many_participants; std::bad_alloc.
  Result<std::unique_ptr<ThreadContext>> take() {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      auto context = std::move(free_.back());
      free_.pop_back();
      return context;
    }
    free_.reserve(made_ + 1);  // so that returning one does not allocate
    auto slot = store_.epochs.join();
    if (!slot) return std::unexpected(slot.error());
    auto context = std::make_unique<ThreadContext>(store_, std::move(*slot), made_);
    ++made_;
    return context;
  }
  void give(std::unique_ptr<ThreadContext> context) noexcept {
    context->cache.flush();
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(context));
  }

 private:
  StoreCore& store_;
  std::mutex mutex_;  // guards the members below
  std::vector<std::unique_ptr<ThreadContext>> free_;
  std::uint32_t made_ = 0;
};

/// A context shared by all ordered maps of a transaction; returned at its end.
class TransactionThread final : public catalog::TransactionPlace {
 public:
  /// The context of a transaction. Errors: as TransactionThreads::take().
  static Result<TransactionThread*> of(catalog::TransactionPlaces& places, StoreCore& store) {
    if (auto* const known = places.find<TransactionThread>()) return known;
    auto& threads = store.parts.of<TransactionThreads>(store);
    auto context = threads.take();
    if (!context) return std::unexpected(context.error());
    return &places.make<TransactionThread>(threads, std::move(*context));
  }
  TransactionThread(TransactionThreads& threads, std::unique_ptr<ThreadContext> context)
      : threads_(threads), context_(std::move(context)) {}
  ~TransactionThread() override { threads_.give(std::move(context_)); }

  [[nodiscard]] ThreadContext& context() const { return *context_; }
  /// Exposes its epoch until exit() was called as often as enter().
  void enter() noexcept {
    if (entered_++ == 0) context_->slot.enter();
  }
  void exit() noexcept {
    if (--entered_ == 0) context_->slot.exit();
  }

 private:
  TransactionThreads& threads_;
  std::unique_ptr<ThreadContext> context_;
  std::uint32_t entered_ = 0;
};

}  // namespace espalier::tree
