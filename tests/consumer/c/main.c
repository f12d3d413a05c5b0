// SPDX-License-Identifier: Apache-2.0
// The smallest application in C: one map, one item. Returns 0 if it reads what it wrote.
#include <espalier/espalier.h>
#include <stdio.h>
#include <string.h>

static int complain(void) {
  fprintf(stderr, "consumer: %s\n", espalier_error_message());
  return 1;
}

int main(void) {
  espalier_store_options options = ESPALIER_STORE_OPTIONS_INIT;
  options.memory_bytes_max = 64 << 20;
  espalier_store* store = NULL;
  espalier_map* map = NULL;
  espalier_item* item = NULL;
  uint32_t found = 0;
  if (espalier_version() != ESPALIER_VERSION_NUMBER ||
      espalier_store_open("embedded", &options, &store) != ESPALIER_OK ||
      espalier_map_create(store, espalier_text("fruit"), NULL, &map) != ESPALIER_OK ||
      espalier_map_put(map, espalier_text("pear"), espalier_text("green"), NULL) != ESPALIER_OK ||
      espalier_item_create(&item) != ESPALIER_OK ||
      espalier_map_get(map, espalier_text("pear"), item, &found) != ESPALIER_OK) {
    return complain();
  }
  const espalier_bytes value = espalier_item_value(item);
  if (!found || value.size != 5 || memcmp(value.data, "green", 5) != 0) {
    fprintf(stderr, "consumer: the pear is gone\n");
    return 1;
  }
  espalier_item_destroy(item);
  espalier_map_close(map);
  if (espalier_store_close(store) != ESPALIER_OK) return complain();
  puts("consumer: ok");
  return 0;
}
