// SPDX-License-Identifier: Apache-2.0
// The keys that a run sends to its node, and the cipher that decrypts its result here.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "espalier/error.hpp"
#include "kinds/table/ctr_cipher.hpp"
#include "kinds/table/format/table_calls.hpp"

namespace espalier::client {

struct UserKeys;

class RunSecrets {
 public:
  /// Errors: unsupported (no libcrypto), system (no memory may be locked).
  static Result<RunSecrets> make(const UserKeys& keys);

  /// The keys as part of the request.
  [[nodiscard]] std::string_view key() const {
    return {reinterpret_cast<const char*>(&*sent_), sizeof(wire::RunKeys)};
  }
  [[nodiscard]] bool decrypts() const { return result_.has_value(); }
  /// Decrypts the next bytes of the result. Requires: decrypts().
  void decrypt(std::string_view rows, std::vector<std::byte>& plain);

 private:
  explicit RunSecrets(crypto::Secret<wire::RunKeys> sent) : sent_(std::move(sent)) {}

  crypto::Secret<wire::RunKeys> sent_;
  std::optional<table::CtrCipher> result_;
  std::uint64_t offset_ = 0;
};

}  // namespace espalier::client
