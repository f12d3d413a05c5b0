// SPDX-License-Identifier: Apache-2.0
// Implementation of TableKey.
//
// Thread: immutable; safe to read from any.
#pragma once

#include <memory>
#include <utility>

#include "crypto/secret_memory.hpp"
#include "espalier/table_key.hpp"
#include "kinds/table/key_bytes.hpp"

namespace espalier::client {

class TableKeyImpl {
 public:
  explicit TableKeyImpl(crypto::Secret<table::KeyBytes> bytes) : bytes_(std::move(bytes)) {}
  /// Requires: this process made it.
  static const table::KeyBytes& of(const TableKey& key) { return *key.impl_->bytes_; }
  /// Whether another process made it; its secrets are not present here.
  static bool is_copy(const TableKey& key) { return key.impl_->bytes_.is_copy(); }
  static TableKey handle(crypto::Secret<table::KeyBytes> bytes) {
    return TableKey(std::make_shared<const TableKeyImpl>(std::move(bytes)));
  }

 private:
  const crypto::Secret<table::KeyBytes> bytes_;
};

}  // namespace espalier::client
