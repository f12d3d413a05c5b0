// SPDX-License-Identifier: Apache-2.0
// The smallest application: one map, one item. Returns 0 if it reads what it wrote.
#include <espalier/espalier.hpp>

#include <cstdio>

namespace {

int complain(const espalier::Error& error) {
  std::fprintf(stderr, "consumer: %s\n", espalier::message(error).c_str());
  return 1;
}

}  // namespace

int main() {
  auto store = espalier::Store::open({.memory_bytes_max = 64 << 20});
  if (!store) return complain(store.error());
  auto map = store->create_map("fruit");
  if (!map) return complain(map.error());
  if (const auto written = map->put("pear", "green"); !written) return complain(written.error());
  const auto found = map->get("pear");
  if (!found) return complain(found.error());
  if (!*found || (*found)->value != "green") {
    std::fprintf(stderr, "consumer: the pear is gone\n");
    return 1;
  }
  std::puts("consumer: ok");
  return 0;
}
