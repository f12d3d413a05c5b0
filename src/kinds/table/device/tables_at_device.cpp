// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/device/tables_at_device.hpp"

#include <optional>
#include <utility>

#include "base/assert.hpp"
#include "base/bytes.hpp"
#include "channel/device/host_asker.hpp"
#include "channel/device/host_posts.hpp"
#include "channel/device/relay.hpp"
#include "engine/call.hpp"
#include "engine/payload_reader.hpp"
#include "kinds/table/calls.hpp"
#include "kinds/table/loaded_pipeline.hpp"
#include "kinds/table/offload/loaded_pipelines.hpp"
#include "kinds/table/offload/loaded_run.hpp"

namespace espalier::device {
namespace {

using offload::Call;
using offload::Next;
using offload::Offload;
using wire::OffloadId;

// Also when the client that loaded it is gone.
void drop_loaded_pipeline(Call& call) {
  const auto loaded = reply_in<table_calls::Loaded>(*host_answer(call));
  if (!loaded) return;
  HostLink& link = host_link(call);
  const wire::RequestMessage<table_calls::DropPipelines> drop({base::bytes_of(loaded->pipeline)});
  link.notify(link.connection(), drop.get());
}

// For a loaded pipeline the device has the message, and sends it to the host. Keys of a run are for
// the node with the memory; the device does not forward any.
Next relay_rows(Call& call) {
  if (is_relayed(call)) return relay(call);
  if (!call.key().empty()) {
    call.wipe_key();
    return call.fail({Code::unsupported, 0, 0},
                     "a device hands on no keys: ask its host for what is to be decrypted");
  }
  const bool is_query = call.offload().id == OffloadId::table_query;
  const auto asked = is_query ? wire::read_request<table_calls::Query>(call.bytes()) : std::nullopt;
  if (!asked || !table::is_loaded_run(offload::bytes_of_text(asked->pipeline))) {
    return begin_long_relay(call);  // what a request must be like, the host says
  }
  auto message = offload::message_of_run(offload::LoadedPipelines::of(call.connection()),
                                         asked->table, offload::bytes_of_text(asked->pipeline));
  if (!message) return call.fail(message.error().error, message.error().words);
  return begin_long_relay(call, *std::move(message));
}

// The host has found nothing wrong with it. It is kept here, for there all clients of a worker are
// one session.
Next load_pipeline(Call& call) {
  const HostAnswer* const answer = host_answer(call);
  if (answer == nullptr || answer->header.code != 0 || !answer->last) return ask_host(call);
  drop_loaded_pipeline(call);
  const auto asked = wire::read_request<table_calls::LoadPipeline>(call.bytes());
  if (!asked) return call.fail({Code::corrupt, 0, 0});
  auto message = table::decode_pipeline(offload::bytes_of_text(asked->pipeline));
  if (!message) return call.fail({Code::corrupt, 0, 0}, message.error().message());
  return offload::keep_pipeline(call, {asked->table, *std::move(message)});
}

}  // namespace

void serve_tables_at_device(Offload& made, const Offload&) {
  if (made.id == OffloadId::pipeline_load) {
    made.step = load_pipeline;
    static constexpr PostHandler kPosts{.client_gone = drop_loaded_pipeline};
    made.for_executor = &kPosts;
    return;
  }
  ESPALIER_ASSERT(made.id == OffloadId::table_read || made.id == OffloadId::table_query);
  made.step = relay_rows;
  static constexpr PostHandler kPosts{.wants_more = wants_more};
  made.for_executor = &kPosts;
  made.cancel = cancel_relay;
}

}  // namespace espalier::device
