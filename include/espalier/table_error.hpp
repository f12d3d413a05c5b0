// SPDX-License-Identifier: Apache-2.0
// Errors of calls on tables: what Error says, and in words what it is about, for a table's calls
// take more from people than names: schemas, rows, expressions.
#pragma once

#include <expected>
#include <string>
#include <utility>

#include "espalier/error.hpp"

namespace espalier {

/// An error, perhaps with words behind what its code says, e.g. "row 7, column price: 3.001 has
/// more than 2 digits behind the point".
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
