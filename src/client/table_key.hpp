// SPDX-License-Identifier: Apache-2.0
// What stands behind a TableKey.
//
// Thread: immutable; safe to read from any.
#pragma once

#include <memory>
#include <utility>

#include "espalier/table_key.hpp"
#include "table/key_bytes.hpp"
#include "table/secret_memory.hpp"

namespace espalier::client {

class TableKeyImpl {
 public:
  explicit TableKeyImpl(table::Secret<table::KeyBytes> bytes) : bytes_(std::move(bytes)) {}
  static const table::KeyBytes& of(const TableKey& key) { return *key.impl_->bytes_; }
  static TableKey handle(table::Secret<table::KeyBytes> bytes) {
    return TableKey(std::make_shared<const TableKeyImpl>(std::move(bytes)));
  }

 private:
  const table::Secret<table::KeyBytes> bytes_;
};

}  // namespace espalier::client
