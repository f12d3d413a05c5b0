// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/client/table_key.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "crypto/hex.hpp"
#include "crypto/secret_file.hpp"

namespace espalier {
namespace {

using client::TableKeyImpl;

static_assert(TableKey::kBytes == table::kKeyBytes);
constexpr std::size_t kDigits = 2 * TableKey::kBytes;

std::unexpected<TableError> refuse_key(Error error, std::string words) {
  return std::unexpected(TableError{error, std::move(words)});
}

std::unexpected<TableError> no_memory(const Error& error) {
  return refuse_key(error,
                    "no memory may be locked for the key (RLIMIT_MEMLOCK; ulimit -l tells it)");
}

}  // namespace

TableResult<TableKey> TableKey::make(std::span<const std::byte, kBytes> bytes) {
  auto key = crypto::Secret<table::KeyBytes>::make();
  if (!key) return no_memory(key.error());
  std::ranges::copy(bytes, (*key)->begin());
  return TableKeyImpl::handle(*std::move(key));
}

TableResult<TableKey> TableKey::parse(std::string_view digits) {
  auto key = crypto::Secret<table::KeyBytes>::make();
  if (!key) return no_memory(key.error());
  const bool good = crypto::parse_hex(digits, **key);
  // The error must not disclose the digits, valid or not.
  if (!good) return refuse_key({Code::invalid_argument, 0, 0}, "a key has 32 hexadecimal digits");
  return TableKeyImpl::handle(*std::move(key));
}

TableResult<TableKey> TableKey::read_file(const std::string& path) {
  const auto text = crypto::read_secret_file(path, "key file");
  if (!text) return refuse_key(text.error().error, text.error().words);
  std::string_view digits = (*text)->view();
  if (digits.size() == kDigits + 1 && digits.back() == '\n') digits.remove_suffix(1);
  auto key = parse(digits);
  if (!key && key.error().error.code == Code::invalid_argument) {
    return refuse_key(key.error().error,
                      "the key file " + path +
                          " has not 32 hexadecimal digits; for example: (umask 077; "
                          "openssl rand -hex 16 > FILE)");
  }
  return key;
}

}  // namespace espalier
