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

/// The request of a question; points into it.
[[nodiscard]] Request request_of(const Question& question, std::uint64_t tag);

/// The operation of a question, without an answer and times.
[[nodiscard]] Operation operation_of(const Question& question, std::uint32_t thread);

/// Adds the items that a scan delivers.
void take_items(Operation& operation, std::span<const Item> items);

/// Adds the answer of a request that was not refused. False if its count of items is wrong.
[[nodiscard]] bool take_answer(Operation& operation, const Completion& completion);

}  // namespace espalier::test
