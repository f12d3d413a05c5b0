// SPDX-License-Identifier: Apache-2.0
// An offload's state between the steps of one request, of a type that only the offload knows. Its
// memory is allocated on first use, and reused for other requests.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/try_reserve.hpp"

namespace espalier::offload {

class HandlerState {
 public:
  static constexpr std::size_t kBytes = 384;
  struct Block {
    alignas(16) std::byte bytes[kBytes];
  };
  /// Unused blocks. Bounded, since thousands of requests may have waited at a time.
  class Spares {
   public:
    [[nodiscard]] std::unique_ptr<Block> take() {
      if (blocks_.empty()) return std::make_unique<Block>();
      std::unique_ptr<Block> block = std::move(blocks_.back());
      blocks_.pop_back();
      return block;
    }
    void keep(std::unique_ptr<Block> block) {
      if (blocks_.size() < kMost && base::try_reserve(blocks_, 1)) {
        blocks_.push_back(std::move(block));
      }
    }

   private:
    static constexpr std::size_t kMost = 256;
    std::vector<std::unique_ptr<Block>> blocks_;
  };

  HandlerState() = default;
  HandlerState(const HandlerState&) = delete;
  HandlerState& operator=(const HandlerState&) = delete;
  ~HandlerState() {
    if (type_ != nullptr) type_->destroy(block_->bytes);
  }

  /// The state; null: not created yet. Requires: it was created as an S.
  template <class S>
  [[nodiscard]] S* find() const {
    if (type_ == nullptr) return nullptr;
    ESPALIER_ASSERT(type_ == &kType<S>);
    return std::launder(reinterpret_cast<S*>(block_->bytes));
  }
  /// Whether it was created as an S.
  template <class S>
  [[nodiscard]] bool is() const {
    return type_ == &kType<S>;
  }
  /// Whether it was created.
  [[nodiscard]] bool made() const { return type_ != nullptr; }
  /// Creates it anew.
  template <class S>
  S& make(Spares& spares) {
    static_assert(sizeof(S) <= kBytes && alignof(S) <= 16);
    if (type_ != nullptr) type_->destroy(block_->bytes);
    if (!block_) block_ = spares.take();
    type_ = &kType<S>;
    return *new (block_->bytes) S();
  }
  void clear(Spares& spares) {
    if (type_ == nullptr) return;
    std::exchange(type_, nullptr)->destroy(block_->bytes);
    spares.keep(std::move(block_));
  }

 private:
  struct Type {
    void (*destroy)(std::byte*);
  };
  template <class S>
  static void destroy(std::byte* bytes) {
    std::launder(reinterpret_cast<S*>(bytes))->~S();
  }
  // Its address identifies the type.
  template <class S>
  static constexpr Type kType{&destroy<S>};

  const Type* type_ = nullptr;
  std::unique_ptr<Block> block_;
};

}  // namespace espalier::offload
