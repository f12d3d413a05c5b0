// SPDX-License-Identifier: Apache-2.0
#include "store/transaction_request.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "base/bytes.hpp"
#include "base/crc32c.hpp"
#include "catalog/catalog.hpp"
#include "store/numbered_clients.hpp"
#include "wire/payload_reader.hpp"

namespace espalier::store {
namespace {

using catalog::StepKind;
using catalog::TransactionStep;
using object_calls::StepHead;

std::unexpected<TransactionRefusal> refuse(Code code, std::uint32_t detail,
                                           std::string words = {}) {
  return std::unexpected(TransactionRefusal{{code, 0, detail}, std::move(words)});
}

std::expected<ObjectSteps, TransactionRefusal> find_object(const catalog::Catalog& catalog,
                                                           std::string_view name,
                                                           std::uint32_t number,
                                                           std::string_view prefix) {
  if (!catalog::Catalog::is_name(name)) return refuse(Code::invalid_argument, number);
  if (!name.starts_with(prefix)) return refuse(Code::not_permitted, 0);
  const catalog::EntryPointer entry = catalog.find_any(name);
  if (entry == nullptr) return refuse(Code::not_found, number);
  if (entry->object->transaction_clock() == nullptr) {
    return refuse(Code::unsupported, number,
                  "transactions take ordered maps and hash maps that keep versions");
  }
  return ObjectSteps{entry->object, entry->id};
}

bool is_step(const StepHead& head, const wire::PayloadReader& reader, std::size_t objects) {
  const auto kind = static_cast<StepKind>(head.kind);
  const bool known = kind >= StepKind::get && kind <= StepKind::erase;
  const bool checks = kind == StepKind::check;
  const bool has_value =
      kind == StepKind::put ||
      (checks && head.condition == static_cast<std::uint8_t>(ConditionKind::value));
  const bool has_version =
      checks && head.condition == static_cast<std::uint8_t>(ConditionKind::version);
  const bool good_condition =
      checks ? head.condition >= 1 && head.condition <= 4 : head.condition == 0;
  return reader.good() && known && good_condition && head.object < objects && head.key_bytes != 0 &&
         (has_value || head.value_bytes == 0) && (has_version || head.version == 0) &&
         std::ranges::all_of(head.reserved, [](std::uint8_t byte) { return byte == 0; });
}

TransactionStep step_of(const StepHead& head, std::string_view key, std::string_view value) {
  TransactionStep step;
  step.kind = static_cast<StepKind>(head.kind);
  step.key = key;
  if (step.kind == StepKind::put) step.value = value;
  if (step.kind == StepKind::check) {
    step.condition = {static_cast<ConditionKind>(head.condition), head.version, value};
  }
  return step;
}

std::expected<void, TransactionRefusal> read_steps(wire::PayloadReader& reader,
                                                   std::vector<ObjectSteps>& objects) {
  std::vector<std::pair<std::uint8_t, std::string_view>> keys;  // each once, in order
  std::size_t bytes = 0;
  std::uint32_t number = 0;
  for (; !reader.rest().empty(); ++number) {
    if (number == kTransactionStepsMax) {
      return refuse(Code::invalid_argument, number, "a transaction has at most 256 steps");
    }
    const auto head = reader.take<StepHead>();
    const std::string_view key = reader.text(head.key_bytes);
    const std::string_view value = reader.text(head.value_bytes);
    if (!is_step(head, reader, objects.size())) return refuse(Code::invalid_argument, number);
    const std::pair named(head.object, key);
    const auto place = std::ranges::lower_bound(keys, named);
    if (place == keys.end() || *place != named) keys.insert(place, named);
    bytes += key.size() + value.size();
    if (keys.size() > kTransactionKeysMax) {
      return refuse(Code::invalid_argument, number, "a transaction names at most 64 keys");
    }
    if (bytes > kTransactionBytesMax) {
      return refuse(Code::invalid_argument, number, "a transaction has at most 1 MiB");
    }
    objects[head.object].steps.push_back(step_of(head, key, value));
    objects[head.object].numbers.push_back(number);
  }
  if (number == 0) return refuse(Code::invalid_argument, 0, "a transaction has at least one step");
  return {};
}

}  // namespace

std::expected<std::vector<ObjectSteps>, TransactionRefusal> read_transaction(
    const catalog::Catalog& catalog, const object_calls::Transact& asked, std::string_view prefix) {
  wire::PayloadReader reader(asked.bytes);
  std::vector<ObjectSteps> objects;
  for (std::uint32_t i = 0; i < asked.objects; ++i) {
    const std::string_view name = reader.text(reader.take<std::uint16_t>());
    if (!reader.good()) return refuse(Code::invalid_argument, i);
    auto object = find_object(catalog, name, i, prefix);
    if (!object) return std::unexpected(std::move(object.error()));
    const auto same = [&](const ObjectSteps& other) { return other.object == object->object; };
    if (std::ranges::any_of(objects, same)) return refuse(Code::invalid_argument, i);
    objects.push_back(*std::move(object));
  }
  if (auto read = read_steps(reader, objects); !read) return std::unexpected(read.error());
  if (const auto clock = clock_of(objects); !clock) {
    return refuse(Code::unsupported, clock.error().detail,
                  "maps that one transaction names must be of one group, named when they are made "
                  "(espalier map create --in-group), and either all kept over a crash or none");
  }
  return objects;
}

RequestNumber number_of(const object_calls::TransactOnce& asked) {
  const auto state = base::crc32c_extend(base::kCrc32cStart, std::as_bytes(std::span(asked.bytes)));
  const std::uint64_t objects = asked.objects;
  return {asked.numbers.client, asked.numbers.number, asked.numbers.acknowledged,
          objects << 56 ^ std::uint64_t{asked.bytes.size()} << 32 ^ base::crc32c_end(state)};
}

std::string found_bytes(const Transacted& done) {
  std::string bytes;
  for (const catalog::StepFound& one : done.found) {
    bytes += base::bytes_of(object_calls::FoundHead{
        one.version, static_cast<std::uint32_t>(one.value.size()), one.found ? 1u : 0u});
    bytes += one.value;
  }
  return bytes;
}

}  // namespace espalier::store
