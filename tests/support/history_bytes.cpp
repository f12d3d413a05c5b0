// SPDX-License-Identifier: Apache-2.0
#include "tests/support/history_bytes.hpp"

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <type_traits>

namespace espalier::test {
namespace {

// Both take a value's members in the same order (see `each_member`), so that neither can forget one
// that the other knows.
class Writer {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void operator()(const T& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void operator()(const std::string& text) {
    (*this)(text.size());
    bytes += text;
  }
  template <class T>
  void operator()(const std::optional<T>& value) {
    (*this)(value.has_value());
    if (value) (*this)(*value);
  }
  template <class T>
  void operator()(const std::vector<T>& values) {
    (*this)(values.size());
    for (const T& value : values) each_member(value, *this);
  }

  std::string bytes;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : left(bytes) {}

  template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void operator()(T& value) { std::memcpy(&value, take(sizeof value).data(), sizeof value); }
  void operator()(std::string& text) { text = take(number()); }
  template <class T>
  void operator()(std::optional<T>& value) {
    bool there = false;
    (*this)(there);
    if (there) (*this)(value.emplace());
  }
  template <class T>
  void operator()(std::vector<T>& values) {
    for (std::size_t count = number(); count != 0; --count) {
      each_member(values.emplace_back(), *this);
    }
  }

  std::string_view left;

 private:
  std::size_t number() {
    std::size_t value = 0;
    (*this)(value);
    return value;
  }
  std::string_view take(std::size_t bytes) {
    if (bytes > left.size()) throw std::runtime_error("a history ends in the middle");
    const std::string_view taken = left.substr(0, bytes);
    left.remove_prefix(bytes);
    return taken;
  }
};

template <class Item, class Visit>
requires std::is_same_v<std::remove_const_t<Item>, ReadItem>
void each_member(Item& item, Visit& visit) {
  visit(item.key);
  visit(item.value);
  visit(item.version);
}

template <class Write, class Visit>
requires std::is_same_v<std::remove_const_t<Write>, WriteBatch::Write>
void each_member(Write& write, Visit& visit) {
  visit(write.key);
  visit(write.value);
  visit(write.erase);
}

template <class Check, class Visit>
requires std::is_same_v<std::remove_const_t<Check>, WriteBatch::Check>
void each_member(Check& check, Visit& visit) {
  visit(check.key);
  visit(check.value);
  visit(check.version);
  visit(check.kind);
}

template <class Op, class Visit>
requires std::is_same_v<std::remove_const_t<Op>, Operation>
void each_member(Op& operation, Visit& visit) {
  visit(operation.kind);
  visit(operation.thread);
  visit(operation.invoked);
  visit(operation.responded);
  visit(operation.key);
  visit(operation.high);
  visit(operation.value);
  visit(operation.options.limit);
  visit(operation.options.reverse);
  visit(operation.options.from_floor);
  visit(operation.writes);
  visit(operation.conditions);
  visit(operation.refused);
  visit(operation.applied);
  visit(operation.existed);
  visit(operation.seen);
  visit(operation.failed_condition);
  visit(operation.items);
  visit(operation.counted);
  visit(operation.version);
  visit(operation.read_version);
  visit(operation.pinned);
}

}  // namespace

std::string to_bytes(const std::vector<Operation>& operations) {
  Writer writer;
  writer(operations);
  return writer.bytes;
}

std::vector<Operation> operations_of(std::string_view bytes) {
  Reader reader(bytes);
  std::vector<Operation> operations;
  reader(operations);
  if (!reader.left.empty()) throw std::runtime_error("a history has more bytes than operations");
  return operations;
}

}  // namespace espalier::test
