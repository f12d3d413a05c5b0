// SPDX-License-Identifier: Apache-2.0
// What holds of every call's request and reply, whatever bytes come: what is read says where each
// byte went, so that writing it brings the same bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/testing/fuzz_input.hpp"
#include "wire/call_codec.hpp"

namespace espalier::wire {

/// A message as it came; of a reply the payload alone counts of its request.
struct CallBytes : RequestBytes {
  ResponseHeader header{};
};

/// Whether a request of such lengths must be read: of what is sized, its own bytes say more.
template <class Request>
[[nodiscard]] bool is_to_be_read(const CallBytes& bytes) {
  const Limits& limits = kRow<Request>.limits;
  const std::uint32_t number = limits.at_snapshot ? sizeof(std::uint64_t) : 0;
  const std::uint32_t in_front = bytes.at_snapshot ? number : 0;
  const bool key_fits = limits.map || (bytes.key.size() >= limits.key_bytes_min &&
                                       bytes.key.size() <= limits.key_bytes_max);
  return key_fits && bytes.payload.size() >= limits.payload_bytes_min + in_front &&
         bytes.payload.size() <= limits.payload_bytes_max - number + in_front &&
         !measure_of<Request>().has_sized();
}

template <class Request>
void check_request(const CallBytes& bytes) {
  const auto request = read_request<Request>(bytes);
  if (is_to_be_read<Request>(bytes)) {
    base::want(request.has_value(), "lengths that the row allows are not read");
  }
  if (!request) return;
  static_cast<void>(fault_of(*request));
  const RequestMessage<Request> again(*request);
  const CallMessage& message = again.get();
  base::want(message.offload == Request::kCall.id, "another call");
  base::want(!message.at_snapshot || bytes.at_snapshot, "a snapshot that was not named");
  std::string payload(message.payload);
  payload += message.more_payload;
  base::want(payload == bytes.payload, "another payload");
  base::want(message.map == 0 || message.map == bytes.object, "another object");
  base::want(message.argument == 0 || message.argument == bytes.argument, "another argument");
  base::want(message.key.empty() || message.key == bytes.key, "another key");
}

template <class Reply>
void check_reply(const CallBytes& bytes) {
  const auto reply = read_reply<Reply>(bytes.header, bytes.payload);
  if (!reply) return;
  const ReplyMessage<Reply> again(*reply);
  std::string payload(again.payload());
  payload += again.more_payload();
  base::want(payload == bytes.payload, "another payload");
  const ResponseHeader& header = again.header();
  base::want(header.version == 0 || header.version == bytes.header.version, "another version");
  base::want(header.read_version == 0 || header.read_version == bytes.header.read_version,
             "another read version");
  base::want((header.flags & ~bytes.header.flags) == 0, "flags that were not there");
}

/// The same for all calls of a list.
template <class... Requests>
void check_calls(CallList<Requests...>, const CallBytes& bytes) {
  (check_request<Requests>(bytes), ...);
  (check_reply<typename Requests::Reply>(bytes), ...);
}

}  // namespace espalier::wire
