// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as the request and as the reply of every call that is read by the codec
// (wire/call_codec.hpp): nothing is read beyond them, and what is read writes the same again.
//
// Input: 24 bytes of what headers say, one with the key's length, the key, and the payload.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "catalog/calls.hpp"
#include "kinds/embedding/calls.hpp"
#include "kinds/embedding/model/model_calls.hpp"
#include "kinds/hash/calls.hpp"
#include "kinds/map/calls.hpp"
#include "kinds/map/item_calls.hpp"
#include "kinds/region/calls.hpp"
#include "kinds/sequencer/calls.hpp"
#include "kinds/table/calls.hpp"
#include "wire/session_calls.hpp"
#include "wire/testing/call_checks.hpp"

namespace espalier::client {
namespace {

struct Said {
  std::uint32_t object;
  std::uint32_t argument;
  std::uint64_t version;
  std::uint64_t read_version;
};

void run(const std::uint8_t* data, std::size_t size) {
  const std::unique_ptr<char[]> exact(new char[size]);  // so that a byte too far is seen
  if (size != 0) std::memcpy(exact.get(), data, size);
  std::string_view left(exact.get(), size);
  Said said{};
  if (left.size() <= sizeof said) return;
  std::memcpy(&said, left.data(), sizeof said);
  left.remove_prefix(sizeof said);
  wire::CallBytes bytes;
  bytes.object = said.object;
  bytes.argument = said.argument;
  bytes.at_snapshot = (said.object & 1) != 0;
  bytes.header.version = said.version;
  bytes.header.read_version = said.read_version;
  bytes.header.flags = static_cast<std::uint8_t>(said.argument);
  bytes.key = left.substr(1, static_cast<std::uint8_t>(left.front()));
  bytes.payload = left.substr(1 + bytes.key.size());
  wire::check_calls(object_calls::All() + sequencer_calls::All() + hash_calls::All() +
                        region_calls::All() + embedding_calls::All() + model_calls::All() +
                        session_calls::All() + table_calls::All() + map_calls::All() +
                        map_calls::AllOnItems(),
                    bytes);
}

}  // namespace
}  // namespace espalier::client

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::client::run(data, size);
  return 0;
}
