// SPDX-License-Identifier: Apache-2.0
// Many short secrets in few secret pages.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "crypto/credential.hpp"
#include "crypto/secret_memory.hpp"

namespace espalier::crypto {

class SecretPool : public std::enable_shared_from_this<SecretPool> {
  struct Page {
    SecretBytes places[kSecretPageBytes / kSecretBytes];
  };

 public:
  /// One of its secrets, zeros at first; overwritten when it goes. Keeps the pool.
  class Slot {
   public:
    Slot() = default;
    Slot(Slot&& other) noexcept
        : pool_(std::move(other.pool_)), bytes_(std::exchange(other.bytes_, nullptr)) {}
    Slot& operator=(Slot&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Slot() {
      if (bytes_ != nullptr) pool_->give_back(bytes_);
    }
    [[nodiscard]] bool has_secret() const { return bytes_ != nullptr; }
    SecretBytes& operator*() const { return *bytes_; }

   private:
    friend class SecretPool;
    Slot(std::shared_ptr<SecretPool> pool, SecretBytes* bytes)
        : pool_(std::move(pool)), bytes_(bytes) {}
    std::shared_ptr<SecretPool> pool_;
    SecretBytes* bytes_ = nullptr;
  };

  static std::shared_ptr<SecretPool> make() {
    return std::shared_ptr<SecretPool>(new SecretPool());
  }
  /// Errors: those of Secret::make().
  Result<Slot> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      auto page = Secret<Page>::make();
      if (!page) return std::unexpected(page.error());
      pages_.push_back(std::move(*page));
      // So that giving back asks for no memory.
      free_.reserve(pages_.size() * std::size(pages_.back()->places));
      for (SecretBytes& place : pages_.back()->places) free_.push_back(&place);
    }
    SecretBytes* const place = free_.back();
    free_.pop_back();
    return Slot(shared_from_this(), place);
  }

 private:
  SecretPool() = default;
  void give_back(SecretBytes* place) noexcept {
    cleanse(place, sizeof *place);
    const std::lock_guard lock(mutex_);
    free_.push_back(place);
  }

  std::mutex mutex_;  // guards all below
  std::vector<Secret<Page>> pages_;
  std::vector<SecretBytes*> free_;
};

}  // namespace espalier::crypto
