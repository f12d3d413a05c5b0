// SPDX-License-Identifier: Apache-2.0
// Requests that own their bytes, shared by the recorders of requests: converts between a Request
// with its Completion, as maps use them, and an Operation, as checkers do.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "espalier/types.hpp"
#include "tests/support/history.hpp"

namespace espalier::test {

struct Question {
  Op op = Op::get;
  std::string key;
  std::string high;
  std::string value;
  std::uint32_t limit = 0;
};

/// The request that asks this. It points into the question.
[[nodiscard]] Request request_of(const Question& question, std::uint64_t tag);

/// The operation that asks this, unanswered and without a time.
[[nodiscard]] Operation operation_of(const Question& question, std::uint32_t thread);

/// Adds the items that a scan delivers.
void take_items(Operation& operation, std::span<const Item> items);

/// Adds the answer of what was not refused. False if it miscounts the items that came.
[[nodiscard]] bool take_answer(Operation& operation, const Completion& completion);

}  // namespace espalier::test
