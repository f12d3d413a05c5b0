// SPDX-License-Identifier: Apache-2.0
// The access matrix: every request, with the roles that may issue it and its result then. A node's
// and a device's behaviour is checked against this table. An offload without a row fails a test.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "channel/rings/thread_rings.hpp"
#include "engine/registry.hpp"
#include "espalier/client_secret.hpp"
#include "espalier/error.hpp"

namespace espalier::test::roles {

using offload::Names;
using offload::Right;
using wire::OffloadId;

/// The result of an allowed request.
enum class Then : std::uint8_t {
  done,
  by_node,    // done, but not by a device, which names its host
  by_fabric,  // done over transports of the fabric, with WRITEs and atomics
  by_reads,   // done over transports with READs: `shm`, `roce`, `roce+memif`
  other,      // another error: invalid content, or an unsuitable transport
};
/// What a request contains of the answer before it.
enum class Says : std::uint8_t {
  nothing,
  version,   // the version of its header, in 8 bytes, if it was done
  payload,   // the first 8 bytes of its payload
  prefixed,  // nothing; its payload has a prefixed name after 8 bytes
};
enum class On : std::uint8_t { nothing, map, table, sequencer, hash, region, embedding, model };

struct Row {
  OffloadId id;
  Right right;
  Names names;  // how it names its object
  Then then;
  On on = On::nothing;  // the object whose number it has
  std::string key{};    // after the prefix, if it is a name
  std::string payload{};
  std::uint32_t argument = 0;
  Says says = Says::nothing;  // in place of the payload
};

/// Objects with a common prefix of names, and their numbers.
struct Objects {
  std::string prefix;
  std::map<On, std::uint32_t> numbers;
};
/// A client: a role, and the prefix of names that it is restricted to.
struct Client {
  Right role = Right::none;
  std::string prefix{};
  bool all = false;  // an administrator with the rights of peers, too

  [[nodiscard]] bool may(Right right) const {
    return wire::has_right(all ? wire::kAllRights : wire::rights_of(role), right);
  }
};
/// In the order of the requests.
const std::vector<Row>& rows();

Result<std::unique_ptr<client::ThreadRings>> open_rings(const std::string& address,
                                                        const ClientSecret& secret);
/// Issues all requests in order. Returns the resulting codes and details, or the one of a failed
/// connection.
std::vector<Error> ask_all(const std::string& address, const ClientSecret& secret,
                           const Objects& objects);

/// Checks the results against the table. `by`: the transport ("unix", "shm", "roce", "roce+memif",
/// "ofi"), or "device".
void expect_as_written(const std::vector<Error>& came, const Client& client, const Objects& objects,
                       std::string_view by);

}  // namespace espalier::test::roles
