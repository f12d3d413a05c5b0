// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/client/run_secrets.hpp"

#include <cstring>

#include "kinds/table/client/tables.hpp"

namespace espalier::client {

Result<RunSecrets> RunSecrets::make(const UserKeys& keys) {
  auto sent = crypto::Secret<wire::RunKeys>::make();
  if (!sent) return std::unexpected(sent.error());
  RunSecrets made(*std::move(sent));
  wire::RunKeys& run = *made.sent_;
  if (keys.table != nullptr) {
    run.flags |= wire::kTableKey;
    std::memcpy(run.table_key, keys.table->data(), sizeof run.table_key);
  }
  if (keys.result != nullptr) {
    run.flags |= wire::kResultKey;
    std::memcpy(run.result_key, keys.result->data(), sizeof run.result_key);
    table::SaltBytes salt;
    if (auto drawn = crypto::draw_bytes(salt); !drawn) return std::unexpected(drawn.error());
    std::memcpy(run.result_salt, salt.data(), sizeof run.result_salt);
    auto cipher = table::CtrCipher::derived(*keys.result, salt, table::kResultKeyInfo);
    if (!cipher) return std::unexpected(cipher.error());
    made.result_.emplace(*std::move(cipher));
  }
  return made;
}

void RunSecrets::decrypt(std::string_view rows, std::vector<std::byte>& plain) {
  plain.resize(rows.size());
  result_->apply(0, offset_, reinterpret_cast<const std::byte*>(rows.data()), plain.data(),
                 rows.size());
  offset_ += rows.size();
}

}  // namespace espalier::client
