// SPDX-License-Identifier: Apache-2.0
// An ordered map from C, on a memory node or in this process:
//
//   first_node [ADDRESS]    "unix:PATH", where a node listens; else "embedded"
#include <stdio.h>
#include <stdlib.h>

#include "espalier/espalier.h"

// Every call returns a code; what was wrong in words is kept for the thread.
static void must(espalier_code code) {
  if (code == ESPALIER_OK) return;
  fprintf(stderr, "first_node: %s\n", espalier_error_message());
  exit(1);
}

// The bytes of keys and values end where their size says, not with a zero.
static void print(espalier_bytes key, espalier_bytes value) {
  printf("  %.*s %.*s\n", (int)key.size, (const char*)key.data, (int)value.size,
         (const char*)value.data);
}

static int32_t print_items(void* context, const espalier_entry* items, size_t count) {
  (void)context;
  for (size_t i = 0; i < count; ++i) print(items[i].key, items[i].value);
  return 0;  // go on
}

// Gets the answers of a pipeline, in the order in which they come.
static void count_found(void* context, const espalier_completion* completion) {
  must(completion->code);
  *(unsigned*)context += completion->found;
}

// A batch takes effect as a whole or not at all: here, only if nobody changed the plums.
static void sell(espalier_map* stock) {
  espalier_batch* sale = NULL;
  must(espalier_batch_create(&sale));
  must(espalier_batch_only_if_value(sale, espalier_text("plum"), espalier_text("7")));
  must(espalier_batch_put(sale, espalier_text("plum"), espalier_text("5")));
  must(espalier_batch_put(sale, espalier_text("sold plum"), espalier_text("2")));
  must(espalier_batch_erase(sale, espalier_text("quince")));
  for (int i = 0; i < 2; ++i) {
    const espalier_code code = espalier_map_write(stock, sale, NULL);
    if (code != ESPALIER_CONDITION_FAILED) must(code);
    printf("sale: %s\n", code == ESPALIER_OK ? "done" : "refused, the plums have changed");
  }
  espalier_batch_destroy(sale);
}

// A pipeline keeps many requests in flight, so that one round trip serves all of them.
static unsigned find_many(espalier_map* stock) {
  unsigned found = 0;
  espalier_pipeline_options options = ESPALIER_PIPELINE_OPTIONS_INIT;
  options.done = count_found;
  options.context = &found;
  espalier_pipeline* pipeline = NULL;
  must(espalier_pipeline_open(stock, &options, &pipeline));
  static const char* const fruits[] = {"apple", "cherry", "pear", "plum", "quince"};
  espalier_request requests[5] = {{0}};
  for (size_t i = 0; i < 5; ++i) {
    requests[i].op = ESPALIER_OP_GET;
    requests[i].key = espalier_text(fruits[i]);
  }
  must(espalier_pipeline_run(pipeline, requests, 5));
  must(espalier_pipeline_close(pipeline));
  return found;
}

int main(int argc, char** argv) {
  espalier_store* store = NULL;
  must(espalier_store_open(argc > 1 ? argv[1] : "embedded", NULL, &store));
  espalier_map* stock = NULL;
  // That of an earlier run, if there is one.
  const espalier_code dropped = espalier_map_drop(store, espalier_text("first_node stock"));
  if (dropped != ESPALIER_NOT_FOUND) must(dropped);
  must(espalier_map_create(store, espalier_text("first_node stock"), NULL, &stock));

  must(espalier_map_put(stock, espalier_text("pear"), espalier_text("4"), NULL));
  must(espalier_map_put(stock, espalier_text("plum"), espalier_text("7"), NULL));
  must(espalier_map_put(stock, espalier_text("quince"), espalier_text("1"), NULL));

  // An item is read into, again and again; what it shows lasts until the next time.
  espalier_item* item = NULL;
  must(espalier_item_create(&item));
  uint32_t found = 0;
  must(espalier_map_get(stock, espalier_text("plum"), item, &found));
  const espalier_bytes plums = espalier_item_value(item);
  if (found) printf("crates of plums: %.*s\n", (int)plums.size, (const char*)plums.data);

  sell(stock);
  printf("the stock:\n");
  must(espalier_map_scan(stock, espalier_text(""), espalier_text(""), NULL, print_items, NULL,
                         NULL));
  printf("of five fruits there are: %u\n", find_many(stock));

  espalier_item_destroy(item);
  espalier_map_close(stock);
  must(espalier_map_drop(store, espalier_text("first_node stock")));
  must(espalier_store_close(store));
  return 0;
}
