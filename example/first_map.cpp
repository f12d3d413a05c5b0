// SPDX-License-Identifier: Apache-2.0
// An ordered map in a program, from opening a store to many requests in flight.
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "espalier/espalier.hpp"

namespace {

constexpr std::uint64_t kMemoryBytes = std::uint64_t{256} << 20;

int give_up(const espalier::Error& error) {
  std::fprintf(stderr, "first_map: %s\n", espalier::message(error).c_str());
  return 1;
}

void print(std::string_view key, std::string_view value) {
  std::printf("  %.*s %.*s\n", static_cast<int>(key.size()), key.data(),
              static_cast<int>(value.size()), value.data());
}

/// Gets the answers of a pipeline, in the order in which they come.
class CrateCounter : public espalier::Handler {
 public:
  void done(const espalier::Completion& completion) override {
    if (completion.found) crates += std::stoi(std::string(completion.value));
  }
  int crates = 0;
};

}  // namespace

int main() {
  // A store is memory with any number of maps in it. Errors are values: nothing throws.
  auto store = espalier::Store::open({.memory_bytes_max = kMemoryBytes});
  if (!store) return give_up(store.error());
  auto opened = store->create_map("stock");
  if (!opened) return give_up(opened.error());
  espalier::Map stock = *opened;  // a cheap handle, to be used from any thread

  const std::vector<std::pair<std::string, std::string>> delivery = {
      {"pear", "4"}, {"apple", "12"}, {"quince", "1"}, {"plum", "7"}, {"peach", "3"}};
  for (const auto& [fruit, crates] : delivery) {
    if (const auto put = stock.put(fruit, crates); !put) return give_up(put.error());
  }

  // A read takes no lock. It gives an error, or nothing, or the value.
  const auto plums = stock.get("plum");
  if (!plums) return give_up(plums.error());
  if (*plums) std::printf("crates of plums: %s\n", (*plums)->value.c_str());

  // A snapshot goes on showing the map as it is now.
  const auto before = stock.snapshot();
  if (!before) return give_up(before.error());

  // A batch takes effect as a whole or not at all: here, only if the plums have not changed.
  espalier::WriteBatch sale;
  sale.only_if_value("plum", "7").put("plum", "5").put("sold plum", "2").erase("quince");
  for (int i = 0; i < 2; ++i) {
    const auto sold = stock.write(sale);
    if (!sold && sold.error().code != espalier::Code::condition_failed) {
      return give_up(sold.error());
    }
    std::printf("sale: %s\n", sold ? "done" : "refused, the plums have changed");
  }

  // A scan delivers runs of items in key order, all as of one version.
  std::printf("from p to q:\n");
  const auto scanned = stock.scan("p", "q", [](std::span<const espalier::Item> items) {
    for (const espalier::Item& item : items) print(item.key, item.value);
    return true;  // go on
  });
  if (!scanned) return give_up(scanned.error());

  const auto then = before->get("plum");
  if (!then) return give_up(then.error());
  if (*then) std::printf("crates of plums before the sale: %s\n", (*then)->value.c_str());

  // A pipeline keeps many requests in flight on one thread, so that they wait for memory together.
  auto pipeline = espalier::Pipeline::open(stock);
  if (!pipeline) return give_up(pipeline.error());
  std::vector<espalier::Request> requests;
  for (const auto& [fruit, crates] : delivery) {
    espalier::Request get;
    get.op = espalier::Op::get;
    get.key = fruit;
    requests.push_back(get);
  }
  CrateCounter counter;
  pipeline->run(requests, counter);
  std::printf("crates left: %d\n", counter.crates);
  return 0;
}
