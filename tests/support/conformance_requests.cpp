// SPDX-License-Identifier: Apache-2.0
#include "tests/support/conformance_requests.hpp"

#include <algorithm>

namespace espalier::test {

std::string error_text(const Error& error) {
  return "error " + std::to_string(static_cast<int>(error.code)) + '/' +
         std::to_string(error.detail);
}

std::string conformance_key(Random& random) {
  if (random.one_in(60)) return {};
  if (random.one_in(60)) return std::string(random.between(400, 700), 'k');
  std::string made = "key" + std::to_string(random.below(700));
  if (random.one_in(6)) made += std::string(random.below(60), 'x');
  return made;
}

std::string conformance_value(Random& random) {
  if (random.one_in(500)) return std::string((16u << 20) + 1, 'l');
  if (random.one_in(40)) return std::string(random.below(100'000), 'm');
  return std::string(random.below(60), static_cast<char>('a' + random.below(26)));
}

ConformanceRequests::ConformanceRequests(Random& random, bool writes)
    : requests_(random.below(40)) {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    keys_.push_back(writes ? "pipe" + std::to_string(i) : conformance_key(random));
    values_.push_back(random.one_in(3) ? std::string() : conformance_key(random));
  }
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    constexpr Op kReads[] = {Op::get,          Op::floor,      Op::scan,
                             Op::scan_reverse, Op::scan_floor, Op::invalid};
    constexpr Op kWrites[] = {Op::put, Op::insert, Op::update, Op::erase};
    Request& request = requests_[i];
    request.op = writes ? random.pick(kWrites) : random.pick(kReads);
    request.tag = i;
    request.key = keys_[i];
    if (writes) request.value = values_[i];
    const bool scans =
        request.op == Op::scan || request.op == Op::scan_reverse || request.op == Op::scan_floor;
    if (scans) request.high = values_[i];
    if (random.one_in(3)) request.limit = static_cast<std::uint32_t>(random.below(30));
  }
}

void Gather::done(const Completion& completion) {
  std::string& answer = said[completion.tag];
  if (!completion.ok) answer += error_text(completion.error);
  answer += completion.found ? "found " : "not found ";
  if (completion.applied) {
    answer += "applied ";
    newest = std::max(newest, completion.version);
  }
  answer += std::to_string(static_cast<int>(completion.op)) + ' ';
  answer.append(completion.key).append(completion.value);
  // A floor's completion does not have the number of items.
  if (completion.op != Op::floor) answer += std::to_string(completion.items);
}

bool Gather::items(std::uint64_t tag, std::span<const Item> run) {
  for (const Item& item : run) said[tag].append(item.key).append("=").append(item.value);
  return true;
}

std::string Gather::all() const {
  std::string text;
  for (const auto& [tag, answer] : said) text += std::to_string(tag) + ' ' + answer + '\n';
  return text;
}

}  // namespace espalier::test
