// SPDX-License-Identifier: Apache-2.0
// Errors of calls on tables: an Error, with words about the schema, row or expression concerned.
#pragma once

#include <expected>
#include <string>
#include <utility>

#include "espalier/error.hpp"

namespace espalier {

/// An error, optionally with words after the message of its code, e.g. "row 7, column price: 3.001
/// has more than 2 digits behind the point".
struct [[nodiscard]] TableError {
  TableError() = default;
  TableError(const Error& error_in, std::string words_in = {})
      : error(error_in), words(std::move(words_in)) {}

  Error error;
  std::string words;
};

template <class T>
using TableResult = std::expected<T, TableError>;

/// One sentence for people: what was wrong and what to do about it.
std::string message(const TableError& error);

}  // namespace espalier
