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

/// A message as it came.
struct CallBytes {
  std::uint32_t object = 0;
  std::uint32_t argument = 0;
  std::string_view key;
  std::string_view payload;
  ResponseHeader header{};
};

/// Whether a node's scheduler would let lengths like these through.
[[nodiscard]] inline bool within(const Limits& limits, const CallBytes& bytes) {
  return bytes.key.size() >= limits.key_bytes_min && bytes.key.size() <= limits.key_bytes_max &&
         bytes.payload.size() >= limits.payload_bytes_min &&
         bytes.payload.size() <= limits.payload_bytes_max;
}

template <class Request>
void check_request(const CallBytes& bytes) {
  const auto request =
      read_request<Request>(bytes.object, bytes.argument, bytes.key, bytes.payload);
  const bool lengths = within(kRow<Request>.limits, bytes);
  if (lengths) base::want(request.has_value(), "lengths that the row allows are not read");
  if (!request) return;
  static_cast<void>(fault_of(*request));
  const RequestMessage<Request> again(*request);
  const CallMessage& message = again.get();
  base::want(message.offload == Request::kCall.id, "another call");
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
