// SPDX-License-Identifier: Apache-2.0
// Of the C API: several writes that take effect together.
#include "capi/c_handles.hpp"
#include "kinds/map/format/node.hpp"

namespace c = espalier::client::c;
using espalier::Code;
using espalier::Result;

namespace {

// What no map takes is refused before it is copied.
Result<void> fits(const espalier_bytes& key, const espalier_bytes& value = {}) {
  if (key.size == 0 || key.size > espalier::wire::kKeyBytesMax) {
    return espalier::fail(Code::key_too_long, espalier::wire::kKeyBytesMax);
  }
  if (value.size > espalier::wire::kValueBytesMax) {
    return espalier::fail(Code::value_too_long, espalier::wire::kValueBytesMax);
  }
  return {};
}

// Adds one thing about a key, by `add(batch)`.
template <class Add>
espalier_code add_to(const char* call, espalier_batch* batch, const espalier_bytes& key,
                     const espalier_bytes& value, const Add& add) noexcept {
  return c::run(call, {c::given(batch, "batch"), c::good(key, "key"), c::good(value, "value")},
                [&]() -> Result<void> {
                  if (const auto good = fits(key, value); !good) return good;
                  add(batch->batch);
                  return {};
                });
}

}  // namespace

espalier_code espalier_batch_create(espalier_batch** batch) {
  return c::run(__func__, {c::given(batch, "batch")}, [&]() -> Result<void> {
    *batch = new espalier_batch;
    return {};
  });
}

void espalier_batch_destroy(espalier_batch* batch) { delete batch; }

espalier_code espalier_batch_clear(espalier_batch* batch) {
  return c::run(__func__, {c::given(batch, "batch")}, [&]() -> Result<void> {
    batch->batch.clear();
    return {};
  });
}

espalier_code espalier_batch_put(espalier_batch* batch, espalier_bytes key, espalier_bytes value) {
  return add_to(__func__, batch, key, value,
                [&](auto& to) { to.put(c::view(key), c::view(value)); });
}

espalier_code espalier_batch_erase(espalier_batch* batch, espalier_bytes key) {
  return add_to(__func__, batch, key, {}, [&](auto& to) { to.erase(c::view(key)); });
}

espalier_code espalier_batch_only_if_absent(espalier_batch* batch, espalier_bytes key) {
  return add_to(__func__, batch, key, {}, [&](auto& to) { to.only_if_absent(c::view(key)); });
}

espalier_code espalier_batch_only_if_present(espalier_batch* batch, espalier_bytes key) {
  return add_to(__func__, batch, key, {}, [&](auto& to) { to.only_if_present(c::view(key)); });
}

espalier_code espalier_batch_only_if_value(espalier_batch* batch, espalier_bytes key,
                                           espalier_bytes value) {
  return add_to(__func__, batch, key, value,
                [&](auto& to) { to.only_if_value(c::view(key), c::view(value)); });
}

espalier_code espalier_batch_only_if_version(espalier_batch* batch, espalier_bytes key,
                                             espalier_version_number version) {
  return add_to(__func__, batch, key, {},
                [&](auto& to) { to.only_if_version(c::view(key), version); });
}
