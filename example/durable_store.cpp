// SPDX-License-Identifier: Apache-2.0
// A store in this process that is there again when the program is run again, however it ended.
#include <espalier/durable_store.hpp>
#include <iostream>
#include <string>

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : "durable-store";
  auto store = espalier::open_durable_store({.dir = folder});
  if (!store) {
    std::cerr << store.error().words << '\n';  // which file, and what to do
    return 1;
  }
  auto runs = store->open_map("runs");
  if (!runs) runs = store->create_map("runs");
  if (!runs) return 1;

  const auto count = runs->add("count", 1);  // comes back once it is on the disk
  if (!count) return 1;
  std::cout << "run " << *count << '\n';

  espalier::WriteBatch batch;  // together, with one flush
  batch.put("last", std::to_string(*count)).erase("absent");
  return runs->write(batch) ? 0 : 1;
}
