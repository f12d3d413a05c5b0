// SPDX-License-Identifier: Apache-2.0
#include "tests/support/question.hpp"

namespace espalier::test {
namespace {

Kind kind_of(Op op) {
  switch (op) {
    case Op::put: return Kind::put;
    case Op::insert: return Kind::insert;
    case Op::update: return Kind::update;
    case Op::erase: return Kind::erase;
    case Op::floor: return Kind::floor;
    case Op::scan:
    case Op::scan_reverse:
    case Op::scan_floor: return Kind::scan;
    default: return Kind::get;
  }
}

bool writes(Kind kind) {
  return kind == Kind::put || kind == Kind::insert || kind == Kind::update || kind == Kind::erase;
}

}  // namespace

Request request_of(const Question& question, std::uint64_t tag) {
  return {.op = question.op,
          .limit = question.limit,
          .tag = tag,
          .key = question.key,
          .high = question.high,
          .value = question.value};
}

Operation operation_of(const Question& question, std::uint32_t thread) {
  Operation operation;
  operation.kind = kind_of(question.op);
  operation.thread = thread;
  operation.key = question.key;
  operation.high = question.high;
  if (writes(operation.kind) && operation.kind != Kind::erase) operation.value = question.value;
  operation.options = {question.limit, question.op == Op::scan_reverse,
                       question.op == Op::scan_floor};
  return operation;
}

void take_items(Operation& operation, std::span<const Item> items) {
  for (const Item& item : items) {
    operation.items.push_back({std::string(item.key), std::string(item.value), item.version});
  }
}

bool take_answer(Operation& operation, const Completion& completion) {
  if (writes(operation.kind)) {
    operation.applied = completion.applied;
    operation.existed = completion.found;
    operation.version = completion.version;
    return true;
  }
  operation.read_version = completion.read_version;
  if (operation.kind == Kind::scan) return completion.items == operation.items.size();
  if (!completion.found) return true;
  const std::string_view key =
      operation.kind == Kind::floor ? completion.key : std::string_view(operation.key);
  operation.items.push_back({std::string(key), std::string(completion.value), completion.version});
  return true;
}

}  // namespace espalier::test
