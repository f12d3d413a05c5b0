// SPDX-License-Identifier: Apache-2.0
#include "client/transaction_bytes.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/bytes.hpp"
#include "catalog/calls.hpp"
#include "catalog/catalog.hpp"
#include "store/transaction.hpp"
#include "wire/payload_reader.hpp"

namespace espalier::client {

namespace {

/// An upper bound on the message, if it is valid.
std::size_t bytes_at_most(const Transaction& transaction) {
  std::size_t bytes = 0;
  for (const std::string& name : transaction.maps()) bytes += sizeof(std::uint16_t) + name.size();
  for (const Transaction::Step& step : transaction.steps()) {
    bytes += sizeof(object_calls::StepHead) + step.key.size() + step.value.size();
  }
  return std::min<std::size_t>(bytes, object_calls::kTransactionMessageMax);
}

}  // namespace

Result<TransactionBytes> bytes_of(const Transaction& transaction) {
  if (transaction.too_many_maps() || transaction.steps().empty()) {
    return fail(Code::invalid_argument);
  }
  TransactionBytes asked;
  asked.objects = static_cast<std::uint32_t>(transaction.maps().size());
  std::string& bytes = asked.bytes;
  bytes.reserve(bytes_at_most(transaction));
  for (const std::string& name : transaction.maps()) {
    if (!catalog::Catalog::is_name(name)) return fail(Code::invalid_argument);
    bytes += base::bytes_of(static_cast<std::uint16_t>(name.size()));
    bytes += name;
  }
  for (const Transaction::Step& step : transaction.steps()) {
    if (step.kind == Transaction::StepKind::get) ++asked.gets;
    asked.writes = asked.writes || step.kind == Transaction::StepKind::put ||
                   step.kind == Transaction::StepKind::erase;
    if (step.key.empty() || step.key.size() > std::numeric_limits<std::uint16_t>::max()) {
      return fail(Code::key_too_long);
    }
    if (step.value.size() > store::kTransactionBytesMax) return fail(Code::value_too_long);
    object_calls::StepHead head{};
    head.version = step.version;
    head.value_bytes = static_cast<std::uint32_t>(step.value.size());
    head.key_bytes = static_cast<std::uint16_t>(step.key.size());
    head.object = step.map;
    head.kind = static_cast<std::uint8_t>(step.kind);
    head.condition = static_cast<std::uint8_t>(step.condition);
    bytes += base::bytes_of(head);
    bytes += step.key;
    bytes += step.value;
  }
  if (bytes.size() > object_calls::kTransactionMessageMax) return fail(Code::invalid_argument);
  return asked;
}

Result<std::vector<std::optional<Found>>> read_found(std::string_view bytes, std::size_t gets) {
  std::vector<std::optional<Found>> found;
  wire::PayloadReader reader(bytes);
  for (std::size_t i = 0; i < gets; ++i) {
    const auto head = reader.take<object_calls::FoundHead>();
    const std::string_view value = reader.text(head.value_bytes);
    if (!reader.good() || head.found > 1) return fail(Code::corrupt);
    found.push_back(head.found == 1 ? std::optional(Found{std::string(value), head.version})
                                    : std::nullopt);
  }
  if (!reader.complete()) return fail(Code::corrupt);
  return found;
}

}  // namespace espalier::client
