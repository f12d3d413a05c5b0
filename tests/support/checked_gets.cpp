// SPDX-License-Identifier: Apache-2.0
#include "tests/support/checked_gets.hpp"

namespace espalier::test {

void CheckedGets::has(const std::string& name, const std::string& value) {
  model[name] = value;
  for (const auto& get : gets) {
    if (get->key == name) get->may_be.insert("+" + value);
  }
}

CheckedGets::Get& CheckedGets::add(const std::string& name) {
  auto& get = gets.emplace_back(std::make_unique<Get>());
  get->key = name;
  get->request.op = Op::get;
  get->request.key = get->key;
  const auto found = model.find(name);
  get->may_be.insert(found == model.end() ? "-" : "+" + found->second);
  return *get;
}

std::string CheckedGets::validate() {
  std::string wrong;
  std::erase_if(gets, [&](const auto& get) {
    if (!get->over) return false;
    if (get->error != Code::invalid) {
      ++errors;
    } else if (!get->may_be.contains(get->found ? "+" + get->value : "-")) {
      wrong = get->key + " was answered by '" + get->value + "'";
    }
    ++answers;
    return true;
  });
  return wrong;
}

}  // namespace espalier::test
